"""What a source says of state that is lost or somebody else's; the metastore is a stand-in."""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Row
from support.source.fields import parse

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.formats.read.columns import Column
from dbt.adapters.mzs3.ledger import compaction
from dbt.adapters.mzs3.ledger.lease import UNKNOWN, Cancellation, Holder, Owner, SourceLock
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.ledger.relations import SourceRelations
from dbt.adapters.mzs3.ledger.views import foreign_views, read_views
from dbt.adapters.mzs3.source import ingest as ingest_module
from dbt.adapters.mzs3.source import run
from dbt.adapters.mzs3.source.after_commit import act_on_committed
from dbt.adapters.mzs3.source.ingest import ingest
from dbt.adapters.mzs3.source.operations import object_actions
from dbt.adapters.mzs3.source.operations.object_actions import ObjectAction
from dbt.adapters.mzs3.source.purify import PinnedDefinition
from dbt.adapters.mzs3.source.reset import reset_source
from dbt.adapters.mzs3.source.tables import make_relations, read_tables, require_ledger

RELATIONS = parse().relations
PINNED = PinnedDefinition(None, (Column("id"),), {"location": "s3://lake/"})
RESET = "dbt run-operation reset_s3_source --args '{source: lake.orders, confirm: true}'"


class NotFound(AnalysisException):
    def getCondition(self):
        return "TABLE_OR_VIEW_NOT_FOUND"


def metastore(*tables, properties=()):
    """A session whose metastore has these relations; what SHOW finds is `properties`."""
    rows = [Row(key=key, value=value) for key, value in properties]
    found = SimpleNamespace(collect=lambda: rows, first=lambda: rows[0] if rows else None)

    def sql(text):
        command, what, *_, name = text.split(" ")
        assert command == "SHOW" and what in ("TBLPROPERTIES", "PARTITIONS", "TABLES"), text
        if what == "TABLES":
            return SimpleNamespace(collect=list)
        if name not in tables:
            raise NotFound(name)
        return found

    return SimpleNamespace(catalog=SimpleNamespace(tableExists=tables.__contains__), sql=sql)


def error_of(call, *arguments):
    with pytest.raises(SourceError) as raised:
        call(*arguments)
    return str(raised.value)


def test_a_table_of_rows_without_a_definition_is_somebody_elses():
    spark = metastore(RELATIONS.rows)
    assert error_of(read_tables, spark, parse()) == (
        "lake.orders: raw.orders__rows exists and was not made by this source. Drop it, or give "
        "the source another schema or identifier"
    )


@pytest.mark.parametrize("pinned", ["not hexadecimal", b"{}".hex()])
def test_a_definition_that_cannot_be_read(pinned):
    spark = metastore(RELATIONS.rows, properties=[("mzs3.pinned.0", pinned)])
    assert error_of(read_tables, spark, parse()) == (
        "lake.orders: the definition that is pinned in the properties of raw.orders__rows can't "
        f"be read. Start the source afresh with: {RESET}"
    )


def test_rows_without_a_ledger():
    pinned = [("mzs3.pinned.0", PINNED.to_json().encode().hex())]
    spark = metastore(RELATIONS.rows, properties=pinned)
    assert error_of(read_tables, spark, parse()) == (
        "lake.orders: raw.orders__rows holds rows, but raw.orders__ledger, which says what is "
        f"committed, does not exist. Restore it, or start the source afresh with: {RESET}"
    )
    assert error_of(require_ledger, spark, parse()) == (
        "lake.orders: raw.orders__ledger does not exist, so there is no object to choose"
    )


def test_a_ledger_without_rows():
    spark = metastore(RELATIONS.ledger)
    assert error_of(read_tables, spark, parse()) == (
        "lake.orders: raw.orders__ledger exists, but raw.orders__rows, which holds the source's "
        "rows, does not. If raw.orders__ledger is not this source's, give the source another "
        f"schema or identifier; else start the source afresh with: {RESET}"
    )


