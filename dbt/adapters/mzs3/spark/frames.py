"""DataFrames: reused for several reads, aggregated, and observed while they are written."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, TimeoutError
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, Observation, Row

from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.spark.engine import default_parallelism as default_parallelism
from dbt.adapters.mzs3.spark.tables import arrow_frame

FEW = 10_000
"""The most rows that are collected to the driver; some tens of MB."""


def speculates(frame: DataFrame) -> bool:
    """Whether speculative execution is on: Spark may run a second attempt of a slow task."""
    return str(frame.sparkSession.conf.get("spark.speculation", "false")).lower() == "true"


@contextmanager
def persisted(frame: DataFrame) -> Iterator[DataFrame]:
    """The frame, persisted inside the block."""
    rows = frame.persist()
    try:
        yield rows
    finally:
        rows.unpersist()


@contextmanager
def reusable_rows(frame: DataFrame, *, few: bool) -> Iterator[tuple[DataFrame, bool]]:
    """A frame with the same rows for several reads, and whether they are collected to the driver.

    With `few`, at most `FEW` rows are expected, and these are collected. Spark then filters the
    frame without a job, and does not plan it again after a write to a table that it reads. If
    there are more rows, or without `few`, the frame is persisted inside the block.
    """
    collected = frame.limit(FEW + 1).toArrow() if few else None
    if collected is None or collected.num_rows > FEW:
        with persisted(frame) as rows:
            yield rows, False
    else:
        yield arrow_frame(frame.sparkSession, collected), True


def totals(rows: DataFrame, columns: Iterable[str], *, few: bool) -> dict[str, Any]:
    """The aggregates `columns` of all rows, by name; `few` rows are aggregated in one task."""
    return dict(first_row((rows.coalesce(1) if few else rows).selectExpr(*columns)).asDict())


def first_row(frame: DataFrame) -> Row:
    """The first row of a frame that is not empty, such as a frame of aggregates."""
    row = frame.first()
    assert row is not None
    return row


def observed(counted: Observation, wait_s: float = 60.0) -> Mapping[str, Any]:
    """The metrics of an Observation, by name, after its rows were read.

    Raises SparkJobError after `wait_s` seconds, as `Observation.get` may wait forever: Spark sends
    the metrics as an event, and drops events when its listeners are too slow.
    """
    answer: Future[Mapping[str, Any]] = Future()

    def ask() -> None:
        try:
            answer.set_result(counted.get)
        except Exception as exc:  # noqa: BLE001 - raised again by `result`
            answer.set_exception(exc)

    threading.Thread(target=ask, daemon=True).start()
    try:
        return answer.result(wait_s)
    except TimeoutError:
        raise SparkJobError(
            "Spark did not report how many rows it has read, as it drops what it has no time for; "
            "run again with a larger spark.scheduler.listenerbus.eventqueue.capacity"
        ) from None
