"""Helpers for Arrow arrays: raw bytes, casts of texts, offsets of lists, bits of floats."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def raw_bytes(values: pa.Array, width: int) -> pa.Buffer:
    """The values' bytes, `width` each, NULLs included."""
    data = values.buffers()[-1]
    if data is None or not len(values):
        return pa.py_buffer(b"")
    return data.slice(values.offset * width, len(values) * width)


def from_raw(data_type: pa.DataType, data: pa.Buffer, length: int) -> pa.Array:
    """An array of `length` values, without NULLs, of a fixed-width type, from their bytes."""
    return pa.Array.from_buffers(data_type, length, [None, data])


def binary_value(data: pa.Buffer | bytes) -> pa.Array:
    """An array of one `binary` value, whose bytes are not copied."""
    ends = pa.array([0, len(data)], pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.binary(), 1, [None, ends, pa.py_buffer(data)])


def null_where(values: pa.Array, like: pa.Array) -> pa.Array:
    """The values, with NULL where `like` is NULL."""
    if not like.null_count:
        return values
    return pc.if_else(like.is_valid(), values, pa.scalar(None, values.type))


def to_binary(values: pa.Array, width: int) -> pa.Array:
    """Each value's bytes in memory as a `binary` value; NULLs stay NULL."""
    return values.view(pa.binary(width)).cast(pa.binary())


def cast_by_pattern(
    text: pa.Array,
    usual_regex: str,
    cast: Callable[[pa.Array], pa.Array],
    read: Callable[[str, pa.DataType], Any],
    kind: pa.DataType,
) -> pa.Array:
    """The texts as values of `kind`; NULL stays NULL.

    `cast` converts, in one call, all texts that match `usual_regex`. `read` converts each other
    distinct text: to a value, or for a date or timestamp to its number. Raises ValueError.
    """
    usual = pc.match_substring_regex(text, usual_regex)
    values = cast(pc.if_else(usual, text, pa.scalar(None, pa.string())))
    rare = pc.unique(pc.filter(text, pc.invert(usual)))
    try:
        rare_values = pa.array([read(value, kind) for value in rare.to_pylist()], kind)
    except OverflowError as exc:
        raise ValueError("a value out of the type's range") from exc
    return pc.coalesce(values, rare_values.take(pc.index_in(text, value_set=rare)))


def concatenated_bytes(values: pa.Array) -> pa.Buffer:
    """The bytes of the `binary` values, concatenated."""
    _, offsets, data = values.buffers()
    if data is None or not len(values):
        return pa.py_buffer(b"")
    ends = memoryview(offsets).cast("i")
    start, end = ends[values.offset], ends[values.offset + len(values)]
    return data.slice(start, end - start)


def byte_swapped(numbers: pa.Array) -> pa.Array:
    """Numbers of 32 or 64 bits with their bytes in reverse order; NULLs stay NULL."""
    width = numbers.type.bit_width // 8
    words = array("I" if width == 4 else "Q")
    words.frombytes(raw_bytes(numbers, width))
    words.byteswap()
    return null_where(from_raw(numbers.type, pa.py_buffer(words), len(numbers)), numbers)


def big_endian(numbers: pa.Array) -> pa.Array:
    """Unsigned numbers of 32 or 64 bits as big-endian `binary`, which sorts like the numbers."""
    return to_binary(byte_swapped(numbers), numbers.type.bit_width // 8)


def from_big_endian(values: pa.Array, data_type: pa.DataType) -> pa.Array:
    """The inverse of `big_endian`. Raises ValueError for values of another width."""
    return byte_swapped(fixed_width(values, data_type.bit_width // 8).view(data_type))


def fixed_width(values: pa.Array, width: int) -> pa.Array:
    """`binary` values as a type of `width` bytes. Raises ValueError for other lengths."""
    try:
        return values.cast(pa.binary(width))
    except pa.ArrowInvalid as error:
        raise ValueError(f"a value has not the {width} bytes of its type") from error


def concat_binary(*parts: pa.Array | pa.Scalar) -> pa.Array:
    """The `binary` parts concatenated row by row; NULL where one of them is NULL."""
    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.binary()))


def is_string(data_type: pa.DataType) -> bool:
    """Whether the type is `string` or `large_string`."""
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type))


def is_binary(data_type: pa.DataType) -> bool:
    """Whether the type is `binary` or `large_binary`."""
    return bool(pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type))


def is_list(data_type: pa.DataType) -> bool:
    """Whether the type is a list of either offset width."""
    return bool(pa.types.is_list(data_type) or pa.types.is_large_list(data_type))


def list_offsets(lists: pa.Array) -> pa.Array:
    """The n + 1 offsets of n lists in their `flatten()`, with NULL for a NULL list.

    The `from_arrays` functions of lists and maps accept these offsets.
    """
    ends = list_ends(lists)
    starts = pc.if_else(lists.is_valid(), ends.slice(0, len(lists)), pa.scalar(None, pa.int32()))
    return pa.concat_arrays([starts, ends.slice(len(lists))])


def list_ends(lists: pa.Array) -> pa.Array:
    """The n + 1 offsets of n lists in their `flatten()`, without NULLs."""
    lengths = pc.fill_null(pc.cast(pc.list_value_length(lists), pa.int32()), 0)
    return running_total(lengths)


def running_total(lengths: pa.Array) -> pa.Array:
    """The n + 1 offsets of n concatenated values with these lengths, in the lengths' type.

    Raises ArrowInvalid if an offset is too large for the type.
    """
    zero = pa.array([0], lengths.type)
    return pa.concat_arrays([zero, pc.cumulative_sum_checked(lengths)])


def empty_records(mask: pa.Array) -> pa.Array:
    """Structs without fields, NULL where the mask is true."""
    empty = pa.array([{}, None], pa.struct([]))
    return empty.take(pc.if_else(mask, 1, 0))


def with_one_nan(values: pa.Array) -> pa.Array:
    """The values with the same bits for every NaN: otherwise these depend on the processor."""
    are_nan = pc.is_nan(values)
    if not pc.any(are_nan).as_py():
        return values
    return pc.if_else(are_nan, pa.scalar(math.nan, values.type), values)


def float_bits(values: pa.Array) -> pa.Array:
    """The values with floats, even in lists and structs, replaced by integers of the same bits.

    Thus all NaNs are equal, and 0.0 and -0.0 differ.
    """
    data_type = values.type
    if not _has_floats(data_type):
        return values
    if pa.types.is_floating(data_type):
        integers = {32: pa.int32(), 64: pa.int64()}[data_type.bit_width]
        return with_one_nan(values).view(integers)
    if pa.types.is_list(data_type):
        return pa.ListArray.from_arrays(list_offsets(values), float_bits(values.flatten()))
    children = [float_bits(child) for child in values.flatten()]
    names = [field.name for field in data_type]
    return pa.StructArray.from_arrays(children, names, mask=values.is_null())


def _has_floats(data_type: pa.DataType) -> bool:
    inside = (data_type.field(place).type for place in range(data_type.num_fields))
    return bool(pa.types.is_floating(data_type)) or any(map(_has_floats, inside))
