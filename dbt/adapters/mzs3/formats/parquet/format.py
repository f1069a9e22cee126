"""The format `parquet`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.mzs3.formats.columnar import GroupedFile, Limits, RowBlock, row_ends
from dbt.adapters.mzs3.formats.format import (
    ExportFormat,
    LogicalType,
    OpenFile,
    Sink,
    StoredAs,
    in_pieces,
)
from dbt.adapters.mzs3.formats.parquet.types import file_columns, file_schema

# A row group is this share of a file, as Materialize's are, but no more than a worker can hold
# twice over: as rows, and as the columns that are written.
ROW_GROUPS_PER_FILE = 5
MAX_ROW_GROUP_BYTES = 32 << 20

# About what a footer has for one column of one row group, unless statistics are long texts.
_FOOTER_BYTES = 112
# Where Arrow's own level won't do: of gzip it takes the slowest.
_LEVELS = {"gzip": 4}


@dataclass(frozen=True)
class ParquetFormat(ExportFormat):
    """Materialize's types, with their extension names in the Arrow schema.

    A row group is bounded in bytes of Arrow's memory, and a row that is larger gets one of its
    own. A file is never further from `max_file_size` than one row group, and above it only if
    its last row group came out larger than every one before, or its footer than is usual. (The
    part's last file ends where the rows do.) The bytes depend on the rows and on the version of
    pyarrow, which every file names.
    """

    name = "parquet"
    title = "Parquet"
    stored_as = dict.fromkeys(
        ("snappy", "none", "gzip", "zstd", "lz4"),
        StoredAs(".parquet", "application/vnd.apache.parquet"),
    )

    def column_problems(
        self, names: Sequence[str], parts: Iterable[tuple[str, str]]
    ) -> Iterable[str]:
        """Structs without fields."""
        return [
            f"column {path} is a struct without fields, which Parquet can't hold; leave it out"
            for path, kind in parts
            if kind == "struct<>"
        ]

    def writer(
        self, schema: pa.Schema, logical_types: Sequence[LogicalType], max_file_size: int
    ) -> ParquetFileWriter:
        """What writes the rows in the files' types."""
        return ParquetFileWriter(schema, logical_types, self.compression, max_file_size)

    def count_rows(self, file: pa.NativeFile) -> int:
        """What the footer says."""
        return int(pq.read_metadata(file).num_rows)


class ParquetFileWriter:
    """Files of rows of one schema, whose columns have these meanings."""

    def __init__(
        self,
        schema: pa.Schema,
        logical_types: Sequence[LogicalType],
        compression: str,
        max_file_size: int,
    ) -> None:
        self._schema = file_schema(schema, logical_types)
        self._logical_types = logical_types
        self._compression = compression
        self._limits = limits_of(self._schema, max_file_size)

    def pieces(self, rows: pa.RecordBatch) -> Iterator[RowBlock]:
        """The rows in the files' types, a few megabytes at a time."""
        for piece in in_pieces(rows):
            columns = file_columns(piece, self._schema, self._logical_types)
            yield RowBlock(columns, row_ends(piece))

    def open(self, sink: Sink) -> OpenFile:
        """Begin a file."""
        return ParquetFile(sink, self._schema, self._compression, self._limits)


class ParquetFile(GroupedFile):
    """One file; with `checksums`, each of its pages has one."""

    def __init__(
        self,
        sink: Sink,
        schema: pa.Schema,
        compression: str,
        limits: Limits,
        *,
        checksums: bool = False,
    ) -> None:
        super().__init__(sink, schema, limits)
        self._writer = _writer(self._output, schema, compression, checksums=checksums)

    def _write(self, group: pa.Table) -> None:
        self._writer.write_table(group, row_group_size=group.num_rows)

    def _end(self) -> None:
        self._writer.close()


def limits_of(schema: pa.Schema, max_file_size: int) -> Limits:
    """The limits of files of a schema, sizes in bytes."""
    empty = pa.BufferOutputStream()
    _writer(empty, schema, "none").close()
    data = empty.getvalue()
    columns = pq.read_metadata(pa.BufferReader(data)).num_columns
    row_group = min(max_file_size // ROW_GROUPS_PER_FILE, MAX_ROW_GROUP_BYTES)
    return Limits(max_file_size, row_group, data.size, columns * _FOOTER_BYTES)


def _writer(
    output: Any, schema: pa.Schema, compression: str, *, checksums: bool = False
) -> pq.ParquetWriter:
    """Every choice that makes a difference to the bytes, or to who can read them."""
    return pq.ParquetWriter(
        output,
        schema,
        version="2.4",
        data_page_version="1.0",
        compression=compression,
        compression_level=_LEVELS.get(compression),
        use_dictionary=True,
        write_statistics=True,
        write_page_checksum=checksums,
        store_schema=True,
        use_compliant_nested_type=False,  # lists' elements are called `item`, as in Materialize's
    )
