"""Dates and timestamps in PostgreSQL's text, beyond what pyarrow itself reads."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable

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
    """`2020-01-02`; years of more than four digits and ` BC` too. Raises ValueError."""
    _refuse_year_zero(text)
    try:
        return pc.cast(text, kind)
    except pa.ArrowInvalid:
        return _with_rare(text, _DATE_REGEX, lambda part: pc.cast(part, kind), _rare_date, kind)


def to_timestamp(text: pa.Array, kind: pa.DataType) -> pa.Array:
    """`2020-01-02 03:04:05.678`, with or without a zone where the type has one; see `to_date`.

    An instant without a zone is in UTC. A zone in a `timestamp_ntz` is refused: to leave it out
    would change what the text says. Raises ValueError.
    """
    _refuse_year_zero(text)
    local = pa.timestamp("us")
    try:
        return pc.cast(text, local).cast(kind)
    except pa.ArrowInvalid:
        if kind.tz is None:
            return _with_rare(
                text, _TIMESTAMP_REGEX, lambda part: pc.cast(part, kind), _rare_local, kind
            )
    try:
        return pc.cast(text, kind)
    except pa.ArrowInvalid:
        zoned = pc.match_substring_regex(text, _ZONED_REGEX)
        with_zone = pc.cast(pc.if_else(zoned, text, pa.scalar(None, pa.string())), kind)
        without = pc.if_else(zoned, pa.scalar(None, pa.string()), text)
        return pc.coalesce(
            with_zone,
            _with_rare(
                without,
                _TIMESTAMP_REGEX,
                lambda part: pc.cast(part, local).cast(kind),
                _rare_instant,
                kind,
            ),
        )


def _refuse_year_zero(text: pa.Array) -> None:
    # Of years in four digits, which pyarrow reads; `_day` sees to the others.
    if pc.any(pc.starts_with(text, "0000-")).as_py():
        raise ValueError("there is no year 0")


def _with_rare(
    text: pa.Array,
    usual_regex: str,
    cast: Callable[[pa.Array], pa.Array],
    read_rare: Callable[[str], int],
    kind: pa.DataType,
) -> pa.Array:
    """`cast` for the values of the usual form, `read_rare` once for each other distinct value."""
    usual = pc.match_substring_regex(text, usual_regex)
    values = cast(pc.if_else(usual, text, pa.scalar(None, pa.string())))
    rare = pc.unique(pc.filter(text, pc.invert(usual)))
    number = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    try:
        read = pa.array([read_rare(value) for value in rare.to_pylist()], number).cast(kind)
    except OverflowError as exc:
        raise ValueError("a year out of range") from exc
    return pc.coalesce(values, pc.take(read, pc.index_in(text, value_set=rare)))


def _rare_date(text: str) -> int:
    found = _match(text)
    if found["hour"] is not None:
        raise ValueError("a date has no time")
    return _day(found)


def _rare_local(text: str) -> int:
    found = _match(text)
    if found["zone"] is not None:
        raise ValueError("a timestamp_ntz has no zone")
    return _microseconds(found)


def _rare_instant(text: str) -> int:
    found = _match(text)
    return _microseconds(found) - _offset_us(found["zone"])


def _match(text: str) -> dict[str, str | None]:
    found = _RARE.fullmatch(text)
    if found is None:
        raise ValueError("not a date or timestamp")
    return found.groupdict()


def _day(found: dict[str, str | None]) -> int:
    """Days since 1970-01-01, in the proleptic Gregorian calendar as Spark and PostgreSQL count."""
    year, month, day = (int(found[part] or 0) for part in ("year", "month", "day"))
    if year == 0:
        raise ValueError("there is no year 0")
    if found["bc"]:
        year = 1 - year
    if not 1 <= month <= 12:
        raise ValueError("no such month")
    # The calendar repeats every 400 years: reckon with a year that Python knows.
    cycles, in_cycle = divmod(year - 1, _CYCLE_YEARS)
    known = in_cycle + 1
    if not 1 <= day <= calendar.monthrange(known, month)[1]:
        raise ValueError("no such day")
    before = sum(calendar.monthrange(known, earlier)[1] for earlier in range(1, month))
    years = 365 * in_cycle + in_cycle // 4 - in_cycle // 100
    return cycles * _CYCLE_DAYS + years + before + day - _EPOCH_DAY


def _microseconds(found: dict[str, str | None]) -> int:
    hour, minute, second = (int(found[part] or 0) for part in ("hour", "minute", "second"))
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError("no such time of day")
    seconds = hour * 3600 + minute * 60 + second
    fraction = int((found["fraction"] or "").ljust(6, "0"))
    return _day(found) * _DAY_US + seconds * 1_000_000 + fraction


def _offset_us(zone: str | None) -> int:
    if zone is None or zone == "Z":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 23 or minutes > 59:
        raise ValueError("no such zone")
    us = (hours * 60 + minutes) * 60_000_000
    return -us if zone[0] == "-" else us
