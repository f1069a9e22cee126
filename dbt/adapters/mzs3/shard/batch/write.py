"""Writes the files of a batch; writes and reads the layout in the files' metadata."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from dbt.adapters.mzs3.errors import ExecutorError
from dbt.adapters.mzs3.formats.write.format import FileWriter, LogicalType, RowBlock
from dbt.adapters.mzs3.formats.write.parquet import ParquetFormat, parquet_files, row_ends
from dbt.adapters.mzs3.shard.batch.structured import to_storage
from dbt.adapters.mzs3.shard.codec.encode import encode_rows
from dbt.adapters.mzs3.shard.types import (
    BATCH_ENCODINGS,
    LARGEST,
    RECORDS,
    SCALARS,
    TIMES,
    BatchEncoding,
    Type,
    storage_field,
    type_from_json,
    wire_type,
)

COMPRESSION = "zstd"

# Increased when structured columns change without a change of extension names, or when the
# structured columns of a version turn out to be wrong.
VERSION = 1
# Structured columns of other versions are not read.
TRUSTED = frozenset({1})

_METADATA_KEY = b"dbt-mzs3.batch"


@dataclass(frozen=True)
class BatchFormat:
    """A batch's files: Parquet, with the rows in each encoding of the layout.

    `names` are the users' names of the columns, for errors only. The same rows give the same
    bytes, with the same version of pyarrow. Each page has a checksum.
    """

    layout: BatchLayout
    names: tuple[str, ...]

    file_type = ParquetFormat.file_types["none"]

    def writer(self, _: pa.Schema, __: Sequence[LogicalType], max_file_size: int) -> FileWriter:
        """A writer for rows of `t`, `d` and the columns.

        The writer raises ExecutorError for a wrong value, and names the column.
        """
        schema = self.layout.file_schema()
        begin = parquet_files(schema, COMPRESSION, max_file_size, checksums=True)
        return FileWriter(partial(self._prepared, schema), begin)

    def _prepared(self, schema: pa.Schema, rows: pa.RecordBatch) -> RowBlock[list[pa.Array]]:
        columns = self._file_columns(schema, rows)
        # In two encodings, a row may be several times as large as in the batch from Spark.
        ends = row_ends(pa.RecordBatch.from_arrays(columns, schema.names))
        return RowBlock(columns, ends)

    def _file_columns(self, schema: pa.Schema, rows: pa.RecordBatch) -> list[pa.Array]:
        values = self._of_each(rows.columns[2:], as_wire)
        columns = [numbers.cast(pa.int64()) for numbers in rows.columns[:2]]
        if self.layout.has_codec:
            kinds = list(self.layout.columns.values())
            with _errors_of(", ".join(self.names)):
                keys = encode_rows(values, kinds, rows.num_rows)
            columns = [keys, pa.repeat(pa.scalar(b"", pa.binary()), rows.num_rows), *columns]
        if self.layout.has_structure:
            fields = list(schema.field("k_s").type)
            records = pa.StructArray.from_arrays(self._of_each(values, to_storage), fields=fields)
            columns += [records, pa.repeat(True, rows.num_rows)]
        return columns

    def _of_each(
        self, columns: Sequence[pa.Array], convert: Callable[[pa.Array, Type], pa.Array]
    ) -> list[pa.Array]:
        converted = []
        kinds = self.layout.columns.values()
        for values, kind, name in zip(columns, kinds, self.names, strict=True):
            with _errors_of(name):
                converted.append(convert(values, kind))
        return converted


def as_wire(values: pa.Array, kind: Type) -> pa.Array:
    """Converts values from Spark to wire form. Raises ArrowInvalid for invalid values."""
    target = wire_type(kind)
    if values.type != target:
        values = values.view(_with_positions(values.type, kind)).cast(target)
    values.validate(full=True)  # Spark does not check that its texts are UTF-8
    _require_range(values, kind)
    return values


def with_times(
    kinds: Sequence[Type],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Returns a function for `mapInArrow` that converts times of `kinds` to Spark's own type."""

    def restore(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = zip(batch.columns, kinds, strict=True)
            arrays = [as_wire(array, kind).view(wire_type(kind, TIMES)) for array, kind in columns]
            yield pa.RecordBatch.from_arrays(arrays, batch.schema.names)

    return restore


def _require_range(values: pa.Array, kind: Type) -> None:
    """Raises ArrowInvalid for a number that is out of an unsigned type's range.

    The wire form can hold the number. Without this check, only one of the encodings would refuse
    it. Ignores values under a NULL or outside of a slice.
    """
    if kind.name in LARGEST:
        values.cast(SCALARS[kind.name].storage)
    elif kind.holds(LARGEST):
        inside = values.flatten()
        is_record = kind.name in RECORDS
        parts = zip(inside, kind.children, strict=True) if is_record else [(inside, kind.element)]
        for part, inner in parts:
            _require_range(part, inner)


def _with_positions(data_type: pa.DataType, kind: Type) -> pa.DataType:
    """The type, in which the fields of records are named by their position."""
    if pa.types.is_struct(data_type) and kind.children:
        pairs = zip(data_type, kind.children, strict=True)
        types = [_with_positions(field.type, inner) for field, inner in pairs]
        return pa.struct([(str(place), inner) for place, inner in enumerate(types)])
    if pa.types.is_list(data_type):
        return pa.list_(_with_positions(data_type.value_type, kind.element))
    return data_type


@contextlib.contextmanager
def _errors_of(name: str) -> Iterator[None]:
    """Turns a ValueError into an ExecutorError that names the column."""
    try:
        yield
    except ValueError as error:  # pa.ArrowInvalid is one
        raise ExecutorError(
            f"column {name} holds a value that is none of its type: {error}"
        ) from error


@dataclass(frozen=True)
class BatchLayout:
    """What is in a file: its columns in order, and their encodings, without users' names.

    `columns` has the columns' types by tag, a number that no other column of the shard ever has.
    """

    columns: Mapping[int, Type]
    encoding: BatchEncoding = "dual"
    version: int = VERSION

    @property
    def has_codec(self) -> bool:
        """Whether the file has rows as messages, in `k`."""
        return self.encoding != "structured"

    @property
    def has_structure(self) -> bool:
        """Whether the file has rows as Arrow columns, in `k_s`."""
        return self.encoding != "codec"

    def file_schema(self) -> pa.Schema:
        """The schema: `k`, `v` for messages, `t`, `d`, and `k_s`, `v_s` for structured columns."""
        columns = [[tag, kind.as_json()] for tag, kind in self.columns.items()]
        document = {"columns": columns, "encoding": self.encoding, "version": self.version}
        metadata = json.dumps(document, separators=(",", ":"), sort_keys=True)
        types = {"t": pa.int64(), "d": pa.int64()}
        if self.has_codec:
            types = {"k": pa.binary(), "v": pa.binary(), **types}
        if self.has_structure:
            stored = [storage_field(str(tag), kind) for tag, kind in self.columns.items()]
            # A boolean instead of a struct without fields, which Parquet does not support.
            types |= {"k_s": pa.struct(stored), "v_s": pa.bool_()}
        fields = [pa.field(name, kind, nullable=False) for name, kind in types.items()]
        return pa.schema(fields, metadata={_METADATA_KEY: metadata.encode()})


def layout_of(metadata: Mapping[bytes, bytes] | None) -> BatchLayout:
    """The layout in the metadata of a file's schema. Raises ValueError if it is not a batch's."""
    document = (metadata or {}).get(_METADATA_KEY)
    if document is None:
        raise ValueError("it is not a file of a shard's batch")
    try:
        layout = json.loads(document)
        encoding, version = layout["encoding"], int(layout["version"])
        columns = {int(str(tag)): type_from_json(kind) for tag, kind in layout["columns"]}
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"its metadata is not what a batch has: {error}") from error
    if encoding not in BATCH_ENCODINGS:
        raise ValueError(f"its encoding {encoding!r} is not one of {', '.join(BATCH_ENCODINGS)}")
    return BatchLayout(columns, encoding, version)
