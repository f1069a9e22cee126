"""The columns of an export: their problems, their logical types, and their canonical form.

Expressions are SQL texts: building them from PySpark's functions takes longer than running them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.formats.write.format import ExportedColumn, ExportFormat, Kind, LogicalType
from dbt.adapters.mzs3.names import namesakes, namesakes_text
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, explain, readable
from dbt.adapters.mzs3.spark.sql import field_sql, message_name, text_sql
from dbt.adapters.mzs3.types.calendar import DAY
from dbt.adapters.mzs3.types.table import row_of, type_named

# Error conditions for types that PySpark lacks: of PySpark, and of a Spark Connect server.
_NO_TYPE = ("CANNOT_PARSE_DATATYPE", "UNSUPPORTED_OPERATION")
_PRECISE = re.compile(r"\btimestamp(?:_ntz|_ltz)?\([7-9]\)")
INTERVALS = (T.YearMonthIntervalType, T.DayTimeIntervalType, T.CalendarIntervalType)
_SECONDS = "decimal(19, 6)"  # holds the seconds of any bigint of microseconds
_LOGICAL: Mapping[str, Kind] = {
    "array": "list",
    "struct": "struct",
    "map": "map",
    "variant": "variant",
    "interval": "interval",
}
# Digits of a second's fraction in PostgreSQL's times.
_TIME_DIGITS = 6
# Without this option, timestamps in variants would depend on the session's time zone.
_VARIANT_OPTIONS = "map('timeZone', 'UTC')"


def interval_parts(value: str, kind: T.DataType) -> str:
    """SQL that converts one of INTERVALS to `struct<months int, days int, micros bigint>`."""
    if isinstance(kind, T.YearMonthIntervalType):
        return _parts(value, f"cast({value} AS interval month)", "0", "0")
    if isinstance(kind, T.DayTimeIntervalType):
        micros = _micros(f"cast(cast({value} AS interval second) AS {_SECONDS})")
        if kind.startField != T.DayTimeIntervalType.DAY:
            return _parts(value, "0", "0", micros)
        # A day of this type has 24 hours; PostgreSQL too keeps the days of such a literal.
        return _parts(value, "0", f"extract(DAY FROM {value})", f"{micros} % {DAY}L")
    return _calendar_parts(value)


def _calendar_parts(value: str) -> str:
    """SQL that parses texts: `1 years -2 months 3 days 30 hours -4 minutes -5.678 seconds`.

    Parts that are zero are missing. Only the text distinguishes 24 hours from a day.
    """

    def part(unit: str, sql_type: str = "bigint") -> str:
        number = f"regexp_extract(cast({value} AS string), '(-?[0-9.]+) {unit}', 1)"
        return f"cast(coalesce(nullif({number}, ''), '0') AS {sql_type})"

    months = f"{part('years')} * 12 + {part('months')}"
    minutes = f"{part('hours')} * 60 + {part('minutes')}"
    return _parts(
        value, months, part("days"), _micros(f"(({minutes}) * 60 + {part('seconds', _SECONDS)})")
    )


def _micros(seconds: str) -> str:
    return f"cast({seconds} * 1000000 AS bigint)"


def _parts(value: str, months: str, days: str, micros: str) -> str:
    parts = {"months": f"cast({months} AS int)", "days": f"cast({days} AS int)"}
    return _unless_null(value, _struct({**parts, "micros": f"cast({micros} AS bigint)"}))


@dataclass(frozen=True)
class NestedTransform:
    """Applies `make` to values of the types for which `concerns` is true, also inside arrays and
    structs. Values are SQL expressions; a value without these types stays unchanged.
    """

    concerns: Callable[[T.DataType], bool]
    make: Callable[[str, T.DataType], str]

    def is_needed(self, kind: T.DataType) -> bool:
        """Whether `concerns` is true for the type or one inside it."""
        if isinstance(kind, (T.ArrayType, T.StructType)):
            return any(self.is_needed(inner) for _, inner in parts_of(kind))
        return self.concerns(kind)

    def of(self, value: str, kind: T.DataType) -> str:
        """SQL of the transformed value, for a value of type `kind`; NULL stays NULL."""
        if not self.is_needed(kind):
            return value
        if isinstance(kind, T.ArrayType):
            element = kind.elementType
            return _each(value, lambda item: self.of(item, element))
        if isinstance(kind, T.StructType):
            fields = {
                field.name: self.of(field_sql(value, field.name), field.dataType)
                for field in kind.fields
            }
            return _unless_null(value, _struct(fields))
        return self.make(value, kind)


def _each(items: str, make: Callable[[str], str]) -> str:
    """SQL that applies `make` to each item of an array."""
    # A name that no lambda around this one uses.
    item = next(name for name in map("item{}".format, count()) if name not in items)
    return f"transform({items}, {item} -> {make(item)})"


def _struct(fields: Mapping[str, str]) -> str:
    listed = ", ".join(f"{text_sql(name)}, {value}" for name, value in fields.items())
    return f"named_struct({listed})"


def _unless_null(value: str, then: str) -> str:
    return f"CASE WHEN {value} IS NOT NULL THEN {then} END"


def named(columns: Mapping[str, str]) -> list[str]:
    """SQL of columns by their names, which need no quotes. One that stays what it is has no alias:
    to Spark it would be another column, and planning takes twice as long with each of them."""
    return [name if sql == name else f"{sql} AS {name}" for name, sql in columns.items()]


def order_keys(schema: T.StructType) -> list[str]:
    """Sort keys for `canonical_columns`: rows with equal keys are identical in a file.

    As -0.0 and 0.0 are equal for Spark, the keys of floats also contain the sign of zero. The
    columns have names that need no quotes.
    """
    return [SIGNED.of(field.name, field.dataType) for field in schema.fields]


def _with_sign(value: str, kind: T.DataType) -> str:
    return _struct({"value": _one_zero(value, kind), "is_negative_zero": is_negative_zero(value)})


def is_negative_zero(value: str) -> str:
    """SQL that tells whether a float is -0.0; NULL for NULL."""
    # The text shows the sign of a zero. Only zeros are cast to text.
    return f"{value} = 0 AND startswith(cast({value} AS string), '-')"


def _one_zero(value: str, kind: T.DataType) -> str:
    name = kind.simpleString()
    return f"nanvl({value}, cast('NaN' AS {name})) + cast(0 AS {name})"


def _is_float(kind: T.DataType) -> bool:
    return isinstance(kind, FLOATS)


FLOATS = (T.FloatType, T.DoubleType)
SIGNED = NestedTransform(_is_float, _with_sign)
# Floats with one bit pattern for all NaNs, and one for 0.0 and -0.0: Spark sorts and hashes these
# alike by itself, but Comet does not.
ONE_ZERO = NestedTransform(_is_float, _one_zero)


def queried_rows(spark: SparkSession, node: str, query: str) -> DataFrame:
    """The query's rows, which Spark has analysed but not computed.

    Raises ConfigError with all columns of types that Spark supports and PySpark does not, and
    SparkJobError for any other problem of the query.
    """
    try:
        frame = spark.sql(query)
        _ = frame.schema  # analyses the query
    except SPARK_FAILURES as exc:
        if problems := _precise_timestamps(spark, query, exc):
            raise ConfigError(node, problems) from exc
        raise (explain(exc) if isinstance(exc, PySparkException) else readable(exc)) from exc
    return frame


def _precise_timestamps(spark: SparkSession, query: str, failure: Exception) -> list[str]:
    """The problems of timestamps with more than six digits, if these made the query fail."""
    if not isinstance(failure, PySparkException) or failure.getCondition() not in _NO_TYPE:
        return []
    try:
        columns = spark.sql(f"DESCRIBE QUERY {query}").collect()
    except SPARK_FAILURES:
        return []  # the caller reports the first failure
    return [
        f"column {message_name(name)} has the type {kind}, of which neither an export nor a shard "
        "can hold the digits behind the microsecond; select it as a string, or as the type "
        "without a precision"
        for name, kind, *_ in columns
        if _PRECISE.search(kind)
    ]


def exported_columns(schema: T.StructType) -> tuple[ExportedColumn, ...]:
    """The columns of a query without `column_problems`, in the form for workers."""
    return tuple(ExportedColumn(f.name, _logical_type(f.dataType)) for f in schema.fields)


def column_problems(schema: T.StructType, file_format: ExportFormat | None = None) -> list[str]:
    """All problems of columns that can't be exported, either in general or in this format."""
    if not schema.fields:
        return ["the query has no columns"]
    parts = [
        part for f in schema.fields for part in _nested_types(message_name(f.name), f.dataType)
    ]
    problems = [problem for path, kind in parts for problem in _problems(path, kind)]
    if file_format is not None:
        types = [(path, kind.simpleString()) for path, kind in parts]
        problems += file_format.column_problems(schema.fieldNames(), types)
    return problems


