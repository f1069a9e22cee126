"""Floating-point numbers with one NaN, and as bits."""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.arrow.buffers import reinterpreted
from dbt.adapters.mzs3.arrow.lists import list_offsets


def with_one_nan(values: pa.Array) -> pa.Array:
    """The bits of a NaN are the processor's choice, and Spark doesn't order rows by them."""
    are_nan = pc.is_nan(values)
    if not pc.any(are_nan).as_py():
        return values
    return pc.if_else(are_nan, pa.scalar(math.nan, values.type), values)


def float_bits(values: pa.Array) -> pa.Array:
    """The values, numbers inside of lists and structs included, with the bits of floats for them.

    So all NaNs are equal, and zeros of both signs are not.
    """
    data_type = values.type
    if not _has_floats(data_type):
        return values
    if pa.types.is_floating(data_type):
        integers = {32: pa.int32(), 64: pa.int64()}[data_type.bit_width]
        return reinterpreted(with_one_nan(values), integers)
    if pa.types.is_list(data_type):
        return pa.ListArray.from_arrays(list_offsets(values), float_bits(values.flatten()))
    children = [float_bits(child) for child in values.flatten()]
    names = [field.name for field in data_type]
    return pa.StructArray.from_arrays(children, names, mask=values.is_null())


def _has_floats(data_type: pa.DataType) -> bool:
    if pa.types.is_floating(data_type):
        return True
    inside = [data_type.field(place) for place in range(data_type.num_fields)]
    return any(_has_floats(field.type) for field in inside)
