"""What a node's sources come to: each tried once a run, several at a time. Spark has no part."""

import threading
from types import SimpleNamespace

import pytest
from dbt.task.run import get_execution_status
from dbt_common.events.contextvars import log_contextvars
from dbt_common.exceptions import DbtRuntimeError
from dbt_common.invocation import reset_invocation_id

from dbt.adapters.mzs3 import dbt_log, runner
from dbt.adapters.mzs3.connections import Leftovers
from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.impl import Mzs3Adapter
from dbt.adapters.mzs3.project import source_runs, staging
from dbt.adapters.mzs3.source.report import IngestReport
from dbt.adapters.mzs3.store.connection import AwsConnection


def source(table):
    external = {"type": "s3_csv_source", "location": f"s3://lake/{table}"}
    return SimpleNamespace(
        unique_id=f"source.acme.lake.{table}",
        resource_type="source",
        source_name="lake",
        name=table,
        schema="raw",
        identifier=table,
        relation_name=f"raw.{table}",
        database=None,
        external=SimpleNamespace(to_dict=lambda omit_none: external),
        columns={},
    )


SOURCES = {node.unique_id: node for node in map(source, ["orders", "items", "rates"])}
HOOK = "operation.acme.acme-on-run-start-0"
NODE = SimpleNamespace(resource_type="model", depends_on=SimpleNamespace(nodes=list(SOURCES)))


@pytest.fixture
def cancelled():
    return threading.Event()


@pytest.fixture
def adapter(cancelled):
    reset_invocation_id()
    handle = SimpleNamespace(cancelled=cancelled)
    credentials = SimpleNamespace(
        secrets=[],
        has_session=True,
        runs_jobs=True,
        connections={"default": AwsConnection()},
        server_side_parameters={},
        default_catalog="spark_catalog",
        executor_timeout=600,
    )
    config = SimpleNamespace(
        credentials=credentials,
        threads=4,
        args=SimpleNamespace(which="run", EMPTY=False),
        project_name="acme",
        cli_vars={},
        vars=SimpleNamespace(to_dict=dict),
    )
    return SimpleNamespace(
        overlaps={},
        config=config,
        connections=SimpleNamespace(get_thread_connection=lambda: SimpleNamespace(handle=handle)),
        get_macro_resolver=lambda: SimpleNamespace(sources=SOURCES, nodes={}),
    )


@pytest.fixture
def ingest(monkeypatch):
    """Puts a function of (session, source's name, options) in the place of ingesting."""
    monkeypatch.setattr(runner, "session_of", lambda _: SimpleNamespace(interruptAll=int))

    def put(action):
        def ingest(session, definition, connection, **options):
            action(session, definition.name, options)
            return IngestReport(definition.name, 0, 0, 0, 0.0)

        monkeypatch.setattr(staging, "ingest", ingest)

    return put


def test_the_sources_of_a_node_are_ingested_at_the_same_time_in_sessions_of_their_own(
    adapter, ingest
):
    meet, sessions = threading.Barrier(3), []

    def action(session, name, options):
        sessions.append(id(session))
        meet.wait(60)

    ingest(action)
    staging.stage_for_node(adapter, NODE)
    assert len(set(sessions)) == 3


def test_a_source_is_tried_once_a_run_whatever_is_wrong_with_it(adapter, ingest):
    tried = []

    def action(session, name, options):
        tried.append(name)
        if name == "lake.items":
            raise RuntimeError("out of the blue")

    ingest(action)
    defect = (
        r"lake\.items: RuntimeError: out of the blue. This is a defect, please report it with the "
        "log of dbt"
    )
    for _ in range(2):
        with pytest.raises(DbtRuntimeError, match=defect):
            staging.stage_for_node(adapter, NODE)
    assert sorted(tried) == ["lake.items", "lake.orders", "lake.rates"]


def test_the_errors_of_all_sources_are_told(adapter, ingest):
    def action(session, name, options):
        raise RuntimeError(name)

    ingest(action)
    with pytest.raises(DbtRuntimeError) as raised:
        staging.ingest_sources(adapter, [*SOURCES.values()])
    assert str(raised.value.msg).count("RuntimeError: lake.") == 3


