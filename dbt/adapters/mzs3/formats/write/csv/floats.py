"""Floating-point numbers as PostgreSQL writes them.

Arrow's cast and PostgreSQL write the fewest digits that read back as the same number. Rarely,
Arrow writes a midpoint: a text that is exactly halfway between two neighbouring numbers. As
PostgreSQL never does, `without_midpoints` replaces these. PostgreSQL's notation is positional from
1e-4 to below 1e15 (float32: 1e6); its exponents have at least two digits.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.formats.write.csv.quoting import concat, text_scalar

_WHOLE = pa.decimal256(41, 0)  # holds every number below any `midpoints_end`


@dataclass(frozen=True)
class FloatFormat:
    """The layout of an IEEE 754 format, and how Arrow and PostgreSQL write its numbers."""

    integer: pa.DataType  # the integer type of the same width
    precision: int  # bits of the significand, including the hidden bit
    midpoints_end: float  # from this number on, no shortest text is a midpoint
    # The numbers of decimals to try for a corrected text, in order. Texts with fewer are further
    # apart than neighbouring numbers. So at most one of them is as near as a midpoint, and Arrow
    # would have written it. The last count distinguishes any two numbers.
    decimals: tuple[int, ...]
    same_notation_below: int  # Arrow and PostgreSQL are positional from 1e-4 to below 10 ** this
    scientific_from: int  # PostgreSQL writes exponents from 10 ** this on
    # Decimal exponents at which only one of the two is positional.
    rewritten_exponents: tuple[int, ...]


FLOATS = {
    pa.float64(): FloatFormat(
        pa.int64(), 53, 1e40, (15, 16), 10, 15, (-6, -5, 10, 11, 12, 13, 14)
    ),
    pa.float32(): FloatFormat(pa.int32(), 24, 1e19, (6, 7, 8), 6, 6, (-6, -5, 6, 7, 8, 9)),
}


def without_midpoints(values: pa.Array, text: pa.Array, layout: FloatFormat) -> pa.Array:
    """Replaces each text that is a midpoint of two neighbouring numbers with PostgreSQL's text.

    Neither array has NULLs; `text` is in PostgreSQL's notation. Python computes the new text, once
    for each distinct number. Few float64 numbers need it: one in five at 2 ** 54, one in a hundred
    at 1e18, fewer beyond, none below 2 ** 53.
    """
    size = pc.abs(values)
    lowest = pa.scalar(2.0**layout.precision, size.type)
    end = pa.scalar(layout.midpoints_end, size.type)
    # A midpoint reads back as the neighbour with an even significand; odd ones need no check.
    is_even = pc.equal(pc.bit_wise_and(values.view(layout.integer), 1), 0)
    in_range = pc.and_(pc.and_(pc.greater_equal(size, lowest), pc.less(size, end)), is_even)
    if not pc.any(in_range).as_py():
        return text
    numbers, texts = values.filter(in_range), text.filter(in_range)
    is_wrong = _text_is_midpoint(numbers, texts, layout)
    if not pc.any(is_wrong).as_py():
        return text
    numbers = numbers.filter(is_wrong).dictionary_encode()
    new_texts = [_strict_text(number, layout) for number in numbers.dictionary.to_pylist()]
    corrected = pa.array(new_texts, pa.large_string()).take(numbers.indices)
    return pc.replace_with_mask(text, in_range, pc.replace_with_mask(texts, is_wrong, corrected))


def _text_is_midpoint(values: pa.Array, text: pa.Array, layout: FloatFormat) -> pa.Array:
    """A mask of the texts that are exactly halfway between their own number and a neighbour."""
    one = pa.scalar(1, layout.integer)
    following = pc.add(values.view(layout.integer), one).view(values.type)  # away from zero
    half = pc.divide(pc.abs(pc.subtract(following, values)), 2)
    # All values are whole numbers, which these casts do not round.
    error = pc.subtract(pc.cast(text, _WHOLE), pc.cast(values, _WHOLE))
    return pc.equal(pc.abs(error), pc.cast(half, _WHOLE))


def _strict_text(number: float, layout: FloatFormat) -> str:
    """The shortest correctly rounded text strictly between the midpoints to both neighbours.

    Both neighbours are at the same distance, as the number is no power of two. (Next to a power of
    two, midpoints are not divisible by 5, and so have no fewer digits than the number.)
    """
    exact = abs(int(number))
    distance = 1 << (exact.bit_length() - layout.precision)  # between neighbouring numbers
    for decimals in layout.decimals:
        text = f"{number:.{decimals}e}"
        mantissa, exponent = text.removeprefix("-").split("e+")
        error = int(mantissa.replace(".", "")) * 10 ** (int(exponent) - decimals) - exact
        if 2 * abs(error) < distance:
            break
    return text


def float_text(values: pa.Array) -> pa.Array:
    """`float64` or `float32` as `large_string`: the text of PostgreSQL's float8 or float4."""
    layout = FLOATS[values.type]
    text = pc.cast(values, pa.large_string())
    magnitude = pc.abs(values)
    is_same = pc.or_(_between(magnitude, -4, layout.same_notation_below), pc.equal(magnitude, 0))
    if pc.all(is_same, min_count=0).as_py():
        return text
    differs = pc.fill_null(pc.invert(is_same), False)
    return pc.replace_with_mask(
        text, differs, _rewritten(values.filter(differs), text.filter(differs), layout)
    )


