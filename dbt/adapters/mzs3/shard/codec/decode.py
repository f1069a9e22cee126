"""Decodes messages `Row` into columns, but only the columns that are wanted."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.arrow.arrays import (
    concatenated_bytes,
    empty_records,
    fixed_width,
    from_raw,
    running_total,
)
from dbt.adapters.mzs3.shard.codec.encode import (
    INTERVAL_KEYS,
    LIST_DATUM,
    LIST_SIZES,
    MAP_KEYS,
    MAP_VALUES,
    NUMBERS,
    ROW_DATUM,
    field_of,
    numeric_start,
)
from dbt.adapters.mzs3.shard.types import INTERVAL_PARTS, LISTS, RECORDS, SCALARS, Type, wire_type

_MORE = 0x80  # another byte of the number follows
_MOST_BYTES = 5  # of an encoded length below 2 ** 31


def decode_rows(
    rows: pa.Array, kinds: Sequence[Type], wanted: Collection[int] | None = None
) -> list[pa.Array]:
    """The columns in messages `Row`, in wire form: those at the positions `wanted`, None for all.

    `rows` has no NULLs. The columns are in the order of `kinds`. Raises DamagedError for bytes
    that `encode_rows` can't have written for these types.
    """
    cursor = Cursor(rows)
    columns = []
    for place, kind in enumerate(kinds):
        cursor.expect(ROW_DATUM)
        size = cursor.varint()
        if wanted is None or place in wanted:
            columns.append(_values(cursor.take(size), kind))
        else:
            cursor.skip(size)
    cursor.finish()
    return columns


def values_of_datums(messages: pa.Array, kind: Type) -> pa.Array:
    """The values in messages `Datum`, in wire form; NULL stays NULL."""
    return _values(pc.fill_null(messages, b""), kind)


def _values(messages: pa.Array, kind: Type) -> pa.Array:
    """The values in messages `Datum`; an empty message is NULL."""
    is_valid = pc.greater(pc.binary_length(messages), 0)
    if pc.all(is_valid, min_count=0).as_py():
        return _values_without_nulls(messages, kind)
    values = _values_without_nulls(messages.filter(is_valid), kind)
    positions = pc.subtract(pc.cumulative_sum(is_valid.cast(pa.int32())), pa.scalar(1, pa.int32()))
    return values.take(pc.if_else(is_valid, positions, pa.scalar(None, pa.int32())))


def _values_without_nulls(messages: pa.Array, kind: Type) -> pa.Array:
    """The values in messages `Datum`, none of which is empty."""
    field = field_of(kind)
    cursor = Cursor(messages)
    cursor.expect(field.key)
    if field.width is None:
        content = cursor.take(cursor.varint())
        cursor.finish()
    else:
        content = cursor.rest()
    if kind.name in RECORDS:
        columns = decode_rows(content, kind.children)
        if not columns:
            return empty_records(pa.repeat(False, len(content)))
        return pa.StructArray.from_arrays(columns, fields=list(wire_type(kind)))
    if kind.name == "map":
        return _map(content, kind)
    if kind.name in LISTS:
        offsets, elements = _list(content, kind.children[0])
        return pa.ListArray.from_arrays(offsets, elements, type=wire_type(kind))
    if kind.name == "numeric":
        cursor = Cursor(content)
        cursor.expect(numeric_start(kind.scale))
        return _fixed(cursor.rest(), wire_type(kind))
    if kind.name == "interval":
        return _interval(content)
    codec, data_type = SCALARS[kind.name].codec, wire_type(kind)
    if kind.name == "uuid":
        return fixed_width(content, 16).cast(data_type)
    if codec in ("bytes", "string", "json"):
        return content.cast(data_type)
    return _fixed(content, NUMBERS.get(codec, data_type)).cast(data_type)


def _interval(content: pa.Array) -> pa.Array:
    cursor = Cursor(content)
    parts = []
    for key, part in zip(INTERVAL_KEYS, INTERVAL_PARTS, strict=True):
        cursor.expect(key)
        width = pa.scalar(part.type.bit_width // 8, pa.int32())
        parts.append(_fixed(cursor.take(width), part.type))
    cursor.finish()
    return pa.StructArray.from_arrays(parts, fields=list(INTERVAL_PARTS))


def _map(content: pa.Array, kind: Type) -> pa.Array:
    cursor = Cursor(content)
    lists = []
    for key, child in zip((MAP_KEYS, MAP_VALUES), kind.children, strict=True):
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
    """Decodes messages `List`. Returns the lists' n + 1 offsets, and the elements of all lists."""
    cursor = Cursor(content)
    cursor.expect(LIST_SIZES)
    packed = cursor.take(cursor.varint())
    messages = cursor.rest()
    ends = running_total(pc.divide(pc.binary_length(packed), pa.scalar(4, pa.int32())))
    data = concatenated_bytes(packed)
    sizes = from_raw(pa.int32(), data, ends[-1].as_py())
    if 4 * len(sizes) != data.size or pc.any(pc.less(sizes, 0)).as_py():
        raise DamagedError("a list's sizes are none")
    starts = running_total(sizes)
    if not starts.take(ends).equals(running_total(pc.binary_length(messages))):
        raise DamagedError("a list's sizes are not those of its elements")
    each = pa.Array.from_buffers(
        pa.binary(), len(sizes), [None, starts.buffers()[1], concatenated_bytes(messages)]
    )
    inner = Cursor(each)
    inner.expect(LIST_DATUM)
    elements = inner.take(inner.varint())
    inner.finish()
    return ends, _values(elements, kind)