def test_cancelling_the_nodes_connection_reaches_what_runs(
    adapter, ingest, cancelled, monkeypatch
):
    interrupted = threading.Event()
    session = SimpleNamespace(interruptAll=interrupted.set)
    monkeypatch.setattr(runner, "session_of", lambda _: session)

    def action(session, name, options):
        assert options["cancelled"] is cancelled
        cancelled.set()
        assert interrupted.wait(60)

    ingest(action)
    staging.stage_for_node(adapter, NODE)


def test_what_a_cancelled_ingestion_has_left_is_told_at_the_end_of_the_run(
    adapter, ingest, cancelled
):
    def action(session, name, options):
        cancelled.set()
        raise SourceError(f"{name}: cancelled")

    adapter.connections.leftovers = Leftovers()
    ingest(action)
    with pytest.raises(DbtRuntimeError):
        staging.stage_for_node(adapter, NODE)
    with pytest.raises(DbtRuntimeError) as raised:
        try:
            raise KeyboardInterrupt
        finally:
            adapter.connections.leftovers.raise_if_interrupted()
    assert raised.value.msg.splitlines() == [
        "interrupted by the user",
        *(f"lake.{table}: cancelled" for table in ("items", "orders", "rates")),
    ]


@pytest.fixture
def interrupted(adapter, ingest, cancelled, monkeypatch):
    """Ctrl-C comes while dbt's main thread waits for sources, which then end with an error."""

    def run_together(tasks, **_):
        cancelled.set()
        for task in tasks:
            task()
        raise KeyboardInterrupt

    def action(session, name, options):
        raise SourceError(f"{name}: cancelled")

    adapter.connections.leftovers = Leftovers()
    monkeypatch.setattr(source_runs, "run_together", run_together)
    ingest(action)


def test_an_interrupted_run_operation_says_what_it_has_left(adapter, interrupted):
    with pytest.raises(DbtRuntimeError) as raised:
        Mzs3Adapter.run_operation(adapter, "ingest_s3_sources", "lake.orders")
    assert raised.value.msg == "interrupted by the user\nlake.orders: cancelled"


def test_ctrl_c_while_a_hook_ingests_ends_the_run_of_dbt(adapter, interrupted):
    hook = SimpleNamespace(**vars(NODE) | {"resource_type": "operation", "unique_id": HOOK})
    manifest = SimpleNamespace(sources=SOURCES, nodes={HOOK: hook})
    adapter.get_macro_resolver = lambda: manifest
    adapter.execute = lambda sql, **_: staging.stage_for_run_hook(adapter)
    with log_contextvars(node_info={"unique_id": HOOK}), pytest.raises(KeyboardInterrupt):
        get_execution_status("select 1", adapter)  # as dbt does, which goes on after an error
    with pytest.raises(DbtRuntimeError, match=r"lake\.orders: cancelled"):
        try:
            raise KeyboardInterrupt
        finally:
            adapter.connections.leftovers.raise_if_interrupted()


def test_a_source_that_shares_its_relation_is_not_ingested(adapter, ingest):
    ingested = []
    ingest(lambda session, name, options: ingested.append(name))
    adapter.overlaps = {"source.acme.lake.orders": ["raw.orders is another's too"]}
    with pytest.raises(
        DbtRuntimeError, match=r"lake\.orders has 1 problem .*\n.*is another's too"
    ):
        staging.stage_for_node(adapter, NODE)
    assert sorted(ingested) == ["lake.items", "lake.rates"]


def test_what_a_hook_of_a_run_reads_is_ingested_once(adapter, ingest):
    ingested = []
    ingest(lambda session, name, options: ingested.append(name))
    hook = SimpleNamespace(
        unique_id=HOOK,
        resource_type="operation",
        depends_on=SimpleNamespace(nodes=["source.acme.lake.orders"]),
    )
    manifest = SimpleNamespace(sources=SOURCES, nodes={HOOK: hook, "model.acme.m": NODE})
    adapter.get_macro_resolver = lambda: manifest
    staging.stage_for_run_hook(adapter)
    for command in ("freshness", "run"):
        adapter.config.args.which = command
        for node in ("model.acme.m", "operation.acme.gone", HOOK):
            with log_contextvars(node_info={"unique_id": node}):
                staging.stage_for_run_hook(adapter)
                staging.stage_for_run_hook(adapter)
        assert ingested == ["lake.orders"] * (command == "run")


