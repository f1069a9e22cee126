"""Values on their way into files."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.arrow.arrays import fixed_width, list_offsets, reinterpreted, with_one_nan
from dbt.adapters.mzs3.shard.executor.codec.encode import datums
from dbt.adapters.mzs3.shard.executor.structured.scalars import (
    stored_interval,
    stored_numeric,
    stored_time,
)
from dbt.adapters.mzs3.shard.types.kind import Type
from dbt.adapters.mzs3.shard.types.storage import storage_type
from dbt.adapters.mzs3.shard.types.table import RECORDS


def stored(values: pa.Array, kind: Type) -> pa.Array:
    """Values of the type's wire form as they are stored.

    Raises ValueError, or ArrowInvalid, for a value that is none of the type.
    """
    if kind.name in RECORDS:
        return _record(values, kind)
    if kind.name == "map":
        return _map(values, kind)
    if kind.name in ("list", "int2vector"):
        (element,) = kind.children
        elements = stored(values.flatten(), element)
        offsets = list_offsets(values)
        return pa.ListArray.from_arrays(offsets, elements, type=storage_type(kind))
    return _scalar(values, kind)


def _record(values: pa.Array, kind: Type) -> pa.Array:
    if not kind.children:
        return pc.if_else(values.is_valid(), pa.scalar(True), pa.scalar(None, pa.bool_()))
    children = zip(values.flatten(), kind.children, strict=True)
    return pa.StructArray.from_arrays(
        [stored(child, inner) for child, inner in children],
        fields=list(storage_type(kind)),
        mask=values.is_null(),
    )


def _map(values: pa.Array, kind: Type) -> pa.Array:
    key, value = kind.children
    keys, items = values.flatten().flatten()
    return pa.MapArray.from_arrays(
        list_offsets(values), stored(keys, key), stored(items, value), type=storage_type(kind)
    )


def _scalar(values: pa.Array, kind: Type) -> pa.Array:
    name = kind.name
    if name == "numeric":
        return stored_numeric(values)
    if name == "interval":
        return stored_interval(values)
    if name == "time":
        return stored_time(values)
    if name == "jsonb":
        return datums(values, kind)
    if name == "uuid":
        return fixed_width(values, 16)
    if name in ("real", "double"):
        return with_one_nan(values)
    if name in ("date", "timestamp", "timestamptz"):
        return reinterpreted(values, storage_type(kind))
    return values.cast(storage_type(kind))
