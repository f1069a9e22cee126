"""The text of values that have no parts, by type, as PostgreSQL's output functions write it."""

from __future__ import annotations

import binascii
import string
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.formats.csv.datetimes import date_text, time_text, timestamp_text
from dbt.adapters.mzs3.formats.csv.floats import float_text
from dbt.adapters.mzs3.formats.csv.quoting import (
    TextBytes,
    concatenated,
    replaced,
    text_scalar,
)


class NotUtf8(ValueError):
    """A text column holds bytes that are not UTF-8; Spark does not check its strings."""


@dataclass(frozen=True)
class Form:
    """How one type is written: NULL stays NULL, the result is `large_string`."""

    write: Callable[[pa.Array], pa.Array]
    alphabet: str | None  # all characters that can occur; None: any
    nests: bool = False  # in braces, which need no quotes inside of other braces

    def may_hold(self, character: str) -> bool:
        """Whether the text of a value can contain the character."""
        return self.alphabet is None or character in self.alphabet

    def may_be(self, text: str) -> bool:
        """Whether a value's text can be `text`; only text is ever empty."""
        return self.alphabet is None or (text != "" and set(text) <= set(self.alphabet))


def scalar_form(data_type: pa.DataType) -> Form | None:
    """The form of a type without parts; None for a type that has none."""
    for matches, form in _FORMS:
        if matches(data_type):
            return form
    return None


def _plain_text(values: pa.Array) -> pa.Array:
    return pc.cast(values, pa.large_string())


def _boolean_text(values: pa.Array) -> pa.Array:
    return pc.if_else(values, text_scalar("t"), text_scalar("f"))


def _string_text(values: pa.Array) -> pa.Array:
    known = TextBytes(pc.cast(values, pa.large_string()))
    if not known.is_ascii():
        try:
            known.values.validate(full=True)
        except pa.ArrowInvalid as error:
            raise NotUtf8 from error
    return known.values


def _binary_text(values: pa.Array) -> pa.Array:
    """`\\x00ff`: the hexadecimal digits of all values at once, then cut by the doubled offsets."""
    known = TextBytes(pc.cast(values, pa.large_binary()))
    count = len(values)
    validity, offsets, _ = known.values.buffers()
    if count == 0:
        return pa.array([], pa.large_string())
    doubled = pc.multiply(pa.Array.from_buffers(pa.int64(), count + 1, [None, offsets]), 2)
    digits = pa.py_buffer(binascii.hexlify(known.data))
    buffers = [validity, doubled.buffers()[1], digits]
    return concatenated("\\x", pa.Array.from_buffers(pa.large_string(), count, buffers))


def _decimal_text(values: pa.Array) -> pa.Array:
    """All digits of the declared scale; Arrow writes what is below 1e-6 as `1E-18`, `0E-18`."""
    text = pc.cast(values, pa.large_string())
    scale = values.type.scale
    mask = TextBytes(text).holding("E") if scale > 6 else None
    if mask is None:
        return text
    tiny = values.filter(mask)
    unscaled = pa.Array.from_buffers(
        pa.decimal128(38, 0), len(tiny), tiny.buffers(), offset=tiny.offset
    )
    digits = pc.cast(unscaled, pa.large_string())
    sign = pc.if_else(pc.starts_with(digits, "-"), text_scalar("-"), text_scalar(""))
    fraction = pc.utf8_lpad(pc.ascii_ltrim(digits, "-"), scale, "0")
    return replaced(text, pc.fill_null(mask, False), concatenated(sign, "0.", fraction))


def _is_decimal(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_decimal128(data_type) and data_type.scale >= 0)


def _is_string(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type))


def _is_binary(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type))


def _is_float(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_float32(data_type) or pa.types.is_float64(data_type))


def _is_timestamp(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(data_type) and data_type.unit == "us")


_NUMBER = string.digits + "-"
_DATE = _NUMBER + " BC"
_FORMS: tuple[tuple[Callable[[pa.DataType], bool], Form], ...] = (
    (_is_string, Form(_string_text, None)),
    (pa.types.is_signed_integer, Form(_plain_text, _NUMBER)),
    (_is_decimal, Form(_decimal_text, _NUMBER + ".")),
    (_is_float, Form(float_text, _NUMBER + ".+eNaInfity")),
    (pa.types.is_boolean, Form(_boolean_text, "tf")),
    (pa.types.is_date32, Form(date_text, _DATE)),
    (_is_timestamp, Form(timestamp_text, _DATE + ":.+")),
    (pa.types.is_time64, Form(time_text, string.digits + ":.")),
    (_is_binary, Form(_binary_text, "\\x" + string.hexdigits)),
    (pa.types.is_null, Form(_plain_text, "")),
)
