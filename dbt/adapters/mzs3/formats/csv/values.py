"""The text of any values, nested ones included: how types and shapes become forms."""

from __future__ import annotations

import pyarrow as pa

from dbt.adapters.mzs3.formats.csv.arrays import array_text
from dbt.adapters.mzs3.formats.csv.intervals import INTERVAL_ALPHABET, interval_text
from dbt.adapters.mzs3.formats.csv.maps import map_text
from dbt.adapters.mzs3.formats.csv.records import record_text
from dbt.adapters.mzs3.formats.csv.scalars import Form, NotUtf8, scalar_form
from dbt.adapters.mzs3.formats.shape import PLAIN, Shape

__all__ = ["NotUtf8", "form_of", "value_text"]


def form_of(data_type: pa.DataType, shape: Shape = PLAIN) -> Form | None:
    """The form of a type that Spark sends, which means what `shape` says.

    None if it, or something nested in it, has no form, or is not of that shape.
    """
    if shape.kind in ("plain", "variant"):
        return _form_of_type(data_type)
    if shape.kind == "list":
        return _list_form(data_type, *shape.children)
    if shape.kind == "struct":
        return _struct_form(data_type, shape.children)
    if shape.kind == "map":
        return _map_form(data_type, *shape.children)
    if _field_types(data_type) == [pa.int32(), pa.int32(), pa.int64()]:
        return Form(interval_text, INTERVAL_ALPHABET)
    return None


def value_text(values: pa.Array, shape: Shape = PLAIN) -> pa.Array:
    """The values' text; TypeError for a type without a form."""
    form = form_of(values.type, shape)
    if form is None:
        raise TypeError(f"no text for values of type {values.type}")
    return form.write(values)


def _form_of_type(data_type: pa.DataType) -> Form | None:
    """The form of values that are what their type says."""
    if _is_list(data_type):
        return _list_form(data_type, PLAIN)
    if pa.types.is_struct(data_type):
        return _struct_form(data_type, (PLAIN,) * data_type.num_fields)
    return scalar_form(data_type)


def _list_form(data_type: pa.DataType, element_shape: Shape) -> Form | None:
    element = form_of(data_type.value_type, element_shape) if _is_list(data_type) else None
    if element is None:
        return None
    return Form(lambda lists: array_text(lists, element), None, nests=True)


def _struct_form(data_type: pa.DataType, shapes: tuple[Shape, ...]) -> Form | None:
    types = _field_types(data_type)
    if types is None or len(types) != len(shapes):
        return None
    fields = [form_of(kind, shape) for kind, shape in zip(types, shapes, strict=True)]
    forms = [form for form in fields if form is not None]
    if len(forms) < len(fields):
        return None
    return Form(lambda structs: record_text(structs, forms), None)


def _map_form(data_type: pa.DataType, key_shape: Shape, value_shape: Shape) -> Form | None:
    types = _field_types(data_type.value_type) if _is_list(data_type) else None
    if types is None or len(types) != 2:
        return None
    key, value = form_of(types[0], key_shape), form_of(types[1], value_shape)
    if key is None or value is None:
        return None
    return Form(lambda maps: map_text(maps, key, value), None, nests=True)


def _field_types(data_type: pa.DataType) -> list[pa.DataType] | None:
    """The types of a struct's fields; None for what is no struct."""
    if not pa.types.is_struct(data_type):
        return None
    return [data_type.field(i).type for i in range(data_type.num_fields)]


def _is_list(data_type: pa.DataType) -> bool:
    """Whether the type is a list of either offset width."""
    return bool(pa.types.is_list(data_type) or pa.types.is_large_list(data_type))
