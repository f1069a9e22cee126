"""Rows that are counted: what a multiset of changes comes to."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.mzs3.copy.rows.nested import Change

DIFF = "d"


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
    """Each row as often as its `d` says, without `d`."""
    times = F.explode(F.array_repeat(F.lit(0), F.col(DIFF).cast("int")))
    return rows.select("*", times.alias("_mz_times")).drop("_mz_times", DIFF)


def _is_float(kind: T.DataType) -> bool:
    return isinstance(kind, (T.FloatType, T.DoubleType))


def _with_sign(column: Column, _: T.DataType) -> Column:
    # The cast is reached for zeros only; its text is the one sign of a negative zero.
    negative = (column == 0) & column.cast("string").startswith("-")
    return F.struct(column.alias("value"), negative.alias("negative"))


_GROUPED = Change(_is_float, _with_sign)


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
