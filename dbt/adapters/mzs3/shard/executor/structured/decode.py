"""Values on their way out of files."""

from __future__ import annotations

import pyarrow as pa

from dbt.adapters.mzs3.arrow.arrays import empty_records, list_offsets, reinterpreted
from dbt.adapters.mzs3.shard.executor.codec.decode import values_of_datums
from dbt.adapters.mzs3.shard.executor.structured.scalars import interval_of, numeric_of, time_of
from dbt.adapters.mzs3.shard.types.kind import Type
from dbt.adapters.mzs3.shard.types.storage import wire_type
from dbt.adapters.mzs3.shard.types.table import RECORDS


def unstored(values: pa.Array, kind: Type) -> pa.Array:
    """Stored values in the type's wire form: what `stored` was given.

    Raises ValueError, or ArrowInvalid, for bytes that it can't have made.
    """
    if kind.name in RECORDS:
        return _record(values, kind)
    if kind.name == "map":
        return _map(values, kind)
    if kind.name in ("list", "int2vector"):
        (element,) = kind.children
        elements = unstored(values.flatten(), element)
        return pa.ListArray.from_arrays(list_offsets(values), elements, type=wire_type(kind))
    return _scalar(values, kind)


def _record(values: pa.Array, kind: Type) -> pa.Array:
    children = zip(values.flatten() if kind.children else (), kind.children, strict=True)
    decoded = [unstored(child, inner) for child, inner in children]
    mask = values.is_null()
    if not decoded:
        return empty_records(mask)
    return pa.StructArray.from_arrays(decoded, fields=list(wire_type(kind)), mask=mask)


def _map(values: pa.Array, kind: Type) -> pa.Array:
    data_type = wire_type(kind)
    lists = values.cast(pa.list_(pa.struct([values.type.key_field, values.type.item_field])))
    stored = lists.flatten().flatten()
    entries = pa.StructArray.from_arrays(
        [unstored(child, inner) for child, inner in zip(stored, kind.children, strict=True)],
        fields=list(data_type.value_type),
    )
    return pa.ListArray.from_arrays(list_offsets(lists), entries, type=data_type)


def _scalar(values: pa.Array, kind: Type) -> pa.Array:
    name, data_type = kind.name, wire_type(kind)
    if name == "numeric":
        return numeric_of(values, data_type)
    if name == "interval":
        return interval_of(values)
    if name == "time":
        return time_of(values)
    if name == "jsonb":
        return values_of_datums(values, kind)
    if name in ("date", "timestamp", "timestamptz"):
        return reinterpreted(values, data_type)
    return values.cast(data_type)
