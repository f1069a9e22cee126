"""Rows with a count `d` of how often they were added: a multiset, or changes of one."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dbt.adapters.mzs3.rows.columns import SIGNED, NestedTransform
from dbt.adapters.mzs3.spark.sql import quote_identifier

DIFF = "d"
# So many copies of a row are made at once, and so often.
STEP = 1 << 10
_ANY_PARTITIONS = 1 << 30

# What SIGNED was given, from its result.
_WITHOUT_SIGN = NestedTransform(
    SIGNED.concerns,
    lambda column, _: F.when(
        column.getField("is_negative_zero"), -column.getField("value")
    ).otherwise(column.getField("value")),
)


def added(rows: DataFrame) -> DataFrame:
    """Each row as an addition."""
    return rows.withColumn(DIFF, F.lit(1).cast("bigint"))


def changed(rows: DataFrame, before: DataFrame) -> DataFrame:
    """The changes from the rows that `before` adds up to, to `rows`: a multiset difference."""
    names = rows.columns
    taken = before.select(*names, (-F.col(DIFF)).alias(DIFF))
    return consolidated(added(rows).unionByName(taken), names)


def consolidated(changes: DataFrame, names: Sequence[str]) -> DataFrame:
    """Each distinct row of these columns with the sum of its `d`, if not 0; -0.0 is not 0.0."""
    kinds = {field.name: field.dataType for field in changes.schema.fields}
    keys = [SIGNED.of(F.col(name), kinds[name]).alias(name) for name in names]
    summed = changes.select(*keys, DIFF).groupBy(*names).agg(F.sum(DIFF).alias(DIFF))
    grouped = summed.where(F.col(DIFF) != 0)
    values = [_WITHOUT_SIGN.of(F.col(name), kinds[name]).alias(name) for name in names]
    return grouped.select(*values, DIFF)


def repeated(rows: DataFrame) -> DataFrame:
    """Each row `d` times, without `d`; Spark holds some thousand copies of a row at a time.

    The query fails if a row was retracted more often than it was added.
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
