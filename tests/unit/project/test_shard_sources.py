"""What a node's shards come to: each read once a run, several at a time. Spark has no part."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError
from dbt_common.invocation import get_invocation_id, reset_invocation_id

from dbt.adapters.mzs3 import dbt_log, runner
from dbt.adapters.mzs3.errors import ShardError
from dbt.adapters.mzs3.project import staging
from dbt.adapters.mzs3.project.sources import needed_sources
from dbt.adapters.mzs3.shard.read import table
from dbt.adapters.mzs3.shard.read.column_bytes import ColumnBytes
from dbt.adapters.mzs3.shard.read.table import SourceTable
from dbt.adapters.mzs3.store.connection import AwsConnection


def source(name: str, kind: str = "persist_shard") -> Any:
    external = {"type": kind, "location": f"s3://lake/{name}"}
    column = SimpleNamespace(name="id", data_type="bigint")
    return SimpleNamespace(
        unique_id=f"source.acme.lake.{name}",
        source_name="lake",
        name=name,
        schema="raw",
        identifier=name,
        external=SimpleNamespace(to_dict=lambda omit_none: external),
        columns={"id": column},
    )


SOURCES = {
    node.unique_id: node
    for node in [*map(source, ["orders", "items"]), source("files", "s3_csv_source")]
}
NODE = SimpleNamespace(resource_type="model", depends_on=SimpleNamespace(nodes=list(SOURCES)))


def read_shards_for_node(adapter: Any, node: Any) -> dict[str, dict[str, int]]:
    manifest = adapter.get_macro_resolver()
    return staging.read_shards(adapter, needed_sources(manifest, node, "persist_shard"))


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> Any:
    reset_invocation_id()
    handle = SimpleNamespace(cancelled=threading.Event())
    credentials = SimpleNamespace(
        secrets=[],
        has_session=True,
        runs_jobs=True,
        connections={"default": AwsConnection()},
        server_side_parameters={},
        default_catalog="spark_catalog",
        executor_timeout=600,
    )
    session = SimpleNamespace(interruptAll=int)
    monkeypatch.setattr(runner, "session_of", lambda _: session)
    monkeypatch.setattr(table, "source_exists", lambda *_: False)
    return SimpleNamespace(
        overlaps={},
        config=SimpleNamespace(
            credentials=credentials, threads=4, args=SimpleNamespace(which="run", EMPTY=False)
        ),
        connections=SimpleNamespace(get_thread_connection=lambda: SimpleNamespace(handle=handle)),
        get_macro_resolver=lambda: SimpleNamespace(sources=SOURCES, nodes={}),
    )


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Puts a function of (source's name, whether empty) in the place of reading."""

    def put(action: Any) -> None:
        def write(_: Any, target: SourceTable, **about: Any) -> ColumnBytes:
            name = target.source.name
            assert (target.schema, target.identifier) == ("raw", name.removeprefix("lake."))
            action(name, False)
            return ColumnBytes(1, 1, 0, {"id": len(name)})

        def write_empty(_: Any, target: SourceTable, *, if_missing: bool) -> None:
            assert (target.columns, target.schema) == ([("id", "bigint")], "raw")
            action(target.source.name, True)

        monkeypatch.setattr(table, "write_source_table", write)
        monkeypatch.setattr(table, "write_empty_table", write_empty)

    return put


def test_the_shards_of_a_node_are_read_at_the_same_time_and_once(
    adapter: Any, reading: Any
) -> None:
    meet, read = threading.Barrier(2), []

    def action(name: str, empty: bool) -> None:
        meet.wait(60)
        read.append((name, empty))

    reading(action)
    told = [read_shards_for_node(adapter, NODE) for _ in range(2)]
    assert told == [{"lake.items": {"id": 10}, "lake.orders": {"id": 11}}, {}]
    assert sorted(read) == [("lake.items", False), ("lake.orders", False)]


