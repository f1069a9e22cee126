"""The text of values that are not nested, as PostgreSQL's output functions write it."""

from __future__ import annotations

import binascii
import contextlib
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.arrow.arrays import is_binary, is_string
from dbt.adapters.mzs3.errors import ExecutorError
from dbt.adapters.mzs3.formats.write.csv.floats import FLOATS, float_text
from dbt.adapters.mzs3.formats.write.csv.quoting import TextBytes, append, concat, text_scalar
from dbt.adapters.mzs3.types.calendar import (
    CYCLE_DAYS,
    CYCLE_YEARS,
    DAY,
    FIRST_DAY,
    HOUR,
    LAST_DAY,
    MONTHS_IN_A_YEAR,
    SECOND,
)

# Calendar cycles, added to make all days positive, as Arrow's division rounds towards zero.
CYCLES_BEFORE = 15_000

INTERVAL_ALPHABET = string.digits + "+-:. yearsmond"


def date_text(dates: pa.Array) -> pa.Array:
    """`date32` as `large_string`: `2020-01-02`, `12020-01-02`, `0044-03-15 BC`."""
    days = pc.cast(dates.view(pa.int32()), pa.int64())
    outside = _outside(days, FIRST_DAY, LAST_DAY)
    if outside is None:
        return pc.cast(dates, pa.large_string())
    arrow_text = pc.cast(_days_to_dates(pc.if_else(outside, 0, days)), pa.large_string())
    return pc.replace_with_mask(
        arrow_text, pc.fill_null(outside, False), concat(*_any_dates(days.filter(outside)))
    )


def time_text(times: pa.Array) -> pa.Array:
    """`time64` as `large_string`: `10:20:30.5`, to the microsecond."""
    micros = pc.cast(times, pa.time64("us"), safe=False)
    return _without_trailing_zeros(pc.cast(micros, pa.large_string()))


def timestamp_text(timestamps: pa.Array) -> pa.Array:
    """`timestamp[us]` as `large_string`: `2020-01-02 10:20:30.5`, and `+00` if it has a zone."""
    offset = "" if timestamps.type.tz is None else "+00"
    micros = timestamps.view(pa.int64())
    outside = _outside(micros, FIRST_DAY * DAY, (LAST_DAY + 1) * DAY - 1)
    text = _arrow_timestamps(micros if outside is None else pc.if_else(outside, 0, micros))
    if offset:
        text = append(text, offset)
    if outside is None:
        return text
    outside_text = _any_timestamps(micros.filter(outside), offset)
    return pc.replace_with_mask(text, pc.fill_null(outside, False), outside_text)


def _outside(values: pa.Array, first: int, last: int) -> pa.Array | None:
    """A mask of the values before `first` or after `last`; None if there are none."""
    ends = pc.min_max(values).as_py()
    if ends["min"] is None or (first <= ends["min"] and ends["max"] <= last):
        return None
    return pc.or_(pc.less(values, first), pc.greater(values, last))


def _arrow_timestamps(micros: pa.Array) -> pa.Array:
    seconds = pc.divide(micros, SECOND)
    is_whole = pc.equal(pc.multiply(seconds, SECOND), micros)
    if pc.all(is_whole, min_count=0).as_py():
        return pc.cast(seconds.view(pa.timestamp("s")), pa.large_string())
    text = pc.cast(micros.view(pa.timestamp("us")), pa.large_string())
    if pc.any(is_whole).as_py():
        return _without_trailing_zeros(text)
    return pc.ascii_rtrim(text, "0")  # no fraction is 0, so a digit follows each point


def _without_trailing_zeros(text: pa.Array) -> pa.Array:
    """Removes trailing zeros of the fraction, which each text must have, and a trailing point."""
    return pc.ascii_rtrim(pc.ascii_rtrim(text, "0"), ".")


def _any_timestamps(micros: pa.Array, offset: str) -> pa.Array:
    """The texts of timestamps of any year, without NULLs; the era comes after the offset."""
    days = pc.divide(micros, DAY)
    days = pc.subtract(days, pc.cast(pc.less(micros, pc.multiply(days, DAY)), pa.int64()))
    time = pc.subtract(micros, pc.multiply(days, DAY)).view(pa.time64("us"))
    date, era = _any_dates(days)
    return concat(date, " ", time_text(time), offset, era)


