"""The fields of files of Materialize's form: each one's Arrow type and extension name.

Names, types and the metadata key are those of files that Materialize writes; `record`, which it
lacks, is for structs.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.arrow.arrays import (
    is_list,
    list_offsets,
    with_one_nan,
)
from dbt.adapters.mzs3.errors import ExecutorError
from dbt.adapters.mzs3.formats.write.csv.scalars import (
    interval_text,
    require_utf8,
    utf8_text,
)
from dbt.adapters.mzs3.formats.write.format import LogicalType
from dbt.adapters.mzs3.types.table import MAX_DIGITS, row_of, type_sent_as

EXTENSION_KEY = "ARROW:extension:name"


def file_schema(schema: pa.Schema, logical_types: Sequence[LogicalType], title: str) -> pa.Schema:
    """The schema of the files; ExecutorError with every column that the format has no type for.

    All fields may be NULL, as in Spark's own files, but for the keys of maps.
    """
    fields, problems = [], []
    for name, column, logical_type in zip(schema.names, schema, logical_types, strict=True):
        try:
            fields.append(file_field(name, column.type, logical_type))
        except TypeError as error:
            problems.append(
                f"column {name}: {title} has no type for {error}; leave it out, or select it as "
                "another type, such as string"
            )
    if problems:
        raise ExecutorError("; ".join(problems))
    return pa.schema(fields)


def file_field(
    name: str, data_type: pa.DataType, logical_type: LogicalType, *, nullable: bool = True
) -> pa.Field:
    """The field for values of a wire type and a meaning; TypeError where there is none."""
    extension, file_type = _named_type(data_type, logical_type)
    metadata = {EXTENSION_KEY: f"materialize.v1.{extension}"}
    return pa.field(name, file_type, nullable=nullable, metadata=metadata)


def _named_type(data_type: pa.DataType, logical_type: LogicalType) -> tuple[str, pa.DataType]:
    if logical_type.kind in ("variant", "interval"):
        meant = row_of(logical_type.kind)
        return meant.materialize, meant.in_files
    if logical_type.kind == "map":
        key_type, value_type = logical_type.children
        key, value = data_type.value_type
        return "map", pa.map_(
            file_field("key", key.type, key_type, nullable=False),
            file_field("value", value.type, value_type),
        )
    if is_list(data_type):
        (element,) = logical_type.of_children(1)
        return "list", pa.list_(file_field("item", data_type.value_type, element))
    if pa.types.is_struct(data_type):
        fields = list(data_type)
        children = logical_type.of_children(len(fields))
        described = zip(fields, children, strict=True)
        return "record", pa.struct([file_field(f.name, f.type, child) for f, child in described])
    if pa.types.is_decimal128(data_type) and 0 <= data_type.scale <= MAX_DIGITS:
        return "numeric", pa.decimal128(MAX_DIGITS, data_type.scale)
    row = type_sent_as(data_type)
    if row is None or row.in_files is None:
        raise TypeError(f"values of type {data_type}")
    return row.materialize, row.in_files


def file_columns(
    rows: pa.RecordBatch, schema: pa.Schema, logical_types: Sequence[LogicalType], title: str
) -> list[pa.Array]:
    """The columns in the types of `schema`, which `file_schema` made for both.

    Values stay what they are: what is cast is their width, their zone's name, their unit. All
    NaNs get the same bits. Raises ExecutorError if a text is not UTF-8.
    """
    columns = []
    for values, field, logical_type in zip(rows.columns, schema, logical_types, strict=True):
        with require_utf8(field.name, f"{title}'s text"):
            columns.append(_cast(values, field.type, logical_type))
    return columns


def _cast(values: pa.Array, target: pa.DataType, logical_type: LogicalType) -> pa.Array:
    if logical_type.kind == "interval":
        return interval_text(values)
    if pa.types.is_map(target):
        key_type, value_type = logical_type.children
        keys, items = values.flatten().flatten()
        keys = _cast(keys, target.key_type, key_type)
        items = _cast(items, target.item_type, value_type)
        return pa.MapArray.from_arrays(list_offsets(values), keys, items, type=target)
    if pa.types.is_list(target):
        (element,) = logical_type.of_children(1)
        elements = _cast(values.flatten(), target.value_type, element)
        return pa.ListArray.from_arrays(list_offsets(values), elements, type=target)
    if pa.types.is_struct(target):
        children = logical_type.of_children(target.num_fields)
        fields = zip(values.flatten(), target, children, strict=True)
        return pa.StructArray.from_arrays(
            [_cast(inner, field.type, child) for inner, field, child in fields],
            fields=list(target),
            mask=values.is_null(),
        )
    if pa.types.is_large_string(target):
        return utf8_text(values)
    if pa.types.is_floating(target):
        return with_one_nan(pc.cast(values, target))
    return pc.cast(values, target)
