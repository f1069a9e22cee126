"""Arrays in the wire form, in which values cross between Spark and Python."""

from __future__ import annotations

import pyarrow as pa

from dbt.adapters.mzs3.shard.types.kind import LARGEST, LISTS, SCALARS, Type, record_of
from dbt.adapters.mzs3.shard.types.storage import wire_type


def as_wire(values: pa.Array, kind: Type) -> pa.Array:
    """Values from Spark in wire form: fields are matched by place, whatever their names.

    Raises ArrowInvalid for text that is not UTF-8, or a value that the type does not have.
    """
    target = wire_type(kind)
    if values.type != target:
        values = values.view(_by_place(values.type, kind)).cast(target)
    values.validate(full=True)  # Spark does not check that its texts are UTF-8
    _require_range(values, kind)
    return values


def _require_range(values: pa.Array, kind: Type) -> None:
    """Raise ArrowInvalid for a number that only the wire form of an unsigned type has.

    The encodings would refuse different ones, and the shard's encoding could not be changed.
    """
    if kind.name in LARGEST:
        values.cast(SCALARS[kind.name].storage)
    elif kind.holds(LARGEST):
        inside = values.flatten()
        parts = inside.flatten() if kind.name == "map" else inside
        parts = [parts] if kind.name in LISTS else parts
        for part, inner in zip(parts, kind.children, strict=True):
            _require_range(part, inner)


def _by_place(data_type: pa.DataType, kind: Type) -> pa.DataType:
    """The type with the fields of records named by place."""
    if pa.types.is_struct(data_type) and kind.children:
        pairs = zip(data_type, kind.children, strict=True)
        types = [_by_place(field.type, inner) for field, inner in pairs]
        return pa.struct([(str(place), inner) for place, inner in enumerate(types)])
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        make = pa.list_ if pa.types.is_list(data_type) else pa.large_list
        element = record_of(*kind.children) if kind.name == "map" else kind.children[0]
        return make(_by_place(data_type.value_type, element))
    return data_type
