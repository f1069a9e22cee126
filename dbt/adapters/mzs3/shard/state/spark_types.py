"""Spark's types: as types of shards, as DDL, and the common type of two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import types as T

from dbt.adapters.mzs3.shard.types import CONTAINERS, LARGEST, LISTS, Type, is_wider
from dbt.adapters.mzs3.spark.sql import quote_identifier
from dbt.adapters.mzs3.types.table import row_of


def kind_of(data_type: T.DataType) -> Type:
    """The type of a shard's column for values of a Spark type that can be exported."""
    if isinstance(data_type, T.DecimalType):
        return Type("numeric", precision=data_type.precision, scale=data_type.scale)
    inside = tuple(kind_of(inner) for _, inner in parts_of(data_type))
    return Type(row_of(data_type.typeName()).shard, inside)


def parts_of(data_type: T.DataType) -> list[tuple[str, T.DataType]]:
    """The types inside of a type, each with its step in a path, such as `[]` or `.name`."""
    if isinstance(data_type, T.ArrayType):
        return [("[]", data_type.elementType)]
    if isinstance(data_type, T.MapType):
        return [(".key", data_type.keyType), (".value", data_type.valueType)]
    if isinstance(data_type, T.StructType):
        return [(f".{field.name}", field.dataType) for field in data_type.fields]
    return []


def ddl_of(data_type: T.DataType) -> str:
    """The type in DDL, texts as strings; `simpleString` does not quote the names of fields."""
    if isinstance(data_type, T.StructType):
        fields = (f"{quote_identifier(f.name)}:{ddl_of(f.dataType)}" for f in data_type.fields)
        return f"struct<{','.join(fields)}>"
    if inside := parts_of(data_type):
        return f"{data_type.typeName()}<{','.join(ddl_of(inner) for _, inner in inside)}>"
    is_text = isinstance(data_type, (T.NullType, T.StringType, T.CharType, T.VarcharType))
    return "string" if is_text else data_type.simpleString()


def fits(data_type: T.DataType, kind: Type) -> bool:
    """Whether a Spark type's values can be values of the type.

    Ranges, PostgreSQL's arrays and the like are structs of their parts, in order.
    """
    if kind.name == "uuid":
        return isinstance(data_type, (T.StringType, T.BinaryType))
    if kind.name in LARGEST:
        return isinstance(data_type, T.IntegralType) or (
            isinstance(data_type, T.DecimalType) and data_type.scale == 0
        )
    if kind.name not in CONTAINERS:
        return is_wider(kind, kind_of(data_type))
    nested = {**dict.fromkeys(LISTS, T.ArrayType), "map": T.MapType}.get(kind.name, T.StructType)
    inside = [inner for _, inner in parts_of(data_type)]
    return (
        isinstance(data_type, nested)
        and len(inside) == len(kind.children)
        and all(map(fits, inside, kind.children))
    )


def holding_both(one: T.DataType, other: T.DataType) -> T.DataType | None:
    """The Spark type that has every value of both, or None.

    Fields are matched by place, and have the names of the first one.
    """
    if one == other:
        return one
    if isinstance(one, T.NumericType) and isinstance(other, T.NumericType):
        mine, theirs = kind_of(one), kind_of(other)
        if is_wider(mine, theirs):
            return one
        return other if is_wider(theirs, mine) else None
    if type(one) is not type(other):
        return None
    if isinstance(one, T.TimeType) and isinstance(other, T.TimeType):
        return max(one, other, key=lambda time: time.precision)
    intervals = (T.DayTimeIntervalType, T.YearMonthIntervalType)
    if isinstance(one, intervals) and isinstance(other, intervals):
        first, last = min(one.startField, other.startField), max(one.endField, other.endField)
        return type(one)(first, last)
    pairs = zip(parts_of(one), parts_of(other), strict=False)
    inside = [holding_both(mine, theirs) for (_, mine), (_, theirs) in pairs]
    both = [kind for kind in inside if kind is not None]
    if not len(both) == len(parts_of(one)) == len(parts_of(other)):
        return None
    if isinstance(one, T.StructType):
        return T.StructType(list(map(T.StructField, one.names, both)))
    return type(one)(*both)


def differing_fields(
    path: str, one: T.DataType, other: T.DataType, kind: Type
) -> Iterator[tuple[str, Sequence[str], Sequence[str]]]:
    """The path, and both lists of names, of each struct whose fields are named differently.

    Case does not matter, and parts of a range, for example, have no names.
    """
    names, others = ([step[1:] for step, _ in parts_of(found)] for found in (one, other))
    if kind.name == "record" and list(map(str.lower, names)) != list(map(str.lower, others)):
        yield path, names, others
        return
    inside = zip(parts_of(one), parts_of(other), kind.children, strict=False)
    for (step, mine), (_, theirs), child in inside:
        yield from differing_fields(path + step, mine, theirs, child)
