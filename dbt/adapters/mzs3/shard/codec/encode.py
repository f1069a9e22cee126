"""Encodes rows as protobuf messages: the same values give the same bytes, in any batch.

The wire format is that of Protocol Buffers (see "Encoding" in their documentation), with the
fields of row.proto. In it, a length precedes the content of a field of variable length. As a batch
has few different lengths, Python encodes each once; Arrow does the rest, column by column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.arrow.arrays import (
    concat_binary,
    concatenated_bytes,
    fixed_width,
    list_ends,
    null_where,
    running_total,
    to_binary,
    with_one_nan,
)
from dbt.adapters.mzs3.shard.types import LISTS, RECORDS, SCALARS, Type


def varint(number: int) -> bytes:
    """Encodes a number >= 0 with 7 bits per byte, the lowest bits first."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


@dataclass(frozen=True)
class WireField:
    """A field's encoded key, and its width in bytes: None if a length precedes the content."""

    key: bytes
    width: int | None = None


# Protobuf's wire types, which are part of a key, by width in bytes.
_WIRE_TYPES = {1: 0, 8: 1, None: 2, 4: 5}


def _key(number: int, width: int | None = None) -> bytes:
    return varint(number << 3 | _WIRE_TYPES[width])


# The width of each field of `Datum`, in the order of the field numbers, which begin at 1.
_WIDTHS: Mapping[str, int | None] = {
    "bool": 1,
    "int32": 4,
    "int64": 8,
    "uint64": 8,
    "float": 4,
    "double": 8,
    "string": None,
    "bytes": None,
    "numeric": None,
    "date": 4,
    "time": 8,
    "timestamp": 8,
    "interval": None,
    "json": None,
    "list": None,
    "record": None,
    "map": None,
}
_FIELDS = {
    name: WireField(_key(number, width), width)
    for number, (name, width) in enumerate(_WIDTHS.items(), 1)
}

# The Arrow types in which fields of fixed width are encoded, if not in their `wire_type`.
NUMBERS = {"bool": pa.uint8(), "int32": pa.int32(), "uint64": pa.uint64()}

ROW_DATUM = _key(1)
LIST_SIZES, LIST_DATUM = _key(1), _key(2)
MAP_KEYS, MAP_VALUES = _key(1), _key(2)
INTERVAL_KEYS = (_key(1, 4), _key(2, 4), _key(3, 8))


def numeric_start(scale: int) -> bytes:
    """The bytes of a message `Numeric` before the 16 bytes of its unscaled value."""
    return _key(1, 1) + varint(scale) + _key(2) + varint(16)


def field_of(kind: Type) -> WireField:
    """The field of `Datum` for values of the type."""
    if kind.name in SCALARS:
        return _FIELDS[SCALARS[kind.name].codec]
    if kind.name in RECORDS:
        return _FIELDS["record"]
    return _FIELDS["list" if kind.name in LISTS else kind.name]


def encode_rows(columns: Sequence[pa.Array], kinds: Sequence[Type], length: int) -> pa.Array:
    """Messages `Row` of columns in their `wire_type`. Raises ValueError for invalid values."""
    if not columns:
        return pa.repeat(pa.scalar(b"", pa.binary()), length)
    pieces: list[pa.Array | bytes] = []
    for values, kind in zip(columns, kinds, strict=True):
        pieces += _framed(values, kind, ROW_DATUM)
    return concat_binary(*pieces)


def datums(values: pa.Array, kind: Type) -> pa.Array:
    """Each value as a message `Datum` of its own, `binary`; NULL stays NULL."""
    content = _content(values, kind)
    return concat_binary(_heads(content, field_of(kind)), content)


def _framed(values: pa.Array, kind: Type, key: bytes) -> list[pa.Array | bytes]:
    """Pieces for `concat_binary`: messages `Datum`, empty for NULL, as fields with this `key`."""
    content = _content(values, kind)
    heads = _heads(content, field_of(kind), key)
    return [heads, pc.fill_null(content, b"") if content.null_count else content]


def _heads(
    content: pa.Array, field: WireField, message_key: bytes | None = None
) -> pa.Array | bytes:
    """The bytes before each content: `message_key` and the message's length, then the field's."""

    def head(size: int | None) -> bytes:
        start = b""
        if size is not None:
            start = field.key if field.width is not None else field.key + varint(size)
        if message_key is None:
            return start
        return message_key + varint(len(start) + (size or 0)) + start

    if field.width is not None:
        same = head(field.width)
        return pc.if_else(content.is_valid(), same, head(None)) if content.null_count else same
    sizes = pc.binary_length(content).dictionary_encode("encode")
    return pa.array(map(head, sizes.dictionary.to_pylist()), pa.binary()).take(sizes.indices)


def _content(values: pa.Array, kind: Type) -> pa.Array:
    """The content of the field of `Datum`, without key and length; NULL stays NULL."""
    if kind.name in RECORDS:
        columns = values.flatten() if kind.children else []
        return null_where(encode_rows(columns, kind.children, len(values)), values)
    if kind.name == "map":
        return _map(values, kind)
    if kind.name in LISTS:
        return _list(values, list_ends(values), values.flatten(), kind.children[0])
    if kind.name == "numeric":
        return concat_binary(numeric_start(values.type.scale), to_binary(values, 16))
    if kind.name == "interval":
        keyed = zip(INTERVAL_KEYS, values.flatten(), strict=True)
        parts = ((key, to_binary(part, part.type.bit_width // 8)) for key, part in keyed)
        return concat_binary(*chain.from_iterable(parts))
    codec = SCALARS[kind.name].codec
    if kind.name == "uuid":
        return fixed_width(values, 16).cast(pa.binary())
    if codec in ("bytes", "string", "json"):
        return values.cast(pa.binary())
    if codec in ("float", "double"):
        values = with_one_nan(values)
    numbers = values.cast(NUMBERS.get(codec, values.type))
    return to_binary(numbers, numbers.type.bit_width // 8)


def _map(values: pa.Array, kind: Type) -> pa.Array:
    ends = list_ends(values)
    keys, items = (
        _list(values, ends, inner, child)
        for inner, child in zip(values.flatten().flatten(), kind.children, strict=True)
    )
    return concat_binary(_sized(keys, MAP_KEYS), keys, _sized(items, MAP_VALUES), items)


def _list(lists: pa.Array, ends: pa.Array, elements: pa.Array, kind: Type) -> pa.Array:
    """Messages `List` of the elements between each two of `ends`; NULL for a NULL list."""
    messages = concat_binary(*_framed(elements, kind, LIST_DATUM))
    sizes = pc.binary_length(messages)
    before = running_total(sizes).take(ends)
    content = _cut(concatenated_bytes(messages), before, len(lists))
    packed = _cut(sizes.buffers()[1], pc.multiply(ends, 4), len(lists))
    return null_where(concat_binary(_sized(packed, LIST_SIZES), packed, content), lists)


def _cut(data: pa.Buffer, ends: pa.Array, length: int) -> pa.Array:
    offsets = ends.cast(pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.binary(), length, [None, offsets, data])


def _sized(content: pa.Array, key: bytes) -> pa.Array | bytes:
    """The key and the length of each content, which is a message or packed numbers."""
    return _heads(content, WireField(key))
