"""Converts columns of text to a source's types, a whole column at a time, and finds bad values.

Covers the types that pyarrow's CSV reader does not read as PostgreSQL does, and texts that pyarrow
refuses although PostgreSQL writes or reads them.

Whether a value is of its type never depends on other values: if there are two ways to convert a
column, the faster one accepts a subset of the other's texts, with the same results. The accepted
texts are listed in docs/inside/values.md, which tests read.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.arrow.arrays import (
    cast_by_pattern,
    concatenated_bytes,
    null_where,
    running_total,
)
from dbt.adapters.mzs3.formats.read.columns import INTEGERS
from dbt.adapters.mzs3.types.calendar import DAY, FIRST_DAY, HOUR, SECOND, day_number
from dbt.adapters.mzs3.types.table import arrow_type

# These have to agree with `_RARE` and `_TIME` below: test_verdicts compares them.
_DATE_REGEX = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_USUAL_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?"
_TIMESTAMP_REGEX = rf"^(?:[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}|{_USUAL_TIME})$"
_ZONE = re.compile(r":[0-9.]*(?:Z|[+-][0-9:]{2,5})\Z")
_ZONED_REGEX = rf"^{_USUAL_TIME}(?:Z|[+-][0-9]{{2}}(?::?[0-9]{{2}})?)$"
# Zeros after the microsecond, which pyarrow refuses.
_LONGEST_USUAL = len("2024-01-05 10:30:15.123456")
_ZEROS_REGEX = r"^([0-9-]{10}[ T][0-9:]{8}\.[0-9]{6})0+"
_ZEROS = re.compile(_ZEROS_REGEX)
# The lengths of texts without minutes, such as `2024-01-05 10`, and of those with a zone, which
# pyarrow accepts as timestamps. `2024-01-05 10:30+01` is as long as `2024-01-05 10+01:00`.
_HOUR_LENGTHS = frozenset({13})
_ZONED_HOUR_LENGTHS = frozenset({14, 16, 18})
_AMBIGUOUS_LENGTH = 19
_NO_MINUTES = r"^.{13}[^:]"

# Without re.ASCII, \d matches the digits of every script.
_RARE = re.compile(
    r"(?P<year>\d{4,7})-(?P<month>\d\d)-(?P<day>\d\d)"
    r"(?:[ T](?P<hour>\d\d):(?P<minute>\d\d)"
    r"(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,6})0*)?)?"
    r"(?P<zone>Z|[+-]\d\d(?::?\d\d)?)?)?"
    r"(?P<bc> BC)?",
    re.ASCII,
)


def require_year(times: pa.Array) -> None:
    """Raises ValueError if pyarrow may have read a year 0, which PostgreSQL does not have.

    Also for an instant within a day of that year, as a zone may have moved it into or out of the
    year; `to_timestamp` checks the text itself.
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
    return cast_by_pattern(text, _DATE_REGEX, lambda usual: pc.cast(usual, kind), _read_time, kind)


def to_timestamp(text: pa.Array, kind: pa.DataType) -> pa.Array:
    """Timestamps from `2020-01-02 03:04:05.678`, with a zone if the type has one; see `to_date`.

    A text without a zone is in UTC. Raises ValueError, also for a zone in a `timestamp_ntz`.
    """
    _refuse_year_zero(text)
    if (pc.max(pc.binary_length(text)).as_py() or 0) > _LONGEST_USUAL:
        text = _without_zeros(text)
    cast_local = partial(_cast_local, kind=kind)
    if kind.tz is None:
        return cast_by_pattern(text, _TIMESTAMP_REGEX, cast_local, _read_time, kind)
    no_text = pa.scalar(None, pa.string())
    zoned = pc.match_substring_regex(text, _ZONED_REGEX)
    with_zone = pc.cast(pc.if_else(zoned, text, no_text), kind)
    others = pc.if_else(zoned, no_text, text)
    without = cast_by_pattern(others, _TIMESTAMP_REGEX, cast_local, _read_time, kind)
    return pc.coalesce(with_zone, without)


