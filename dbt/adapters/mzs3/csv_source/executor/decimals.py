"""Decimals from text: exactly the number written, or an error."""

from __future__ import annotations

import decimal
import re

import pyarrow as pa
import pyarrow.compute as pc

# pyarrow reckons modulo 2**128, or 2**256 in a decimal256, and does not look for overflow: it
# reads 400000000000000000000 as a decimal(38,18) of 59717633079061536536.625392568231788544.
# Below these many digits nothing overflows: 10**38 < 2**127 and 10**76 < 2**255.
_DIGITS = 38
_WIDE_DIGITS = 76

# What a decimal256 of any scale to 38 holds. The number is reckoned as an integer of, at most,
# its digits before the point, the exponent and the scale: 38 + 38, and 9 + 29 + 38.
_USUAL_REGEX = (
    r"^[+-]?(?:[0-9]{0,38}(?:\.[0-9]{0,38})?"
    r"|[0-9]{0,9}(?:\.[0-9]{0,18})?[eE][+-]?0*[0-2]?[0-9])$"
)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def to_decimal(text: pa.Array, kind: pa.DataType) -> pa.Array:
    """Each text's number exactly: `12.30`, `.5`, `+7`, `1.2e3`; NULL stays NULL.

    Raises ValueError for a number with more digits before the point than precision less scale,
    and for one with a digit other than 0 behind the scale: PostgreSQL would round it, and what
    the object says would be lost. `NaN` and `Infinity`, which no decimal of Spark's holds, are
    refused too.
    """
    longest = pc.max(pc.binary_length(text)).as_py() or 0
    if not _may_have_exponents(text):
        # Without an exponent a text of n characters is less than 10**n, and reckoned with as an
        # integer of at most n digits and the scale.
        if longest <= _DIGITS - kind.scale:
            return pc.cast(text, kind)
        if longest <= _WIDE_DIGITS - kind.scale:
            return _through_wide(text, kind)
    return _by_form(text, kind)


def _may_have_exponents(text: pa.Array) -> bool:
    """Whether there is an `e` in the texts; True too if there is one only beside the slice."""
    buffer = text.buffers()[2]
    data = b"" if buffer is None else buffer.to_pybytes()
    return b"e" in data or b"E" in data


def _through_wide(text: pa.Array, kind: pa.DataType) -> pa.Array:
    # The second cast checks the precision.
    return pc.cast(pc.cast(text, pa.decimal256(_WIDE_DIGITS, kind.scale)), kind)


def _by_form(text: pa.Array, kind: pa.DataType) -> pa.Array:
    """pyarrow for the texts that it is right about, Python once for each other distinct one."""
    usual = pc.match_substring_regex(text, _USUAL_REGEX)
    values = _through_wide(pc.if_else(usual, text, pa.scalar(None, pa.string())), kind)
    rare = pc.unique(pc.filter(text, pc.invert(usual)))
    read = pa.array([_read_rare(value, kind) for value in rare.to_pylist()], kind)
    return pc.coalesce(values, pc.take(read, pc.index_in(text, value_set=rare)))


def _read_rare(text: str, kind: pa.DataType) -> decimal.Decimal:
    if not _NUMBER.fullmatch(text):
        raise ValueError("not a decimal")
    exact = decimal.Context(prec=kind.precision, traps=[decimal.InvalidOperation, decimal.Inexact])
    try:
        # The constructor keeps every digit; to quantize is to check precision and scale.
        number = decimal.Decimal(text, exact)
        return number.quantize(decimal.Decimal(1).scaleb(-kind.scale, exact), context=exact)
    except decimal.DecimalException as exc:
        raise ValueError("not a number of the decimal's precision and scale") from exc
