"""Floating-point numbers as PostgreSQL writes them.

Arrow's cast writes the fewest digits that read back as the same number. So does PostgreSQL, but it
never writes a text that is exactly halfway between two numbers, as Arrow rarely does:
`without_midpoints` replaces those. The notation differs: PostgreSQL's is
positional from 1e-4 to below 1e15 (float32: 1e6), and its exponents have at least two digits.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.formats.write.csv.quoting import concat, text_scalar

_WHOLE = pa.decimal256(41, 0)  # holds every number up to any `midpoints_end`


@dataclass(frozen=True)
class FloatFormat:
    """The layout of an IEEE 754 format, and how Arrow and PostgreSQL write its numbers."""

    integer: pa.DataType  # of the same width
    precision: int  # bits of the significand, the hidden one included
    midpoints_end: float  # from here on, no shortest text is a midpoint
    # How many decimals to try for a corrected number. Fewer would leave the last place coarser
    # than the distance of two numbers: Arrow would have used such a text. A number is at least 2
    # ** 52 (2 ** 23) times that distance. The last count distinguishes any two numbers.
    decimals: tuple[int, ...]
    same_below: int  # from 1e-4 to below 10 ** this, both are positional
    scientific_from: int  # PostgreSQL has exponents from 10 ** this on
    rewritten: tuple[int, ...]  # exponents where only one of the two is positional


FLOATS = {
    pa.float64(): FloatFormat(
        pa.int64(), 53, 1e40, (15, 16), 10, 15, (-6, -5, 10, 11, 12, 13, 14)
    ),
    pa.float32(): FloatFormat(pa.int32(), 24, 1e19, (6, 7, 8), 6, 6, (-6, -5, 6, 7, 8, 9)),
}


def without_midpoints(values: pa.Array, text: pa.Array, layout: FloatFormat) -> pa.Array:
    """The text with PostgreSQL's digits in place of each text that is a midpoint of two numbers.

    Neither array has NULLs; `text` is in PostgreSQL's notation. Each distinct number with such a
    text is computed anew in Python. They are rare: one in five numbers at 2 ** 54, one in a
    hundred at 1e18, fewer beyond, none below 2 ** 53.
    """
    size = pc.abs(values)
    lowest = pa.scalar(2.0**layout.precision, size.type)
    end = pa.scalar(layout.midpoints_end, size.type)
    # A midpoint is read as the neighbour with an even significand.
    is_even = pc.equal(pc.bit_wise_and(values.view(layout.integer), 1), 0)
    in_range = pc.and_(pc.and_(pc.greater_equal(size, lowest), pc.less(size, end)), is_even)
    if not pc.any(in_range).as_py():
        return text
    numbers, candidates = values.filter(in_range), text.filter(in_range)
    hit = _text_is_midpoint(numbers, candidates, layout)
    if not pc.any(hit).as_py():
        return text
    numbers = numbers.filter(hit).dictionary_encode()
    strict = [_strict_text(number, layout) for number in numbers.dictionary.to_pylist()]
    corrected = pa.array(strict, pa.large_string()).take(numbers.indices)
    return pc.replace_with_mask(text, in_range, pc.replace_with_mask(candidates, hit, corrected))


def _text_is_midpoint(values: pa.Array, text: pa.Array, layout: FloatFormat) -> pa.Array:
    """A mask of the texts that are half the distance of two numbers away from their own number."""
    one = pa.scalar(1, layout.integer)
    following = pc.add(values.view(layout.integer), one).view(values.type)  # away from zero
    half = pc.divide(pc.abs(pc.subtract(following, values)), 2)
    # All of these are whole numbers, and none is rounded.
    off = pc.subtract(pc.cast(text, _WHOLE), pc.cast(values, _WHOLE))
    return pc.equal(pc.abs(off), pc.cast(half, _WHOLE))


def _strict_text(number: float, layout: FloatFormat) -> str:
    """The fewest correctly rounded digits strictly between the midpoints to both neighbours.

    Both midpoints are equally far, as the number is no power of two. (Next to a power of two, 5
    divides neither midpoint, so the midpoints have no fewer digits than the number.)
    """
    exact = abs(int(number))
    distance = 1 << (exact.bit_length() - layout.precision)  # of two numbers
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
    size = pc.abs(values)
    same = pc.or_(_between(size, -4, layout.same_below), pc.equal(size, 0))
    if pc.all(same, min_count=0).as_py():
        return text
    mask = pc.fill_null(pc.invert(same), False)
    return pc.replace_with_mask(
        text, mask, _rewritten(values.filter(mask), text.filter(mask), layout)
    )


def _rewritten(values: pa.Array, text: pa.Array, layout: FloatFormat) -> pa.Array:
    """PostgreSQL's text of numbers that it writes differently from Arrow; no NULLs."""
    size = pc.abs(values)
    # The replacement is group 1, a zero, group 2.
    result = pc.replace_substring_regex(text, r"e([+-])(\d)$", r"e\10\2")
    for exponent in layout.rewritten:
        mask = _between(size, exponent, exponent + 1)
        if pc.any(mask).as_py():
            if 0 <= exponent < layout.scientific_from:
                other = _with_point(result.filter(mask), exponent + 1)
            else:
                other = concat(_with_point(result.filter(mask), 1), f"e{exponent:+03d}")
            result = pc.replace_with_mask(result, mask, other)
    result = pc.if_else(pc.is_nan(values), text_scalar("NaN"), result)
    result = pc.if_else(pc.equal(values, float("inf")), text_scalar("Infinity"), result)
    result = pc.if_else(pc.equal(values, float("-inf")), text_scalar("-Infinity"), result)
    return without_midpoints(values, result, layout)


def _between(size: pa.Array, low: int, high: int) -> pa.Array:
    """A mask of 10 ** low <= size < 10 ** high.

    Each bound is the floating-point number nearest to the power of ten, and is written as that
    power. So the text of a number is on the same side of the bound as the number.
    """
    lowest, end = (pa.scalar(float(f"1e{exponent}"), size.type) for exponent in (low, high))
    return pc.and_(pc.greater_equal(size, lowest), pc.less(size, end))


def _with_point(text: pa.Array, places: int) -> pa.Array:
    """The significant digits of `text`, with `places` digits before a point, if more follow.

    `-1234567890.5` for digits 12345678905 and 10 places, `-1.5` for digits 15 and 1 place.
    """
    sign = pc.if_else(pc.starts_with(text, "-"), text_scalar("-"), text_scalar(""))
    digits = pc.replace_substring_regex(text, "^-|e.*$", "")
    digits = pc.ascii_trim(pc.replace_substring(digits, ".", ""), "0")
    digits = pc.ascii_rpad(digits, places, "0")
    whole = pc.utf8_slice_codeunits(digits, 0, places)
    number = concat(sign, whole, ".", pc.utf8_slice_codeunits(digits, places))
    return pc.ascii_rtrim(number, ".")
