"""Which columns an export can take, and the form in which they are hashed, sorted and sent."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.mzs3.copy.executor.write import EVERY_COLUMN

_SCALARS = (
    T.NullType,
    T.BooleanType,
    T.ByteType,
    T.ShortType,
    T.IntegerType,
    T.LongType,
    T.FloatType,
    T.DoubleType,
    T.DecimalType,
    T.StringType,
    T.CharType,
    T.VarcharType,
    T.BinaryType,
    T.DateType,
    T.TimeType,
    T.TimestampType,
    T.TimestampNTZType,
)


def column_problems(schema: T.StructType, force_quote: Sequence[str]) -> list[str]:
    """Every column that can't be written as CSV, and every name in force_quote that is none."""
    if not schema.fields:
        return ["the query has no columns"]
    problems = [
        f"column {field.name} has the type {field.dataType.simpleString()}, "
        "which this version can't write as CSV; cast it, to string for example"
        for field in schema.fields
        if not _is_supported(field.dataType)
    ]
    unknown = [n for n in force_quote if n != EVERY_COLUMN and n not in schema.fieldNames()]
    if unknown:
        problems.append(
            f"force_quote names {', '.join(unknown)}, but the columns are "
            f"{', '.join(schema.fieldNames())}"
        )
    return problems


def _is_supported(kind: T.DataType) -> bool:
    if isinstance(kind, T.ArrayType):
        return _is_supported(kind.elementType)
    return isinstance(kind, _SCALARS)


def normalised(df: DataFrame) -> DataFrame:
    """The same rows under the names c0, c1, …, compared byte by byte.

    Positional names let a query have two columns of one name; a collation such as UTF8_LCASE
    would let rows that differ tie in the order.
    """
    renamed = df.toDF(*[f"c{i}" for i in range(len(df.columns))])
    return renamed.select(*[_plain(f).alias(f.name) for f in renamed.schema.fields])


def _plain(field: T.StructField) -> Column:
    column = F.col(field.name)
    if isinstance(field.dataType, T.NullType):
        return column.cast("string")
    if isinstance(field.dataType, T.StringType) and not field.dataType.isUTF8BinaryCollation():
        return F.collate(column, "UTF8_BINARY")
    return column


def order_keys(schema: T.StructType) -> list[Column]:
    """Sort keys under which rows tie only if their CSV is the same.

    Spark compares -0.0 and 0.0 as equal, so floats carry a second key that tells them apart.
    """
    keys: list[Column] = []
    for field in schema.fields:
        column = F.col(field.name)
        if _holds_floats(field.dataType):
            column = _with_sign(column, field.dataType)
        keys.append(column)
    return keys


def _holds_floats(kind: T.DataType) -> bool:
    if isinstance(kind, T.ArrayType):
        return _holds_floats(kind.elementType)
    return isinstance(kind, (T.FloatType, T.DoubleType))


def _with_sign(column: Column, kind: T.DataType) -> Column:
    if isinstance(kind, T.ArrayType):
        element = kind.elementType
        return F.transform(column, lambda item: _with_sign(item, element))
    # The cast is reached for zeros only; its text is the one sign of a negative zero.
    negative_zero = (column == 0) & column.cast("string").startswith("-")
    return F.struct(column, negative_zero)
