"""The Arrow types of a type, in files and on the wire."""

from __future__ import annotations

import pyarrow as pa

from dbt.adapters.mzs3.shard.types.kind import RECORDS, SCALARS, Type

EXTENSION_KEY = b"ARROW:extension:name"


def storage_field(name: str, kind: Type, *, nullable: bool = True) -> pa.Field:
    """The field of a file, under its extension name, as are the fields inside."""
    metadata = {EXTENSION_KEY: extension_name(kind).encode()}
    return pa.field(name, storage_type(kind), nullable=nullable, metadata=metadata)


def extension_name(kind: Type) -> str:
    """`materialize.persist.<version>.<name>`; no type's storage has had a second version yet."""
    return f"materialize.persist.1.{kind.name}"


def storage_type(kind: Type) -> pa.DataType:
    """The Arrow type in which values are stored."""
    if kind.name == "numeric":
        return NUMERIC_STORAGE
    if kind.name in SCALARS:
        return SCALARS[kind.name].storage
    if kind.name in RECORDS:
        names = RECORDS[kind.name] or map(str, range(len(kind.children)))
        fields = list(map(storage_field, names, kind.children))
        return pa.struct(fields) if fields else pa.bool_()  # Parquet has no groups without fields
    if kind.name == "map":
        key, value = kind.children
        return pa.map_(storage_field("key", key, nullable=False), storage_field("value", value))
    (element,) = kind.children
    return pa.list_(storage_field("item", element))


TIME = pa.time64("ns")
"""Of times in the form that Spark takes from Python as its own."""


def wire_type(kind: Type, time: pa.DataType | None = None) -> pa.DataType:
    """The Arrow type in which values cross between Spark and Python; `time` is that of times.

    A record is a struct whose fields are named by place; a map is a list of such structs of key
    and value, sorted by key.
    """
    if kind.name == "numeric":
        return pa.decimal128(kind.precision, kind.scale)
    if kind.name == "time" and time is not None:
        return time
    if kind.name in SCALARS:
        return SCALARS[kind.name].wire
    inside = [wire_type(child, time) for child in kind.children]
    record = pa.struct([(str(place), child) for place, child in enumerate(inside)])
    if kind.name in RECORDS:
        return record
    return pa.list_(record if kind.name == "map" else inside[0])


NUMERIC_STORAGE = pa.struct(
    [storage_field("lossy", Type("double")), storage_field("actual", Type("bytea"))]
)
"""Of a numeric: the double next to it, and its digits."""
