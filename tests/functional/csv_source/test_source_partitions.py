"""Partitions that two runs write at once: what one of them ends with is nothing to the other."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from dbt.adapters.mzs3.csv_source.partitions import insert_partition
from dbt.adapters.mzs3.spark.session import isolated_session

pytestmark = pytest.mark.spark

TABLE = "two_writers.rows"


@pytest.fixture
def spark(spark_parameters: dict[str, str]) -> Any:
    return isolated_session(spark_parameters)


@pytest.fixture
def table(spark: Any) -> Iterator[str]:
    spark.sql("create schema two_writers")
    columns = "(id bigint, epoch string)"
    spark.sql(f"create table {TABLE} {columns} using parquet partitioned by (epoch)")
    yield TABLE
    spark.sql("drop schema two_writers cascade")


def wait_for(fifo: str) -> None:
    """Returns once somebody has opened the other end of it for writing."""
    Path(fifo).read_bytes()


def signal_to(fifo: str) -> None:
    """Returns once somebody waits for it."""
    Path(fifo).write_bytes(b"")


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


def test_a_run_that_fails_takes_no_rows_from_another(
    spark: Any, table: str, tmp_path: Path
) -> None:
    fail, begun, go_on = (str(tmp_path / name) for name in ("fail", "begun", "go_on"))
    for fifo in (fail, begun, go_on):
        os.mkfifo(fifo)
    # The one keeps a core of two, so that the tasks of the other come one after the other.
    late = spark.range(0, 1, 1, 1).mapInArrow(failing(fail), "id bigint")
    good = spark.range(0, 2, 1, 2).mapInArrow(held(begun, go_on), "id bigint")
    running = threading.Event()

    def insert_late() -> None:
        running.set()
        insert_partition(spark, late, table, {"epoch": "1"})

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(insert_late)
        running.wait()
        second = pool.submit(insert_partition, spark, good, table, {"epoch": "2"})
        wait_for(begun)
        signal_to(fail)
        with pytest.raises(PySparkException, match="told to fail"):
            first.result()
        signal_to(go_on)
        second.result()
    written = spark.table(table).where("epoch = '2'")
    assert sorted(row["id"] for row in written.collect()) == [0, 1]
    assert spark.table(table).where("epoch = '1'").count() == 0
