"""The wire form of rows in Spark: the types in which they come from Python, and back."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.mzs3.rows.columns import INTERVALS, NestedTransform
from dbt.adapters.mzs3.shard.executor.wire import with_times
from dbt.adapters.mzs3.shard.state.schema import Column as ShardColumn
from dbt.adapters.mzs3.shard.types.kind import RECORDS, Type

_INTERVAL = T.StructType(
    [
        T.StructField("months", T.IntegerType()),
        T.StructField("days", T.IntegerType()),
        T.StructField("micros", T.LongType()),
    ]
)
_UNSIGNED = T.DecimalType(20, 0)
_SCALARS: dict[str, T.DataType] = {
    "boolean": T.BooleanType(),
    "tinyint": T.ByteType(),
    "smallint": T.ShortType(),
    "integer": T.IntegerType(),
    "bigint": T.LongType(),
    "uint4": T.LongType(),
    "uint8": _UNSIGNED,
    "real": T.FloatType(),
    "double": T.DoubleType(),
    "text": T.StringType(),
    "bytea": T.BinaryType(),
    "date": T.DateType(),
    "timestamp": T.TimestampNTZType(),
    "timestamptz": T.TimestampType(),
    # Nanoseconds since midnight: Spark neither groups nor casts its own type.
    "time": T.LongType(),
    "interval": _INTERVAL,
    "jsonb": T.StringType(),
    "uuid": T.BinaryType(),
    "mz_timestamp": _UNSIGNED,
}
TIMES = NestedTransform(
    lambda kind: isinstance(kind, T.TimeType),
    lambda column, _: (column.cast("decimal(20, 9)") * 1_000_000_000).cast("bigint"),
)
"""Times as the wire form has them."""

_SECOND, _HOUR, _DAY = 1_000_000, 3_600_000_000, 86_400_000_000  # microseconds
_SECONDS = "decimal(18, 6)"


def wire_spark_type(kind: Type) -> T.DataType:
    """The Spark type of the type's wire form; a record's fields are named by place."""
    if kind.name == "numeric":
        return T.DecimalType(kind.precision, kind.scale)
    if kind.name in _SCALARS:
        return _SCALARS[kind.name]
    if kind.name in RECORDS:
        return _struct(kind.children)
    if kind.name == "map":
        return T.ArrayType(_struct(kind.children))
    return T.ArrayType(wire_spark_type(kind.children[0]))


def from_wire(rows: DataFrame, columns: Sequence[ShardColumn], names: Sequence[str]) -> DataFrame:
    """The columns, which `names` names in `rows`, in the types and under the names of users."""
    timed = T.StructType(
        [
            T.StructField(name, _timed_type(column.kind))
            for name, column in zip(names, columns, strict=True)
        ]
    )
    rows = rows.select(*names)
    if timed != _untimed(columns, names):
        rows = rows.mapInArrow(with_times([column.kind for column in columns]), timed)
    return rows.select(
        *[
            _restored(F.col(name), T.DataType.fromDDL(column.spark), column.kind).alias(
                column.name
            )
            for name, column in zip(names, columns, strict=True)
        ]
    )


def _untimed(columns: Sequence[ShardColumn], names: Sequence[str]) -> T.StructType:
    pairs = zip(names, columns, strict=True)
    return T.StructType(
        [T.StructField(name, wire_spark_type(column.kind)) for name, column in pairs]
    )


def _timed_type(kind: Type) -> T.DataType:
    """The wire form, but with times of Spark's own type."""
    if kind.name == "time":
        return T.TimeType()
    if not kind.children:
        return wire_spark_type(kind)
    children = tuple(map(_timed_type, kind.children))
    if kind.name in ("list", "int2vector"):
        return T.ArrayType(children[0])
    fields = [T.StructField(str(place), child) for place, child in enumerate(children)]
    record = T.StructType(fields)
    return T.ArrayType(record) if kind.name == "map" else record


def _struct(children: Sequence[Type]) -> T.StructType:
    return T.StructType(
        [T.StructField(str(place), wire_spark_type(kind)) for place, kind in enumerate(children)]
    )


def _restored(column: Column, data_type: T.DataType, kind: Type) -> Column:
    if isinstance(data_type, T.MapType):
        inside = list(zip((data_type.keyType, data_type.valueType), kind.children, strict=True))
        entries = F.transform(
            column,
            lambda entry: F.struct(
                *[_restored(entry.getField(str(i)), *types) for i, types in enumerate(inside)]
            ),
        )
        return F.map_from_entries(entries)
    if isinstance(data_type, T.ArrayType):
        element = data_type.elementType
        return F.transform(column, lambda item: _restored(item, element, kind.children[0]))
    if isinstance(data_type, T.StructType):
        fields = [
            _restored(column.getField(str(place)), field.dataType, child).alias(field.name)
            for place, (field, child) in enumerate(zip(data_type, kind.children, strict=True))
        ]
        return F.when(column.isNotNull(), F.struct(*fields))
    if isinstance(data_type, T.VariantType):
        return F.parse_json(column)
    if kind.name == "uuid" and isinstance(data_type, T.StringType):
        return _uuid_text(column)
    if isinstance(data_type, INTERVALS):
        return _interval(column, data_type)
    return column if isinstance(data_type, T.TimeType) else column.cast(data_type)


def _interval(parts: Column, data_type: T.DataType) -> Column:
    months, days, micros = (parts.getField(name) for name in ("months", "days", "micros"))
    if isinstance(data_type, T.YearMonthIntervalType):
        return F.make_ym_interval(F.lit(0), months).cast(data_type)
    whole_days = F.call_function("div", micros, F.lit(_DAY))
    rest = micros - whole_days * _DAY
    hours = F.call_function("div", rest, F.lit(_HOUR)).cast("int")
    seconds = ((rest - hours * _HOUR).cast("decimal(20, 0)") / _SECOND).cast(_SECONDS)
    if isinstance(data_type, T.DayTimeIntervalType):
        days = (days + whole_days).cast("int")
        return F.make_dt_interval(days, hours, F.lit(0), seconds).cast(data_type)
    zero, half = F.lit(0), (whole_days * 12).cast("int")
    # An int holds fewer hours than 64 bits of microseconds may come to, so they come in halves.
    first = F.make_interval(zero, months, zero, days, hours + half, zero, seconds)
    return first + F.make_interval(zero, zero, zero, zero, half)


def _uuid_text(column: Column) -> Column:
    digits = F.lower(F.hex(column))
    return F.regexp_replace(digits, "^(.{8})(.{4})(.{4})(.{4})(.{12})$", "$1-$2-$3-$4-$5")
