"""Dates and timestamps from columns of text, as PostgreSQL counts days; see `convert`."""

from __future__ import annotations

import contextlib
import datetime as dt
import re
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.arrow.arrays import cast_by_form
from dbt.adapters.mzs3.types.calendar import DAY, FIRST_DAY, HOUR, SECOND, day_number

# These, `_RARE` below and `_TIME` of `convert` have to agree: test_source_verdicts compares them.
_DATE_REGEX = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_USUAL_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?"
_TIMESTAMP_REGEX = rf"^(?:[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}|{_USUAL_TIME})$"
_ZONE = re.compile(r":[0-9.]*(?:Z|[+-][0-9:]{2,5})\Z")
_ZONED_REGEX = rf"^{_USUAL_TIME}(?:Z|[+-][0-9]{{2}}(?::?[0-9]{{2}})?)$"
# Zeros behind the microsecond, which pyarrow does not read.
_MOST_USUAL = len("2024-01-05 10:30:15.123456")
_ZEROS_REGEX = r"^([0-9-]{10}[ T][0-9:]{8}\.[0-9]{6})0+"
_ZEROS = re.compile(_ZEROS_REGEX)
# How long texts are that pyarrow reads as a timestamp though they have an hour alone, as in
# `2024-01-05 10`, and with a zone; so is `2024-01-05 10:30+01`.
_HOUR_LENGTHS = frozenset({13})
_ZONED_HOUR_LENGTHS = frozenset({14, 16, 18})
_EITHER_LENGTH = 19
_NO_MINUTES = r"^.{13}[^:]"

# Python's \d has the digits of every script.
_RARE = re.compile(
    r"(?P<year>\d{4,7})-(?P<month>\d\d)-(?P<day>\d\d)"
    r"(?:[ T](?P<hour>\d\d):(?P<minute>\d\d)"
    r"(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,6})0*)?)?"
    r"(?P<zone>Z|[+-]\d\d(?::?\d\d)?)?)?"
    r"(?P<bc> BC)?",
    re.ASCII,
)


def require_year(times: pa.Array) -> None:
    """Raise ValueError if there may be a year 0 in what pyarrow itself read from text.

    There is none in PostgreSQL. An instant within a day of it is refused too, as its zone may
    have brought it there or away: the text shows, to `to_timestamp`.
    """
    limit = FIRST_DAY if pa.types.is_date32(times.type) else (FIRST_DAY + 1) * DAY
    earliest = pc.min(times).value
    if earliest is not None and earliest < limit:
        raise ValueError("perhaps a year 0")


def to_date(text: pa.Array, kind: pa.DataType) -> pa.Array:
    """Dates from `2020-01-02`; years of more than four digits and ` BC` too. Raises ValueError."""
    _refuse_year_zero(text)
    with contextlib.suppress(pa.ArrowInvalid):
        return pc.cast(text, kind)
    return cast_by_form(text, _DATE_REGEX, lambda usual: pc.cast(usual, kind), _read_time, kind)


def to_timestamp(text: pa.Array, kind: pa.DataType) -> pa.Array:
    """Timestamps from `2020-01-02 03:04:05.678`, with a zone if the type has one; see `to_date`.

    An instant without a zone is in UTC. Raises ValueError, also for a zone in a `timestamp_ntz`.
    """
    _refuse_year_zero(text)
    if (pc.max(pc.binary_length(text)).as_py() or 0) > _MOST_USUAL:
        text = _without_zeros(text)
    cast_local = partial(_cast_local, kind=kind)
    if kind.tz is None:
        return cast_by_form(text, _TIMESTAMP_REGEX, cast_local, _read_time, kind)
    no_text = pa.scalar(None, pa.string())
    zoned = pc.match_substring_regex(text, _ZONED_REGEX)
    with_zone = pc.cast(pc.if_else(zoned, text, no_text), kind)
    others = pc.if_else(zoned, no_text, text)
    without = cast_by_form(others, _TIMESTAMP_REGEX, cast_local, _read_time, kind)
    return pc.coalesce(with_zone, without)


def to_timestamp_at_once(text: pa.Array, kind: pa.DataType) -> pa.Array:
    """As `to_timestamp`, and far faster; ValueError also for what that one might read.

    It reads what pyarrow does, all with a zone or none, but for an hour without minutes. Zeros
    behind the microsecond, which some writers put behind every value, are cut before.
    """
    # The first one tells how to try: to fail, pyarrow takes 20 times as long as to read.
    first = pc.first(text).as_py() or ""
    zoned = kind.tz is not None and _ZONE.search(first)
    if _ZEROS.match(first):
        text = _without_zeros(text)
    lengths = set(pc.unique(pc.binary_length(text)).to_pylist())
    if not lengths.isdisjoint(_ZONED_HOUR_LENGTHS if zoned else _HOUR_LENGTHS) or (
        zoned and _EITHER_LENGTH in lengths and _any(pc.match_substring_regex(text, _NO_MINUTES))
    ):
        raise ValueError("an hour without minutes")
    times = pc.cast(text, kind) if zoned else _cast_local(text, kind)
    require_year(times)
    return times


def _without_zeros(text: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(text, _ZEROS_REGEX, r"\1")


def _cast_local(text: pa.Array, kind: pa.DataType) -> pa.Array:
    return pc.cast(text, pa.timestamp("us")).cast(kind)


def _refuse_year_zero(text: pa.Array) -> None:
    # Of years in four digits, which pyarrow reads; `_day` sees to the others.
    if _any(pc.starts_with(text, "0000-")):
        raise ValueError("there is no year 0")


def _read_time(text: str, kind: pa.DataType) -> int:
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
    local = _day(found) * DAY + _time_us(hour, minute, second) + fraction
    zone = found["zone"] or "Z"
    digits = zone[1:].replace(":", "").ljust(4, "0")
    offset = _time_us(int(digits[:2]), int(digits[2:]))
    return local + offset if zone[0] == "-" else local - offset


def _day(found: dict[str, Any]) -> int:
    """Days since 1970-01-01."""
    year = int(found["year"])
    if year == 0:
        raise ValueError("there is no year 0")
    return day_number(1 - year if found["bc"] else year, int(found["month"]), int(found["day"]))


def _time_us(hour: int, minute: int, second: int = 0) -> int:
    """Microseconds since midnight. Raises ValueError if there is no such time of day."""
    dt.time(hour, minute, second)
    return hour * HOUR + (minute * 60 + second) * SECOND


def _any(holds: pa.Array) -> bool:
    return bool(pc.any(holds).as_py())
