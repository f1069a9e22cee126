"""The parts of a batch, each of which becomes a file or more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.mzs3.rows.plan import in_parts
from dbt.adapters.mzs3.shard.rows.runs import sorted_inside
from dbt.adapters.mzs3.shard.state.batch import Batch
from dbt.adapters.mzs3.spark.parallelism import default_parallelism
from dbt.adapters.mzs3.spark.persisted import persisted

# A task writes as much in seconds; smaller files cost readers more than they gain them.
ROWS_OF_A_PART = 100_000
BYTES_OF_A_PART = 32 << 20  # in files


def part_count(rows: int, batches: Sequence[Batch], most: int) -> int:
    """From 1 to `most` parts for rows as large as those of the batches, none of them small."""
    total = sum(batch.rows for batch in batches)
    size = rows * sum(batch.bytes for batch in batches) // max(1, total)
    return max(1, min(most, max(rows // ROWS_OF_A_PART, size // BYTES_OF_A_PART)))


@contextmanager
def parts_of_changes(
    spark: SparkSession,
    changes: DataFrame,
    keys: Sequence[str],
    asked: int | None,
    batches: Sequence[Batch],
) -> Iterator[DataFrame]:
    """Changes `t`, `d`, c0, c1, … to the batches in parts; sorted by the keys and all columns.

    Without a number of parts, Spark holds the changes while they are counted and written. In one
    part, a row that went is beside the one that came instead, if they differ in late columns; so
    what they share is compressed.
    """
    _, _, *columns = changes.columns
    order = [*keys, *columns]
    if asked:
        yield sorted_inside(in_parts(changes, asked), order)
        return
    with persisted(changes) as held:
        parts = part_count(held.count(), batches, default_parallelism(spark))
        yield sorted_inside(in_parts(held, parts), order)
