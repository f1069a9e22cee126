"""Files that Arrow writes a group of rows at a time: groups are cut where the rows say."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.arrow.arrays import is_binary, is_string
from dbt.adapters.mzs3.formats.format import Sink

# A row is never free, so that a group has an end even where all values are.
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


@dataclass(frozen=True)
class Limits:
    """Sizes in bytes: of a file, of a row group in memory, and of what a footer has anyhow and
    for each row group."""

    file: int
    row_group: int
    footer: int
    footer_of_group: int


class GroupedFile(ABC):
    """One file, whose rows are held back until they are a group.

    Memory: a group twice, as rows and as columns, and what Arrow's writer holds.
    """

    def __init__(self, sink: Sink, schema: pa.Schema, limits: Limits) -> None:
        self._sink = sink
        self._schema = schema
        self._limits = limits
        self._group = _RowGroup(len(schema), limits.row_group)
        self._largest = 0
        self._footer = limits.footer + limits.footer_of_group
        self._full = False
        self._output = SinkFile(sink)

    def take(self, piece: RowBlock, start: int) -> int:
        """The rows up to the end of the group after which the file is full."""
        while start < len(piece) and not self._full:
            end = self._group.fill(piece, start)
            if end == start:
                self._write_group()
            start = end
        return start

    def close(self) -> None:
        """Write the last group and the footer."""
        if self._group.rows:
            self._write_group()
        self._end()

    @abstractmethod
    def _write(self, group: pa.Table) -> None:
        """Write a group to `self._output`."""

    @abstractmethod
    def _end(self) -> None:
        """Write the footer."""

    def __del__(self) -> None:
        # pyarrow's writer ends its file when it is dropped, and a failed file has no use for it.
        self._output.shut()

    def _write_group(self) -> None:
        before = self._sink.bytes
        self._write(pa.Table.from_arrays(self._group.pop(), schema=self._schema))
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
