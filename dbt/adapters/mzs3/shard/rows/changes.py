"""Rows that are counted: what a multiset of changes comes to."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.mzs3.formats.format import PART_COLUMN
from dbt.adapters.mzs3.rows.columns import NestedTransform, order_keys
from dbt.adapters.mzs3.spark.sql import quote_identifier

DIFF = "d"
# So many copies of a row are made at once, and so often.
STEP = 1 << 10
_ANY_PARTITIONS = 1 << 30

# The plan has a comparison for each part, and one row has a hundred keys for each.
MOST_PARTS_OF_A_RUN = 256
SAMPLES_OF_A_PART = 100
_BOUNDS = "_mz_bounds"


def consolidated(changes: DataFrame, names: Sequence[str]) -> DataFrame:
    """Each different row of the columns `names` once, with the sum of its `d`, which is not 0.

    Rows are equal only if they are written alike: both zeros of a float are two values.
    """
    kinds = {field.name: field.dataType for field in changes.schema.fields}
    keys = [_GROUPED.of(F.col(name), kinds[name]).alias(name) for name in names]
    summed = changes.select(*keys, DIFF).groupBy(*names).agg(F.sum(DIFF).alias(DIFF))
    grouped = summed.where(F.col(DIFF) != 0)
    values = [_ungrouped(F.col(name), kinds[name]).alias(name) for name in names]
    return grouped.select(*values, DIFF)


def repeated(rows: DataFrame) -> DataFrame:
    """Each row as often as its `d` says, without `d`; Spark holds some thousand copies of a row.

    Fails with what is wrong for a row that went more often than it came.
    """
    negative = F.concat(
        F.lit("a row of the shard went more often than it came: its changes come to "),
        F.col(DIFF).cast("string"),
        F.lit(
            "; a file of it was removed or written by something other than dbt-mzs3. Restore it, "
            "or read the shard as of an earlier time"
        ),
    )
    count = F.when(F.col(DIFF) < 0, F.raise_error(negative)).otherwise(F.col(DIFF))
    rows = rows.withColumn(DIFF, count)
    for size in (STEP * STEP, STEP):
        # The generated code of a stage holds what it makes of one row until it takes the next.
        # A stage ends where there are fewer partitions, even if there are none too many.
        rows = _exploded(rows, _slices(size)).coalesce(_ANY_PARTITIONS)
    return _exploded(rows, F.array_repeat(F.lit(0), F.col(DIFF).cast("int"))).drop(DIFF)


def _slices(size: int) -> Column:
    """Numbers that add up to `d`, each at most `size`: one of 0 if it is 0."""
    last = F.greatest(F.col(DIFF) - 1, F.lit(0))
    starts = F.sequence(F.lit(0).cast("bigint"), last, F.lit(size).cast("bigint"))
    return F.transform(starts, lambda start: F.least(F.col(DIFF) - start, F.lit(size)))


def _exploded(rows: DataFrame, numbers: Column) -> DataFrame:
    """A row for each of the numbers, which is its `d`."""
    others = [F.col(quote_identifier(name)) for name in rows.columns if name != DIFF]
    return rows.select(*others, F.explode(numbers).alias(DIFF))


def _is_float(kind: T.DataType) -> bool:
    return isinstance(kind, (T.FloatType, T.DoubleType))


def _with_sign(column: Column, _: T.DataType) -> Column:
    # The cast is reached for zeros only; its text is the one sign of a negative zero.
    negative = (column == 0) & column.cast("string").startswith("-")
    return F.struct(column.alias("value"), negative.alias("negative"))


_GROUPED = NestedTransform(_is_float, _with_sign)


def _ungrouped(column: Column, kind: T.DataType) -> Column:
    """What `_GROUPED` was given, from its result."""
    if not _GROUPED.is_needed(kind):
        return column
    if isinstance(kind, T.ArrayType):
        element = kind.elementType
        return F.transform(column, lambda item: _ungrouped(item, element))
    if isinstance(kind, T.StructType):
        fields = [
            _ungrouped(column.getField(field.name), field.dataType).alias(field.name)
            for field in kind.fields
        ]
        return F.when(column.isNotNull(), F.struct(*fields))
    value = column.getField("value")
    return F.when(column.getField("negative"), -value).otherwise(value)


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