def test_a_hook_of_a_run_reads_shards_for_itself(adapter: Any, reading: Any) -> None:
    """The run may write to them after a hook before it, and before a hook after it."""
    read: list[str] = []
    reading(lambda name, _: read.append(name))
    needs = SimpleNamespace(nodes=["source.acme.lake.orders"])
    nodes = [
        SimpleNamespace(resource_type=kind, depends_on=needs, unique_id=name)
        for kind, name in (("operation", "start"), ("model", "m"), ("operation", "end"))
    ]
    for number, node in enumerate(nodes, 1):
        for _ in range(2):
            staging.stage_for_node(adapter, node)
        assert read == ["lake.orders"] * number


def test_the_errors_of_all_shards_are_told(adapter: Any, reading: Any) -> None:
    def action(name: str, _: bool) -> None:
        if name == "lake.items":
            raise ShardError("it is gone")
        raise RuntimeError("out of the blue")

    reading(action)
    with pytest.raises(DbtRuntimeError) as raised:
        read_shards_for_node(adapter, NODE)
    first, second = str(raised.value.msg).splitlines()
    assert first == "lake.items: it is gone"
    assert second.startswith("lake.orders: RuntimeError: out of the blue. This is a defect")


def test_a_clone_and_a_unit_test_read_nothing(adapter: Any, reading: Any) -> None:
    def action(name: str, _: bool) -> None:
        raise AssertionError(name)

    reading(action)
    unit_test = SimpleNamespace(**{**vars(NODE), "resource_type": "unit_test"})
    staging.stage_for_node(adapter, unit_test)
    adapter.config.args.which = "clone"
    staging.stage_for_node(adapter, NODE)


def test_an_empty_run_reads_no_rows(adapter: Any, reading: Any) -> None:
    made: list[Any] = []
    reading(lambda name, empty: made.append((name, empty)))
    adapter.config.args.EMPTY = True
    read_shards_for_node(adapter, NODE)
    assert sorted(made) == [("lake.items", True), ("lake.orders", True)]


def test_making_a_relation_reads_no_rows(adapter: Any, reading: Any) -> None:
    made: list[Any] = []
    reading(lambda name, empty: made.append((name, empty)))
    relation = SimpleNamespace(schema="raw", identifier="orders")
    assert staging.make_source_relation(adapter, relation)
    assert made == [("lake.orders", True)]
    relation = SimpleNamespace(schema="raw", identifier="none")
    assert not staging.make_source_relation(adapter, relation)


def test_a_relation_that_is_made_does_not_take_the_place_of_rows(
    adapter: Any, reading: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one node reads the source, another one asks for its columns."""
    begun, asked, made = threading.Event(), threading.Event(), []
    exists = threading.Event()

    def action(name: str, empty: bool) -> None:
        begun.set()
        assert asked.wait(60)
        made.append((name, empty))
        exists.set()

    reading(action)
    monkeypatch.setattr(table, "source_exists", lambda *_: exists.is_set())
    node = SimpleNamespace(
        **{**vars(NODE), "depends_on": SimpleNamespace(nodes=["source.acme.lake.orders"])}
    )
    whole = threading.Thread(target=read_shards_for_node, args=(adapter, node))
    whole.start()
    assert begun.wait(60)
    relation = SimpleNamespace(schema="raw", identifier="orders")
    missing = threading.Thread(target=staging.make_source_relation, args=(adapter, relation))
    missing.start()
    asked.set()
    whole.join(60)
    missing.join(60)
    assert made == [("lake.orders", False)]


def test_what_a_read_tells_is_logged_under_the_name_of_its_source(
    adapter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged: list[tuple[str, str]] = []

    def write(_: Any, target: SourceTable, *, tell: Any) -> None:
        assert target.invocation_id == get_invocation_id()
        for level in ("debug", "info", "warn"):
            tell((level, "told"))

    def log(level: str) -> Callable[[str], None]:
        return lambda text: logged.append((level, text))

    levels = {level: log(level) for level in ("debug", "info", "warning")}
    monkeypatch.setattr(table, "write_source_table", write)
    monkeypatch.setattr(staging, "logger", SimpleNamespace(**levels))
    monkeypatch.setattr(dbt_log, "logger", SimpleNamespace(**levels))
    staging.read_shards(adapter, [SOURCES["source.acme.lake.orders"]])
    assert logged == [(level, "lake.orders: told") for level in levels]
