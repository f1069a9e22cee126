"""How large rows are in Arrow's memory: of each row alone, whatever batch it came in."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

# A row is never free, so that a row group has an end even where all values are.
_ROW_BYTES = 1
# The width of an offset, as the files' text and lists are offset by 32 or 64 bits.
_OFFSET_BYTES = 8


def row_ends(rows: pa.RecordBatch) -> memoryview:
    """Where each row ends, in bytes: n + 1 numbers of 64 bits, from 0.

    A row's size depends on its values only: what is under a NULL, where the batch was cut, and
    whether there is a validity bitmap make no difference.
    """
    sizes = pa.repeat(pa.scalar(_ROW_BYTES, pa.int64()), rows.num_rows)
    for values in rows.columns:
        sizes = pc.add(sizes, _sizes(values))
    ends = _ends(sizes)
    return memoryview(ends.buffers()[1]).cast("q")[: rows.num_rows + 1]


def _sizes(values: pa.Array) -> Any:
    """The sizes of values, or the size that each of them has."""
    data_type = values.type
    if pa.types.is_map(data_type):
        values = values.cast(pa.list_(pa.struct([data_type.key_field, data_type.item_field])))
        data_type = values.type
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return pc.add(_list_sizes(values), _OFFSET_BYTES)
    if pa.types.is_struct(data_type):
        total: Any = pa.scalar(0, pa.int64())
        for child in values.flatten():
            total = pc.add(total, _sizes(child))
        return total
    if _has_offsets(data_type):
        lengths = pc.cast(pc.binary_length(values), pa.int64())
        return pc.add(pc.fill_null(lengths, 0), _OFFSET_BYTES)
    return pa.scalar(_fixed_width(data_type), pa.int64())


def _list_sizes(lists: pa.Array) -> Any:
    lengths = pc.fill_null(pc.cast(pc.list_value_length(lists), pa.int64()), 0)
    elements = _sizes(lists.flatten())
    if isinstance(elements, pa.Scalar):
        return pc.multiply(lengths, elements)
    last = _ends(lengths).slice(1)
    first = pc.subtract(last, lengths)
    ends = _ends(elements)
    return pc.subtract(ends.take(last), ends.take(first))


def _ends(sizes: pa.Array) -> pa.Array:
    zero = pa.array([0], pa.int64())
    return pa.concat_arrays([zero, pc.cumulative_sum(sizes)])


def _has_offsets(data_type: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(data_type)
        or pa.types.is_large_string(data_type)
        or pa.types.is_binary(data_type)
        or pa.types.is_large_binary(data_type)
    )


def _fixed_width(data_type: pa.DataType) -> int:
    if pa.types.is_null(data_type):
        return _OFFSET_BYTES
    return max(1, int(data_type.bit_width) // 8)
