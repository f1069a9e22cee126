"""What others read while a source is ingested and its ledger compacted: before, or after."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, combinations

import pytest
from pyspark.sql import functions as F
from support.spark.table_rows import as_files

from dbt.adapters.mzs3.ledger.compaction import compact
from dbt.adapters.mzs3.ledger.epochs import next_epoch
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.ledger.rows_table import rows_table

pytestmark = pytest.mark.spark

COMMITS = 12
READERS = 2


def readers(lake, *, prune):
    """Queries that are planned now, and have listed the files of some tables: all sets of them."""
    spark = lake.spark.newSession()
    # Else Spark makes a plan piece by piece, while the query runs.
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    # With it, one of the ledger's scans is in an expression, and rows of no use are not opened.
    spark.conf.set("spark.sql.optimizer.dynamicPartitionPruning.enabled", prune)

    def query(listed):
        frame = spark.table(lake.relations.source).select("id")
        leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
        scans = [leaves.apply(number) for number in range(leaves.size())]
        scans = [scan for scan in scans if scan.getClass().getSimpleName() == "FileSourceScanExec"]
        for number in listed:
            scans[number].selectedPartitions()
        return frame, len(scans)

    count = query(())[1]
    sets = chain.from_iterable(combinations(range(count), n) for n in range(count + 1))
    return [(listed, query(listed)[0]) for listed in sets]


def ids(frame):
    return [row["id"] for row in frame.collect()]


def test_whatever_was_listed_before_a_commit_a_reader_sees_the_old_rows_or_the_new(lake):
    lake.external = {"on_overwrite": "replace"}
    lake.put("a.csv", "id\nold\n")
    lake.ingest()
    lake.put("a.csv", "id\nnew\n")
    planned = []

    def plan(step):
        if step == "begin commit":
            planned.extend(readers(lake, prune=False))

    lake.ingest(on_step=plan)
    assert len(planned) >= 8
    found = {listed: ids(frame) for listed, frame in planned}
    assert {listed: seen for listed, seen in found.items() if seen not in (["old"], ["new"])} == {}
    assert ids(lake.spark.table(lake.relations.source)) == ["new"]


@pytest.mark.slow
def test_a_query_that_began_after_one_compaction_outlasts_the_next(lake):
    lake.external = {"on_overwrite": "replace"}
    for content in ("old", "new"):
        lake.put("a.csv", f"id\n{content}\n")
        lake.ingest()
    compacted(lake)
    planned = readers(lake, prune=True)
    compacted(lake)
    assert {tuple(ids(frame)) for _, frame in planned} == {("new",)}


@pytest.mark.slow
def test_a_query_finds_the_rows_whose_files_it_lists_after_two_compactions(lake, tmp_path):
    """With adaptive execution, the scan of the rows is planned once all broadcasts are there."""
    lake.external = {"on_overwrite": "replace"}
    lake.put("a.csv", "id\nold\n")
    lake.ingest()
    spark = lake.spark.newSession()
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    begun, go_on = tmp_path / "begun", tmp_path / "go_on"
    os.mkfifo(begun)
    os.mkfifo(go_on)

    def held(batches):
        begun.write_text("")
        go_on.read_text()
        yield from batches

    other = F.broadcast(spark.range(0, 1, 1, 1).mapInArrow(held, "one bigint"))
    query = spark.table(lake.relations.source).crossJoin(other).select("id")
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(ids, query)
        begun.read_text()
        lake.put("a.csv", "id\nnew\n")
        lake.ingest()
        compacted(lake)
        compacted(lake)
        go_on.write_text("")
        assert found.result() in (["old"], ["new"])
    assert ids(lake.spark.table(lake.relations.source)) == ["new"]


def compacted(lake):
    ledger = Ledger(lake.spark, lake.relations)
    # A snapshot has the number of the last epoch, of which there is one.
    ledger.write_note(ledger.events().limit(0))
    compact(ledger)


@pytest.mark.slow
def test_a_busy_reader_sees_every_object_once_whatever_is_committed_or_compacted(lake):
    lake.external = {"on_overwrite": "replace"}
    for name in "ab":
        lake.put(f"{name}.csv", "id\n0\n")
    lake.ingest()
    first = Ledger(lake.spark, lake.relations)
    [start] = [epoch for epoch, phases in first.epochs().items() if "commit" in phases]
    taken = (
        first.events()
        .where("phase = 'commit'")
        .selectExpr(
            "object",
            "etag",
            "size",
            "last_modified",
            "true AS hides",
            "1L AS rows",
            "0L AS rejects",
            "CAST(NULL AS string) AS error",
        )
    )
    rows = lake.spark.table(lake.relations.rows).where(f"mz_epoch = '{start}'").drop("mz_epoch")
    taken, rows = taken.collect(), rows.collect()
    done = threading.Event()

    def read(spark):
        found = []
        while not done.is_set():
            found.append(tuple(sorted(ids(spark.table(lake.relations.source)))))
        return found

    def replace_all(number):
        """What a run does that finds both objects overwritten, without its reading them."""
        ledger = Ledger(lake.spark, lake.relations)
        epoch = next_epoch(ledger.epochs())
        new = lake.spark.createDataFrame(rows, stored).withColumn("id", F.lit(str(number)))
        table = rows_table(lake.spark, lake.relations)
        table.write(as_files(new), epoch, require_lock=lambda: None)
        ledger.write_commit(epoch, lake.spark.createDataFrame(taken, planned))

    stored = lake.spark.table(lake.relations.rows).drop("mz_epoch").schema
    planned = (
        "object string, etag string, size bigint, last_modified timestamp, hides boolean, "
        "rows bigint, rejects bigint, error string"
    )
    with ThreadPoolExecutor(READERS) as pool:
        runs = [pool.submit(read, lake.spark.newSession()) for _ in range(READERS)]
        try:
            for number in range(1, COMMITS + 1):
                replace_all(number)
                if number % 4 == 0:
                    compacted(lake)
        finally:
            done.set()
    seen = [one for run in runs for one in run.result()]
    print(f"{len(seen)} reads, of {len(set(seen))} states")
    assert set(seen) <= {(str(number),) * 2 for number in range(COMMITS + 1)}
    assert len(set(seen)) > 2
