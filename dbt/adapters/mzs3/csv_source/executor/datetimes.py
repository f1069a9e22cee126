"""Dates and timestamps in PostgreSQL's text, beyond what pyarrow itself reads."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_DAY_US = 86_400_000_000
_EPOCH_DAY = 719_163  # the ordinal of 1970-01-01 in the proleptic Gregorian calendar
_FIRST_DAY = 1 - _EPOCH_DAY  # 0001-01-01
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097

_ZONE = r"(?:Z|[+-]\d\d(?::?\d\d)?)$"
_DATE_REGEX = r"^\d{4}-\d\d-\d\d$"
_TIMESTAMP_REGEX = r"^\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)?$"
_ZONED_REGEX = r"^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?" + _ZONE

_RARE = re.compile(
    r"(?P<year>\d{4,7})-(?P<month>\d\d)-(?P<day>\d\d)"
    r"(?:[ T](?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,6}))?)?"
    r"(?P<zone>Z|[+-]\d\d(?::?\d\d)?)?)?"
    r"(?P<bc> BC)?"
)


def require_year(array: pa.Array) -> None:
    """Raise ValueError if there may be a year 0 in what pyarrow itself read; for any type.

    There is none in PostgreSQL. An instant within a day of it is refused too, as its zone may
    have brought it there or away: the text shows, to `to_timestamp`.
    """
    if pa.types.is_date32(array.type):
        limit = _FIRST_DAY
    elif pa.types.is_timestamp(array.type):
        limit = (_FIRST_DAY + 1) * _DAY_US
    else:
        return
    earliest = pc.min(array).value
    if earliest is not None and earliest < limit:
        raise ValueError("perhaps a year 0")


def to_date(text: pa.Array, kind: pa.DataType) -> pa.Array:
    """Dates from `2020-01-02`; years of more than four digits and ` BC` too. Raises ValueError."""
    _refuse_year_zero(text)
    with suppress(pa.ArrowInvalid):
        return pc.cast(text, kind)
    return cast_by_form(text, _DATE_REGEX, lambda usual: pc.cast(usual, kind), _read_rare, kind)


def to_timestamp(text: pa.Array, kind: pa.DataType) -> pa.Array:
    """Timestamps from `2020-01-02 03:04:05.678`, with a zone if the type has one; see `to_date`.

    An instant without a zone is in UTC. Raises ValueError, also for a zone in a `timestamp_ntz`.
    """

    def cast_local(part: pa.Array) -> pa.Array:
        return pc.cast(part, pa.timestamp("us")).cast(kind)

    _refuse_year_zero(text)
    with suppress(pa.ArrowInvalid):
        return cast_local(text)
    if kind.tz is None:
        return cast_by_form(text, _TIMESTAMP_REGEX, cast_local, _read_rare, kind)
    with suppress(pa.ArrowInvalid):
        return pc.cast(text, kind)
    no_text = pa.scalar(None, pa.string())
    zoned = pc.match_substring_regex(text, _ZONED_REGEX)
    with_zone = pc.cast(pc.if_else(zoned, text, no_text), kind)
    others = pc.if_else(zoned, no_text, text)
    without = cast_by_form(others, _TIMESTAMP_REGEX, cast_local, _read_rare, kind)
    return pc.coalesce(with_zone, without)


def _refuse_year_zero(text: pa.Array) -> None:
    # Of years in four digits, which pyarrow reads; `_day` sees to the others.
    if pc.any(pc.starts_with(text, "0000-")).as_py():
        raise ValueError("there is no year 0")


def cast_by_form(
    text: pa.Array,
    usual_regex: str,
    cast: Callable[[pa.Array], pa.Array],
    read_rare: Callable[[str, pa.DataType], Any],
    kind: pa.DataType,
) -> pa.Array:
    """The texts as values of `kind`; NULL stays NULL.

    `cast` is called for those of the usual form, `read_rare` once for each other distinct one;
    it returns the value, or the number that stands for a date or timestamp. Raises ValueError.
    """
    usual = pc.match_substring_regex(text, usual_regex)
    values = cast(pc.if_else(usual, text, pa.scalar(None, pa.string())))
    rare = pc.unique(pc.filter(text, pc.invert(usual)))
    try:
        read = pa.array([read_rare(value, kind) for value in rare.to_pylist()], kind)
    except OverflowError as exc:
        raise ValueError("a year out of range") from exc
    return pc.coalesce(values, pc.take(read, pc.index_in(text, value_set=rare)))


def _read_rare(text: str, kind: pa.DataType) -> int:
    match = _RARE.fullmatch(text)
    if match is None:
        raise ValueError("not a date or timestamp")
    found = match.groupdict()
    if pa.types.is_date32(kind):
        if found["hour"] is not None:
            raise ValueError("a date has no time")
        return _day(found)
    if kind.tz is None and found["zone"] is not None:
        raise ValueError("a timestamp_ntz has no zone")
    hour, minute, second = (int(found[part] or 0) for part in ("hour", "minute", "second"))
    fraction = int((found["fraction"] or "").ljust(6, "0"))
    local = _day(found) * _DAY_US + _time_us(hour, minute, second) + fraction
    zone = found["zone"] or "Z"
    digits = zone[1:].replace(":", "").ljust(4, "0")
    offset = _time_us(int(digits[:2]), int(digits[2:]))
    return local + offset if zone[0] == "-" else local - offset


def _day(found: dict[str, Any]) -> int:
    """Days since 1970-01-01, in the proleptic Gregorian calendar as Spark and PostgreSQL count."""
    year = int(found["year"])
    if year == 0:
        raise ValueError("there is no year 0")
    if found["bc"]:
        year = 1 - year
    # The calendar repeats every 400 years: reckon with a year that Python knows.
    cycles, in_cycle = divmod(year - 1, _CYCLE_YEARS)
    known = dt.date(in_cycle + 1, int(found["month"]), int(found["day"]))
    return cycles * _CYCLE_DAYS + known.toordinal() - _EPOCH_DAY


def _time_us(hour: int, minute: int, second: int = 0) -> int:
    """Microseconds since midnight. Raises ValueError if there is no such time of day."""
    dt.time(hour, minute, second)
    return (hour * 3600 + minute * 60 + second) * 1_000_000
