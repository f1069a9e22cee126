"""`max_bytes_per_run: auto` takes what earlier epochs of the ledger say can be fetched in time."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from dbt.adapters.mzs3.ledger.compaction import compact
from dbt.adapters.mzs3.ledger.ledger import Ledger, with_all_columns
from dbt.adapters.mzs3.source.listing import plan
from dbt.adapters.mzs3.source.listing.plan import FIRST_BYTES, OBJECT_BYTES, run_limits
from dbt.adapters.mzs3.source.operations.status import read_status
from dbt.adapters.mzs3.source.options import Intake

pytestmark = [pytest.mark.spark, pytest.mark.light]

TEN_MINUTES = Intake(max_bytes="auto")
MANY = 10**6
"""Times ten minutes, beside which those of the test's own runs do not matter."""
OBJECT = "id\n1\n"
LOAD = len(OBJECT) + OBJECT_BYTES


def made(lake):
    """The source without any object, which takes what it can fetch in ten minutes."""
    lake.external = {"header": ["id"], "max_bytes_per_run": "auto"}
    lake.ingest(create_only=True)
    return lake


def fetched(lake, epoch, load, seconds, *, phases=("plan", "commit"), state="fetched"):
    """An epoch on record, of one object, that took so long."""
    ledger = Ledger(lake.spark, lake.made)
    one = f"'s3://gone/{epoch}' AS object", "'e' AS etag", f"{load - OBJECT_BYTES}L AS size"
    for phase, at in zip(phases, (0, seconds), strict=False):
        events = lake.spark.range(1).selectExpr(*one, f"'{state}' AS state")
        at_that_time = {"at": F.timestamp_seconds(F.lit(at))}
        folder = ledger.table.stage(str(epoch), with_all_columns(events, at_that_time))
        ledger.table.publish(str(epoch), phase, folder)


def allowed(lake):
    return run_limits(Ledger(lake.spark, lake.made), TEN_MINUTES).max_bytes


def test_a_run_takes_what_earlier_ones_could_fetch_in_the_time_and_says_how_many_are_left(lake):
    made(lake)
    fetched(lake, 1_000_000_000_000, 2 * LOAD * MANY, 600 * MANY)
    for number in range(5):
        lake.put(f"{number}.csv", OBJECT)
    report = lake.ingest()
    assert (report.objects, report.waiting_objects, report.waiting_bytes) == (2, 3, 15)
    assert report.line().endswith("; 3 objects (15 B) wait: about 2 more runs")
    status = read_status(lake.spark, lake.definition())
    assert (status.waiting, status.waiting_runs) == (3, 2)
    report = lake.ingest()
    assert report.objects == 2
    assert report.line().endswith("; 1 object (5 B) waits for the next run")
    assert (lake.ingest().objects, lake.ingest().objects) == (1, 0)
    assert [name for name, *_ in lake.rows()] == [f"{number}.csv" for number in range(5)]


def test_what_a_queue_announces_waits_too(post):
    lake = post.lake
    lake.external |= {"header": ["id"], "max_bytes_per_run": "auto"}
    lake.ingest(create_only=True)
    fetched(lake, 1_000_000_000_000, 2 * LOAD * MANY, 600 * MANY)
    for number in range(3):
        lake.put(f"{number}.csv", OBJECT)
    report = lake.ingest()
    assert (report.objects, report.waiting_objects, report.waiting_runs) == (2, 1, 1)
    assert (lake.ingest().objects, lake.ingest().objects) == (1, 0)


def test_a_run_without_earlier_ones_takes_a_first_bite_and_one_object_at_least(lake, monkeypatch):
    made(lake)
    assert allowed(lake) == FIRST_BYTES
    monkeypatch.setattr(plan, "FIRST_BYTES", 2 * LOAD)
    for number in range(4):
        lake.put(f"{number}.csv", OBJECT)
    assert lake.ingest().objects == 2
    monkeypatch.setattr(plan, "allowance", lambda *_: 1)
    report = lake.ingest()
    assert (report.objects, report.waiting_objects, report.waiting_runs) == (1, 1, 1)


def test_the_last_five_committed_epochs_count(lake):
    made(lake)
    start = 1_000_000_000_000
    fetched(lake, start, 10**12, 60)
    for number in range(1, 5):
        fetched(lake, start + number, 10**9, 100)
    assert allowed(lake) == (10**12 + 4 * 10**9) * 600 // 460
    fetched(lake, start + 6, 10**9, 200)
    assert allowed(lake) == 5 * 10**9
    fetched(lake, start + 8, 10**12, 60, phases=("plan", "failed"))
    fetched(lake, start + 10, 10**12, 60, phases=("plan",))
    Ledger(lake.spark, lake.made).write_void(str(start + 10))
    assert allowed(lake) == 5 * 10**9


def test_what_was_skipped_counts_as_asked_for(lake):
    made(lake)
    fetched(lake, 1_000_000_000_000, 10**12, 600, state="skipped")
    assert allowed(lake) == OBJECT_BYTES


def test_the_times_are_still_there_after_a_compaction(lake):
    made(lake)
    start = 1_000_000_000_000
    fetched(lake, start, 10**12, 600)
    fetched(lake, start + 2, 10**12, 1400)
    compact(Ledger(lake.spark, lake.made))
    assert allowed(lake) == 2 * 10**12 * 600 // 2000


def test_runs_that_need_no_times_ask_for_none(lake, monkeypatch):
    lake.put("1.csv", OBJECT)
    made(lake).ingest()
    monkeypatch.setattr(plan, "_last_epochs", lambda _: pytest.fail("asked for times"))
    assert lake.ingest().objects == 0
    lake.put("2.csv", OBJECT)
    lake.put("3.csv", OBJECT)
    lake.external["max_bytes_per_run"] = 5
    report = lake.ingest()
    assert (report.objects, report.waiting_objects, report.waiting_runs) == (1, 1, 1)
