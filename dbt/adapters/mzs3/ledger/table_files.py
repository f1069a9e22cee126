"""Builds the Parquet files of a table of rows in the Python tasks that produce the rows.

If tasks returned rows, Spark would receive them value by value and encode them itself, which is
more work than the rest of a task. Instead a task returns each file as one value, which Spark's
text writer stores, with Spark's file systems, permissions and commit protocol. The line separator
is END, with which every Parquet file ends, so each line is a complete file.
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

# The size of a row group in Arrow's memory. A worker holds one row group and one file.
GROUP_BYTES = 16 * 1024 * 1024
# The size of a file. For each running task, Spark's Java process holds about five copies.
FILE_BYTES = 16 * 1024 * 1024
# A column gets a dictionary if it has at least this many rows per distinct value.
ROWS_OF_A_VALUE = 4

Batches = Iterator[pa.RecordBatch]


def table_files(
    schema: pa.Schema,
    compression: str,
    rows_of: Callable[..., Callable[[Batches], Batches]],
    arguments: Sequence[Any],
) -> Callable[[Batches], Batches]:
    """Returns a function for `mapInArrow` that writes the rows of `rows_of(*arguments)` to files.

    The rows' columns are matched to the schema by position. A file ends with the row group that
    takes it past FILE_BYTES. A task returns at least one file, even without rows: if a
    task returned nothing, Spark might write a file that is not Parquet.
    """
    read = rows_of(*arguments)

    def make(given: Batches) -> Batches:
        file = TableFile(schema, compression)
        has_file = False
        for batch in read(given):
            file.add(batch)
            if file.is_full:
                yield file.finish()
                has_file, file = True, TableFile(schema, compression)
        if file.rows or not has_file:
            yield file.finish()

    return make


class TableFile:
    """One file, in memory. A row group ends with the batch that takes it past GROUP_BYTES."""

    def __init__(self, schema: pa.Schema, compression: str) -> None:
        self._schema = schema
        self._compression = compression
        self._sink = pa.BufferOutputStream()
        self._writer: pq.ParquetWriter | None = None
        self._pending: list[pa.RecordBatch] = []
        self._pending_bytes = 0
        self.rows = 0

    @property
    def is_full(self) -> bool:
        """Whether the file has reached FILE_BYTES, and should get no more rows."""
        return bool(self._sink.tell() >= FILE_BYTES)

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds the rows of a batch."""
        self._pending.append(pa.RecordBatch.from_arrays(batch.columns, schema=self._schema))
        self._pending_bytes += batch.nbytes
        self.rows += batch.num_rows
        if self._pending_bytes >= GROUP_BYTES:
            self._write_group()

    def finish(self) -> pa.RecordBatch:
        """Ends the file, and returns it as a row with the columns of FILES_DDL."""
        writer = self._write_group()
        # Declares that days before 1582 are in the calendar of Spark 3 and later. Otherwise Spark
        # may be configured to convert them from an older calendar.
        writer.add_key_value_metadata({"org.apache.spark.version": "4.0.0"})
        writer.close()
        data = self._sink.getvalue()
        file = binary_value(data.slice(0, data.size - len(END)))
        rows = pa.array([self.rows], pa.int64())
        return pa.RecordBatch.from_arrays([file, rows], names=["file", "rows"])

    def _write_group(self) -> pq.ParquetWriter:
        """Writes the pending batches, if any, as a row group. Returns the file's writer."""
        pending, self._pending, self._pending_bytes = self._pending, [], 0
        writer = self._writer = self._writer or self._open_writer(pending)
        if pending:
            writer.write_table(pa.Table.from_batches(pending), row_group_size=sys.maxsize)
        return writer

    def _open_writer(self, batches: Sequence[pa.RecordBatch]) -> pq.ParquetWriter:
        empty = pa.RecordBatch.from_pylist([], self._schema)
        return pq.ParquetWriter(
            self._sink,
            self._schema,
            compression=self._compression,
            use_dictionary=_repetitive(max(batches, key=len, default=empty)),
            # Not of floats: Arrow's statistics ignore NaN, but to Spark NaN is the largest number,
            # so Spark would wrongly skip row groups that contain NaN.
            write_statistics=[f.name for f in self._schema if not pa.types.is_floating(f.type)],
            store_schema=False,  # only Arrow would read the schema
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
