"""The table of types: what each one is in Arrow, in the codec, and whether its bytes sort.

(Materialize's design "Self Describing Persist Batches", section Columnar Encodings.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

DIGITS = 38  # of a numeric at most, before and after the point together


@dataclass(frozen=True)
class Scalar:
    """A type without types inside.

    wire: the Arrow type in which values cross between Spark and Python. storage: the one in which
    they are in files. codec: the name of their field in the message `Datum`. sorts: whether stored
    values sort as the values do. version: of the storage, part of the extension name.
    """

    name: str
    wire: pa.DataType
    storage: pa.DataType
    codec: str
    sorts: bool = True
    version: int = 1


@dataclass(frozen=True)
class ContainerType:
    """A type with types inside; `children` is their number, or None for any."""

    name: str
    codec: str
    children: int | None = None
    version: int = 1


INTERVAL_PARTS = pa.struct([("months", pa.int32()), ("days", pa.int32()), ("micros", pa.int64())])
# Large enough for 64 bits without a sign.
_UNSIGNED = pa.decimal128(20, 0)

_SCALARS = (
    Scalar("boolean", pa.bool_(), pa.bool_(), "bool"),
    Scalar("tinyint", pa.int8(), pa.int8(), "int32"),
    Scalar("smallint", pa.int16(), pa.int16(), "int32"),
    Scalar("integer", pa.int32(), pa.int32(), "int32"),
    Scalar("bigint", pa.int64(), pa.int64(), "int64"),
    Scalar("uint4", pa.int64(), pa.uint32(), "uint64"),
    Scalar("uint8", _UNSIGNED, pa.uint64(), "uint64"),
    # Zeros of both signs are one value to a comparison, and two to whoever reads the bytes.
    Scalar("real", pa.float32(), pa.float32(), "float", sorts=False),
    Scalar("double", pa.float64(), pa.float64(), "double", sorts=False),
    Scalar("text", pa.string(), pa.string(), "string"),
    Scalar("bytea", pa.binary(), pa.binary(), "bytes"),
    # Days, and microseconds, since 1970-01-01.
    Scalar("date", pa.date32(), pa.int32(), "date"),
    Scalar("timestamp", pa.timestamp("us"), pa.int64(), "timestamp"),
    Scalar("timestamptz", pa.timestamp("us", "UTC"), pa.int64(), "timestamp"),
    # Seconds and nanoseconds, each 32 bits, big-endian.
    Scalar("time", pa.time64("ns"), pa.binary(8), "time"),
    # Months, days and microseconds, big-endian, each with the bit of its sign turned over.
    Scalar("interval", INTERVAL_PARTS, pa.binary(16), "interval"),
    # The JSON text in a message `Datum`.
    Scalar("jsonb", pa.string(), pa.binary(), "json", sorts=False),
    Scalar("uuid", pa.binary(), pa.binary(16), "bytes"),
    # Milliseconds since 1970-01-01.
    Scalar("mz_timestamp", _UNSIGNED, pa.uint64(), "uint64"),
)

SCALARS: Mapping[str, Scalar] = {scalar.name: scalar for scalar in _SCALARS}

# The names of a record's fields in files; None: their places, as users may rename fields, or take
# their names for sensitive.
RECORDS: Mapping[str, tuple[str, ...] | None] = {
    "record": None,
    "array": ("elements", "dimensions"),
    "array_dimension": ("lower_bound", "length"),
    "range": ("lower", "upper"),
    "range_bound": ("inclusive", "bound"),
    "acl_item": ("grantee", "grantor", "acl_mode"),
    "mz_acl_item": ("grantee", "grantor", "acl_mode"),
}

CONTAINERS: Mapping[str, ContainerType] = {
    "list": ContainerType("list", "list", 1),
    "int2vector": ContainerType("int2vector", "list", 1),
    "map": ContainerType("map", "map", 2),
    **{name: ContainerType(name, "record") for name in RECORDS},
}
