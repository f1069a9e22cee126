"""Types as Arrow has them: in files, with extension names, and on the wire."""

from __future__ import annotations

import pyarrow as pa

from dbt.adapters.mzs3.shard.types.kind import Type
from dbt.adapters.mzs3.shard.types.table import CONTAINERS, RECORDS, SCALARS

EXTENSION_KEY = b"ARROW:extension:name"
_NAMESPACE = "materialize.persist"
_NUMERIC_VERSION = 1


def storage_field(name: str, kind: Type, *, nullable: bool = True) -> pa.Field:
    """The field of a file: what is stored, under its extension name, nested fields included."""
    metadata = {EXTENSION_KEY: extension_name(kind).encode()}
    return pa.field(name, storage_type(kind), nullable=nullable, metadata=metadata)


def extension_name(kind: Type) -> str:
    """`materialize.persist.<version>.<name>`."""
    if kind.name == "numeric":
        version = _NUMERIC_VERSION
    else:
        version = (SCALARS.get(kind.name) or CONTAINERS[kind.name]).version
    return f"{_NAMESPACE}.{version}.{kind.name}"


def storage_type(kind: Type) -> pa.DataType:
    """The Arrow type in which values are stored."""
    if kind.name == "numeric":
        return NUMERIC_STORAGE
    if kind.name in SCALARS:
        return SCALARS[kind.name].storage
    if kind.name in RECORDS:
        # Parquet has no groups without fields.
        return pa.struct(_stored_fields(kind)) if kind.children else pa.bool_()
    if kind.name == "map":
        key, value = kind.children
        return pa.map_(storage_field("key", key, nullable=False), storage_field("value", value))
    (element,) = kind.children
    return pa.list_(storage_field("item", element))


def wire_type(kind: Type) -> pa.DataType:
    """The Arrow type in which values cross between Spark and Python.

    A record is a struct whose fields are named by place; a map is a list of such structs of key
    and value, sorted by key.
    """
    if kind.name == "numeric":
        return pa.decimal128(kind.precision, kind.scale)
    if kind.name in SCALARS:
        return SCALARS[kind.name].wire
    if kind.name in RECORDS:
        return _wire_struct(kind.children)
    if kind.name == "map":
        return pa.list_(_wire_struct(kind.children))
    (element,) = kind.children
    return pa.list_(wire_type(element))


def storage_fields_inside(stored: pa.DataType, kind: Type) -> list[tuple[pa.Field, Type]]:
    """The fields inside of a stored type, each with its type; none that the type lacks."""
    if kind.name in RECORDS:
        fields = list(stored) if pa.types.is_struct(stored) else []
    elif kind.name == "map":
        fields = [stored.key_field, stored.item_field] if pa.types.is_map(stored) else []
    else:
        fields = [stored.value_field] if kind.children and pa.types.is_list(stored) else []
    return list(zip(fields, kind.children, strict=False))


def _stored_fields(kind: Type) -> list[pa.Field]:
    names = RECORDS[kind.name] or tuple(str(place) for place in range(len(kind.children)))
    return [storage_field(name, child) for name, child in zip(names, kind.children, strict=True)]


def _wire_struct(children: tuple[Type, ...]) -> pa.DataType:
    return pa.struct([(str(place), wire_type(child)) for place, child in enumerate(children)])


NUMERIC_STORAGE = pa.struct(
    [storage_field("lossy", Type("double")), storage_field("actual", Type("bytea"))]
)
"""Of a numeric: the double next to it, and its digits."""