def view_problems(schema: T.StructType) -> list[str]:
    """The problems of columns with which Spark can create a view, but not read it."""
    names = schema.fieldNames()
    pairs = [(names[first], names[place]) for first, place in namesakes(names)]
    return [
        f"the query has {namesakes_text(first, second)}, so that the model's view can't be read; "
        "rename one"
        for first, second in pairs
        # Spark refuses a view with names that are equal in lower case unless it is case-sensitive.
        if first.lower() != second.lower() or first == second
    ]


def canonical_columns(df: DataFrame) -> DataFrame:
    """The same rows with columns c0, c1, …, in types that Spark can hash, sort and send to Python.

    Equal values have equal bytes: texts lose their collation, and a map becomes the list of its
    entries, sorted by key. See `LogicalType` for other types. Columns that already have this form
    are not changed.
    """
    fields = df.schema.fields
    names = [f"c{i}" for i in range(len(fields))]
    renamed = df.toDF(*names)
    kinds = {name: field.dataType for name, field in zip(names, fields, strict=True)}
    if not any(map(_CANONICAL.is_needed, kinds.values())):
        return renamed
    return renamed.selectExpr(*named({name: _CANONICAL.of(name, kinds[name]) for name in names}))


def parts_of(kind: T.DataType) -> list[tuple[str, T.DataType]]:
    """The types directly inside a type, each with its step in a path, such as `[]` or `.name`."""
    if isinstance(kind, T.ArrayType):
        return [("[]", kind.elementType)]
    if isinstance(kind, T.MapType):
        return [(".key", kind.keyType), (".value", kind.valueType)]
    if isinstance(kind, T.StructType):
        return [(f".{field.name}", field.dataType) for field in kind.fields]
    return []


