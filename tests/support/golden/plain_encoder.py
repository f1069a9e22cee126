"""PostgreSQL's CSV in plain Python, value by value: slow, and short enough to check by reading.

Dates and timestamps are days and microseconds since 1970-01-01, times are nanoseconds.
"""

import math
import struct
from fractions import Fraction
from typing import Any

import pyarrow as pa

from dbt.adapters.mzs3.formats.dialect import CsvDialect
from dbt.adapters.mzs3.formats.write.format import PLAIN, LogicalType

DAY = 86_400_000_000


def plain_line(types, values, dialect: CsvDialect, forced: list[bool], logical_types=None) -> str:
    logical_types = logical_types or [PLAIN] * len(types)
    fields = [
        plain_field(
            None if value is None else plain_text(kind, value, logical_type),
            dialect,
            force,
            len(types),
        )
        for kind, value, force, logical_type in zip(
            types, values, forced, logical_types, strict=True
        )
    ]
    return dialect.delimiter.join(fields) + "\n"


def plain_field(text: str | None, dialect: CsvDialect, force: bool, columns: int) -> str:
    if text is None:
        return dialect.null
    needs_quotes = (
        force
        or text == dialect.null
        or (columns == 1 and text == "\\.")
        or any(c in (dialect.delimiter, dialect.quote, "\n", "\r") for c in text)
    )
    if not needs_quotes:
        return text
    specials = (dialect.quote, dialect.escape)
    inner = "".join(dialect.escape + c if c in specials else c for c in text)
    return dialect.quote + inner + dialect.quote


