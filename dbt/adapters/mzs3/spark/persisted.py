"""A DataFrame that is computed once, however often it is used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FEW = 10_000
"""So many rows fit into the driver's memory, whatever their texts: some tens of MB."""


@contextmanager
def persisted(frame: DataFrame) -> Iterator[DataFrame]:
    """Spark holds what it computes of the frame until the end, whatever happens."""
    held = frame.persist()
    try:
        yield held
    finally:
        held.unpersist()


@contextmanager
def held(spark: SparkSession, frame: DataFrame, *, few: bool) -> Iterator[DataFrame]:
    """As `persisted`; but where `few` are expected and there are no more, the driver holds them.

    That spares Spark to plan the frame anew each time when something it reads from is written
    to. Where there are more than `FEW` after all, the frame is computed a second time.
    """
    here = frame.limit(FEW + 1).toArrow() if few else None
    if here is None or here.num_rows > FEW:
        with persisted(frame) as rows:
            yield rows
    else:
        yield spark.createDataFrame(here).coalesce(1)
