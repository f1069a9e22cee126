"""Rows as the Parquet files of a table, built by the tasks that read the rows.

Spark would receive rows from a worker value by value and encode them in its own process: more work
than the rest of a task. Instead each file is passed to Spark as one value. Spark's text writer
writes it to wherever the table is, with Spark's file systems, permissions and commit. The line
separator is what every Parquet file ends with, so each line is a complete file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.mzs3.arrow.arrays import binary_value

FILES_DDL = "file binary, rows bigint"
"""The columns that `table_files` returns: a file without its END, and its number of rows."""

END = b"PAR1"

# In Arrow's memory: a worker holds one row group there, besides the file that it is added to.
GROUP_BYTES = 16 * 1024 * 1024
# Spark's process holds each file about five times, for every task that it runs.
FILE_BYTES = 16 * 1024 * 1024
# A column with at least this many rows for each distinct value gets a dictionary.
ROWS_OF_A_VALUE = 4

Batches = Iterator[pa.RecordBatch]


def table_files(
    schema: pa.Schema,
    compression: str,
    rows_of: Callable[..., Callable[[Batches], Batches]],
    arguments: Sequence[Any],
) -> Callable[[Batches], Batches]:
    """Returns a function for `mapInArrow`, which makes files of the rows of `rows_of(*arguments)`.

    The rows' columns are matched to the schema by position. A file ends with the row group that
    takes it past FILE_BYTES. A task makes at least one file, without rows if need be: if a task
    returned nothing, Spark might write a file that is not Parquet.
    """
    read = rows_of(*arguments)

    def make(given: Batches) -> Batches:
        file = TableFile(schema, compression)
        has_any = False
        for batch in read(given):
            file.add(batch)
            if file.is_full:
                yield file.finish()
                has_any, file = True, TableFile(schema, compression)
        if file.rows or not has_any:
            yield file.finish()

    return make


class TableFile:
    """One file, in memory. A row group ends with the batch that takes it past GROUP_BYTES."""

    def __init__(self, schema: pa.Schema, compression: str) -> None:
        self._schema = schema
        self._compression = compression
        self._sink = pa.BufferOutputStream()
        self._writer: pq.ParquetWriter | None = None
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self.rows = 0

    @property
    def is_full(self) -> bool:
        """Whether the file should get no more rows."""
        return bool(self._sink.tell() >= FILE_BYTES)

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds the rows of a batch."""
        self._held.append(pa.RecordBatch.from_arrays(batch.columns, schema=self._schema))
        self._held_bytes += batch.nbytes
        self.rows += batch.num_rows
        if self._held_bytes >= GROUP_BYTES:
            self._write_group()

    def finish(self) -> pa.RecordBatch:
        """Ends the file, and returns it as a row with the columns of FILES_DDL."""
        writer = self._write_group()
        # Marks days before 1582 as being in the calendar of Spark 3 and later. Without the mark,
        # Spark can be configured to convert them from an older calendar.
        writer.add_key_value_metadata({"org.apache.spark.version": "4.0.0"})
        writer.close()
        data = self._sink.getvalue()
        file = binary_value(data.slice(0, data.size - len(END)))
        rows = pa.array([self.rows], pa.int64())
        return pa.RecordBatch.from_arrays([file, rows], names=["file", "rows"])

    def _write_group(self) -> pq.ParquetWriter:
        """Writes the held batches, if any, as a row group. Returns the file's writer."""
        held, self._held, self._held_bytes = self._held, [], 0
        writer = self._writer = self._writer or self._open_writer(held)
        if held:
            writer.write_table(pa.Table.from_batches(held), row_group_size=sys.maxsize)
        return writer

    def _open_writer(self, held: Sequence[pa.RecordBatch]) -> pq.ParquetWriter:
        empty = pa.RecordBatch.from_pylist([], self._schema)
        return pq.ParquetWriter(
            self._sink,
            self._schema,
            compression=self._compression,
            use_dictionary=_repetitive(max(held, key=len, default=empty)),
            # Arrow's statistics ignore NaN, but to Spark NaN is the largest number: with them,
            # Spark would wrongly skip row groups that contain NaN.
            write_statistics=[f.name for f in self._schema if not pa.types.is_floating(f.type)],
            store_schema=False,  # only Arrow reads it
            store_decimal_as_integer=True,
        )


def _repetitive(batch: pa.RecordBatch) -> list[str]:
    """The columns with few distinct values. For others, a dictionary takes as long to build as the
    rest of the file, and is discarded once it is too large."""
    return [
        name
        for name, values in zip(batch.schema.names, batch.columns, strict=True)
        if not pa.types.is_nested(values.type)
        and pc.count_distinct(values).as_py() <= len(values) // ROWS_OF_A_VALUE
    ]
