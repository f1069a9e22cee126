"""Scalars whose stored form is none of Arrow's own: big-endian, so that bytes sort as values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.arrow.buffers import (
    big_endian,
    fixed_width,
    from_big_endian,
    joined,
    null_where,
    reinterpreted,
)
from dbt.adapters.mzs3.shard.types.table import INTERVAL_PARTS

_SECOND = 1_000_000_000  # nanoseconds
_SIGN = 1 << 63
_LOW = (1 << 32) - 1
_SIGN_OF_32 = 1 << 31


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
