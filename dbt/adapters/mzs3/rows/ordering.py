"""The order of rows: total, but for rows that are written alike."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.mzs3.rows.nested import Change


def order_keys(schema: T.StructType) -> list[Column | str]:
    """Sort keys under which rows of a `normalised` schema tie only if they are written alike.

    Spark compares and hashes -0.0 and 0.0 as equal, so floats carry a second key that tells them
    apart. A column that is a key as it is comes as its name.
    """
    return [
        SIGNED.of(F.col(field.name), field.dataType)
        if SIGNED.is_needed(field.dataType)
        else field.name
        for field in schema.fields
    ]


def _is_float(kind: T.DataType) -> bool:
    return isinstance(kind, (T.FloatType, T.DoubleType))


def _with_sign(column: Column, kind: T.DataType) -> Column:
    # The cast is reached for zeros only; its text is the one sign of a negative zero.
    negative_zero = (column == 0) & column.cast("string").startswith("-")
    return F.struct(column, negative_zero)


SIGNED = Change(_is_float, _with_sign)
