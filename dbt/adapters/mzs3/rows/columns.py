"""The columns of an export: their problems, their logical types, and their canonical form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.mzs3.formats.format import PLAIN, ExportedColumn, ExportFormat, LogicalType
from dbt.adapters.mzs3.names import namesakes
from dbt.adapters.mzs3.spark.sql import shown_name

INTERVALS = (T.YearMonthIntervalType, T.DayTimeIntervalType, T.CalendarIntervalType)
_MICROS_IN_A_DAY = 86_400_000_000
_SECONDS = "decimal(19, 6)"  # of any bigint of microseconds

# Of which each value has one text, that can name a folder.
FOLDER_TYPES = (
    T.BooleanType,
    T.IntegralType,
    T.DecimalType,
    T.StringType,
    T.CharType,
    T.VarcharType,
    T.DateType,
    T.TimestampType,
    T.TimestampNTZType,
)
_EXPORTED_TYPES = (
    *FOLDER_TYPES,
    *INTERVALS,
    T.NullType,
    T.FractionalType,
    T.BinaryType,
    T.TimeType,
    T.VariantType,
    T.ArrayType,
    T.MapType,
)
# Of a second's fraction, in PostgreSQL's times.
_TIME_DIGITS = 6
# Else a variant's instants, and so the files, would be different in another session.
_VARIANT_OPTIONS = {"timeZone": "UTC"}


def interval_parts(column: Column, kind: T.DataType) -> Column:
    """`struct<months int, days int, micros bigint>` of a column of one of INTERVALS; exact."""
    if isinstance(kind, T.YearMonthIntervalType):
        months = column.cast("interval month").cast("int")
        return _parts(column, months, F.lit(0), F.lit(0))
    if isinstance(kind, T.DayTimeIntervalType):
        micros = _micros(column.cast("interval second").cast(_SECONDS))
        if kind.startField != T.DayTimeIntervalType.DAY:
            return _parts(column, F.lit(0), F.lit(0), micros)
        # A day of this type is 24 hours; PostgreSQL writes the same literal in days too.
        days = F.extract(F.lit("DAY"), column)
        return _parts(column, F.lit(0), days, micros % _MICROS_IN_A_DAY)
    return _calendar_parts(column)


def _calendar_parts(column: Column) -> Column:
    """Parsed from `1 years -2 months 3 days 30 hours -4 minutes -5.678 seconds`.

    Parts that are zero are not in the text, which alone tells 24 hours from a day.
    """
    text = column.cast("string")

    def part(unit: str, sql_type: str = "bigint") -> Column:
        number = F.regexp_extract(text, rf"(-?[\d.]+) {unit}", 1)
        return F.when(number != "", number).otherwise("0").cast(sql_type)

    months = part("years") * 12 + part("months")
    minutes = part("hours") * 60 + part("minutes")
    return _parts(column, months, part("days"), _micros(minutes * 60 + part("seconds", _SECONDS)))


def _micros(seconds: Column) -> Column:
    return (seconds * 1_000_000).cast("bigint")


def _parts(column: Column, months: Column, days: Column, micros: Column) -> Column:
    parts = F.struct(
        months.cast("int").alias("months"),
        days.cast("int").alias("days"),
        micros.cast("bigint").alias("micros"),
    )
    return F.when(column.isNotNull(), parts)


@dataclass(frozen=True)
class NestedTransform:
    """Applies `make` to values of the types that it `concerns`, also inside arrays and structs.

    A column without such types stays a plain reference.
    """

    concerns: Callable[[T.DataType], bool]
    make: Callable[[Column, T.DataType], Column]

    def is_needed(self, kind: T.DataType) -> bool:
        """Whether the type, or one inside it, is concerned."""
        if isinstance(kind, T.ArrayType):
            return self.is_needed(kind.elementType)
        if isinstance(kind, T.StructType):
            return any(self.is_needed(field.dataType) for field in kind.fields)
        return self.concerns(kind)

    def of(self, column: Column, kind: T.DataType) -> Column:
        """The transformed column, which is of type `kind`; NULL stays NULL."""
        if not self.is_needed(kind):
            return column
        if isinstance(kind, T.ArrayType):
            element = kind.elementType
            return F.transform(column, lambda item: self.of(item, element))
        if isinstance(kind, T.StructType):
            fields = [
                self.of(column.getField(field.name), field.dataType).alias(field.name)
                for field in kind.fields
            ]
            return F.when(column.isNotNull(), F.struct(*fields))
        return self.make(column, kind)


def order_keys(schema: T.StructType) -> list[Column]:
    """Sort keys of `canonical_columns`, under which only rows tie that are the same in a file.

    Spark takes -0.0 and 0.0 for equal, so floats have a second key that tells them apart.
    """
    return [SIGNED.of(F.col(field.name), field.dataType) for field in schema.fields]


def _with_sign(column: Column, kind: T.DataType) -> Column:
    # The cast is reached for zeros only; its text is the one sign of a negative zero.
    negative_zero = (column == 0) & column.cast("string").startswith("-")
    return F.struct(column.alias("value"), negative_zero.alias("is_negative_zero"))


SIGNED = NestedTransform(lambda kind: isinstance(kind, (T.FloatType, T.DoubleType)), _with_sign)


def exported_columns(schema: T.StructType) -> tuple[ExportedColumn, ...]:
    """The columns of a query without problems, as workers need them."""
    return tuple(ExportedColumn(f.name, _logical_type(f.dataType)) for f in schema.fields)


def column_problems(schema: T.StructType, file_format: ExportFormat | None = None) -> list[str]:
    """Everything in the columns that can't be exported, at all or in this format."""
    if not schema.fields:
        return ["the query has no columns"]
    parts = [part for f in schema.fields for part in _with_inner(shown_name(f.name), f.dataType)]
    problems = [problem for path, kind in parts for problem in _problems(path, kind)]
    if file_format is not None:
        types = [(path, kind.simpleString()) for path, kind in parts]
        problems += file_format.column_problems(schema.fieldNames(), types)
    return problems