def plain_text(kind: pa.DataType, value: Any, logical_type: LogicalType = PLAIN) -> str:
    if logical_type.kind == "interval":
        return plain_interval(**value)
    if logical_type.kind == "map":
        return _map(kind.value_type, value, *logical_type.children)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        (inner,) = logical_type.children or (PLAIN,)
        return "{" + ",".join(_element(kind.value_type, item, inner) for item in value) + "}"
    if pa.types.is_struct(kind):
        logical_types = logical_type.children or (PLAIN,) * kind.num_fields
        fields = zip(kind, logical_types, strict=True)
        return "(" + ",".join(_field(f.type, value[f.name], s) for f, s in fields) + ")"
    if pa.types.is_boolean(kind):
        return "t" if value else "f"
    if pa.types.is_floating(kind):
        return plain_float(value, single=pa.types.is_float32(kind))
    if pa.types.is_decimal(kind):
        return f"{value:.{kind.scale}f}"
    if pa.types.is_date32(kind):
        date, era = plain_date(value)
        return date + era
    if pa.types.is_timestamp(kind):
        days, micros = divmod(value, DAY)
        date, era = plain_date(days)
        return f"{date} {plain_time(micros)}{'+00' if kind.tz else ''}{era}"
    if pa.types.is_time64(kind):
        return plain_time(value // 1000)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return "\\x" + value.hex()
    return str(value)


def plain_float(value: float, *, single: bool) -> str:
    if math.isnan(value) or math.isinf(value):
        return str(value).replace("nan", "NaN").replace("inf", "Infinity")
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    low, high = _midpoints(abs(value), single)
    digits, power = _shortest(Fraction(abs(value)), low, high)
    sign = "-" if value < 0 else ""
    if not -4 <= power < (6 if single else 15):
        point = "." if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{point}{digits[1:]}e{power:+03d}"
    if power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    whole = digits[: power + 1].ljust(power + 1, "0")
    fraction = digits[power + 1 :]
    return sign + whole + ("." + fraction if fraction else "")


def _shortest(exact: Fraction, low: Fraction, high: Fraction) -> tuple[str, int]:
    """The fewest digits strictly between the bounds, the nearest of these, and their exponent.

    Not always the correctly rounded ones: a power of two is nearer to its lower bound.
    """
    power = len(str(int(exact))) - 1
    while Fraction(10) ** power > exact:
        power -= 1
    for count in range(1, 18):
        unit = Fraction(10) ** (power + 1 - count)
        below = int(exact / unit)
        inside = [n for n in (below, below + 1) if low < n * unit < high]
        if inside:
            break
    nearest = min(inside, key=lambda n: (abs(n * unit - exact), n % 2))
    digits = str(nearest)
    return digits.rstrip("0"), power + len(digits) - count


def _midpoints(value: float, single: bool) -> tuple[Fraction, Fraction]:
    """Halfway to the neighbours of a positive number; the largest one's is the power of two."""
    pack, unpack, end = ("<f", "<I", 2**128) if single else ("<d", "<Q", 2**1024)
    (bits,) = struct.unpack(unpack, struct.pack(pack, value))
    around = []
    for neighbour in (bits - 1, bits + 1):
        (number,) = struct.unpack(pack, struct.pack(unpack, neighbour))
        exact = Fraction(end) if math.isinf(number) else Fraction(number)
        around.append((exact + Fraction(value)) / 2)
    return around[0], around[1]


def plain_date(days: int) -> tuple[str, str]:
    """Year, month and day of the proleptic Gregorian calendar, and the era."""
    year = 1970 + days // 366 if days >= 0 else 1970 + days // 365 - 1
    while _days_before(year + 1) <= days:
        year += 1
    while _days_before(year) > days:
        year -= 1
    day, month = days - _days_before(year), 1
    for length in (31, 29 if _is_leap(year) else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31):
        if day < length:
            break
        day, month = day - length, month + 1
    shown, era = (year, "") if year > 0 else (1 - year, " BC")
    return f"{shown:04d}-{month:02d}-{day + 1:02d}", era


def _days_before(year: int) -> int:
    """Days from 1970-01-01 to the first of January."""
    past = year - 1
    return past * 365 + past // 4 - past // 100 + past // 400 - 719_162


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def plain_time(micros: int) -> str:
    seconds, fraction = divmod(micros, 1_000_000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return text + (f".{fraction:06d}".rstrip("0") if fraction else "")


def plain_interval(months: int, days: int, micros: int) -> str:
    years, months = _towards_zero(months, 12)
    text = ""
    after_negative = False
    for count, unit in ((years, "year"), (months, "mon"), (days, "day")):
        if count:
            plus = "+" if after_negative and count > 0 else ""
            text += f" {plus}{count} {unit}{'' if count == 1 else 's'}"
            after_negative = count < 0
    if micros or not text:
        sign = "-" if micros < 0 else "+" if after_negative else ""
        text += f" {sign}{plain_time(abs(micros))}"
    return text[1:]


def _towards_zero(value: int, unit: int) -> tuple[int, int]:
    whole, rest = divmod(abs(value), unit)
    return (-whole, -rest) if value < 0 else (whole, rest)


def _map(entry: pa.DataType, entries: Any, key: LogicalType, value: LogicalType) -> str:
    key_type, value_type = (field.type for field in entry)
    return (
        "{"
        + ",".join(
            _element(key_type, item["key"], key, "=>")
            + "=>"
            + _element(value_type, item["value"], value, "=>")
            for item in entries
        )
        + "}"
    )


def _field(kind: pa.DataType, value: Any, logical_type: LogicalType) -> str:
    if value is None:
        return ""
    text = plain_text(kind, value, logical_type)
    if text == "" or any(c in '(),"\\ \t\n\v\f\r' for c in text):
        return '"' + text.replace("\\", "\\\\").replace('"', '""') + '"'
    return text


def _element(kind: pa.DataType, value: Any, logical_type: LogicalType, special: str = "") -> str:
    if value is None:
        return "NULL"
    text = plain_text(kind, value, logical_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return text
    if (
        text == ""
        or text.upper() == "NULL"
        or any(c in '{},"\\ \t\n\v\f\r' + special for c in text)
    ):
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return text
