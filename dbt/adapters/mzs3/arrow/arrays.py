"""Arrays of Arrow from and to raw bytes, lists taken apart, and floating-point numbers as bits."""

from __future__ import annotations

import math
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
    return pc.bit_wise_or(
        pc.shift_left(words, uint64_scalar(32)), pc.shift_right(words, uint64_scalar(32))
    )


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
    low = pc.shift_left(pc.bit_wise_and(words, uint64_scalar(mask)), uint64_scalar(bits))
    high = pc.bit_wise_and(pc.shift_right(words, uint64_scalar(bits)), uint64_scalar(mask))
    return pc.bit_wise_or(low, high)


def uint64_scalar(value: int) -> Any:
    """The number as a scalar of `uint64`."""
    return pa.scalar(value, pa.uint64())


def is_string(data_type: pa.DataType) -> bool:
    """Whether the type is text of either offset width."""
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type))


def is_binary(data_type: pa.DataType) -> bool:
    """Whether the type is bytes of either offset width."""
    return bool(pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type))


def is_list(data_type: pa.DataType) -> bool:
    """Whether the type is a list of either offset width."""
    return bool(pa.types.is_list(data_type) or pa.types.is_large_list(data_type))


def list_offsets(lists: pa.Array) -> pa.Array:
    """Where each list begins in what `flatten` gives; NULL for a NULL list, and then the end.

    As `from_arrays` of lists and maps takes it: n + 1 numbers of 32 bits.
    """
    ends = list_ends(lists)
    starts = pc.if_else(lists.is_valid(), ends.slice(0, len(lists)), pa.scalar(None, pa.int32()))
    return pa.concat_arrays([starts, ends.slice(len(lists))])


def list_ends(lists: pa.Array) -> pa.Array:
    """0, and where each list ends in what `flatten` gives: n + 1 numbers without NULLs."""
    lengths = pc.fill_null(pc.cast(pc.list_value_length(lists), pa.int32()), 0)
    return running_total(lengths)


def running_total(lengths: pa.Array) -> pa.Array:
    """0, and the sum of the first one, two, … of n numbers: offsets, in the numbers' own type.

    Raises ArrowInvalid if they pass the type's range.
    """
    zero = pa.array([0], lengths.type)
    return pa.concat_arrays([zero, pc.cumulative_sum_checked(lengths)])


def empty_records(mask: pa.Array) -> pa.Array:
    """Structs without fields, NULL where the mask is true."""
    empty = pa.array([{}, None], pa.struct([]))
    return empty.take(pc.if_else(mask, 1, 0))


def with_one_nan(values: pa.Array) -> pa.Array:
    """The bits of a NaN are the processor's choice, and Spark doesn't order rows by them."""
    are_nan = pc.is_nan(values)
    if not pc.any(are_nan).as_py():
        return values
    return pc.if_else(are_nan, pa.scalar(math.nan, values.type), values)


def float_bits(values: pa.Array) -> pa.Array:
    """The values, numbers inside of lists and structs included, with the bits of floats for them.

    So all NaNs are equal, and zeros of both signs are not.
    """
    data_type = values.type
    if not _has_floats(data_type):
        return values
    if pa.types.is_floating(data_type):
        integers = {32: pa.int32(), 64: pa.int64()}[data_type.bit_width]
        return reinterpreted(with_one_nan(values), integers)
    if pa.types.is_list(data_type):
        return pa.ListArray.from_arrays(list_offsets(values), float_bits(values.flatten()))
    children = [float_bits(child) for child in values.flatten()]
    names = [field.name for field in data_type]
    return pa.StructArray.from_arrays(children, names, mask=values.is_null())


def _has_floats(data_type: pa.DataType) -> bool:
    if pa.types.is_floating(data_type):
        return True
    inside = [data_type.field(place) for place in range(data_type.num_fields)]
    return any(_has_floats(field.type) for field in inside)
