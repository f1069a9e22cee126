"""Spark's three types of intervals as one: a struct of months, days and microseconds.

As in PostgreSQL, nothing carries over between the three: a month has no number of days, and
36 hours are not a day and a half.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

INTERVALS = (T.YearMonthIntervalType, T.DayTimeIntervalType, T.CalendarIntervalType)
_MICROS_IN_A_DAY = 86_400_000_000
_SECONDS = "decimal(19, 6)"  # of any bigint of microseconds


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