def _logical_type(kind: T.DataType) -> LogicalType:
    name = row_of(kind.typeName()).name
    children = tuple(_logical_type(inner) for _, inner in parts_of(kind))
    return LogicalType(_LOGICAL.get(name, "plain"), children)


def _nested_types(path: str, kind: T.DataType) -> Iterator[tuple[str, T.DataType]]:
    """A type and all types inside it, each with its path."""
    yield path, kind
    for step, inner in parts_of(kind):
        text = step if step == "[]" else f".{message_name(step[1:])}"
        yield from _nested_types(path + text, inner)


def _problems(path: str, kind: T.DataType) -> Iterator[str]:
    """The problems of the type itself, without those of the types inside it."""
    if isinstance(kind, T.StructType):
        # Fields of one name are valid in a query, but not in a table; Arrow refuses them, and
        # Spark's paths can't distinguish fields that differ only in case.
        names = kind.fieldNames()
        for first, place in namesakes(names):
            both = namesakes_text(names[first], names[place], "fields")
            yield f"column {path} is a struct with {both}; rename one"
    elif isinstance(kind, T.TimeType) and kind.precision > _TIME_DIGITS:
        yield (
            f"column {path} has the type {kind.simpleString()}, of which an export can't write "
            "the digits behind the microsecond; select it as a string, or as "
            f"time({_TIME_DIGITS})"
        )
    elif type_named(kind.typeName()) is None:
        yield (
            f"column {path} has the type {kind.simpleString()}, which an export can't write; "
            "select it as another type, such as string or binary"
        )


def _needs_canonical_form(kind: T.DataType) -> bool:
    if isinstance(kind, T.StringType):
        return not kind.isUTF8BinaryCollation()
    return isinstance(kind, (T.NullType, T.MapType, T.VariantType, *INTERVALS))


def _canonical_form(value: str, kind: T.DataType) -> str:
    if isinstance(kind, T.NullType):
        return f"cast({value} AS string)"
    if isinstance(kind, T.MapType):
        return _sorted_entries(value, kind)
    if isinstance(kind, T.VariantType):
        return f"to_json({value}, {_VARIANT_OPTIONS})"
    if isinstance(kind, INTERVALS):
        return interval_parts(value, kind)
    return f"({value}) COLLATE UTF8_BINARY"  # no function: `collate` is a reserved word


_CANONICAL = NestedTransform(_needs_canonical_form, _canonical_form)


def _sorted_entries(value: str, kind: T.MapType) -> str:
    entry_type = T.StructType(
        [T.StructField("key", kind.keyType), T.StructField("value", kind.valueType)]
    )
    entries = _CANONICAL.of(f"map_entries({value})", T.ArrayType(entry_type))
    if not SIGNED.is_needed(kind.keyType):
        return f"sort_array({entries})"

    # In a file from another program, a map may have both 0.0 and -0.0 as keys.
    def signed(entry: str) -> str:
        return _struct({"order": SIGNED.of(field_sql(entry, "key"), kind.keyType), "entry": entry})

    return _each(f"sort_array({_each(entries, signed)})", lambda item: field_sql(item, "entry"))