def _rewritten(values: pa.Array, text: pa.Array, layout: FloatFormat) -> pa.Array:
    """PostgreSQL's texts of numbers that Arrow writes differently. There are no NULLs."""
    magnitude = pc.abs(values)
    # Pads exponents of one digit: the sign, a zero, the digit.
    result = pc.replace_substring_regex(text, r"e([+-])(\d)$", r"e\10\2")
    for exponent in layout.rewritten_exponents:
        mask = _between(magnitude, exponent, exponent + 1)
        if pc.any(mask).as_py():
            if 0 <= exponent < layout.scientific_from:
                rewritten = _with_point(result.filter(mask), exponent + 1)
            else:
                rewritten = concat(_with_point(result.filter(mask), 1), f"e{exponent:+03d}")
            result = pc.replace_with_mask(result, mask, rewritten)
    result = pc.if_else(pc.is_nan(values), text_scalar("NaN"), result)
    result = pc.if_else(pc.equal(values, float("inf")), text_scalar("Infinity"), result)
    result = pc.if_else(pc.equal(values, float("-inf")), text_scalar("-Infinity"), result)
    return without_midpoints(values, result, layout)


def _between(magnitude: pa.Array, low: int, high: int) -> pa.Array:
    """A mask of 10 ** low <= magnitude < 10 ** high.

    Each bound is the floating-point number nearest to its power of ten, and its text is that
    power. So a number and its text are on the same side of a bound.
    """
    lowest, end = (pa.scalar(float(f"1e{exponent}"), magnitude.type) for exponent in (low, high))
    return pc.and_(pc.greater_equal(magnitude, lowest), pc.less(magnitude, end))


def _with_point(text: pa.Array, places: int) -> pa.Array:
    """Writes the significant digits of `text`, with a point after `places` digits if more follow.

    `-1.2345678905e+09` becomes `-1234567890.5` with 10 places, `-0.000015` becomes `-1.5` with 1.
    """
    sign = pc.if_else(pc.starts_with(text, "-"), text_scalar("-"), text_scalar(""))
    digits = pc.replace_substring_regex(text, "^-|e.*$", "")
    digits = pc.ascii_trim(pc.replace_substring(digits, ".", ""), "0")
    digits = pc.ascii_rpad(digits, places, "0")
    whole = pc.utf8_slice_codeunits(digits, 0, places)
    number = concat(sign, whole, ".", pc.utf8_slice_codeunits(digits, places))
    return pc.ascii_rtrim(number, ".")
