"""Spark's types as types of shards, and as DDL that names them."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import types as T

from dbt.adapters.mzs3.names import folded
from dbt.adapters.mzs3.rows.intervals import INTERVALS
from dbt.adapters.mzs3.shard.state.evolve import Given
from dbt.adapters.mzs3.shard.types.kind import Type, list_of, map_of, record_of
from dbt.adapters.mzs3.spark.sql import quote_identifier

_NAMES: dict[type[T.DataType], str] = {
    T.NullType: "text",
    T.BooleanType: "boolean",
    T.ByteType: "tinyint",
    T.ShortType: "smallint",
    T.IntegerType: "integer",
    T.LongType: "bigint",
    T.FloatType: "real",
    T.DoubleType: "double",
    T.StringType: "text",
    T.CharType: "text",
    T.VarcharType: "text",
    T.BinaryType: "bytea",
    T.DateType: "date",
    T.TimeType: "time",
    T.TimestampType: "timestamptz",
    T.TimestampNTZType: "timestamp",
    T.VariantType: "jsonb",
    **dict.fromkeys(INTERVALS, "interval"),
}
_TEXTS = (T.NullType, T.StringType, T.CharType, T.VarcharType)


def given_columns(schema: T.StructType, types: Mapping[str, Type]) -> list[Given]:
    """The columns of a query, in which there are no problems, as a shard takes them.

    `types` has the types of columns, by names that are `folded`, that are not Spark's own.
    """
    return [
        Given(
            field.name,
            types.get(folded(field.name)) or kind_of(field.dataType),
            ddl_of(field.dataType),
        )
        for field in schema.fields
    ]


def kind_of(data_type: T.DataType) -> Type:
    """The type of a shard's column for values of a Spark type that can be exported."""
    if isinstance(data_type, T.DecimalType):
        return Type("numeric", precision=data_type.precision, scale=data_type.scale)
    if isinstance(data_type, T.ArrayType):
        return list_of(kind_of(data_type.elementType))
    if isinstance(data_type, T.StructType):
        return record_of(*(kind_of(field.dataType) for field in data_type.fields))
    if isinstance(data_type, T.MapType):
        return map_of(kind_of(data_type.keyType), kind_of(data_type.valueType))
    return Type(_NAMES[type(data_type)])


def ddl_of(data_type: T.DataType) -> str:
    """The type in DDL: what values are cast to when they are read; texts are plain strings."""
    if isinstance(data_type, T.ArrayType):
        return f"array<{ddl_of(data_type.elementType)}>"
    if isinstance(data_type, T.MapType):
        return f"map<{ddl_of(data_type.keyType)},{ddl_of(data_type.valueType)}>"
    if isinstance(data_type, T.StructType):
        fields = (f"{quote_identifier(f.name)}:{ddl_of(f.dataType)}" for f in data_type.fields)
        return f"struct<{','.join(fields)}>"
    return "string" if isinstance(data_type, _TEXTS) else data_type.simpleString()
