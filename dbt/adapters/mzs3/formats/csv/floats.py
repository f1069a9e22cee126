"""Floating-point numbers as PostgreSQL writes them.

Arrow's cast gives the fewest digits that read back as the same number, and so does PostgreSQL, but
for the rare numbers that `midpoints` corrects. What differs is notation: PostgreSQL is positional
from 1e-4 to below 1e15 (float32: 1e6), and its exponents have at least two digits.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.formats.csv.midpoints import DOUBLE, SINGLE, Layout, without_midpoints
from dbt.adapters.mzs3.formats.csv.quoting import concatenated, replaced, text_scalar


@dataclass(frozen=True)
class Notation:
    """Where a format's texts from Arrow and from PostgreSQL are alike, and where they are not."""

    layout: Layout
    same_below: int  # from 1e-4 to below 10 ** this, both are positional
    scientific_from: int  # PostgreSQL: from 10 ** this
    rewritten: tuple[int, ...]  # decimal exponents where one is positional and the other is not


NOTATIONS = {
    pa.float64(): Notation(DOUBLE, 10, 15, (-6, -5, 10, 11, 12, 13, 14)),
    pa.float32(): Notation(SINGLE, 6, 6, (-6, -5, 6, 7, 8, 9)),
}


def float_text(values: pa.Array) -> pa.Array:
    """`float64` or `float32` as `large_string`: the text of PostgreSQL's float8 or float4."""
    notation = NOTATIONS[values.type]
    text = pc.cast(values, pa.large_string())
    size = pc.abs(values)
    same = pc.or_(_between(size, -4, notation.same_below), pc.equal(size, 0))
    if pc.all(same, min_count=0).as_py():
        return text
    mask = pc.fill_null(pc.invert(same), False)
    return replaced(text, mask, _rewritten(values.filter(mask), text.filter(mask), notation))


def _rewritten(values: pa.Array, text: pa.Array, notation: Notation) -> pa.Array:
    """PostgreSQL's text of numbers that it writes differently from Arrow; no NULLs."""
    size = pc.abs(values)
    result = pc.replace_substring_regex(text, r"e([+-])(\d)$", r"e\10\2")
    for exponent in notation.rewritten:
        mask = _between(size, exponent, exponent + 1)
        if pc.any(mask).as_py():
            positional = 0 <= exponent < notation.scientific_from
            write = _positional if positional else _scientific
            result = replaced(result, mask, write(result.filter(mask), exponent))
    return without_midpoints(values, _named(values, result), notation.layout)


def _named(values: pa.Array, text: pa.Array) -> pa.Array:
    """The text with PostgreSQL's names of what is not a finite number."""
    text = pc.if_else(pc.is_nan(values), text_scalar("NaN"), text)
    text = pc.if_else(pc.equal(values, float("inf")), text_scalar("Infinity"), text)
    return pc.if_else(pc.equal(values, float("-inf")), text_scalar("-Infinity"), text)


def _between(size: pa.Array, low: int, high: int) -> pa.Array:
    """Mask of 10 ** low <= size < 10 ** high.

    No text of a number on one side of the bound rounds to the other side: the bound is itself, in
    this format, the number nearest to the power of ten, and has the power's text.
    """
    lowest, end = (pa.scalar(float(f"1e{exponent}"), size.type) for exponent in (low, high))
    return pc.and_(pc.greater_equal(size, lowest), pc.less(size, end))


def _digits(text: pa.Array) -> pa.Array:
    """The significant digits alone, of either notation."""
    digits = pc.replace_substring_regex(text, "^-|e.*$", "")
    return pc.ascii_trim(pc.replace_substring(digits, ".", ""), "0")


def _signs(text: pa.Array) -> pa.Array:
    return pc.if_else(pc.starts_with(text, "-"), text_scalar("-"), text_scalar(""))


def _positional(text: pa.Array, exponent: int) -> pa.Array:
    """`-1234567890.5` for digits 12345678905 and exponent 9."""
    digits = pc.ascii_rpad(_digits(text), exponent + 1, "0")
    whole = pc.utf8_slice_codeunits(digits, 0, exponent + 1)
    number = concatenated(_signs(text), whole, ".", pc.utf8_slice_codeunits(digits, exponent + 1))
    return pc.ascii_rtrim(number, ".")


def _scientific(text: pa.Array, exponent: int) -> pa.Array:
    """`-1.5e-05` for digits 15 and exponent -5."""
    digits = _digits(text)
    first = pc.utf8_slice_codeunits(digits, 0, 1)
    number = concatenated(_signs(text), first, ".", pc.utf8_slice_codeunits(digits, 1))
    return concatenated(pc.ascii_rtrim(number, "."), f"e{exponent:+03d}")
