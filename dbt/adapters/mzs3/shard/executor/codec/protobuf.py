"""Protocol Buffers' wire format, and the numbers of row.proto's fields.

(Protocol Buffers Documentation, "Encoding".)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from dbt.adapters.mzs3.shard.types import LISTS, RECORDS, SCALARS, Type


def varint(number: int) -> bytes:
    """A number that is not negative, 7 bits to the byte, the lowest first."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


@dataclass(frozen=True)
class WireField:
    """A field's key on the wire, and its width in bytes; None if its length is before it."""

    key: bytes
    width: int | None = None


# By width, as a key names it.
_WIRE_TYPES = {1: 0, 8: 1, None: 2, 4: 5}


def _key(number: int, width: int | None = None) -> bytes:
    return varint(number << 3 | _WIRE_TYPES[width])


# The widths of the fields of `Datum`, which have the numbers from 1 on.
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

# What fields of fixed width hold, where that is not the wire form of their types.
NUMBERS = {"bool": pa.uint8(), "int32": pa.int32(), "uint64": pa.uint64()}

ROW_DATUM = _key(1)
LIST_SIZES, LIST_DATUM = _key(1), _key(2)
MAP_KEYS, MAP_VALUES = _key(1), _key(2)
INTERVAL_PARTS = (_key(1, 4), _key(2, 4), _key(3, 8))


def numeric_start(scale: int) -> bytes:
    """A message `Numeric` up to the 16 bytes of its unscaled value, which are last."""
    return _key(1, 1) + varint(scale) + _key(2) + varint(16)


def field_of(kind: Type) -> WireField:
    """The field of `Datum` for values of the type."""
    if kind.name in SCALARS:
        return _FIELDS[SCALARS[kind.name].codec]
    if kind.name in RECORDS:
        return _FIELDS["record"]
    return _FIELDS["list" if kind.name in LISTS else kind.name]