@pytest.mark.parametrize("suffix", ["", "__objects", "__rejects"])
def test_a_view_that_the_source_did_not_make_stops_it_before_anything_is_made(suffix):
    names = {"": RELATIONS.source, "__objects": RELATIONS.objects, "__rejects": RELATIONS.rejects}
    spark = metastore(names[suffix], properties=[("view.sqlConfig", "x")])
    assert error_of(make_relations, spark, parse(), PINNED, None) == (
        f"lake.orders: raw.orders{suffix} was not made by this source. Drop it, or give the "
        "source another schema or identifier"
    )
    assert error_of(reset_source, spark, parse()) == (
        f"lake.orders: raw.orders{suffix} was not made by this source; nothing is dropped. Give "
        "the source another schema or identifier"
    )


def test_tables_of_iceberg_are_not_made_where_a_session_keeps_them_as_they_were():
    spark = metastore()
    spark.conf = {}
    cache = "spark.sql.catalog.spark_catalog.cache-enabled"
    assert error_of(
        make_relations, spark, parse(), replace(PINNED, file_format="iceberg"), None
    ) == (
        f"lake.orders: with {cache} a session reads tables of Iceberg as they were before other "
        "runs have committed; set it to false under server_side_parameters"
    )


def test_what_a_source_made_is_no_strangers():
    spark = metastore(RELATIONS.source, RELATIONS.rejects, properties=[("mzs3.view.made_by", "")])
    views = read_views(spark, RELATIONS)
    assert views == {name: {"made_by": ""} for name in (RELATIONS.source, RELATIONS.rejects)}
    assert foreign_views(RELATIONS, views) == []


HOLDER = Holder("token", Owner(place="", boot="", pid=7, started="", host="etl-1"))


def test_tables_of_another_generation_are_known_by_their_names():
    plain = SourceRelations("raw", "Orders")
    made = [plain.new_generation("delta") for _ in range(2)]
    assert made[0].rows != made[1].rows
    assert plain.has_generation(made[0].rows.split(".")[1].strip("`").lower())
    anew = made[0].with_new_rows()
    assert (anew.ledger, anew.rows == made[0].rows) == (made[0].ledger, False)
    assert plain.has_generation(anew.rows.split(".")[1].strip("`").lower())
    assert plain.new_generation("parquet").with_new_rows().rows == plain.rows
    assert plain.new_generation("parquet").rows == plain.rows == "`raw`.`Orders__rows`"
    for name in (
        "orders__rows",
        "orders__lock_12345678",
        "orders2__rows_12345678",
        "orders__rows_x",
    ):
        assert not plain.has_generation(name)


def held_by(monkeypatch, holder):
    """A lock that somebody else has."""
    lock = SourceLock(metastore(), SourceRelations("lost", "orders"), "lake.orders", wait_s=0)
    monkeypatch.setattr(lock, "_try", lambda: holder)
    monkeypatch.setattr(lock.table, "holder", lambda: holder)
    return lock


def test_a_lock_that_another_process_has(monkeypatch):
    lock = held_by(monkeypatch, HOLDER)
    assert error_of(lock.__enter__) == (
        "lake.orders: process 7 on host etl-1 is ingesting this source and has not finished "
        "within 0 s. Run again later; if that process is gone, take its lock away with: dbt "
        "run-operation unlock_s3_source --args '{source: lake.orders}'"
    )


def test_a_lock_that_does_not_say_whose_it_is(monkeypatch):
    text = error_of(held_by(monkeypatch, UNKNOWN).__enter__)
    assert text.startswith(
        "lake.orders: somebody is ingesting this source and has not finished within 0 s. Run again"
    )


def test_what_is_no_lock_is_not_dropped(monkeypatch):
    monkeypatch.setattr(run, "source_settings", lambda *_: nullcontext())
    spark = metastore(RELATIONS.lock, properties=[("owner", "somebody")])
    assert error_of(run.unlock, spark, parse()) == (
        "lake.orders: raw.orders__lock is no lock that a run has taken. Drop it, or give the "
        "source another schema or identifier"
    )


def test_a_lock_that_is_no_longer_there(monkeypatch):
    assert error_of(held_by(monkeypatch, None).require) == (
        "lake.orders: the lock lost.orders__lock was taken away while this run was ingesting; "
        "nothing of it is committed. Run again"
    )


