"""Parquet files: row groups bounded in bytes, cut where the rows say."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.mzs3.arrow.arrays import is_binary, is_string
from dbt.adapters.mzs3.formats.format import LogicalType, OpenFile, ParquetSpec, Sink
from dbt.adapters.mzs3.formats.parquet.types import file_columns, file_schema

# Large enough for Arrow's speed, small enough for a worker's memory.
PIECE_BYTES = 8 << 20
# A row group is this share of a file, as Materialize's are, but no more than a worker can hold
# twice over: as rows, and as the columns that are written.
ROW_GROUPS_PER_FILE = 5
MAX_ROW_GROUP_BYTES = 32 << 20

# About what a footer has for one column of one row group, unless statistics are long texts.
_FOOTER_BYTES = 112
# Where Arrow's own level won't do: of gzip it takes the slowest.
_LEVELS = {"gzip": 4}

# A row is never free, so that a row group has an end even where all values are.
_ROW_BYTES = 1
# The width of an offset, as the files' text and lists are offset by 32 or 64 bits.
_OFFSET_BYTES = 8


@dataclass(frozen=True)
class RowBlock:
    """Rows in the files' types; `ends[i]:ends[i + 1]` is the memory that row i takes."""

    columns: list[pa.Array]
    ends: memoryview

    def __len__(self) -> int:
        return len(self.ends) - 1


class ParquetFormat:
    """Materialize's types, with their extension names in the Arrow schema.

    A row group is bounded in bytes of Arrow's memory, and a row that is larger gets one of its
    own. A file is never further from `max_file_size` than one row group, and above it only if
    its last row group came out larger than every one before, or its footer than is usual. (The
    part's last file ends where the rows do.) The bytes depend on the rows and on the version of
    pyarrow, which every file names.
    """

    suffix = ".parquet"
    content_type = "application/vnd.apache.parquet"

    def __init__(
        self,
        schema: pa.Schema,
        logical_types: tuple[LogicalType, ...],
        spec: ParquetSpec,
        max_file_size: int,
    ) -> None:
        self._schema = file_schema(schema, logical_types)
        self._logical_types = logical_types
        self._compression = spec.compression
        self._limits = limits_of(self._schema, max_file_size)

    def pieces(self, rows: pa.RecordBatch) -> Iterator[RowBlock]:
        """The rows in the files' types, a few megabytes at a time."""
        if rows.num_rows > 1 and rows.nbytes > PIECE_BYTES:
            half = rows.num_rows // 2
            yield from self.pieces(rows.slice(0, half))
            yield from self.pieces(rows.slice(half))
        else:
            yield RowBlock(file_columns(rows, self._schema, self._logical_types), row_ends(rows))

    def open(self, sink: Sink) -> OpenFile:
        """Begin a file."""
        return ParquetFile(sink, self._schema, self._compression, self._limits)


@dataclass(frozen=True)
class Limits:
    """Sizes in bytes: of a file, of a row group in memory, and of what a footer has anyhow and
    for each row group."""

    file: int
    row_group: int
    footer: int
    footer_of_group: int


class ParquetFile:
    """One file; with `checksums`, each of its pages has one.

    Memory: a row group twice, as rows and as columns, and the pages of one column.
    """

    def __init__(
        self,
        sink: Sink,
        schema: pa.Schema,
        compression: str,
        limits: Limits,
        *,
        checksums: bool = False,
    ) -> None:
        self._sink = sink
        self._schema = schema
        self._limits = limits
        self._group = _RowGroup(len(schema), limits.row_group)
        self._largest = 0
        self._footer = limits.footer + limits.footer_of_group
        self._full = False
        self._output = SinkFile(sink)
        self._writer = _writer(self._output, schema, compression, checksums=checksums)

    def take(self, piece: RowBlock, start: int) -> int:
        """The rows up to the end of the row group after which the file is full."""
        while start < len(piece) and not self._full:
            end = self._group.fill(piece, start)
            if end == start:
                self._write_group()
            start = end
        return start

    def close(self) -> None:
        """Write the last row group and the footer."""
        if self._group.rows:
            self._write_group()
        self._writer.close()

    def __del__(self) -> None:
        # pyarrow's writer ends its file when it is dropped, and a failed file has no use for it.
        self._output.shut()

    def _write_group(self) -> None:
        before, rows = self._sink.bytes, self._group.rows
        table = pa.Table.from_arrays(self._group.pop(), schema=self._schema)
        self._writer.write_table(table, row_group_size=rows)
        self._largest = max(self._largest, self._sink.bytes - before)
        self._footer += self._limits.footer_of_group
        with_another = self._sink.bytes + self._largest + self._footer
        self._full = with_another > self._limits.file


