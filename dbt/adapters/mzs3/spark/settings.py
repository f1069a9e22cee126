"""Settings and cached rows of a session, for as long as they are needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.mzs3.spark.engine import engine_of
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES
from dbt.adapters.mzs3.spark.tables import arrow_frame

FEW = 10_000
"""So many rows, of some tens of MB, fit into the driver's memory."""


@contextmanager
def settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Sets these settings of the session, but for those that this Spark doesn't know or lets be
    changed, inside the block, and restores the user's after it."""
    conf = spark.conf
    theirs = {
        name: before
        for name, value in values.items()
        if (before := conf.get(name, None)) != value and conf.isModifiable(name)
    }
    try:
        for name in theirs:
            conf.set(name, values[name])
        yield
    finally:
        # A session that takes no setting has ended, of which the work in it has told.
        with suppress(*SPARK_FAILURES, OSError):
            for name, before in theirs.items():
                if before is None:
                    conf.unset(name)
                else:
                    conf.set(name, before)


def default_parallelism(spark: SparkSession) -> int:
    """The cluster's default parallelism; works over Spark Connect too."""
    return engine_of(spark).default_parallelism(spark)


def speculates(frame: DataFrame) -> bool:
    """Whether Spark may begin a second attempt of one of the frame's tasks that is slow."""
    return str(frame.sparkSession.conf.get("spark.speculation", "false")).lower() == "true"


@contextmanager
def persisted(frame: DataFrame) -> Iterator[DataFrame]:
    """The frame, persisted inside the block."""
    held = frame.persist()
    try:
        yield held
    finally:
        held.unpersist()


@contextmanager
def held(frame: DataFrame, *, few: bool) -> Iterator[tuple[DataFrame, bool]]:
    """As `persisted`; but where `few` rows are expected, and are found, the driver holds them, and
    true comes with them.

    So Spark need not plan the frame anew each time when what it reads from is written to, and
    selects some of it without a job. Where there are more than `FEW`, it is computed a second
    time.
    """
    here = frame.limit(FEW + 1).toArrow() if few else None
    if here is None or here.num_rows > FEW:
        with persisted(frame) as rows:
            yield rows, False
    else:
        yield arrow_frame(frame.sparkSession, here), True


def totals(rows: DataFrame, columns: Iterable[str], *, few: bool) -> dict[str, Any]:
    """The aggregates of all rows, by their names; a `few` are not worth more than one task."""
    found = (rows.coalesce(1) if few else rows).selectExpr(*columns).first()
    return dict(found.asDict())
