"""Rows sorted by columns of the user's: inside of files, and from each file to the next."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dbt.adapters.mzs3.formats.spec import PART_COLUMN
from dbt.adapters.mzs3.rows.ordering import order_keys

# The plan has a comparison for each part, and one row has a hundred keys for each.
MOST_PARTS_OF_A_RUN = 256
SAMPLES_OF_A_PART = 100
_BOUNDS = "_mz_bounds"


def sorted_inside(parts: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The rows of `in_parts`, each part sorted by these columns first."""
    rows = parts.drop(PART_COLUMN)
    return parts.sortWithinPartitions(*keys, *order_keys(rows.schema))


def run_bounds(sample: DataFrame, keys: Sequence[str], parts: int) -> DataFrame:
    """One row, of at most `parts - 1` keys in order: the least ones of all parts but the first.

    A function of the sample's rows, whatever their order.
    """
    key = F.struct(*keys)
    found = sample.agg(F.sort_array(F.collect_list(key)).alias(_BOUNDS))
    size = F.size(_BOUNDS).cast("bigint")
    if parts == 1:
        return found.select(F.slice(_BOUNDS, 1, 0).alias(_BOUNDS))
    places = F.sequence(F.lit(1), F.lit(parts - 1))
    cuts = F.transform(
        places,
        lambda i: F.get(_BOUNDS, F.call_function("div", i * size, F.lit(parts)).cast("int")),
    )
    return found.select(F.array_distinct(F.filter(cuts, lambda k: k.isNotNull())).alias(_BOUNDS))


def sorted_runs(rows: DataFrame, keys: Sequence[str], bounds: DataFrame, parts: int) -> DataFrame:
    """The rows in `parts` partitions, each a part of one run that is sorted by the keys.

    The part is the first column, as of `in_parts`. Rows of one key are in one part; among them
    the order is total too.
    """
    names = rows.columns
    part = _part_of(F.struct(*keys), 0, parts - 1)
    spread = rows.crossJoin(F.broadcast(bounds)).select(part.alias(PART_COLUMN), *names)
    apart = spread.repartitionById(parts, F.col(PART_COLUMN))
    return apart.sortWithinPartitions(*keys, *order_keys(rows.schema))


def _part_of(key: Column, low: int, high: int) -> Column:
    """How many bounds are not above the key, which is from `low` to `high`: a binary search."""
    if low == high:
        return F.lit(low)
    middle = (low + high) // 2
    # Where there are fewer bounds, those that lack are above every key.
    is_below = F.coalesce(key < F.get(_BOUNDS, F.lit(middle)), F.lit(True))
    return F.when(is_below, _part_of(key, low, middle)).otherwise(_part_of(key, middle + 1, high))
