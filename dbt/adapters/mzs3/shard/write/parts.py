"""The parts of a batch, each of which becomes a file or more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.mzs3.copy.rows.plan import in_parts
from dbt.adapters.mzs3.shard.rows.runs import sorted_inside
from dbt.adapters.mzs3.spark.parallelism import default_parallelism
from dbt.adapters.mzs3.spark.persisted import persisted

# A task writes so many in seconds; smaller files cost readers more than they gain them.
ROWS_OF_A_PART = 100_000


def part_count(spark: SparkSession, rows: int, asked: int | None) -> int:
    """As many as are asked for; else as the cluster runs at a time, but none for a few rows."""
    return asked or max(1, min(default_parallelism(spark), -(-rows // ROWS_OF_A_PART)))


@contextmanager
def parts_of_changes(
    spark: SparkSession, changes: DataFrame, keys: Sequence[str], asked: int | None
) -> Iterator[DataFrame]:
    """Changes `t`, `d`, c0, c1, … in parts; each sorted by the keys, else by all columns.

    Spark holds the changes, to count them first. In one part, a row that went is beside the one
    that came instead, if they differ in late columns; so what they share is compressed.
    """
    _, _, *columns = changes.columns
    if asked:
        yield sorted_inside(in_parts(changes, asked), keys or columns)
        return
    with persisted(changes) as held:
        parts = part_count(spark, held.count(), asked)
        yield sorted_inside(in_parts(held, parts), keys or columns)
