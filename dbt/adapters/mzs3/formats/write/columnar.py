"""Files that Arrow writes a group of rows at a time: groups are cut where the rows say."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.arrow.arrays import is_binary, is_list, is_string, running_total
from dbt.adapters.mzs3.formats.write.format import RowBlock, Sink, SinkFile

# A group is this share of a file, as Materialize's row groups are, but no more than a worker can
# hold twice over: as rows, and as the columns that are written.
GROUPS_PER_FILE = 5
MAX_GROUP_BYTES = 32 << 20

# A row is never free, so that a group has an end even where all values are, and bytes tell
# whether there are rows.
_ROW_BYTES = 1
# The width of an offset, as the files' text and lists are offset by 32 or 64 bits.
_OFFSET_BYTES = 8


class GroupedFile:
    """One file, whose rows are held back until they are a group; a larger row is one of its own.

    It ends before the group that, if it is as large as the file's largest, would pass the limit.
    `begin` makes Arrow's writer of it, which has `write_table`, after which all of the table is
    written, and `close`; its footer has `footer` bytes anyhow, and `footer_of_group` for each
    group. Memory: a group twice, as rows and as columns, and what Arrow's writer holds.
    """

    def __init__(
        self,
        sink: Sink,
        schema: pa.Schema,
        begin: Callable[[SinkFile], Any],
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
        self._writer = begin(self._output)

    def take(self, piece: RowBlock[list[pa.Array]], start: int) -> int:
        """The rows up to the end of the group after which the file is full."""
        while start < len(piece) and not self._full:
            end = piece.end_within(start, self._max_group - self._bytes)
            if end == start and self._bytes:
                self._write_held()
                continue
            end = max(end, start + 1)
            for chunks, values in zip(self._columns, piece.content, strict=True):
                chunks.append(values.slice(start, end - start))
            self._bytes += piece.ends[end] - piece.ends[start]
            start = end
        return start

    def close(self) -> None:
        """Write the last group and the footer."""
        if self._bytes:
            self._write_held()
        self._writer.close()

    def __del__(self) -> None:
        # pyarrow's writer ends its file when it is dropped, and a failed file has no use for it.
        self._output.is_given_up = True

    def _write_held(self) -> None:
        before = self._sink.bytes
        columns = []
        for chunks in self._columns:
            # Each in one array: how its pages are cut depends on chunks.
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

    A row's size depends on its values only: what is under a NULL, where the batch was cut, and
    whether there is a validity bitmap make no difference.
    """
    least = pa.repeat(pa.scalar(_ROW_BYTES, pa.int64()), rows.num_rows)
    sizes = reduce(pc.add, map(_sizes, rows.columns), least)
    return memoryview(running_total(sizes).buffers()[1]).cast("q")[: rows.num_rows + 1]


def _sizes(values: pa.Array) -> Any:
    """The sizes of values, or the size that each of them has."""
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
