"""Files that Arrow writes a group of rows at a time: groups are cut where the rows say."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.arrow.arrays import is_binary, is_list, is_string, running_total
from dbt.adapters.mzs3.formats.format import Sink, SinkFile, rows_within

# A group is this share of a file, as Materialize's row groups are, but no more than a worker can
# hold twice over: as rows, and as the columns that are written.
GROUPS_PER_FILE = 5
MAX_GROUP_BYTES = 32 << 20

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
    """How large a file may become, and how large its footer is; in bytes.

    `footer` is what a footer has anyhow, `footer_of_group` what it has for each group.
    """

    file: int
    footer: int
    footer_of_group: int

    @property
    def group(self) -> int:
        """How much memory the rows of a group may take."""
        return min(self.file // GROUPS_PER_FILE, MAX_GROUP_BYTES)


class GroupedFile(ABC):
    """One file, whose rows are held back until they are a group; a larger row is one of its own.

    It ends before the group that, if it is as large as the file's largest, would pass the limit.
    Memory: a group twice, as rows and as columns, and what Arrow's writer holds.
    """

    def __init__(self, sink: Sink, schema: pa.Schema, limits: Limits) -> None:
        self._sink = sink
        self._schema = schema
        self._limits = limits
        self._columns: list[list[pa.Array]] = [[] for _ in schema]
        self._rows = self._bytes = self._largest = 0
        self._footer = limits.footer + limits.footer_of_group
        self._full = False
        self._output = SinkFile(sink)

    def take(self, piece: RowBlock, start: int) -> int:
        """The rows up to the end of the group after which the file is full."""
        while start < len(piece) and not self._full:
            end = self._hold(piece, start)
            if end == start:
                self._write_held()
            start = end
        return start

    def close(self) -> None:
        """Write the last group and the footer."""
        if self._rows:
            self._write_held()
        self._end()

    @abstractmethod
    def _write(self, group: pa.Table) -> None:
        """Write a group to `self._output`."""

    @abstractmethod
    def _end(self) -> None:
        """Write the footer, and what makes a file of one without rows."""

    def __del__(self) -> None:
        # pyarrow's writer ends its file when it is dropped, and a failed file has no use for it.
        self._output.is_given_up = True

    def _hold(self, piece: RowBlock, start: int) -> int:
        """Hold the rows that the group has room for, found by bisection; at least one."""
        ends = piece.ends
        end = rows_within(ends, start, self._limits.group - self._bytes)
        if end == start and not self._rows:
            end = start + 1
        if end > start:
            for chunks, values in zip(self._columns, piece.columns, strict=True):
                chunks.append(values.slice(start, end - start))
            self._bytes += ends[end] - ends[start]
            self._rows += end - start
        return end

    def _write_held(self) -> None:
        before = self._sink.bytes
        columns = []
        for chunks in self._columns:
            # Each in one array: how its pages are cut depends on chunks.
            columns.append(pa.concat_arrays(chunks))
            chunks.clear()
        self._write(pa.Table.from_arrays(columns, schema=self._schema))
        self._rows = self._bytes = 0
        self._largest = max(self._largest, self._sink.bytes - before)
        self._footer += self._limits.footer_of_group
        with_another = self._sink.bytes + self._largest + self._footer
        self._full = with_another > self._limits.file


def row_ends(rows: pa.RecordBatch) -> memoryview:
    """Where each row ends, in bytes: n + 1 numbers of 64 bits, from 0.

    A row's size depends on its values only: what is under a NULL, where the batch was cut, and
    whether there is a validity bitmap make no difference.
    """
    sizes = pa.repeat(pa.scalar(_ROW_BYTES, pa.int64()), rows.num_rows)
    for values in rows.columns:
        sizes = pc.add(sizes, _sizes(values))
    return memoryview(running_total(sizes).buffers()[1]).cast("q")[: rows.num_rows + 1]


def _sizes(values: pa.Array) -> Any:
    """The sizes of values, or the size that each of them has."""
    data_type = values.type
    if pa.types.is_map(data_type):
        values = values.cast(pa.list_(pa.struct([data_type.key_field, data_type.item_field])))
        data_type = values.type
    if is_list(data_type):
        return pc.add(_list_sizes(values), _OFFSET_BYTES)
    if pa.types.is_struct(data_type):
        total: Any = pa.scalar(0, pa.int64())
        for child in values.flatten():
            total = pc.add(total, _sizes(child))
        return total
    if is_string(data_type) or is_binary(data_type):
        lengths = pc.cast(pc.binary_length(values), pa.int64())
        return pc.add(pc.fill_null(lengths, 0), _OFFSET_BYTES)
    if pa.types.is_null(data_type):
        return pa.scalar(_OFFSET_BYTES, pa.int64())
    return pa.scalar(max(1, data_type.bit_width // 8), pa.int64())


def _list_sizes(lists: pa.Array) -> Any:
    lengths = pc.fill_null(pc.cast(pc.list_value_length(lists), pa.int64()), 0)
    elements = _sizes(lists.flatten())
    if isinstance(elements, pa.Scalar):
        return pc.multiply(lengths, elements)
    last = running_total(lengths).slice(1)
    first = pc.subtract(last, lengths)
    ends = running_total(elements)
    return pc.subtract(ends.take(last), ends.take(first))
