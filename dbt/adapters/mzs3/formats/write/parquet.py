"""The format `parquet`: Materialize's types, in row groups whose ends depend only on the rows.

Fields have the names, types and metadata key of files that Materialize writes, except `record`,
for structs, which Materialize lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.mzs3.arrow.arrays import (
    is_binary,
    is_list,
    is_string,
    list_offsets,
    running_total,
    with_one_nan,
)
from dbt.adapters.mzs3.errors import ExecutorError
from dbt.adapters.mzs3.formats.write.csv.scalars import interval_text, require_utf8, utf8_text
from dbt.adapters.mzs3.formats.write.format import (
    ExportFormat,
    FileType,
    FileWriter,
    LogicalType,
    OpenFile,
    RowBlock,
    Sink,
    SinkFile,
)
from dbt.adapters.mzs3.options.option import option
from dbt.adapters.mzs3.options.values import choice
from dbt.adapters.mzs3.types.table import MAX_DIGITS, row_of, type_sent_as

EXTENSION_KEY = "ARROW:extension:name"
# A row group is this fraction of a file, as in Materialize's files, but at most what a worker can
# hold twice: as rows, and as the columns that are written.
GROUPS_PER_FILE = 5
MAX_GROUP_BYTES = 32 << 20

# Added to each row's size, so that a group ends even if no value takes bytes, and that any group
# with rows has a size above 0.
_ROW_BYTES = 1
# The size of an offset, whether text and lists have offsets of 32 or 64 bits.
_OFFSET_BYTES = 8
# About the bytes of the footer per column and row group, unless statistics are long texts.
_FOOTER_BYTES = 112
# Compression levels other than Arrow's default, which is the slowest for gzip.
_LEVELS = {"gzip": 4}


@dataclass(frozen=True)
class ParquetFormat(ExportFormat):
    """Files with Materialize's types, and their extension names in the Arrow schema.

    A row group is limited by its size in Arrow's memory; a larger row gets its own row group.
    Except for the last file of a part, a file's size is within one row group of `max_file_size`.
    It is larger only if its last row group is larger than all before, or its footer than usual.
    The bytes depend on the rows and the version of pyarrow, which every file names.
    """

    name = "parquet"
    title = "Parquet"
    file_types = dict.fromkeys(
        ("snappy", "none", "gzip", "zstd", "lz4"),
        FileType(".parquet", "application/vnd.apache.parquet"),
    )

    compression: str = option(choice(tuple(file_types)), "snappy", after="format")

    def column_problems(
        self, names: Sequence[str], parts: Iterable[tuple[str, str]]
    ) -> Iterable[str]:
        """Messages about structs without fields."""
        return [
            f"column {path} is a struct without fields, which Parquet can't hold; leave it out"
            for path, kind in parts
            if kind == "struct<>"
        ]

    def writer(
        self, schema: pa.Schema, logical_types: Sequence[LogicalType], max_file_size: int
    ) -> FileWriter:
        """The writer of rows, in the types of `file_schema`."""
        types = file_schema(schema, logical_types)

        def prepare(rows: pa.RecordBatch) -> RowBlock[list[pa.Array]]:
            return RowBlock(file_columns(rows, types, logical_types), row_ends(rows))

        return FileWriter(prepare, parquet_files(types, self.compression, max_file_size))

    def count_rows(self, file: pa.NativeFile) -> int:
        """The number of rows in the footer."""
        return int(pq.read_metadata(file).num_rows)


def parquet_files(
    schema: pa.Schema, compression: str, max_file_size: int, *, checksums: bool = False
) -> Callable[[Sink], OpenFile]:
    """Returns a function that starts a file; with `checksums`, each page has a checksum."""
    # All settings that affect the bytes, or which readers can read them.
    open_writer = partial(
        pq.ParquetWriter,
        schema=schema,
        version="2.4",
        data_page_version="1.0",
        compression=compression,
        compression_level=_LEVELS.get(compression),
        use_dictionary=True,
        write_statistics=True,
        write_page_checksum=checksums,
        store_schema=True,
        use_compliant_nested_type=False,  # lists' elements are called `item`, as by Materialize
    )
    empty = pa.BufferOutputStream()
    open_writer(empty).close()
    footer = empty.getvalue()
    columns = pq.read_metadata(pa.BufferReader(footer)).num_columns
    return partial(
        RowGroupFile,
        schema=schema,
        open_writer=open_writer,
        max_file_size=max_file_size,
        footer=footer.size,
        footer_of_group=columns * _FOOTER_BYTES,
    )


class RowGroupFile:
    """One file. Rows are held back until they fill a row group; a larger row is its own group.

    The file ends before a group that, if as large as the file's largest, would exceed the limit.
    Its footer has `footer` bytes, and `footer_of_group` more for each group. Memory: a group
    twice, as rows and as columns, and what Arrow's writer holds.
    """

    def __init__(
        self,
        sink: Sink,
        schema: pa.Schema,
        open_writer: Callable[[SinkFile], pq.ParquetWriter],
        max_file_size: int,
        footer: int,
        footer_of_group: int,
    ) -> None:
        self._sink = sink
        self._schema = schema
        self._max_file_size = max_file_size
        self._max_group = min(max_file_size // GROUPS_PER_FILE, MAX_GROUP_BYTES)
        self._footer_of_group = footer_of_group
        self._columns: list[list[pa.Array]] = [[] for _ in schema]
        self._bytes = self._largest = 0
        self._footer = footer + footer_of_group
        self._full = False
        self._output = SinkFile(sink)
        self._writer = open_writer(self._output)

    def take(self, piece: RowBlock[list[pa.Array]], start: int) -> int:
        """Writes rows until a group fills the file. Returns the index of the next row."""
        while start < len(piece) and not self._full:
            end = piece.end_within(start, self._max_group - self._bytes)
            if end == start and self._bytes:
                self._write_group()
                continue
            end = max(end, start + 1)
            for chunks, values in zip(self._columns, piece.content, strict=True):
                chunks.append(values.slice(start, end - start))
            self._bytes += piece.ends[end] - piece.ends[start]
            start = end
        return start

    def close(self) -> None:
        """Writes the last group and the footer."""
        if self._bytes:
            self._write_group()
        self._writer.close()

    def __del__(self) -> None:
        # On deletion, pyarrow's writer writes the file's end, which a failed file does not need.
        self._output.is_given_up = True

    def _write_group(self) -> None:
        before = self._sink.bytes
        columns = []
        for chunks in self._columns:
            # One array for each column: the sizes of pages depend on chunks.
            columns.append(pa.concat_arrays(chunks))
            chunks.clear()
        group = pa.Table.from_arrays(columns, schema=self._schema)
        self._writer.write_table(group, group.num_rows)
        self._bytes = 0
        self._largest = max(self._largest, self._sink.bytes - before)
        self._footer += self._footer_of_group
        self._full = self._sink.bytes + self._largest + self._footer > self._max_file_size


def row_ends(rows: pa.RecordBatch) -> memoryview:
    """Where each row ends, in bytes: n + 1 numbers of 64 bits, from 0.

    A row's size depends only on its values: not on bytes under a NULL, the batch's bounds, or the
    presence of a validity bitmap.
    """
    least = pa.repeat(pa.scalar(_ROW_BYTES, pa.int64()), rows.num_rows)
    sizes = reduce(pc.add, map(_sizes, rows.columns), least)
    return memoryview(running_total(sizes).buffers()[1]).cast("q")[: rows.num_rows + 1]


def _sizes(values: pa.Array) -> Any:
    """The size of each value, or one size as a scalar if all are equal."""
    data_type = values.type
    if pa.types.is_map(data_type):
        values = values.cast(pa.list_(pa.struct([data_type.key_field, data_type.item_field])))
        data_type = values.type
    if is_list(data_type):
        lengths = pc.fill_null(pc.cast(pc.list_value_length(values), pa.int64()), 0)
        elements = _sizes(values.flatten())
        if isinstance(elements, pa.Scalar):
            return pc.add(pc.multiply(lengths, elements), _OFFSET_BYTES)
        ends = running_total(elements).take(running_total(lengths))
        return pc.add(pc.subtract(ends.slice(1), ends.slice(0, len(values))), _OFFSET_BYTES)
    if pa.types.is_struct(data_type):
        return reduce(pc.add, map(_sizes, values.flatten()), pa.scalar(0, pa.int64()))
    if is_string(data_type) or is_binary(data_type):
        lengths = pc.cast(pc.binary_length(values), pa.int64())
        return pc.add(pc.fill_null(lengths, 0), _OFFSET_BYTES)
    if pa.types.is_null(data_type):
        return pa.scalar(_OFFSET_BYTES, pa.int64())
    return pa.scalar(max(1, data_type.bit_width // 8), pa.int64())


def file_schema(schema: pa.Schema, logical_types: Sequence[LogicalType]) -> pa.Schema:
    """The schema of the files. Raises ExecutorError that lists columns without a Parquet type.

    All fields may be NULL, as in Spark's own files, except the keys of maps.
    """
    fields, problems = [], []
    for name, column, logical_type in zip(schema.names, schema, logical_types, strict=True):
        try:
            fields.append(file_field(name, column.type, logical_type))
        except TypeError as error:
            problems.append(
                f"column {name}: Parquet has no type for {error}; leave it out, or select it as "
                "another type, such as string"
            )
    if problems:
        raise ExecutorError("; ".join(problems))
    return pa.schema(fields)


def file_field(
    name: str, data_type: pa.DataType, logical_type: LogicalType, *, nullable: bool = True
) -> pa.Field:
    """The field for a type from Spark with this meaning. Raises TypeError if there is none."""
    extension, file_type = _named_type(data_type, logical_type)
    metadata = {EXTENSION_KEY: f"materialize.v1.{extension}"}
    return pa.field(name, file_type, nullable=nullable, metadata=metadata)


def _named_type(data_type: pa.DataType, logical_type: LogicalType) -> tuple[str, pa.DataType]:
    if logical_type.kind in ("variant", "interval"):
        row_of_kind = row_of(logical_type.kind)
        return row_of_kind.materialize, row_of_kind.in_files
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
        pairs = zip(fields, children, strict=True)
        return "record", pa.struct([file_field(f.name, f.type, child) for f, child in pairs])
    if pa.types.is_decimal128(data_type) and 0 <= data_type.scale <= MAX_DIGITS:
        return "numeric", pa.decimal128(MAX_DIGITS, data_type.scale)
    row = type_sent_as(data_type)
    if row is None or row.in_files is None:
        raise TypeError(f"values of type {data_type}")
    return row.materialize, row.in_files


def file_columns(
    rows: pa.RecordBatch, schema: pa.Schema, logical_types: Sequence[LogicalType]
) -> list[pa.Array]:
    """Casts the columns of `rows` to the types of `schema`, which `file_schema` has returned.

    The casts change only the width, the unit or the name of the time zone, and no value. All NaNs
    get the same bits. Raises ExecutorError if a text is not UTF-8.
    """
    columns = []
    for values, field, logical_type in zip(rows.columns, schema, logical_types, strict=True):
        with require_utf8(field.name, "Parquet's text"):
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
