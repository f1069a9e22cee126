"""The parts of a batch, each of which becomes a file or more."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.mzs3.formats.spec import PART_COLUMN
from dbt.adapters.mzs3.rows.ordering import order_keys
from dbt.adapters.mzs3.rows.plan import in_parts
from dbt.adapters.mzs3.shard.rows.runs import sorted_inside
from dbt.adapters.mzs3.shard.state.batch import Batch
from dbt.adapters.mzs3.spark.parallelism import default_parallelism

# A task writes as much in seconds; smaller files cost readers more than they gain them.
ROWS_OF_A_PART = 100_000
BYTES_OF_A_PART = 32 << 20  # in files


def part_count(rows: int, batches: Sequence[Batch], most: int) -> int:
    """From 1 to `most` parts for rows as large as those of the batches, none of them small."""
    return max(1, min(most, rows // _rows_of_a_part(batches)))


def _rows_of_a_part(batches: Sequence[Batch]) -> int:
    size = sum(batch.bytes for batch in batches)
    fit = BYTES_OF_A_PART * sum(batch.rows for batch in batches) // max(1, size)
    return max(1, min(ROWS_OF_A_PART, fit)) if size else ROWS_OF_A_PART


def parts_of_changes(
    spark: SparkSession,
    changes: DataFrame,
    keys: Sequence[str],
    asked: int | None,
    batches: Sequence[Batch],
) -> DataFrame:
    """Changes `t`, `d`, c0, c1, … to the batches in parts; sorted by the keys and all columns.

    Without a number of parts, Spark counts the changes first. In one part, a row that went is
    beside the one that came instead, if they differ in late columns; so what they share is
    compressed.
    """
    _, _, *columns = changes.columns
    if asked:
        parts = in_parts(changes, asked)
    else:
        parts = _in_counted_parts(changes, _rows_of_a_part(batches), default_parallelism(spark))
    return sorted_inside(parts, [*keys, *columns])


def _in_counted_parts(changes: DataFrame, rows_of_a_part: int, most: int) -> DataFrame:
    """As `in_parts`, in so many parts as there are times `rows_of_a_part` rows; `most` at most.

    The changes are counted and written by one query, and computed once, as both read the same
    shuffle (with spark.sql.exchange.reuse off, twice). Were they held instead while they are
    counted, Spark could lose some of them with an executor, and compute these anew beside those
    that are left.
    """
    keys = order_keys(changes.schema)
    # By all columns: a count alone would not need them, and its shuffle would be another one.
    shuffled = changes.repartition(most, *keys)
    count = f"least({most}, greatest(1, count(1) div {rows_of_a_part}))"
    parts = shuffled.agg(F.expr(count)).scalar()
    # The hash of `in_parts`, so that the files are the same where their number is.
    nulls = [F.expr(f"isnull({name})") for name in changes.columns]
    part = F.pmod(F.xxhash64(*keys, *nulls), parts).cast("int")
    spread = shuffled.select(part.alias(PART_COLUMN), "*")
    return spread.repartitionById(most, F.col(PART_COLUMN))