def _any_dates(days: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The dates of days in any year, `int64` without NULLs, and their eras (` BC` or empty).

    In these calculations, 1 BC is year 0.
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
    return concat(year_text, pc.utf8_slice_codeunits(text, 4)), era


def _days_to_dates(days: pa.Array) -> pa.Array:
    return pc.cast(days, pa.int32()).view(pa.date32())


class NotUtf8(ValueError):
    """A text column holds bytes that are not UTF-8; Spark does not check its strings."""


@contextlib.contextmanager
def require_utf8(name: str, carrier: str) -> Iterator[None]:
    """Raises an ExecutorError about the column `name` if the block raises NotUtf8."""
    try:
        yield
    except NotUtf8 as error:
        raise ExecutorError(
            f"column {name} holds text that is not valid UTF-8, which {carrier} can't carry. "
            "Select make_valid_utf8() of it, or cast it to binary."
        ) from error


def utf8_text(values: pa.Array) -> pa.Array:
    """`string` or `large_string` as `large_string`. Raises NotUtf8."""
    text_bytes = TextBytes(pc.cast(values, pa.large_string()))
    if not text_bytes.data.isascii():
        try:
            text_bytes.values.validate(full=True)
        except pa.ArrowInvalid as error:
            raise NotUtf8 from error
    return text_bytes.values


@dataclass(frozen=True)
class Formatter:
    """Writes values of one type as `large_string`; NULL stays NULL."""

    write: Callable[[pa.Array], pa.Array]
    alphabet: str | None  # the characters that can occur; None if any can
    has_braces: bool = False  # the text is in braces, which need no quotes inside other braces

    def may_hold(self, characters: str) -> bool:
        """Whether the text of a value can contain one of the characters."""
        return self.alphabet is None or not set(characters).isdisjoint(self.alphabet)

    def may_be(self, text: str) -> bool:
        """Whether a value's text can be `text`; only text columns have empty texts."""
        return self.alphabet is None or (text != "" and set(text) <= set(self.alphabet))


def scalar_formatter(data_type: pa.DataType) -> Formatter | None:
    """The formatter of a type that is not nested; None if it has no text."""
    return next((formatter for matches, formatter in _FORMATTERS if matches(data_type)), None)


def _plain_text(values: pa.Array) -> pa.Array:
    return pc.cast(values, pa.large_string())


def _boolean_text(values: pa.Array) -> pa.Array:
    return pc.if_else(values, text_scalar("t"), text_scalar("f"))


def _binary_text(values: pa.Array) -> pa.Array:
    """`\\x00ff`: writes all bytes as digits at once, and splits these at the doubled offsets."""
    text_bytes = TextBytes(pc.cast(values, pa.large_binary()))
    count = len(values)
    validity, offsets, _ = text_bytes.values.buffers()
    if count == 0:
        return pa.array([], pa.large_string())
    doubled = pc.multiply(pa.Array.from_buffers(pa.int64(), count + 1, [None, offsets]), 2)
    digits = pa.py_buffer(binascii.hexlify(text_bytes.data))
    buffers = [validity, doubled.buffers()[1], digits]
    return concat("\\x", pa.Array.from_buffers(pa.large_string(), count, buffers))


def _decimal_text(values: pa.Array) -> pa.Array:
    """All digits of the declared scale; Arrow writes numbers below 1e-6 as `1E-18`, `0E-18`."""
    text = pc.cast(values, pa.large_string())
    scale = values.type.scale
    mask = TextBytes(text).mask_where(contains="E") if scale > 6 else None
    if mask is None:
        return text
    tiny = values.filter(mask)
    unscaled = pa.Array.from_buffers(
        pa.decimal128(38, 0), len(tiny), tiny.buffers(), offset=tiny.offset
    )
    digits = pc.cast(unscaled, pa.large_string())
    sign = pc.if_else(pc.starts_with(digits, "-"), text_scalar("-"), text_scalar(""))
    fraction = pc.utf8_lpad(pc.ascii_ltrim(digits, "-"), scale, "0")
    return pc.replace_with_mask(text, pc.fill_null(mask, False), concat(sign, "0.", fraction))


def _is_decimal(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_decimal128(data_type) and data_type.scale >= 0)


def _is_timestamp(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(data_type) and data_type.unit == "us")


_NUMBER = string.digits + "-"
_DATE = _NUMBER + " BC"
_FORMATTERS: tuple[tuple[Callable[[pa.DataType], bool], Formatter], ...] = (
    (is_string, Formatter(utf8_text, None)),
    (pa.types.is_signed_integer, Formatter(_plain_text, _NUMBER)),
    (_is_decimal, Formatter(_decimal_text, _NUMBER + ".")),
    (FLOATS.__contains__, Formatter(float_text, _NUMBER + ".+eNaInfity")),
    (pa.types.is_boolean, Formatter(_boolean_text, "tf")),
    (pa.types.is_date32, Formatter(date_text, _DATE)),
    (_is_timestamp, Formatter(timestamp_text, _DATE + ":.+")),
    (pa.types.is_time64, Formatter(time_text, string.digits + ":.")),
    (is_binary, Formatter(_binary_text, "\\x" + string.hexdigits)),
    (pa.types.is_null, Formatter(_plain_text, "")),
)


def interval_text(intervals: pa.Array) -> pa.Array:
    """Structs `(months int32, days int32, micros int64)` as `large_string`.

    Parts may have different signs. Only months carry over, to years. (Intervals that are infinite
    to PostgreSQL 17 and later are numbers to Spark, and are written as such.)
    """
    months, days, micros = intervals.flatten()  # NULL where the interval is NULL
    years = pc.divide(months, MONTHS_IN_A_YEAR)  # towards zero, as PostgreSQL does
    months = pc.subtract(months, pc.multiply(years, MONTHS_IN_A_YEAR))
    parts: list[pa.Array] = []
    after_negative = pa.repeat(False, len(intervals))
    zero_date = pa.repeat(True, len(intervals))
    for values, unit in ((years, "year"), (months, "mon"), (days, "day")):
        zero = pc.equal(values, 0)
        if not pc.all(zero, min_count=0).as_py():
            parts.append(_counted(values, zero, after_negative, unit))
            after_negative = pc.if_else(zero, after_negative, pc.less(values, 0))
            zero_date = pc.and_(zero_date, zero)
    has_time = pc.or_(zero_date, pc.not_equal(micros, 0))
    parts.append(pc.if_else(has_time, _time(micros, after_negative), text_scalar("")))
    return pc.ascii_ltrim(concat(*parts), " ")


def _counted(values: pa.Array, zero: pa.Array, after_negative: pa.Array, unit: str) -> pa.Array:
    """` 2 days`, ` 1 day`, ` -1 days`; an empty text for zero."""
    signed = pc.and_(after_negative, pc.greater(values, 0))
    plus = pc.if_else(signed, text_scalar("+"), text_scalar(""))
    plural = pc.if_else(pc.equal(values, 1), text_scalar(""), text_scalar("s"))
    number = pc.cast(values, pa.large_string())
    text = concat(" ", plus, number, f" {unit}", plural)
    return pc.if_else(zero, text_scalar(""), text)


def _time(micros: pa.Array, after_negative: pa.Array) -> pa.Array:
    """` 04:05:06.789` with its sign; hours may be 24 or more."""
    hours = pc.divide(micros, HOUR)
    remainder = pc.abs(pc.subtract(micros, pc.multiply(hours, HOUR)))
    positive = pc.if_else(after_negative, text_scalar("+"), text_scalar(""))
    sign = pc.if_else(pc.less(micros, 0), text_scalar("-"), positive)
    hour_text = pc.utf8_lpad(pc.cast(pc.abs(hours), pa.large_string()), 2, "0")
    below_hours = pc.utf8_slice_codeunits(time_text(remainder.view(pa.time64("us"))), 2)
    return concat(" ", sign, hour_text, below_hours)
