"""Messages back into columns, of which only those that are asked for are looked into."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.arrow.buffers import (
    data_of,
    fixed_width,
    from_raw,
    raw_bytes,
    reinterpreted,
)
from dbt.adapters.mzs3.arrow.lists import empty_records, running_total
from dbt.adapters.mzs3.shard.executor.codec import wire
from dbt.adapters.mzs3.shard.executor.codec.cursor import Cursor, DamagedError
from dbt.adapters.mzs3.shard.executor.codec.encode import field_of
from dbt.adapters.mzs3.shard.types.kind import Type
from dbt.adapters.mzs3.shard.types.storage import wire_type
from dbt.adapters.mzs3.shard.types.table import INTERVAL_PARTS, RECORDS, SCALARS


def decoded_rows(
    rows: pa.Array, kinds: Sequence[Type], wanted: Collection[int] | None = None
) -> list[pa.Array]:
    """The columns of messages `Row`, in wire form; `rows` is `binary` without NULLs.

    `wanted` has the places of the columns that are decoded, all of them if it is None; in their
    order. Raises DamagedError for bytes that `encoded_rows` has not made of such types.
    """
    cursor = Cursor(rows)
    columns = []
    for place, kind in enumerate(kinds):
        cursor.expect(wire.ROW_DATUM)
        size = cursor.varint()
        if wanted is None or place in wanted:
            columns.append(_values(cursor.take(size), kind))
        else:
            cursor.skip(size)
    cursor.finish()
    return columns


def values_of_datums(messages: pa.Array, kind: Type) -> pa.Array:
    """The values, in wire form, of messages `Datum`; NULL stays NULL."""
    return _values(pc.fill_null(messages, b""), kind)


def _values(messages: pa.Array, kind: Type) -> pa.Array:
    """The values of messages `Datum`, of which an empty one is NULL."""
    given = pc.greater(pc.binary_length(messages), 0)
    if pc.all(given, min_count=0).as_py():
        return _given(messages, kind)
    values = _given(messages.filter(given), kind)
    place = pc.subtract(pc.cumulative_sum(given.cast(pa.int32())), pa.scalar(1, pa.int32()))
    return values.take(pc.if_else(given, place, pa.scalar(None, pa.int32())))


def _given(messages: pa.Array, kind: Type) -> pa.Array:
    field = field_of(kind)
    cursor = Cursor(messages)
    cursor.expect(field.key)
    if field.width is None:
        content = cursor.take(cursor.varint())
        cursor.finish()
    else:
        content = cursor.rest()
    if kind.name in RECORDS:
        return _record(content, kind)
    if kind.name == "map":
        return _map(content, kind)
    if kind.name in ("list", "int2vector"):
        (element,) = kind.children
        offsets, elements = _list(content, element)
        return pa.ListArray.from_arrays(offsets, elements, type=wire_type(kind))
    if kind.name == "numeric":
        return _numeric(content, kind)
    return _scalar(content, kind)


def _scalar(content: pa.Array, kind: Type) -> pa.Array:
    codec, data_type = SCALARS[kind.name].codec, wire_type(kind)
    if codec == "interval":
        return _interval(content)
    if kind.name == "uuid":
        return fixed_width(content, 16).cast(data_type)
    if codec == "bytes":
        return content
    if codec in ("string", "json"):
        return content.cast(data_type)
    if codec == "bool":
        return _fixed(content, pa.uint8()).cast(data_type)
    if codec == "int32":
        return _fixed(content, pa.int32()).cast(data_type)
    if codec == "uint64":
        return _fixed(content, pa.uint64()).cast(data_type)
    return _fixed(content, data_type)


def _numeric(content: pa.Array, kind: Type) -> pa.Array:
    start = wire.NUMERIC_SCALE + wire.varint(kind.scale) + wire.NUMERIC_UNSCALED
    cursor = Cursor(content)
    cursor.expect(start)
    return _fixed(cursor.rest(), wire_type(kind))


def _interval(content: pa.Array) -> pa.Array:
    cursor = Cursor(content)
    parts = []
    for key, part in zip(
        (wire.INTERVAL_MONTHS, wire.INTERVAL_DAYS, wire.INTERVAL_MICROS),
        INTERVAL_PARTS,
        strict=True,
    ):
        cursor.expect(key)
        width = pa.scalar(part.type.bit_width // 8, pa.int32())
        parts.append(_fixed(cursor.take(width), part.type))
    cursor.finish()
    return pa.StructArray.from_arrays(parts, fields=list(INTERVAL_PARTS))


def _record(content: pa.Array, kind: Type) -> pa.Array:
    columns = decoded_rows(content, kind.children)
    if not columns:
        return empty_records(pa.repeat(False, len(content)))
    return pa.StructArray.from_arrays(columns, fields=list(wire_type(kind)))


def _map(content: pa.Array, kind: Type) -> pa.Array:
    cursor = Cursor(content)
    lists = []
    for key, child in zip((wire.MAP_KEYS, wire.MAP_VALUES), kind.children, strict=True):
        cursor.expect(key)
        lists.append(_list(cursor.take(cursor.varint()), child))
    cursor.finish()
    (offsets, keys), (others, values) = lists
    if not offsets.equals(others):
        raise DamagedError("a map has more keys than values, or fewer")
    data_type = wire_type(kind)
    entries = pa.StructArray.from_arrays([keys, values], fields=list(data_type.value_type))
    return pa.ListArray.from_arrays(offsets, entries, type=data_type)


def _list(content: pa.Array, kind: Type) -> tuple[pa.Array, pa.Array]:
    """Where each list of messages `List` begins among all elements, and the elements."""
    cursor = Cursor(content)
    cursor.expect(wire.LIST_SIZES)
    packed = cursor.take(cursor.varint())
    messages = cursor.rest()
    ends = running_total(pc.divide(pc.binary_length(packed), pa.scalar(4, pa.int32())))
    data = data_of(packed)
    sizes = from_raw(pa.int32(), data, ends[-1].as_py())
    if 4 * len(sizes) != data.size or pc.any(pc.less(sizes, 0)).as_py():
        raise DamagedError("a list's sizes are none")
    starts = running_total(sizes)
    if not starts.take(ends).equals(running_total(pc.binary_length(messages))):
        raise DamagedError("a list's sizes are not those of its elements")
    each = pa.Array.from_buffers(
        pa.binary(), len(sizes), [None, starts.buffers()[1], data_of(messages)]
    )
    inner = Cursor(each)
    inner.expect(wire.LIST_DATUM)
    elements = inner.take(inner.varint())
    inner.finish()
    return ends, _values(elements, kind)


def _fixed(content: pa.Array, data_type: pa.DataType) -> pa.Array:
    width = data_type.bit_width // 8
    try:
        fixed = fixed_width(content, width)
    except ValueError as error:
        raise DamagedError(str(error)) from error
    if pa.types.is_decimal(data_type):
        return from_raw(data_type, raw_bytes(fixed, width), len(fixed))
    return reinterpreted(fixed, data_type)
