"""Spark's types as types of shards, and as DDL that names them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.mzs3.names import folded
from dbt.adapters.mzs3.rows.columns import INTERVALS
from dbt.adapters.mzs3.shard.rows.wire import wire_spark_type
from dbt.adapters.mzs3.shard.state.evolve import ModelColumn
from dbt.adapters.mzs3.shard.types.kind import RECORDS, Type, is_wider, list_of, map_of, record_of
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

_INTEGERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_LARGEST = {"uint4": 2**32 - 1, "uint8": 2**64 - 1, "mz_timestamp": 2**64 - 1}
_UUID = "^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$"


def given_columns(schema: T.StructType, types: Mapping[str, Type]) -> list[ModelColumn]:
    """The columns of a query, in which there are no problems, as a shard takes them.

    `types` has the types of columns, by names that are `folded`, that are not Spark's own.
    """
    return [
        ModelColumn(
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


def fits(data_type: T.DataType, kind: Type) -> bool:
    """Whether values of a Spark type may be taken for the type's.

    A UUID is a text or bytes, an unsigned number a whole number. Ranges, PostgreSQL's arrays and
    the like are structs of their parts, in order, a vector is an array.
    """
    if kind.name == "uuid":
        return isinstance(data_type, (T.StringType, T.BinaryType))
    if kind.name in _LARGEST:
        if isinstance(data_type, T.DecimalType):
            return bool(data_type.scale == 0)
        return isinstance(data_type, _INTEGERS)
    if kind.name in RECORDS:
        fields = data_type.fields if isinstance(data_type, T.StructType) else []
        inside = [field.dataType for field in fields]
        return len(inside) == len(kind.children) and all(map(fits, inside, kind.children))
    if kind.name == "map":
        return isinstance(data_type, T.MapType) and all(
            map(fits, (data_type.keyType, data_type.valueType), kind.children)
        )
    if kind.children:
        return isinstance(data_type, T.ArrayType) and fits(data_type.elementType, kind.children[0])
    return is_wider(kind, kind_of(data_type))


def in_wire_type(column: Column, data_type: T.DataType, kind: Type, name: str) -> Column:
    """Normalised values, now of `data_type`, in wire form.

    A text that is no UUID fails, and so does a number that an unsigned type does not have:
    whatever `spark.sql.ansi.enabled` is, none is made NULL or another one. `name` is what users
    call the column.
    """
    if not _is_checked(kind):
        return column.cast(wire_spark_type(kind))
    if kind.name in _LARGEST:
        return _in_range(column, kind, name)
    if kind.name == "uuid":
        return _uuid_bytes(column, name) if isinstance(data_type, T.StringType) else column
    if isinstance(data_type, T.ArrayType):
        inside = Type("record", kind.children) if kind.name == "map" else kind.children[0]
        element = data_type.elementType
        return F.transform(column, lambda item: in_wire_type(item, element, inside, name))
    if not isinstance(data_type, T.StructType):
        return column.cast(wire_spark_type(kind))
    parts = [
        in_wire_type(column.getField(field.name), field.dataType, child, name).alias(str(place))
        for place, (field, child) in enumerate(zip(data_type.fields, kind.children, strict=True))
    ]
    return F.when(column.isNotNull(), F.struct(*parts))


def _is_checked(kind: Type) -> bool:
    return kind.name in ("uuid", *_LARGEST) or any(map(_is_checked, kind.children))


def _in_range(number: Column, kind: Type, name: str) -> Column:
    largest = _LARGEST[kind.name]
    said = f" is no {kind.name}, which is from 0 to {largest}"
    wrong = F.raise_error(F.concat(F.lit(f"column {name}: "), number.cast("string"), F.lit(said)))
    is_one = number.isNull() | number.between(F.lit(Decimal(0)), F.lit(Decimal(largest)))
    return F.when(is_one, number.cast(wire_spark_type(kind))).otherwise(wrong)


def _uuid_bytes(text: Column, name: str) -> Column:
    wrong = F.raise_error(F.concat(F.lit(f"column {name}: '"), text, F.lit("' is no UUID")))
    found = F.unhex(F.replace(text, F.lit("-"), F.lit("")))
    return F.when(text.isNull() | text.rlike(_UUID), found).otherwise(wrong)
