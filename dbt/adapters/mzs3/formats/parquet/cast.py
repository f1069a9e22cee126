"""Arrow arrays from the types that Spark sends to those of the files."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.arrow.floats import with_one_nan
from dbt.adapters.mzs3.arrow.lists import list_offsets
from dbt.adapters.mzs3.errors import ExecutorError
from dbt.adapters.mzs3.formats.csv.intervals import interval_text
from dbt.adapters.mzs3.formats.csv.quoting import TextBytes
from dbt.adapters.mzs3.formats.parquet.types import child_shapes
from dbt.adapters.mzs3.formats.shape import Shape


class _NotUtf8(ValueError):
    """A text column holds bytes that are not UTF-8; Spark does not check its strings."""


def file_columns(
    rows: pa.RecordBatch, schema: pa.Schema, shapes: tuple[Shape, ...]
) -> list[pa.Array]:
    """The columns in the types of `schema`, which `file_schema` made for the batch and `shapes`.

    Values stay what they are: what is cast is their width, their zone's name, their unit. All
    NaNs get the same bits. Raises ExecutorError if a text is not UTF-8.
    """
    described = zip(rows.columns, schema, shapes, strict=True)
    return [_file_column(values, field, shape) for values, field, shape in described]


def _file_column(values: pa.Array, field: pa.Field, shape: Shape) -> pa.Array:
    try:
        return _cast(values, field.type, shape)
    except _NotUtf8 as error:
        raise ExecutorError(
            f"column {field.name} holds text that is not valid UTF-8, which Parquet's text can't "
            "carry. Select make_valid_utf8() of it, or cast it to binary."
        ) from error


def _cast(values: pa.Array, target: pa.DataType, shape: Shape) -> pa.Array:
    if shape.kind == "interval":
        return interval_text(values)
    if pa.types.is_map(target):
        return _map(values, target, shape)
    if pa.types.is_list(target):
        (element,) = child_shapes(shape, 1)
        elements = _cast(values.flatten(), target.value_type, element)
        return pa.ListArray.from_arrays(list_offsets(values), elements, type=target)
    if pa.types.is_struct(target):
        return _struct(values, target, shape)
    if pa.types.is_large_string(target):
        return _text(values)
    if pa.types.is_floating(target):
        return with_one_nan(pc.cast(values, target))
    return pc.cast(values, target)


def _map(lists: pa.Array, target: pa.DataType, shape: Shape) -> pa.Array:
    key_shape, value_shape = child_shapes(shape, 2)
    keys, values = lists.flatten().flatten()
    return pa.MapArray.from_arrays(
        list_offsets(lists),
        _cast(keys, target.key_type, key_shape),
        _cast(values, target.item_type, value_shape),
        type=target,
    )


def _struct(structs: pa.Array, target: pa.DataType, shape: Shape) -> pa.Array:
    children = child_shapes(shape, target.num_fields)
    described = zip(structs.flatten(), target, children, strict=True)
    return pa.StructArray.from_arrays(
        [_cast(values, field.type, child) for values, field, child in described],
        fields=list(target),
        mask=structs.is_null(),
    )


def _text(values: pa.Array) -> pa.Array:
    known = TextBytes(pc.cast(values, pa.large_string()))
    if not known.is_ascii():
        try:
            known.values.validate(full=True)
        except pa.ArrowInvalid as error:
            raise _NotUtf8 from error
    return known.values
