"""Which columns an export can take, what they mean, and the form in which they leave Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.mzs3.formats.format import EVERY_COLUMN, PLAIN, ExportedColumn, LogicalType
from dbt.adapters.mzs3.names import namesakes
from dbt.adapters.mzs3.spark.sql import shown_name

INTERVALS = (T.YearMonthIntervalType, T.DayTimeIntervalType, T.CalendarIntervalType)
_MICROS_IN_A_DAY = 86_400_000_000
_SECONDS = "decimal(19, 6)"  # of any bigint of microseconds

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
    T.VariantType,
    *INTERVALS,
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
    """Of `1 years -2 months 3 days 30 hours -4 minutes -5.678 seconds`, without what is zero.

    Of all that Spark offers, the text alone tells 24 hours from a day.
    """
    text = column.cast("string")

    def part(unit: str, sql_type: str = "bigint") -> Column:
        number = F.regexp_extract(text, rf"(-?[\d.]+) {unit}", 1)
        return F.when(number != "", number).otherwise("0").cast(sql_type)

    minutes = part("hours") * 60 + part("minutes")
    return _parts(
        column,
        part("years") * 12 + part("months"),
        part("days"),
        _micros(minutes * 60 + part("seconds", _SECONDS)),
    )


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
    """What `make` does to the types that it `concerns`, also inside of arrays and structs.

    What concerns no part of a column leaves the column the reference that it is.
    """

    concerns: Callable[[T.DataType], bool]
    make: Callable[[Column, T.DataType], Column]

    def is_needed(self, kind: T.DataType) -> bool:
        """Whether the type, or one inside of it, is concerned."""
        if isinstance(kind, T.ArrayType):
            return self.is_needed(kind.elementType)
        if isinstance(kind, T.StructType):
            return any(self.is_needed(field.dataType) for field in kind.fields)
        return self.concerns(kind)

    def of(self, column: Column, kind: T.DataType) -> Column:
        """The column, of type `kind`, changed; NULL stays NULL, structs included."""
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


def order_keys(schema: T.StructType) -> list[Column | str]:
    """Sort keys under which rows of a `canonical_columns` schema tie only if written alike.

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
    return F.struct(column.alias("value"), negative_zero.alias("is_negative_zero"))


SIGNED = NestedTransform(_is_float, _with_sign)


def exported_columns(schema: T.StructType) -> tuple[ExportedColumn, ...]:
    """What workers have to know about the columns of a query, in which there are no problems."""
    return tuple(
        ExportedColumn(field.name, _logical_type(field.dataType)) for field in schema.fields
    )


def column_problems(schema: T.StructType, force_quote: Sequence[str]) -> list[str]:
    """Everything in the columns that can't be exported, and names in force_quote that are none."""
    if not schema.fields:
        return ["the query has no columns"]
    problems = [
        problem
        for field in schema.fields
        for problem in _problems(shown_name(field.name), field.dataType)
    ]
    unknown = [n for n in force_quote if n != EVERY_COLUMN and n not in schema.fieldNames()]
    if unknown:
        problems.append(
            f"force_quote names {', '.join(unknown)}, but the columns are "
            f"{', '.join(schema.fieldNames())}"
        )
    return problems


def view_problems(schema: T.StructType) -> list[str]:
    """Columns of which Spark makes the model's view, but then can't read it."""
    names = schema.fieldNames()
    return [
        f"the query has columns {names[first]} and {names[place]}, which are one name to Spark, "
        "so that the model's view can't be read; rename one"
        for first, place in namesakes(names)
        # Of two whose small letters are the same it makes none.
        if names[first].lower() != names[place].lower()
    ]


def parquet_problems(schema: T.StructType) -> list[str]:
    """Everything in the columns that CSV can hold, and Parquet can't."""
    return [
        f"column {path} is a struct without fields, which Parquet can't hold; leave it out"
        for field in schema.fields
        for path in _empty_structs(shown_name(field.name), field.dataType)
    ]


def canonical_columns(df: DataFrame) -> DataFrame:
    """The same rows under the names c0, c1, …, in types that Spark can hash, sort and send.

    Equal values have equal forms, byte by byte: text is compared by its bytes whatever its
    collation, and a map is the list of its entries by key. The rest is as `LogicalType` has it.
    Columns that are so already stay plain references. Positional names let a query
    have two columns of one name.
    """
    renamed = df.toDF(*[f"c{i}" for i in range(len(df.columns))])
    fields = renamed.schema.fields
    if not any(_NORMAL.is_needed(field.dataType) for field in fields):
        return renamed
    return renamed.select(*[_NORMAL.of(F.col(f.name), f.dataType).alias(f.name) for f in fields])


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


def _problems(path: str, kind: T.DataType) -> Iterator[str]:
    """What is wrong with the column, or the part of one, at `path`."""
    if isinstance(kind, T.ArrayType):
        yield from _problems(f"{path}[]", kind.elementType)
    elif isinstance(kind, T.MapType):
        yield from _problems(f"{path}.key", kind.keyType)
        yield from _problems(f"{path}.value", kind.valueType)
    elif isinstance(kind, T.StructType):
        # Legal in a query if not in a table; Arrow refuses them, and Spark's own paths can't tell
        # fields apart that differ in case alone.
        names = kind.fieldNames()
        for first, place in namesakes(names):
            yield (
                f"column {path} is a struct with fields {names[first]} and {names[place]}, which "
                "are one name to Spark; rename one"
            )
        for field in kind.fields:
            yield from _problems(f"{path}.{shown_name(field.name)}", field.dataType)
    elif isinstance(kind, T.TimeType) and kind.precision > _TIME_DIGITS:
        yield (
            f"column {path} has the type {kind.simpleString()}, of which an export can't write "
            "the digits behind the microsecond; select it as a string, or as "
            f"time({_TIME_DIGITS})"
        )
    elif not isinstance(kind, _SCALARS):
        yield (
            f"column {path} has the type {kind.simpleString()}, which an export can't write; "
            "select it as another type, such as string or binary"
        )


def _empty_structs(path: str, kind: T.DataType) -> Iterator[str]:
    """Where a column, or a part of one, is a struct without fields."""
    if isinstance(kind, T.ArrayType):
        yield from _empty_structs(f"{path}[]", kind.elementType)
    elif isinstance(kind, T.MapType):
        yield from _empty_structs(f"{path}.value", kind.valueType)
    elif isinstance(kind, T.StructType):
        if not kind.fields:
            yield path
        for field in kind.fields:
            yield from _empty_structs(f"{path}.{shown_name(field.name)}", field.dataType)


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
