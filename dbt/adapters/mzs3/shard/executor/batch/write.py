"""Rows into a batch's files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import pyarrow as pa

from dbt.adapters.mzs3.errors import ExecutorError
from dbt.adapters.mzs3.formats.format import OpenFile, Sink
from dbt.adapters.mzs3.formats.parquet.file import (
    PIECE_BYTES,
    ParquetFile,
    Piece,
    limits_of,
)
from dbt.adapters.mzs3.formats.parquet.sizes import row_ends
from dbt.adapters.mzs3.shard.executor.batch.layout import BatchLayout, stored_fields
from dbt.adapters.mzs3.shard.executor.codec.encode import encoded_rows
from dbt.adapters.mzs3.shard.executor.structured.encode import stored
from dbt.adapters.mzs3.shard.executor.wire import as_wire

COMPRESSION = "zstd"


class BatchFormat:
    """A batch's files: Parquet, with the rows in each encoding that the layout asks for.

    `names` are what users call the columns, for errors alone: files have none of them. Row groups
    are bounded in bytes of the columns that are written, and files end as an export's do. Each
    page has a checksum. The same rows give the same bytes, with the same version of pyarrow.
    """

    suffix = ".parquet"
    content_type = "application/vnd.apache.parquet"

    def __init__(self, layout: BatchLayout, names: Sequence[str], max_file_size: int) -> None:
        self._layout = layout
        self._names = tuple(names)
        self._schema = layout.file_schema()
        self._limits = limits_of(self._schema, max_file_size)

    def pieces(self, rows: pa.RecordBatch) -> Iterator[Piece]:
        """Rows `t`, `d` and the columns, in types that Arrow casts to their wire form.

        Raises ExecutorError, which names the column, for a value that is none of its type.
        """
        if rows.num_rows > 1 and rows.nbytes > PIECE_BYTES:
            half = rows.num_rows // 2
            yield from self.pieces(rows.slice(0, half))
            yield from self.pieces(rows.slice(half))
        else:
            columns = self._file_columns(rows)
            # In both encodings a row may be several times as large as it came.
            ends = row_ends(pa.RecordBatch.from_arrays(columns, self._schema.names))
            yield Piece(columns, ends)

    def open(self, sink: Sink) -> OpenFile:
        """Begin a file."""
        return ParquetFile(sink, self._schema, COMPRESSION, self._limits, checksums=True)

    def _file_columns(self, rows: pa.RecordBatch) -> list[pa.Array]:
        moment, change = (values.cast(pa.int64()) for values in rows.columns[:2])
        values = self._wire_columns(rows.columns[2:])
        codec = self._codec(values, rows.num_rows) if self._layout.has_codec else []
        structure = self._structure(values, rows.num_rows) if self._layout.has_structure else []
        return [*codec, moment, change, *structure]

    def _wire_columns(self, columns: Sequence[pa.Array]) -> list[pa.Array]:
        wire = []
        for values, column, name in zip(columns, self._layout.columns, self._names, strict=True):
            with _told_of(name):
                wire.append(as_wire(values, column.kind))
        return wire

    def _codec(self, values: Sequence[pa.Array], rows: int) -> list[pa.Array]:
        kinds = [column.kind for column in self._layout.columns]
        with _told_of(", ".join(self._names)):
            keys = encoded_rows(values, kinds, rows)
        return [keys, pa.repeat(pa.scalar(b"", pa.binary()), rows)]

    def _structure(self, columns: Sequence[pa.Array], rows: int) -> list[pa.Array]:
        arrays = []
        for values, column, name in zip(columns, self._layout.columns, self._names, strict=True):
            with _told_of(name):
                arrays.append(stored(values, column.kind))
        fields = stored_fields(self._layout.columns)
        return [pa.StructArray.from_arrays(arrays, fields=fields), pa.repeat(True, rows)]


@contextlib.contextmanager
def _told_of(name: str) -> Iterator[None]:
    """Errors of values, as errors of their column."""
    try:
        yield
    except ValueError as error:  # pa.ArrowInvalid is one
        raise ExecutorError(
            f"column {name} holds a value that is none of its type: {error}"
        ) from error