def view_problems(schema: T.StructType) -> list[str]:
    """The columns that would make a view that Spark can create, but not read."""
    names = schema.fieldNames()
    return [
        f"the query has columns {names[first]} and {names[place]}, which are one name to Spark, "
        "so that the model's view can't be read; rename one"
        for first, place in namesakes(names)
        # Of two whose small letters are the same it makes none.
        if names[first].lower() != names[place].lower()
    ]


def canonical_columns(df: DataFrame) -> DataFrame:
    """The same rows with columns c0, c1, …, in types that Spark can hash, sort and send.

    Equal values have equal bytes: texts lose their collation, and a map is the list of its
    entries in the order of their keys. Other types are as `LogicalType` says; columns that are in
    this form already stay plain references. Names by position let a query have two columns of
    one name.
    """
    renamed = df.toDF(*[f"c{i}" for i in range(len(df.columns))])
    if not any(_NORMAL.is_needed(field.dataType) for field in renamed.schema.fields):
        return renamed  # to select each column takes many calls into the JVM
    normal = [_NORMAL.of(F.col(f.name), f.dataType).alias(f.name) for f in renamed.schema.fields]
    return renamed.select(*normal)


def _logical_type(kind: T.DataType) -> LogicalType:
    if isinstance(kind, T.ArrayType):
        return LogicalType("list", (_logical_type(kind.elementType),))
    if isinstance(kind, T.StructType):
        return LogicalType("struct", tuple(_logical_type(field.dataType) for field in kind.fields))
    if isinstance(kind, T.MapType):
        return LogicalType("map", (_logical_type(kind.keyType), _logical_type(kind.valueType)))
    if isinstance(kind, T.VariantType):
        return LogicalType("variant")
    return LogicalType("interval") if isinstance(kind, INTERVALS) else PLAIN


def _with_inner(path: str, kind: T.DataType) -> Iterator[tuple[str, T.DataType]]:
    """The type of the column, or the part of one, at `path`, and the types inside at theirs."""
    yield path, kind
    if isinstance(kind, T.ArrayType):
        yield from _with_inner(f"{path}[]", kind.elementType)
    elif isinstance(kind, T.MapType):
        yield from _with_inner(f"{path}.key", kind.keyType)
        yield from _with_inner(f"{path}.value", kind.valueType)
    elif isinstance(kind, T.StructType):
        for field in kind.fields:
            yield from _with_inner(f"{path}.{shown_name(field.name)}", field.dataType)


def _problems(path: str, kind: T.DataType) -> Iterator[str]:
    """What is wrong with the type itself, whatever is inside of it."""
    if isinstance(kind, T.StructType):
        # Legal in a query if not in a table; Arrow refuses them, and Spark's own paths can't tell
        # fields apart that differ in case alone.
        names = kind.fieldNames()
        for first, place in namesakes(names):
            yield (
                f"column {path} is a struct with fields {names[first]} and {names[place]}, which "
                "are one name to Spark; rename one"
            )
    elif isinstance(kind, T.TimeType) and kind.precision > _TIME_DIGITS:
        yield (
            f"column {path} has the type {kind.simpleString()}, of which an export can't write "
            "the digits behind the microsecond; select it as a string, or as "
            f"time({_TIME_DIGITS})"
        )
    elif not isinstance(kind, _EXPORTED_TYPES):
        yield (
            f"column {path} has the type {kind.simpleString()}, which an export can't write; "
            "select it as another type, such as string or binary"
        )


def _is_abnormal(kind: T.DataType) -> bool:
    if isinstance(kind, T.StringType):
        return not kind.isUTF8BinaryCollation()
    return isinstance(kind, (T.NullType, T.MapType, T.VariantType, *INTERVALS))


def _normal(column: Column, kind: T.DataType) -> Column:
    if isinstance(kind, T.NullType):
        return column.cast("string")
    if isinstance(kind, T.MapType):
        return _sorted_entries(column, kind)
    if isinstance(kind, T.VariantType):
        return F.to_json(column, _VARIANT_OPTIONS)
    if isinstance(kind, INTERVALS):
        return interval_parts(column, kind)
    return F.collate(column, "UTF8_BINARY")


_NORMAL = NestedTransform(_is_abnormal, _normal)


def _sorted_entries(column: Column, kind: T.MapType) -> Column:
    entries = F.map_entries(column)
    entry_type = T.StructType(
        [T.StructField("key", kind.keyType), T.StructField("value", kind.valueType)]
    )
    entries = _NORMAL.of(entries, T.ArrayType(entry_type))
    if not SIGNED.is_needed(kind.keyType):
        return F.sort_array(entries)
    # Keys of a file that Spark has not written may be both zeros.
    signed = F.transform(
        entries,
        lambda entry: F.struct(
            SIGNED.of(entry.getField("key"), kind.keyType).alias("order"), entry.alias("entry")
        ),
    )
    return F.transform(F.sort_array(signed), lambda item: item.getField("entry"))