def to_timestamp_at_once(text: pa.Array, kind: pa.DataType) -> pa.Array:
    """Like `to_timestamp`, but far faster; raises ValueError for some texts that the other reads.

    Reads the texts that pyarrow reads, all with a zone or none, except hours without minutes.
    Zeros after the microsecond, which some writers add to every value, are removed first.
    """
    # The first value shows what to try: pyarrow takes 20 times as long to fail as to read.
    first = pc.first(text).as_py() or ""
    zoned = kind.tz is not None and _ZONE.search(first)
    if _ZEROS.match(first):
        text = _without_zeros(text)
    lengths = set(pc.unique(pc.binary_length(text)).to_pylist())
    if not lengths.isdisjoint(_ZONED_HOUR_LENGTHS if zoned else _HOUR_LENGTHS) or (
        zoned
        and _AMBIGUOUS_LENGTH in lengths
        and _any(pc.match_substring_regex(text, _NO_MINUTES))
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
    # pyarrow accepts this year; `_day` refuses year 0 with more digits.
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


# pyarrow computes modulo 2**128, or 2**256 in a decimal256, and does not check for overflow: it
# reads 400000000000000000000 as a decimal(38,18) of 59717633079061536536.625392568231788544.
# With no more digits than these nothing overflows: 10**38 < 2**127 and 10**76 < 2**255.
_DECIMAL_DIGITS = 38
WIDE_DIGITS = 76

# Numbers that fit into a decimal256 with any scale up to 38. pyarrow computes with an integer that
# has at most the digits before the point, the exponent and the scale: 38 + 38, and 9 + 29 + 38.
_USUAL_DECIMAL_REGEX = (
    r"^[+-]?(?:[0-9]{0,38}(?:\.[0-9]{0,38})?"
    r"|[0-9]{0,9}(?:\.[0-9]{0,18})?[eE][+-]?0*[0-2]?[0-9])$"
)
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

# pyarrow turns a number too large into infinity, one too small into 0, `nan(1)` into NaN.
_SPECIAL_FLOAT_REGEX = r"(?i)^[+-]?(?:inf(?:inity)?|nan|[0.]+(?:e[+-]?[0-9]+)?)$"


def _spellings(*words: str) -> list[str]:
    """Each word in lower and upper case and capitalised, as CSV files have them."""
    return sorted({form for w in words for form in (w, w.upper(), w.capitalize())})


TRUE_VALUES = _spellings("t", "true", "y", "yes", "on", "1")
FALSE_VALUES = _spellings("f", "false", "n", "no", "off", "0")

_BINARY = r"^\\x(?:[0-9A-Fa-f]{2})*$"
# All texts that match are values of the type, and nearly all values match.
_MONTH_AND_DAY = r"-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
_DATE = rf"^[12][0-9]{{3}}{_MONTH_AND_DAY}"
_TIME = r"[ T](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
_GOOD = {
    "boolean": f"^(?:{'|'.join([*TRUE_VALUES, *FALSE_VALUES])})$",
    "tinyint": r"^[+-]?[0-9]{1,2}$",
    "smallint": r"^[+-]?[0-9]{1,4}$",
    "int": r"^[+-]?[0-9]{1,9}$",
    "bigint": r"^[+-]?[0-9]{1,18}$",
    "float": r"^-?[0-9]{1,12}(?:\.[0-9]{1,12})?$",
    "double": r"^-?[0-9]{1,15}(?:\.[0-9]{1,15})?$",
    "date": _DATE + "$",
    "timestamp": _DATE + _TIME + r"(?:Z|[+-](?:0[0-9]|1[0-3])(?::?[0-5][0-9])?)?$",
    "timestamp_ntz": _DATE + _TIME + "$",
    "binary": _BINARY,
}

# Texts that do not match are not of the type. Others are tried, each distinct one once.
_POSSIBLE_DATE = r"[0-9]{4,7}-[0-9]{2}-[0-9]{2}.*"
_POSSIBLE_NUMBER = r"[+-]?[.0-9]+(?:[eE][+-]?[0-9]+)?"
_POSSIBLE_FLOAT = rf"(?:{_POSSIBLE_NUMBER}|[+-]?(?:inf.*|nan.*|INF.*|NAN.*|[IiNn].*))"
_POSSIBLE = {
    "boolean": r"[A-Za-z01]{1,5}",
    **dict.fromkeys(INTEGERS, r"[+-]?[0-9]+"),
    **dict.fromkeys(("float", "double"), _POSSIBLE_FLOAT),
    "decimal": _POSSIBLE_NUMBER,
    **dict.fromkeys(("date", "timestamp", "timestamp_ntz"), _POSSIBLE_DATE),
    "binary": r"\\x.*",
}


def to_decimal(text: pa.Array, kind: pa.DataType) -> pa.Array:
    """Exact decimals from `12.30`, `.5`, `+7`, `1.2e3`; NULL stays NULL.

    Raises ValueError for a number with more digits before the point than precision minus scale,
    for one with a digit other than 0 after the scale, which PostgreSQL would round, and for `NaN`
    and `Infinity`, which Spark's decimals don't have.
    """
    longest = pc.max(pc.binary_length(text)).as_py() or 0
    buffer = text.buffers()[2]
    data = b"" if buffer is None else buffer.to_pybytes()
    # The buffer may have an exponent outside of this slice of the texts.
    if b"e" not in data and b"E" not in data:
        # Without an exponent a text of n characters is less than 10**n, and pyarrow computes with
        # an integer of at most n digits and the scale.
        if longest <= _DECIMAL_DIGITS - kind.scale:
            return pc.cast(text, kind)
        if longest <= WIDE_DIGITS - kind.scale:
            return through_wide(text, kind)
    cast = partial(through_wide, kind=kind)
    return cast_by_pattern(text, _USUAL_DECIMAL_REGEX, cast, _read_decimal, kind)


def through_wide(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Texts or numbers as decimals, by way of a wider decimal that can't overflow."""
    # The second cast checks the precision.
    return pc.cast(pc.cast(values, pa.decimal256(WIDE_DIGITS, kind.scale)), kind)


def _read_decimal(text: str, kind: pa.DataType) -> decimal.Decimal:
    if not _DECIMAL.fullmatch(text):
        raise ValueError("not a decimal")
    exact = decimal.Context(prec=kind.precision, traps=[decimal.InvalidOperation, decimal.Inexact])
    try:
        # The constructor keeps every digit; `quantize` checks precision and scale.
        number = decimal.Decimal(text, exact)
        return number.quantize(decimal.Decimal(1).scaleb(-kind.scale, exact), context=exact)
    except decimal.DecimalException as exc:
        raise ValueError("not a number of the decimal's precision and scale") from exc


def to_float(text: pa.Array, kind: pa.DataType) -> pa.Array:
    """The nearest floating-point numbers; `NaN`, `inf` and `Infinity` in any case.

    Raises ValueError for a number out of range as PostgreSQL does: too large for the type, or not
    0 but so small that it would become 0. NULL stays NULL.
    """
    values = pc.cast(text, kind)
    special = is_special(values)
    if pc.any(special).as_py():
        written = pc.unique(pc.filter(text, special))
        if not pc.all(pc.match_substring_regex(written, _SPECIAL_FLOAT_REGEX)).as_py():
            raise ValueError("a number out of range")
    return values


def is_special(values: pa.Array) -> pa.Array:
    """Which values pyarrow may have read from wrong texts: infinities, NaN and zeros."""
    return pc.or_(pc.invert(pc.is_finite(values)), pc.equal(values, pa.scalar(0, values.type)))


def convert(text: pa.Array, data_type: str) -> pa.Array:
    """Converts a column of text to values of its type; NULL stays NULL.

    White space around a value is ignored, as in PostgreSQL, but kept in strings. Raises ValueError
    if any value is not of the type.
    """
    if data_type == "string":
        return text
    converter, arrow_kind = _CONVERTERS[data_type.partition("(")[0]], arrow_type(data_type)
    if converter in _AT_ONCE:
        # Values usually have no white space around them: then this conversion is enough.
        with contextlib.suppress(ValueError):
            return _AT_ONCE[converter](text, arrow_kind)
    return converter(pc.ascii_trim_whitespace(text), arrow_kind)


def _to_boolean(text: pa.Array, _: pa.DataType) -> pa.Array:
    true = pc.is_in(text, value_set=pa.array(TRUE_VALUES))
    known = pc.or_(true, pc.is_in(text, value_set=pa.array(FALSE_VALUES)))
    _require(pc.or_(known, pc.is_null(text)))
    return null_where(true, text)


def _to_integer(text: pa.Array, kind: pa.DataType) -> pa.Array:
    # Without this check pyarrow would read 0xff, as -1 if 255 does not fit.
    _require(pc.match_substring_regex(text, r"^[+-]?[0-9]+$"))
    return pc.cast(pc.replace_substring_regex(text, r"^\+", ""), kind)


def _to_binary(text: pa.Array, _: pa.DataType) -> pa.Array:
    _require(pc.match_substring_regex(text, _BINARY))
    digits = pc.utf8_slice_codeunits(pc.fill_null(text, "\\x"), 2)
    data = bytes.fromhex(concatenated_bytes(digits).to_pybytes().decode())
    ends = running_total(pc.shift_right(pc.binary_length(digits), pa.scalar(1, pa.int32())))
    buffers = [None, ends.buffers()[1], pa.py_buffer(data)]
    return null_where(pa.Array.from_buffers(pa.binary(), len(text), buffers), text)


def _require(holds: pa.Array) -> None:
    # A NULL is not a bad value, and an empty column has none.
    if pc.all(holds, min_count=0).as_py() is False:
        raise ValueError("a value is not of the column's type")


_Converter = Callable[[pa.Array, Any], pa.Array]
_AT_ONCE: dict[_Converter, _Converter] = {
    to_decimal: to_decimal,
    to_float: to_float,
    to_timestamp: to_timestamp_at_once,
}
_CONVERTERS: dict[str, _Converter] = {
    "boolean": _to_boolean,
    **dict.fromkeys(INTEGERS, _to_integer),
    **dict.fromkeys(("float", "double"), to_float),
    "decimal": to_decimal,
    "date": to_date,
    **dict.fromkeys(("timestamp", "timestamp_ntz"), to_timestamp),
    "binary": _to_binary,
}


def convert_good(text: pa.Array, data_type: str) -> tuple[pa.Array, pa.Array | None]:
    """The column, with NULL for bad values, and a mask of these; None if no value is bad."""
    with contextlib.suppress(ValueError):
        return convert(text, data_type), None
    sure = pc.match_substring_regex(text, sure_pattern(data_type))
    unsure = pc.unique(pc.filter(text, pc.invert(sure)))
    possible = unsure.filter(pc.match_substring_regex(unsure, possible_pattern(data_type)))
    known = _converted(pc.if_else(sure, text, pa.scalar(None, pa.string())), data_type)
    tried = _converted(possible, data_type)
    values = pc.coalesce(known, tried.take(pc.index_in(text, value_set=possible)))
    return values, pc.and_(text.is_valid(), values.is_null())


def possible_pattern(data_type: str) -> str:
    """A regular expression that every value of the type matches, and perhaps other texts."""
    form = _POSSIBLE[data_type.partition("(")[0]]
    return rf"(?s)^[ \t\n\x0b\f\r]*{form}[ \t\n\x0b\f\r]*$"


def sure_pattern(data_type: str) -> str:
    """A regular expression that nearly all values of the type match, and no other text."""
    if not data_type.startswith("decimal"):
        return _GOOD[data_type]
    kind = arrow_type(data_type)
    digits = kind.precision - kind.scale
    whole = f"[0-9]{{1,{digits}}}" if digits else "0"
    return rf"^[+-]?{whole}(?:\.[0-9]{{0,{kind.scale}}})?$"


def _converted(values: pa.Array, data_type: str) -> pa.Array:
    """The values, NULL for bad ones, found by halving: few values are bad, or few distinct."""
    with contextlib.suppress(ValueError):
        return convert(values, data_type)
    if len(values) <= 1:
        return pa.nulls(len(values), arrow_type(data_type))
    half = len(values) // 2
    halves = values[:half], values[half:]
    return pa.concat_arrays([_converted(part, data_type) for part in halves])
