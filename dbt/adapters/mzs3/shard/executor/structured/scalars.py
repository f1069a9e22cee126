"""Scalars whose stored form is none of Arrow's own: big-endian, so that bytes sort as values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.arrow.buffers import (
    big_endian,
    binary_of,
    byte_swapped,
    fixed_width,
    from_big_endian,
    from_raw,
    joined,
    null_where,
    raw_bytes,
    reinterpreted,
)
from dbt.adapters.mzs3.shard.types.table import INTERVAL_PARTS, NUMERIC_STORAGE

_SECOND = 1_000_000_000  # nanoseconds
_SIGN = 1 << 63
_LOW = (1 << 32) - 1
_SIGN_OF_32 = 1 << 31
_WORDS = 4  # of 64 bits in a decimal of 256
_EXACT_DIGITS = 15  # a double holds every integer of so many


def stored_time(times: pa.Array) -> pa.Array:
    """`time64[ns]` as seconds and nanoseconds."""
    nanos = reinterpreted(times, pa.int64())
    seconds = pc.divide(nanos, _SECOND)
    rest = pc.subtract(nanos, pc.multiply(seconds, _SECOND))
    return fixed_width(big_endian(_two_of_32(_unsigned(seconds), _unsigned(rest))), 8)


def time_of(stored: pa.Array) -> pa.Array:
    """What `stored_time` was given."""
    words = from_big_endian(stored)
    seconds = reinterpreted(pc.shift_right(words, _word(32)), pa.int64())
    rest = reinterpreted(pc.bit_wise_and(words, _word(_LOW)), pa.int64())
    nanos = pc.add(pc.multiply(seconds, _SECOND), rest)
    return reinterpreted(nanos, pa.time64("ns"))


def stored_interval(intervals: pa.Array) -> pa.Array:
    """Structs of months, days and microseconds, in the order of the three."""
    months, days, micros = intervals.flatten()
    high = _two_of_32(_flipped_32(months), _flipped_32(days))
    low = _flipped_64(reinterpreted(micros, pa.uint64()))
    stored = fixed_width(joined(big_endian(high), big_endian(low)), 16)
    return null_where(stored, intervals)


def interval_of(stored: pa.Array) -> pa.Array:
    """What `stored_interval` was given."""
    high = from_big_endian(pc.binary_slice(stored, 0, 8))
    low = from_big_endian(pc.binary_slice(stored, 8, 16))
    months = _unflipped_32(pc.shift_right(high, _word(32)))
    days = _unflipped_32(pc.bit_wise_and(high, _word(_LOW)))
    micros = reinterpreted(_flipped_64(low), pa.int64())
    return pa.StructArray.from_arrays(
        [months, days, micros], fields=list(INTERVAL_PARTS), mask=stored.is_null()
    )


def stored_numeric(numbers: pa.Array) -> pa.Array:
    """Decimals as the double next to each, and 32 bytes that are exact.

    The bytes do not depend on the type's scale: they are the number times 10 ** 38, big-endian,
    with the bit of its sign turned over. So numbers of any precision and scale are equal, and
    sort, as their bytes do.
    """
    wide = numbers.cast(pa.decimal256(76, 38))
    words = from_raw(pa.uint64(), raw_bytes(wide, 32), _WORDS * len(wide))
    swapped = from_raw(pa.binary(32), raw_bytes(byte_swapped(words), 8), len(wide))
    highest, *others = reversed(_words_of(swapped))
    actual = null_where(joined(_with_flipped_sign(highest), *others), numbers)
    return pa.StructArray.from_arrays(
        [nearest_doubles(numbers), actual], fields=list(NUMERIC_STORAGE), mask=numbers.is_null()
    )


def numeric_of(stored: pa.Array, data_type: pa.DataType) -> pa.Array:
    """What `stored_numeric` was given, in a decimal type; ArrowInvalid if it does not fit in."""
    _, actual = stored.flatten()
    fixed = fixed_width(actual, 32)
    highest, *others = _words_of(fixed)
    turned = joined(*reversed(others), _with_flipped_sign(highest))
    words = from_raw(
        pa.uint64(), raw_bytes(fixed_width(_zero_filled(turned), 32), 32), _WORDS * len(fixed)
    )
    wide = from_raw(pa.decimal256(76, 38), raw_bytes(byte_swapped(words), 8), len(fixed))
    return null_where(wide, actual).cast(data_type)


def nearest_doubles(numbers: pa.Array) -> pa.Array:
    """The double next to each decimal, so a larger decimal never has a smaller double."""
    data_type = numbers.type
    if data_type.precision > _EXACT_DIGITS:
        return numbers.cast(pa.string()).cast(pa.float64())
    # Both are exact as doubles, so their quotient is rounded once.
    unscaled = reinterpreted(numbers, pa.decimal128(data_type.precision, 0))
    return pc.divide(unscaled.cast(pa.int64()).cast(pa.float64()), 10.0**data_type.scale)


def _with_flipped_sign(values: pa.Array) -> pa.Array:
    """8 bytes each, with the highest bit of the first byte turned over."""
    words = reinterpreted(fixed_width(values, 8), pa.uint64())
    return binary_of(pc.bit_wise_xor(words, _word(1 << 7)), 8)


def _words_of(values: pa.Array) -> list[pa.Array]:
    """Each 8 bytes of 32 as a column of their own."""
    starts = (8 * word for word in range(_WORDS))
    return [pc.binary_slice(values, start, start + 8).cast(pa.binary()) for start in starts]


def _zero_filled(values: pa.Array) -> pa.Array:
    return pc.fill_null(values, pa.scalar(bytes(32), pa.binary()))


def _two_of_32(high: pa.Array, low: pa.Array) -> pa.Array:
    return pc.bit_wise_or(pc.shift_left(high, _word(32)), low)


def _unsigned(values: pa.Array) -> pa.Array:
    return reinterpreted(values, pa.uint64())


def _flipped_32(values: pa.Array) -> pa.Array:
    return pc.add(values.cast(pa.int64()), _SIGN_OF_32).cast(pa.uint64())


def _unflipped_32(words: pa.Array) -> pa.Array:
    return pc.subtract(words.cast(pa.int64()), _SIGN_OF_32).cast(pa.int32())


def _flipped_64(words: pa.Array) -> pa.Array:
    return pc.bit_wise_xor(words, _word(_SIGN))


def _word(value: int) -> Any:
    return pa.scalar(value, pa.uint64())