def test_a_profile_for_sql_alone_reads_what_others_have_ingested(adapter):
    rejects = source("orders__rejects")
    rejects.external = None
    node = SimpleNamespace(
        resource_type="model", depends_on=SimpleNamespace(nodes=[rejects.unique_id])
    )
    hook = SimpleNamespace(**vars(NODE) | {"resource_type": "operation", "unique_id": HOOK})
    manifest = SimpleNamespace(sources={**SOURCES, rejects.unique_id: rejects}, nodes={HOOK: hook})
    adapter.get_macro_resolver = lambda: manifest
    credentials = adapter.config.credentials
    credentials.has_session = credentials.runs_jobs = False
    credentials.method = "thrift"
    staging.stage_for_node(adapter, node)
    assert not staging.make_source_relation(adapter, rejects)
    error = pytest.raises(DbtRuntimeError, match=r"lake\.orders needs more than SQL")
    with error, log_contextvars(node_info={"unique_id": HOOK}):
        staging.stage_for_run_hook(adapter)


def test_a_query_of_what_is_not_there_says_who_ingests_it(adapter):
    adapter.get_relation = lambda *place: None if "orders" in place else "there"
    for relation in ("raw.orders", "raw.orders__rejects", "raw.orders__objects"):
        hint = staging.who_ingests(adapter, f"select * from {relation} join raw.items")
        assert "never ingested: lake.orders. To do so: dbt run-operation ingest" in hint
    for other in ("raw.orders__copy", "raw.orders_2", "draw.orders", "raw.items"):
        assert staging.who_ingests(adapter, f"select * from {other}") == ""


def test_a_clone_and_a_unit_test_ingest_nothing(adapter, ingest):
    def action(session, name, options):
        raise AssertionError(name)

    ingest(action)
    staging.stage_for_node(
        adapter, SimpleNamespace(**{**vars(NODE), "resource_type": "unit_test"})
    )
    adapter.config.args.which = "clone"
    staging.stage_for_node(adapter, NODE)


def test_making_a_relation_is_no_attempt_at_ingesting(adapter, ingest):
    asked = []
    ingest(lambda session, name, options: asked.append((name, options["create_only"])))
    for place in (("raw", "orders"), ("spark_catalog.RAW", "orders"), ("raw", "orders__rejects")):
        relation = SimpleNamespace(schema=place[0], identifier=place[1])
        assert staging.make_source_relation(adapter, relation)
    staging.ingest_sources(adapter, [SOURCES["source.acme.lake.orders"]])
    assert asked == [("lake.orders", True), ("lake.orders", False)]


def test_a_relation_of_no_source_is_left_alone(adapter):
    relation = SimpleNamespace(schema="raw", identifier="other")
    assert not staging.make_source_relation(adapter, relation)


@pytest.mark.parametrize("full_refresh", [False, True])
def test_sources_are_ingested_afresh_with_the_flag_and_the_variable(adapter, ingest, full_refresh):
    afresh = {}
    ingest(lambda session, name, options: afresh.update({name: options["afresh"]}))
    adapter.config.args.FULL_REFRESH = full_refresh
    adapter.config.cli_vars = {"mzs3_full_refresh_sources": "lake.orders"}
    staging.stage_for_node(adapter, NODE)
    assert afresh == {"lake.orders": full_refresh, "lake.items": False, "lake.rates": False}


def test_what_an_ingestion_has_to_say_goes_to_the_log(adapter, ingest, monkeypatch):
    told = []
    log = SimpleNamespace(warning=told.append, info=told.append, debug=told.append)
    monkeypatch.setattr(staging, "logger", log)
    monkeypatch.setattr(dbt_log, "logger", log)

    def action(session, name, options):
        options["tell"](("warn", f"{name}: look into this"))
        options["tell"](("say", f"{name}: nothing much"))

    ingest(action)
    staging.stage_for_node(adapter, NODE)
    assert len(told) == 6
    assert "lake.orders: look into this" in told