def _fixed(content: pa.Array, data_type: pa.DataType) -> pa.Array:
    width = data_type.bit_width // 8
    try:
        fixed = fixed_width(content, width)
    except ValueError as error:
        raise DamagedError(str(error)) from error
    return fixed.view(data_type)


class DamagedError(ValueError):
    """Bytes that the codec can't have written."""


class Cursor:
    """A position in each of many `binary` values without NULLs. Each method moves all of them.

    Methods raise DamagedError for bytes that they do not expect.
    """

    def __init__(self, values: pa.Array) -> None:
        self._data = concatenated_bytes(values)
        self._bytes = pa.Array.from_buffers(pa.uint8(), self._data.size, [None, self._data])
        ends = running_total(pc.binary_length(values))
        self._at = ends.slice(0, len(values))
        self._ends = ends.slice(1)

    def expect(self, key: bytes) -> None:
        """Moves past these bytes, which every value must have at its position."""
        for byte in key:
            if not pc.all(pc.equal(self._byte(), byte), min_count=0).as_py():
                raise DamagedError("a field is not where the codec puts it")

    def varint(self) -> pa.Array:
        """Moves past a number of each value. Returns the numbers, `int32`."""
        byte = self._byte()
        more = pc.greater_equal(byte, _MORE)
        number = pc.bit_wise_and(byte, 0x7F)
        for place in range(1, _MOST_BYTES):
            if not pc.any(more).as_py():
                break
            byte = pc.if_else(more, self._byte(more), 0)
            part = pc.shift_left(pc.bit_wise_and(byte, 0x7F), pa.scalar(7 * place, pa.int64()))
            number = pc.bit_wise_or(number, part)
            more = pc.greater_equal(byte, _MORE)
        if pc.any(more).as_py():
            raise DamagedError("a length has no end")
        if not pc.all(pc.less(number, 1 << 31), min_count=0).as_py():
            raise DamagedError("a length is larger than any message")
        return number.cast(pa.int32())

    def take(self, sizes: pa.Array) -> pa.Array:
        """Moves past this many bytes of each value. Returns the bytes, `binary`."""
        start = self._at
        self.skip(sizes)
        return self._between(start, self._at)

    def skip(self, sizes: pa.Array) -> None:
        """Moves past this many bytes of each value."""
        moved = pc.add(self._at, sizes)
        if not pc.all(pc.less_equal(moved, self._ends), min_count=0).as_py():
            raise DamagedError("a field ends behind its message")
        self._at = moved

    def rest(self) -> pa.Array:
        """Moves to the end of each value. Returns the bytes up to there, `binary`."""
        start, self._at = self._at, self._ends
        return self._between(start, self._ends)

    def finish(self) -> None:
        """Checks that the position is at the end of every value."""
        if not self._at.equals(self._ends):
            raise DamagedError("a message is longer than its fields")

    def _byte(self, where: pa.Array | None = None) -> pa.Array:
        """Moves past the next byte, and returns it as `int64`; any byte where `where` is false."""
        inside = pc.less(self._at, self._ends)
        needed = inside if where is None else pc.or_(inside, pc.invert(where))
        if not pc.all(needed, min_count=0).as_py():
            raise DamagedError("a message ends within a field")
        at = self._at if where is None else pc.if_else(where, self._at, 0)
        step = pa.scalar(1, pa.int32()) if where is None else where.cast(pa.int32())
        self._at = pc.add(self._at, step)
        return self._bytes.take(at).cast(pa.int64())

    def _between(self, starts: pa.Array, ends: pa.Array) -> pa.Array:
        """The bytes from `starts` to `ends`: every second piece of the data, cut at both."""
        length = len(starts)
        if not length:
            return pa.array([], pa.binary())
        high = pc.shift_left(ends.cast(pa.int64()), pa.scalar(32, pa.int64()))
        cuts = pc.bit_wise_or(high, starts.cast(pa.int64()))
        pieces = pa.Array.from_buffers(
            pa.binary(), 2 * length - 1, [None, cuts.buffers()[1], self._data]
        )
        every_second = pa.py_buffer(b"\x55" * (length // 4 + 1))
        mask = pa.Array.from_buffers(pa.bool_(), 2 * length - 1, [None, every_second])
        return pieces.filter(mask)
