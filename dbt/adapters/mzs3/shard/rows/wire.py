"""Rows converted to and from the wire form, in which they cross between Spark and Python."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type

from dbt.adapters.mzs3.rows.columns import INTERVALS
from dbt.adapters.mzs3.shard.executor.batch.write import with_times
from dbt.adapters.mzs3.shard.types import LARGEST, TIME, Type, record_of, wire_type
from dbt.adapters.mzs3.shard.types import Column as ShardColumn

_UUID = "^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$"
_SECOND, _HOUR, _DAY = 1_000_000, 3_600_000_000, 86_400_000_000  # microseconds
_SECONDS = "decimal(18, 6)"
_NANOS = 1_000_000_000  # in a second


def wire_spark_type(kind: Type) -> T.DataType:
    """The Spark type of the type's wire form."""
    return from_arrow_type(wire_type(kind), prefer_timestamp_ntz=True)


def in_wire_type(column: Column, data_type: T.DataType, kind: Type, name: str) -> Column:
    """Canonical values, now of `data_type`, in wire form; `name` is the column's to its users.

    A text that is no UUID, or a number that an unsigned type does not have, fails the query.
    """
    if not kind.holds(("time", "uuid", *LARGEST)):
        return column.cast(wire_spark_type(kind))
    if isinstance(data_type, T.TimeType):
        return (column.cast("decimal(20, 9)") * _NANOS).cast("bigint")
    if kind.name in LARGEST:
        return _in_range(column, kind, name)
    if kind.name == "uuid":
        return _uuid_bytes(column, name) if isinstance(data_type, T.StringType) else column
    if isinstance(data_type, T.ArrayType):
        inside = record_of(*kind.children) if kind.name == "map" else kind.children[0]
        element = data_type.elementType
        return F.transform(column, lambda item: in_wire_type(item, element, inside, name))
    if not isinstance(data_type, T.StructType):
        return column.cast(wire_spark_type(kind))
    parts = [
        in_wire_type(column.getField(field.name), field.dataType, child, name).alias(str(place))
        for place, (field, child) in enumerate(zip(data_type.fields, kind.children, strict=True))
    ]
    return F.when(column.isNotNull(), F.struct(*parts))


def _in_range(number: Column, kind: Type, name: str) -> Column:
    largest = LARGEST[kind.name]
    said = f" is no {kind.name}, which is from 0 to {largest}"
    wrong = F.raise_error(F.concat(F.lit(f"column {name}: "), number.cast("string"), F.lit(said)))
    is_one = number.isNull() | number.between(F.lit(Decimal(0)), F.lit(Decimal(largest)))
    return F.when(is_one, number.cast(wire_spark_type(kind))).otherwise(wrong)


def _uuid_bytes(text: Column, name: str) -> Column:
    wrong = F.raise_error(F.concat(F.lit(f"column {name}: '"), text, F.lit("' is no UUID")))
    found = F.unhex(F.replace(text, F.lit("-"), F.lit("")))
    return F.when(text.isNull() | text.rlike(_UUID), found).otherwise(wrong)


def from_wire(rows: DataFrame, columns: Sequence[ShardColumn], names: Sequence[str]) -> DataFrame:
    """The columns, called `names` in `rows`, in the types and under the names of users."""
    kinds = [column.kind for column in columns]
    if any(kind.holds(("time",)) for kind in kinds):
        # Spark's own functions make times only where `spark.sql.timeType.enabled` is set.
        types = [wire_type(kind, TIME) for kind in kinds]
        timed = pa.schema(list(zip(names, types, strict=True)))
        schema = from_arrow_schema(timed, prefer_timestamp_ntz=True)
        rows = rows.select(*names).mapInArrow(with_times(kinds), schema)
    restored = [
        _restored(F.col(name), T.DataType.fromDDL(column.spark), column.kind).alias(column.name)
        for name, column in zip(names, columns, strict=True)
    ]
    return rows.select(*restored)


def _restored(column: Column, data_type: T.DataType, kind: Type) -> Column:
    if isinstance(data_type, T.MapType):
        entry = T.StructType().add("key", data_type.keyType).add("value", data_type.valueType)
        record = record_of(*kind.children)
        return F.map_from_entries(F.transform(column, lambda item: _restored(item, entry, record)))
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
        digits = F.lower(F.hex(column))
        return F.regexp_replace(digits, "^(.{8})(.{4})(.{4})(.{4})(.{12})$", "$1-$2-$3-$4-$5")
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
