"""Dates, times and timestamps as PostgreSQL writes them (DateStyle ISO, time zone UTC).

Arrow's cast does years 1 to 9999. Other years are rare: they are moved by whole cycles of 400
years, after which the proleptic Gregorian calendar repeats itself, and their year is put back in.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.formats.csv.quoting import (
    appended,
    concatenated,
    replaced,
    text_scalar,
)

DAY = 86_400_000_000  # microseconds
SECOND = 1_000_000
FIRST_DAY = -719_162  # 0001-01-01, in days since 1970-01-01
LAST_DAY = 2_932_896  # 9999-12-31
CYCLE_DAYS = 146_097
CYCLE_YEARS = 400
# Added before divisions, which round towards zero, to make all days there are positive.
CYCLES_BEFORE = 15_000


def date_text(dates: pa.Array) -> pa.Array:
    """`date32` as `large_string`: `2020-01-02`, `12020-01-02`, `0044-03-15 BC`."""
    days = pc.cast(dates.view(pa.int32()), pa.int64())
    far = _outside(days, FIRST_DAY, LAST_DAY)
    if far is None:
        return pc.cast(dates, pa.large_string())
    near_text = pc.cast(_days_to_dates(pc.if_else(far, 0, days)), pa.large_string())
    return replaced(
        near_text, pc.fill_null(far, False), concatenated(*_far_dates(days.filter(far)))
    )


def time_text(times: pa.Array) -> pa.Array:
    """`time64` as `large_string`: `10:20:30.5`, to the microsecond."""
    micros = pc.cast(times, pa.time64("us"), safe=False)
    return _without_trailing_zeros(pc.cast(micros, pa.large_string()))


def timestamp_text(timestamps: pa.Array) -> pa.Array:
    """`timestamp[us]` as `large_string`: `2020-01-02 10:20:30.5`, and `+00` if it has a zone."""
    offset = "" if timestamps.type.tz is None else "+00"
    micros = timestamps.view(pa.int64())
    far = _outside(micros, FIRST_DAY * DAY, (LAST_DAY + 1) * DAY - 1)
    if far is None:
        return _with_offset(_near_timestamps(micros), offset)
    near_text = _with_offset(_near_timestamps(pc.if_else(far, 0, micros)), offset)
    far_text = _far_timestamps(micros.filter(far), offset)
    return replaced(near_text, pc.fill_null(far, False), far_text)


def _outside(values: pa.Array, first: int, last: int) -> pa.Array | None:
    """Mask of what is not between the two, both included; None if nothing is."""
    ends = pc.min_max(values).as_py()
    if ends["min"] is None or (first <= ends["min"] and ends["max"] <= last):
        return None
    return pc.or_(pc.less(values, first), pc.greater(values, last))


def _near_timestamps(micros: pa.Array) -> pa.Array:
    seconds = pc.divide(micros, SECOND)
    whole = pc.equal(pc.multiply(seconds, SECOND), micros)
    if pc.all(whole, min_count=0).as_py():
        return pc.cast(seconds.view(pa.timestamp("s")), pa.large_string())
    text = pc.cast(micros.view(pa.timestamp("us")), pa.large_string())
    if pc.any(whole).as_py():
        return _without_trailing_zeros(text)
    return pc.ascii_rtrim(text, "0")  # no fraction is 0, so none ends at its point


def _without_trailing_zeros(text: pa.Array) -> pa.Array:
    """Texts that all have a fraction, without what is zero of it."""
    return pc.ascii_rtrim(pc.ascii_rtrim(text, "0"), ".")


def _with_offset(text: pa.Array, offset: str) -> pa.Array:
    return appended(text, offset) if offset else text


def _far_timestamps(micros: pa.Array, offset: str) -> pa.Array:
    """Any timestamps, without NULLs; the era comes after the offset."""
    days = pc.divide(micros, DAY)
    days = pc.subtract(days, pc.cast(pc.less(micros, pc.multiply(days, DAY)), pa.int64()))
    time = pc.subtract(micros, pc.multiply(days, DAY)).view(pa.time64("us"))
    date, era = _far_dates(days)
    return concatenated(date, " ", time_text(time), offset, era)


def _far_dates(days: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Year, month and day of any days, and ` BC` or nothing; `int64` without NULLs.

    There is no year 0: what the calendar's arithmetic calls 0 is 1 BC.
    """
    shifted = pc.add(days, CYCLES_BEFORE * CYCLE_DAYS)
    cycles = pc.divide(shifted, CYCLE_DAYS)
    in_cycle = pc.subtract(shifted, pc.multiply(cycles, CYCLE_DAYS))  # 0 is 1970-01-01
    text = pc.cast(_days_to_dates(in_cycle), pa.large_string())
    year = pc.cast(pc.utf8_slice_codeunits(text, 0, 4), pa.int64())
    year = pc.add(year, pc.multiply(pc.subtract(cycles, CYCLES_BEFORE), CYCLE_YEARS))
    before_christ = pc.less_equal(year, 0)
    year = pc.if_else(before_christ, pc.subtract(1, year), year)
    year_text = pc.utf8_lpad(pc.cast(year, pa.large_string()), 4, "0")
    era = pc.if_else(before_christ, text_scalar(" BC"), text_scalar(""))
    return concatenated(year_text, pc.utf8_slice_codeunits(text, 4)), era


def _days_to_dates(days: pa.Array) -> pa.Array:
    return pc.cast(days, pa.int32()).view(pa.date32())