class _RowGroup:
    """Rows held back until `target` bytes are full."""

    def __init__(self, columns: int, target: int) -> None:
        self._target = target
        self._columns: list[list[pa.Array]] = [[] for _ in range(columns)]
        self._bytes = 0
        self.rows = 0

    def fill(self, piece: RowBlock, start: int) -> int:
        """Add the rows that there is room for, found by bisection; at least one if it is empty."""
        ends = piece.ends
        room = max(0, self._target - self._bytes)
        end = bisect_right(ends, ends[start] + room, lo=start, hi=len(ends)) - 1
        if end == start and not self.rows:
            end = start + 1
        if end > start:
            for chunks, values in zip(self._columns, piece.columns, strict=True):
                chunks.append(values.slice(start, end - start))
            self._bytes += ends[end] - ends[start]
            self.rows += end - start
        return end

    def pop(self) -> list[pa.Array]:
        """The columns, each in one array: how its pages are cut depends on chunks."""
        columns = []
        for chunks in self._columns:
            columns.append(pa.concat_arrays(chunks))
            chunks.clear()
        self._bytes = self.rows = 0
        return columns


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


class SinkFile:
    """Passes on what is written to it, in buffers of their own, until it is shut."""

    def __init__(self, sink: Sink) -> None:
        self.closed = False
        self._sink = sink
        self._start = sink.bytes
        self._shut = False

    def write(self, data: bytes) -> int:
        """Take bytes, or a buffer that the writer may use again."""
        if not self._shut:
            self._sink.append(memoryview(bytes(data)))
        return len(data)

    def tell(self) -> int:
        """How many bytes were written."""
        return self._sink.bytes - self._start

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """The sink is its owner's to close."""
        self.closed = True

    def shut(self) -> None:
        """Take nothing more."""
        self._shut = True

    def writable(self) -> bool:
        """It is for writing only."""
        return True

    def readable(self) -> bool:
        """It is not for reading."""
        return False

    def seekable(self) -> bool:
        """It has no way back."""
        return False


def row_ends(rows: pa.RecordBatch) -> memoryview:
    """Where each row ends, in bytes: n + 1 numbers of 64 bits, from 0.

    A row's size depends on its values only: what is under a NULL, where the batch was cut, and
    whether there is a validity bitmap make no difference.
    """
    sizes = pa.repeat(pa.scalar(_ROW_BYTES, pa.int64()), rows.num_rows)
    for values in rows.columns:
        sizes = pc.add(sizes, _sizes(values))
    ends = _ends(sizes)
    return memoryview(ends.buffers()[1]).cast("q")[: rows.num_rows + 1]


def _sizes(values: pa.Array) -> Any:
    """The sizes of values, or the size that each of them has."""
    data_type = values.type
    if pa.types.is_map(data_type):
        values = values.cast(pa.list_(pa.struct([data_type.key_field, data_type.item_field])))
        data_type = values.type
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return pc.add(_list_sizes(values), _OFFSET_BYTES)
    if pa.types.is_struct(data_type):
        total: Any = pa.scalar(0, pa.int64())
        for child in values.flatten():
            total = pc.add(total, _sizes(child))
        return total
    if _has_offsets(data_type):
        lengths = pc.cast(pc.binary_length(values), pa.int64())
        return pc.add(pc.fill_null(lengths, 0), _OFFSET_BYTES)
    return pa.scalar(_fixed_width(data_type), pa.int64())


def _list_sizes(lists: pa.Array) -> Any:
    lengths = pc.fill_null(pc.cast(pc.list_value_length(lists), pa.int64()), 0)
    elements = _sizes(lists.flatten())
    if isinstance(elements, pa.Scalar):
        return pc.multiply(lengths, elements)
    last = _ends(lengths).slice(1)
    first = pc.subtract(last, lengths)
    ends = _ends(elements)
    return pc.subtract(ends.take(last), ends.take(first))


def _ends(sizes: pa.Array) -> pa.Array:
    zero = pa.array([0], pa.int64())
    return pa.concat_arrays([zero, pc.cumulative_sum(sizes)])


def _has_offsets(data_type: pa.DataType) -> bool:
    return is_string(data_type) or is_binary(data_type)


def _fixed_width(data_type: pa.DataType) -> int:
    if pa.types.is_null(data_type):
        return _OFFSET_BYTES
    return max(1, int(data_type.bit_width) // 8)
