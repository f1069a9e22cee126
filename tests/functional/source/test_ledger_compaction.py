"""A compacted ledger says what the whole of it said, also if compacting stops half-way."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.queue.announcing import Died, dying_at

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.ledger import compaction
from dbt.adapters.mzs3.ledger.compaction import compact
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.ledger.partitions import location_of
from dbt.adapters.mzs3.ledger.rows_table import RowsTable
from dbt.adapters.mzs3.source.operations.object_actions import ObjectAction, act
from dbt.adapters.mzs3.source.operations.status import read_status

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def _rows_are_dropped_at_once(monkeypatch):
    monkeypatch.setattr(compaction, "KEEP_MS", 0)


def another_epoch(lake):
    """The ledger with one epoch more, of which nothing follows."""
    ledger = Ledger(lake.spark, lake.relations)
    ledger.write_note(ledger.events().limit(0))
    return ledger


def compacted(lake):
    compact(another_epoch(lake))


def everything(lake):
    status = read_status(lake.spark, lake.definition())
    return lake.rows("id"), lake.states(), (status.state, status.objects, status.epochs)


@pytest.fixture
def eventful(lake):
    """A source to which everything has happened."""
    lake.external = {"on_overwrite": "replace"}
    for name in "abcdef":
        lake.put(f"{name}.csv", f"id\n{name}1\n{name}2\n")
    lake.ingest()
    lake.put("a.csv", "id\na3\n")  # replaced
    lake.ingest()
    act(lake.spark, lake.definition(), ObjectAction.RETRACT, ["b.csv", "f.csv"])
    act(lake.spark, lake.definition(), ObjectAction.RETRY, ["f.csv"])  # beside what b had
    lake.external = {"on_overwrite": "append"}
    lake.put("c.csv", "id\nc3\n")  # appended
    lake.ingest()
    lake.external = {"on_overwrite": "ignore"}
    lake.put("d.csv", "id\nd3\n")  # ignored
    lake.ingest()
    lake.put("g.csv", "id\ng\n")
    with pytest.raises(Died):
        lake.ingest(on_step=dying_at("end fetch"))  # void
    lake.external = {"on_overwrite": "ignore", "max_objects_per_run": 1}
    lake.put("h.csv", "id\n1,2\n")
    lake.put("i.csv", "id\ni\n")
    lake.ingest()
    with pytest.raises(SourceError, match=r"orders/h\.csv"):
        lake.ingest()  # h failed, i waits
    act(lake.spark, lake.definition(), ObjectAction.RETRY, ["e.csv"])
    return lake


@pytest.mark.light
def test_nothing_that_a_ledger_says_is_lost_by_compacting_it(eventful):
    lake = eventful
    before = everything(lake)
    ledger = Ledger(lake.spark, lake.relations)
    [dead] = [epoch for epoch, phases in ledger.epochs().items() if "void" in phases]
    counted = ("*", "1 AS rows", "0 AS rejects", "CAST(NULL AS string) AS error")
    plan_of_the_dead = ledger.plan(dead).selectExpr(*counted).collect()
    compacted(lake)
    assert everything(lake) == before
    compacted(lake)
    assert everything(lake) == before
    # Now only the two snapshots are left; rows that nobody sees are gone.
    epochs = Ledger(lake.spark, lake.relations).epochs()
    assert [sorted(phases) for phases in epochs.values()] == [["note", "snapshot"]] * 2
    compacted(lake)
    kept = lake.spark.table(lake.relations.rows).select("mz_epoch").distinct().collect()
    assert dead not in {row["mz_epoch"] for row in kept}
    assert everything(lake) == before
    # The dead run's commit arrives.
    frame = lake.spark.createDataFrame(
        plan_of_the_dead,
        "object string, etag string, size bigint, last_modified timestamp, hides boolean, "
        "rows bigint, rejects bigint, error string",
    )
    ledger.write_commit(dead, frame)
    assert everything(lake) == before
    lake.put("h.csv", "id\nh\n")
    lake.external = {"on_overwrite": "ignore"}
    assert lake.ingest().objects == 3
    assert {row[0] for row in lake.rows()} == {f"{name}.csv" for name in "acdefghi"}
    assert lake.ingest().objects == 0


def test_what_a_failed_fetch_leaves_goes_when_the_ledger_is_compacted(lake):
    lake.put("1.csv", "id\n1,2\n")
    with pytest.raises(SourceError, match=r"orders/1\.csv"):
        lake.ingest()
    place = Path(location_of(lake.spark, lake.relations.rows).removeprefix("file:"))
    [left] = [folder for folder in place.iterdir() if folder.is_dir()]
    # As if a task had ended, and its files were there already.
    (left / "part-00000.parquet").write_bytes(b"")
    for _ in range(2):
        compacted(lake)
    assert not left.exists()
    assert lake.states()["1.csv"][0] == "failed"


@pytest.mark.light
def test_a_compaction_that_dies_is_made_good_by_the_next(lake, monkeypatch):
    lake.external = {"on_overwrite": "replace"}
    for number in range(2):
        lake.put("1.csv", f"id\n{number}\n")
        lake.ingest()
    before = everything(lake)

    def die(*_, **__):
        raise Died

    # The last two have something to drop, as there is a snapshot by then.
    for stop in ("require_lock", "write_snapshot", "drop", "drop_except"):
        with monkeypatch.context() as patch, pytest.raises(Died):
            ledger = another_epoch(lake)
            patch.setattr(RowsTable if stop == "drop_except" else Ledger, stop, die)
            compact(ledger)
        assert everything(lake) == before, stop
        compacted(lake)
        assert everything(lake) == before, stop
    assert len(lake.spark.sql(f"SHOW PARTITIONS {lake.relations.rows}").collect()) == 1
    assert lake.ingest().objects == 0


@pytest.mark.light
def test_a_run_compacts_the_ledger_when_it_is_due(lake, monkeypatch):
    monkeypatch.setattr(compaction, "COMPACT_AFTER", 2)
    steps = []
    for number in range(5):
        lake.put(f"{number}.csv", f"id\n{number}\n")
        lake.ingest(on_step=steps.append)
    assert steps.count("end compact") == 2
    assert len(lake.rows()) == 5
    assert read_status(lake.spark, lake.definition()).epochs == 5
    assert len(Ledger(lake.spark, lake.relations).epochs()) == 4  # the first is dropped
