"""Arrays of one width from raw bytes, and the raw bytes of such arrays."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

# Of 64 bits: every second byte, every second pair of bytes.
_BYTES = 0x00FF00FF00FF00FF
_PAIRS = 0x0000FFFF0000FFFF


def raw_bytes(values: pa.Array, width: int) -> pa.Buffer:
    """The values' bytes, `width` each; whatever is under a NULL is in there too."""
    data = values.buffers()[-1]
    if data is None or not len(values):
        return pa.py_buffer(b"")
    return data.slice(values.offset * width, len(values) * width)


def from_raw(data_type: pa.DataType, data: pa.Buffer, length: int) -> pa.Array:
    """`length` values of a type of fixed width, without NULLs, that are these bytes."""
    return pa.Array.from_buffers(data_type, length, [None, data])


def reinterpreted(values: pa.Array, data_type: pa.DataType) -> pa.Array:
    """The same bits as values of another type of the same width; NULLs stay NULL."""
    width = data_type.bit_width // 8
    return null_where(from_raw(data_type, raw_bytes(values, width), len(values)), values)


def null_where(values: pa.Array, like: pa.Array) -> pa.Array:
    """The values, NULL where `like` is NULL."""
    if not like.null_count:
        return values
    return pc.if_else(like.is_valid(), values, pa.scalar(None, values.type))


def binary_of(values: pa.Array, width: int) -> pa.Array:
    """Each value's bytes in memory as a `binary` value; NULLs stay NULL."""
    fixed = from_raw(pa.binary(width), raw_bytes(values, width), len(values))
    return null_where(fixed, values).cast(pa.binary())


def data_of(values: pa.Array) -> pa.Buffer:
    """All bytes of `binary` values, one after the other; NULLs have none."""
    _, offsets, data = values.buffers()
    if data is None or not len(values):
        return pa.py_buffer(b"")
    ends = memoryview(offsets).cast("i")
    start, end = ends[values.offset], ends[values.offset + len(values)]
    return data.slice(start, end - start)


def byte_swapped(words: pa.Array) -> pa.Array:
    """`uint64` with the bytes of each value the other way round."""
    words = _swap(words, _BYTES, 8)
    words = _swap(words, _PAIRS, 16)
    return pc.bit_wise_or(pc.shift_left(words, _word(32)), pc.shift_right(words, _word(32)))


def big_endian(words: pa.Array) -> pa.Array:
    """`uint64` as `binary` of 8 bytes, the highest first: bytes in the order of the numbers."""
    return binary_of(byte_swapped(words), 8)


def from_big_endian(values: pa.Array) -> pa.Array:
    """The `uint64` numbers that `big_endian` made; raises ValueError for other lengths."""
    return byte_swapped(reinterpreted(fixed_width(values, 8), pa.uint64()))


def fixed_width(values: pa.Array, width: int) -> pa.Array:
    """`binary` of any kind as a type of `width` bytes; ValueError if a value has others."""
    try:
        return values.cast(pa.binary(width))
    except pa.ArrowInvalid as error:
        raise ValueError(f"a value has not the {width} bytes of its type") from error


def joined(*parts: pa.Array | pa.Scalar) -> pa.Array:
    """`binary` parts one after the other, row by row; NULL where one of them is NULL."""
    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.binary()))


def _swap(words: pa.Array, mask: int, bits: int) -> pa.Array:
    low = pc.shift_left(pc.bit_wise_and(words, _word(mask)), _word(bits))
    high = pc.bit_wise_and(pc.shift_right(words, _word(bits)), _word(mask))
    return pc.bit_wise_or(low, high)


def _word(value: int) -> Any:
    return pa.scalar(value, pa.uint64())
