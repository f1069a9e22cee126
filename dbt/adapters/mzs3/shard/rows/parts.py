"""Partitioning and sorting of rows for the files of a batch."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dbt.adapters.mzs3.formats.format import PART_COLUMN
from dbt.adapters.mzs3.rows.columns import order_keys
from dbt.adapters.mzs3.rows.plan import in_parts
from dbt.adapters.mzs3.shard.state.state import ShardBatch
from dbt.adapters.mzs3.spark.settings import default_parallelism

# A task writes as much in seconds; smaller files cost readers more than they gain them.
ROWS_OF_A_PART = 100_000
BYTES_OF_A_PART = 32 << 20  # in files

# The plan has a comparison for each part, and one row has a hundred keys for each.
MOST_PARTS_OF_A_RUN = 256
SAMPLES_OF_A_PART = 100
_BOUNDS = "_mz_bounds"


def part_count(rows: int, batches: Sequence[ShardBatch], most: int) -> int:
    """A number of parts, at most `most`, for rows as large as those of the batches."""
    return max(1, min(most, rows // _rows_of_a_part(batches)))


def _rows_of_a_part(batches: Sequence[ShardBatch]) -> int:
    size = sum(batch.bytes for batch in batches)
    fit = BYTES_OF_A_PART * sum(batch.rows for batch in batches) // max(1, size)
    return max(1, min(ROWS_OF_A_PART, fit)) if size else ROWS_OF_A_PART


def parts_of_changes(
    changes: DataFrame, keys: Sequence[str], asked: int | None, batches: Sequence[ShardBatch]
) -> DataFrame:
    """Changes `t`, `d`, c0, c1, … in parts, as of `in_parts`, sorted by the keys and all columns.

    So a row that was retracted is next to the one that replaced it, and what they share is
    compressed. If no number of parts is asked for, Spark counts the changes first.
    """
    _, _, *columns = changes.columns
    parts = in_parts(changes, asked) if asked else _in_counted_parts(changes, batches)
    return sorted_inside(parts, [*keys, *columns])


def _in_counted_parts(changes: DataFrame, batches: Sequence[ShardBatch]) -> DataFrame:
    """As `in_parts`; the changes are counted and written by one query.

    They are computed once, as both read the same shuffle (with spark.sql.exchange.reuse off,
    twice). Spark could lose a part of what is cached, and recompute it beside the rest.
    """
    most = default_parallelism(changes.sparkSession)
    keys = order_keys(changes.schema)
    # By all columns: a count alone would not need them, and its shuffle would be another one.
    shuffled = changes.repartition(most, *keys)
    count = f"least({most}, greatest(1, count(1) div {_rows_of_a_part(batches)}))"
    parts = shuffled.agg(F.expr(count)).scalar()
    # The hash of `in_parts`, so that the files are the same where their number is.
    nulls = [F.expr(f"isnull({name})") for name in changes.columns]
    part = F.pmod(F.xxhash64(*keys, *nulls), parts).cast("int")
    spread = shuffled.select(part.alias(PART_COLUMN), "*")
    return spread.repartitionById(most, F.col(PART_COLUMN))


def sorted_inside(parts: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The rows of `in_parts`, each part sorted by these columns first."""
    rows = parts.drop(PART_COLUMN)
    return parts.sortWithinPartitions(*keys, *order_keys(rows.schema))


def sorted_runs(rows: DataFrame, keys: Sequence[str], sample: DataFrame, parts: int) -> DataFrame:
    """The rows in at most `parts` partitions, as of `in_parts`, sorted from one to the next.

    Rows of one key are in one part. The keys of the `sample` decide where the parts begin.
    """
    part = _part_of(F.struct(*keys), 0, parts - 1)
    bounds = F.broadcast(_bounds(sample, keys, parts))
    spread = rows.crossJoin(bounds).select(part.alias(PART_COLUMN), *rows.columns)
    apart = spread.repartitionById(parts, F.col(PART_COLUMN))
    return apart.sortWithinPartitions(*keys, *order_keys(rows.schema))


def _bounds(sample: DataFrame, keys: Sequence[str], parts: int) -> DataFrame:
    """One row, of at most `parts - 1` keys in order: the least ones of all parts but the first."""
    found = sample.agg(F.sort_array(F.collect_list(F.struct(*keys))).alias(_BOUNDS))
    size = F.size(_BOUNDS).cast("bigint")
    if parts == 1:
        return found.select(F.slice(_BOUNDS, 1, 0).alias(_BOUNDS))
    cuts = F.transform(
        F.sequence(F.lit(1), F.lit(parts - 1)),
        lambda i: F.get(_BOUNDS, F.call_function("div", i * size, F.lit(parts)).cast("int")),
    )
    return found.select(F.array_distinct(F.filter(cuts, lambda k: k.isNotNull())).alias(_BOUNDS))


def _part_of(key: Column, low: int, high: int) -> Column:
    """The number of bounds up to the key, which is from `low` to `high`, by binary search."""
    if low == high:
        return F.lit(low)
    middle = (low + high) // 2
    # Where there are fewer bounds, those that lack are above every key.
    is_below = F.coalesce(key < F.get(_BOUNDS, F.lit(middle)), F.lit(True))
    return F.when(is_below, _part_of(key, low, middle)).otherwise(_part_of(key, middle + 1, high))
