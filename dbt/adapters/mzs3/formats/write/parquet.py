"""The format `parquet`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.mzs3.formats.write.columnar import GroupedFile, row_ends
from dbt.adapters.mzs3.formats.write.columnar_types import file_columns, file_schema
from dbt.adapters.mzs3.formats.write.format import (
    ExportFormat,
    FileWriter,
    LogicalType,
    OpenFile,
    RowBlock,
    Sink,
    StoredAs,
)
from dbt.adapters.mzs3.options.option import option
from dbt.adapters.mzs3.options.values import choice

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

    compression: str = option(choice(tuple(stored_as)), "snappy", after="format")

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
    ) -> FileWriter:
        """What writes the rows in the types of `columnar_types`."""
        types = file_schema(schema, logical_types, self.title)

        def prepare(rows: pa.RecordBatch) -> RowBlock[list[pa.Array]]:
            return RowBlock(file_columns(rows, types, logical_types, self.title), row_ends(rows))

        return FileWriter(prepare, parquet_files(types, self.compression, max_file_size))

    def count_rows(self, file: pa.NativeFile) -> int:
        """What the footer says."""
        return int(pq.read_metadata(file).num_rows)


def parquet_files(
    schema: pa.Schema, compression: str, max_file_size: int, *, checksums: bool = False
) -> Callable[[Sink], OpenFile]:
    """What begins a file; with `checksums`, each of its pages has one."""
    empty = pa.BufferOutputStream()
    _writer(empty, schema, "none").close()
    data = empty.getvalue()
    columns = pq.read_metadata(pa.BufferReader(data)).num_columns
    return partial(
        GroupedFile,
        schema=schema,
        begin=partial(_writer, schema=schema, compression=compression, checksums=checksums),
        max_file_size=max_file_size,
        footer=data.size,
        footer_of_group=columns * _FOOTER_BYTES,
    )


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
