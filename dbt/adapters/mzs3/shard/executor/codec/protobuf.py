"""Protocol Buffers' wire format, and the numbers of row.proto's fields.

(Protocol Buffers Documentation, "Encoding".)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from dbt.adapters.mzs3.shard.types import LISTS, RECORDS, SCALARS, Type

_VARINT, _FIXED_64, _DELIMITED, _FIXED_32 = 0, 1, 2, 5


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


def _key(number: int, wire: int) -> bytes:
    return varint(number << 3 | wire)


def _field(number: int, wire: int, width: int | None = None) -> WireField:
    return WireField(_key(number, wire), width)


_FIELDS: Mapping[str, WireField] = {
    "bool": _field(1, _VARINT, 1),
    "int32": _field(2, _FIXED_32, 4),
    "int64": _field(3, _FIXED_64, 8),
    "uint64": _field(4, _FIXED_64, 8),
    "float": _field(5, _FIXED_32, 4),
    "double": _field(6, _FIXED_64, 8),
    "string": _field(7, _DELIMITED),
    "bytes": _field(8, _DELIMITED),
    "numeric": _field(9, _DELIMITED),
    "date": _field(10, _FIXED_32, 4),
    "time": _field(11, _FIXED_64, 8),
    "timestamp": _field(12, _FIXED_64, 8),
    "interval": _field(13, _DELIMITED),
    "json": _field(14, _DELIMITED),
    "list": _field(15, _DELIMITED),
    "record": _field(16, _DELIMITED),
    "map": _field(17, _DELIMITED),
}

# What fields of fixed width hold, where that is not the wire form of their types.
NUMBERS = {"bool": pa.uint8(), "int32": pa.int32(), "uint64": pa.uint64()}

ROW_DATUM = _key(1, _DELIMITED)
LIST_SIZES, LIST_DATUM = _key(1, _DELIMITED), _key(2, _DELIMITED)
MAP_KEYS, MAP_VALUES = _key(1, _DELIMITED), _key(2, _DELIMITED)
INTERVAL_PARTS = (_key(1, _FIXED_32), _key(2, _FIXED_32), _key(3, _FIXED_64))


def numeric_start(scale: int) -> bytes:
    """A message `Numeric` up to the 16 bytes of its unscaled value, which are last."""
    return _key(1, _VARINT) + varint(scale) + _key(2, _DELIMITED) + varint(16)


def field_of(kind: Type) -> WireField:
    """The field of `Datum` for values of the type."""
    if kind.name in SCALARS:
        return _FIELDS[SCALARS[kind.name].codec]
    if kind.name in RECORDS:
        return _FIELDS["record"]
    return _FIELDS["list" if kind.name in LISTS else kind.name]