def test_a_run_that_is_cancelled_while_it_commits_may_be_committed():
    stop = Cancellation("lake.orders", committing=True)
    stop.event.set()
    assert error_of(stop.check) == (
        "lake.orders: cancelled while it was committing; either all of this run is committed or "
        "nothing is, and the next run takes what is missing"
    )


def test_another_thread_of_this_process_has_the_lock():
    lock = SourceLock(metastore(), SourceRelations("held", "orders"), "lake.orders", wait_s=0)
    lock._thread.acquire()
    try:
        assert error_of(lock.__enter__) == (
            "lake.orders: another thread of this process has been ingesting this source for more "
            "than 0 s. Run again when it is done"
        )
    finally:
        lock._thread.release()


def test_a_run_that_lost_its_lock_leaves_objects_alone(monkeypatch):
    ledger = SimpleNamespace(
        epochs=lambda: {"5": {"plan", "due", "commit"}},
        require_lock=held_by(monkeypatch, None).require,
    )
    assert error_of(act_on_committed, None, ledger) == (
        "lake.orders: the lock lost.orders__lock was taken away while this run was ingesting; "
        "what it committed stays, and after_commit is left to the next run. Run again"
    )


def test_nothing_is_made_in_another_catalog_than_the_sessions(monkeypatch):
    monkeypatch.setattr(ingest_module, "SourceLock", lambda *_, **__: pytest.fail("locked"))
    spark = MagicMock()
    spark.sql.return_value.first.return_value = {"catalog": "ice"}
    assert error_of(ingest, spark, parse(), None) == (
        "lake.orders: the schema raw is in the catalog ice, which can't have a source's views: "
        "declare schema: spark_catalog.raw, whose tables can be of Iceberg too"
    )
    spark.sql.assert_called_with("SHOW CURRENT NAMESPACE")


def test_who_lost_the_lock_drops_nothing(monkeypatch):
    lock = held_by(monkeypatch, None)
    for step in ("mark", "drop_mark"):
        monkeypatch.setattr(lock.table, step, lambda _: None)
    assert error_of(reset_source, metastore(), parse(), lock) == (
        "lake.orders: the lock lost.orders__lock was taken away while this run was ingesting; "
        "nothing is dropped. Run again"
    )


def test_a_failure_is_on_record_of_a_run_that_has_the_lock_alone(monkeypatch):
    ledger = Ledger.__new__(Ledger)
    ledger._lock = held_by(monkeypatch, None)
    assert "nothing of it is committed" in error_of(ledger.write_failed, "5", None, None)


def test_a_decision_that_is_written_late_is_not_told_as_done(monkeypatch):
    lock = held_by(monkeypatch, HOLDER)
    lock.holder = HOLDER
    written = []

    def write_note(events):
        written.append(events)
        monkeypatch.setattr(lock.table, "holder", lambda: None)

    ledger = SimpleNamespace(epochs=dict, objects=MagicMock(), write_note=write_note)
    monkeypatch.setattr(object_actions, "locked_source", lambda *_, **__: nullcontext(lock))
    monkeypatch.setattr(object_actions, "persisted", nullcontext)
    monkeypatch.setattr(object_actions, "Ledger", lambda *_: ledger)
    monkeypatch.setattr(object_actions, "existing_relations", lambda *_: RELATIONS)
    for name in ("require_ledger", "select_objects", "_require_sense", "_events", "F"):
        monkeypatch.setattr(object_actions, name, MagicMock())
    assert error_of(object_actions.act, None, parse(), ObjectAction.SKIP, ["1.csv"]) == (
        "lake.orders: the lock lost.orders__lock was taken away while this run was ingesting; "
        "the decision may not count, as s3_source_status shows. Run again"
    )
    assert len(written) == 1


def test_who_lost_the_lock_changes_no_view(monkeypatch):
    done = []

    def require_lock():
        if done:
            raise SourceError("taken away")

    ledger = SimpleNamespace(
        epochs=lambda: {"1": {"plan"}},
        write_snapshot=lambda *_: done.append("snapshot"),
        require_lock=require_lock,
    )
    monkeypatch.setattr(compaction, "snapshot_events", lambda *_: None)
    monkeypatch.setattr(compaction, "show_since", lambda *_: done.append("views"))

    with pytest.raises(SourceError, match="taken away"):
        compaction.compact(ledger)
    assert done == ["snapshot"]
