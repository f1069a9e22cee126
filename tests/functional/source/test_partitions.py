"""Partitions that two runs write at once: what one of them ends with is nothing to the other."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from support.spark.table_rows import as_files

from dbt.adapters.mzs3.ledger import table_files
from dbt.adapters.mzs3.ledger.partitions import location_of, partition_sql
from dbt.adapters.mzs3.ledger.rows_table import RowsTable
from dbt.adapters.mzs3.spark.session import isolated_session

pytestmark = pytest.mark.spark

TABLE = "two_writers.rows"


@pytest.fixture
def spark(spark_parameters: dict[str, str]) -> Any:
    return isolated_session(spark_parameters)


@pytest.fixture
def table(spark: Any) -> Iterator[str]:
    spark.sql("create schema two_writers")
    columns = "(id bigint, mz_epoch string)"
    spark.sql(f"create table {TABLE} {columns} using parquet partitioned by (mz_epoch)")
    yield TABLE
    spark.sql("drop schema two_writers cascade")


@contextmanager
def fifos(folder: Path, *names: str) -> Iterator[list[str]]:
    """Makes them. At the end whoever waits at one goes on, and nobody waits there any more."""
    made = [str(folder / name) for name in names]
    for fifo in made:
        os.mkfifo(fifo)
    try:
        yield made
    finally:
        for fifo in made:
            both_ends = os.open(fifo, os.O_RDWR)
            Path(fifo).unlink()
            os.close(both_ends)


def wait_for(fifo: str, writer: Future[Any]) -> None:
    """Returns once a task of the writer has opened and closed the other end of it."""
    end = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    look = select.poll()
    look.register(end)
    while not look.poll(100):
        assert not writer.done(), f"it has ended before it was at {fifo}: {writer.exception()}"
    os.close(end)


def signal_to(fifo: str, writer: Future[Any]) -> None:
    """Returns once a task of the writer waits for it."""
    while True:
        with suppress(OSError):  # nobody waits
            os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
            return
        ended, _ = wait([writer], 0.05)
        assert not ended, f"it has ended before it was at {fifo}: {writer.exception()}"


def failing(fifo: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        Path(fifo).read_bytes()
        raise ValueError("told to fail")

    return fail


def held(begun: str, fifo: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The second task of two tells that it has begun, and waits."""

    def hold(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.column(0)[0].as_py() == 1:
                Path(begun).write_bytes(b"")
                Path(fifo).read_bytes()
            yield batch

    return hold


def insert(spark: Any, frame: Any, table: str, epoch: str) -> int | None:
    """As a run does that has the lock."""
    return RowsTable(spark, table).write(as_files(frame), epoch, require_lock=lambda: None)


def partitions(spark: Any, table: str) -> list[str]:
    return [row["partition"] for row in spark.sql(f"show partitions {table}").collect()]


def test_a_partition_is_not_found_before_all_of_it_is_there(
    spark: Any, table: str, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(1) as pool, fifos(tmp_path, "begun", "go_on") as (begun, go_on):
        rows = spark.range(0, 2, 1, 2).mapInArrow(held(begun, go_on), "id bigint")
        written = pool.submit(insert, spark, rows, table, "1")
        wait_for(begun, written)
        place = Path(location_of(spark, table).removeprefix("file:"))
        staging = [*place.glob("*/_temporary")]
        spark.sql(f"msck repair table {table}")
        found = partitions(spark, table)
        seen = spark.table(table).where("mz_epoch = '1'").count()
        signal_to(go_on, written)
        assert written.result(60) == 2
    assert (len(staging), found, seen) == (1, [], 0)
    assert partitions(spark, table) == ["mz_epoch=1"]
    assert spark.table(table).where("mz_epoch = '1'").count() == 2


def test_a_task_may_make_several_files(
    spark: Any, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_files, "GROUP_BYTES", 1)
    monkeypatch.setattr(table_files, "FILE_BYTES", 1)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10")
    assert insert(spark, spark.range(0, 50, 1, 2), table, "1") == 50
    folder = Path(location_of(spark, table, {"mz_epoch": "1"}).removeprefix("file:"))
    assert len([*folder.glob("part-*")]) == 6
    assert sorted(row["id"] for row in spark.table(table).collect()) == [*range(50)]


@pytest.mark.slow  # of a table that Hive keeps
def test_a_partition_in_another_folder_is_read_and_dropped(spark: Any, table: str) -> None:
    folder = f"{location_of(spark, table)}/mz_epoch=1"
    spark.range(3).write.parquet(folder)
    spark.sql(f"alter table {table} add partition (mz_epoch = '1')")
    RowsTable(spark, table).register_partition("1")
    assert location_of(spark, table, {"mz_epoch": "1"}) == folder
    assert spark.table(table).count() == 3
    insert(spark, spark.range(1), table, "2")
    own = location_of(spark, table, {"mz_epoch": "2"})
    for epoch in ("1", "2"):
        spark.sql(f"alter table {table} drop {partition_sql({'mz_epoch': epoch})}")
    assert spark.table(table).count() == 0
    assert [name for name in (folder, own) if Path(name.removeprefix("file:")).exists()] == []


def test_a_run_that_fails_takes_no_rows_from_another(
    spark: Any, table: str, tmp_path: Path
) -> None:
    names = ("fail", "begun", "go_on")
    with ThreadPoolExecutor(2) as pool, fifos(tmp_path, *names) as (fail, begun, go_on):
        # The one keeps a core of two, so that the tasks of the other come one after the other.
        late = spark.range(0, 1, 1, 1).mapInArrow(failing(fail), "id bigint")
        good = spark.range(0, 2, 1, 2).mapInArrow(held(begun, go_on), "id bigint")
        running = threading.Event()

        def insert_late() -> None:
            running.set()
            insert(spark, late, table, "1")

        first = pool.submit(insert_late)
        running.wait()
        second = pool.submit(insert, spark, good, table, "2")
        wait_for(begun, second)
        signal_to(fail, first)
        with pytest.raises(PySparkException, match="told to fail"):
            first.result()
        signal_to(go_on, second)
        second.result()
    written = spark.table(table).where("mz_epoch = '2'")
    assert sorted(row["id"] for row in written.collect()) == [0, 1]
    assert spark.table(table).where("mz_epoch = '1'").count() == 0


EVERY_TYPE = {
    "string": "'a,é\\n'",
    "boolean": "true",
    "tinyint": "-128",
    "smallint": "32767",
    "int": "-2147483648",
    "bigint": "9223372036854775807",
    "float": "float('-0.0')",
    "double": "double('NaN')",
    "date": "date'0001-01-01'",
    "timestamp": "timestamp'0001-01-01 00:00:00.000001Z'",
    "timestamp_ntz": "timestamp_ntz'9999-12-31 23:59:59.999999'",
    "binary": "X'00ff'",
    "decimal(9,2)": "-1234567.89",
    "decimal(18,0)": "999999999999999999",
    "decimal(38,38)": "-0.00000000000000000000000000000000000001",
    "struct<line: bigint, raw: string>": "named_struct('line', 1L, 'raw', 'x')",
}


def test_spark_reads_each_type_as_it_was_whatever_a_session_sets_for_files(spark: Any) -> None:
    spark.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY")
    spark.conf.set("mapreduce.output.fileoutputformat.compress", "true")
    values = ", ".join(f"cast({value} as {kind})" for kind, value in EVERY_TYPE.items())
    nothing = ", ".join("NULL" for _ in EVERY_TYPE)
    names = [f"c{number}" for number in range(len(EVERY_TYPE))]
    rows = spark.sql(f"select * from values ({values}), ({nothing}) as t").coalesce(1).toDF(*names)
    spark.sql("create schema two_writers")
    try:
        named = [f"{name} {kind}" for name, kind in zip(names, EVERY_TYPE, strict=True)]
        columns = ", ".join([*named, "absent string", "mz_epoch string"])
        spark.sql(f"create table {TABLE} ({columns}) using parquet partitioned by (mz_epoch)")
        assert insert(spark, rows, TABLE, "1") == 2
        found = spark.table(TABLE)
        assert found.where("absent is null").count() == 2
        # To Spark, NaN is larger than all numbers, and what statistics say is least and largest.
        assert found.where("c7 > 5").count() == 1
        kept, expected = (
            sorted(row[0] for row in frame.selectExpr("to_json(struct(*))").collect())
            for frame in (found.drop("absent", "mz_epoch"), rows)
        )
        assert kept == expected
    finally:
        spark.sql("drop schema two_writers cascade")
