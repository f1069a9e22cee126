"""Rows as Parquet files of a table, made by the tasks that read them.

Spark would take rows from a worker value by value, and encode them in its own process: more work
than all that a task does before. A file is handed to it whole instead, as one value, and Spark
writes that to wherever the table is, as it writes texts: with its own file systems, permissions
and commit. A line's end is what every Parquet file ends with, so a line is a file.
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
"""What `table_files` makes: a file without its END, and how many rows it has."""

END = b"PAR1"

# As Arrow holds them: a worker has one row group so, and as the file that it is added to.
GROUP_BYTES = 16 * 1024 * 1024
# Spark's process has a file some five times over, for each task that it runs.
FILE_BYTES = 16 * 1024 * 1024
# A column of which so many rows have one value, more or less, has a dictionary.
ROWS_OF_A_VALUE = 4

Batches = Iterator[pa.RecordBatch]


def table_files(
    schema: pa.Schema,
    compression: str,
    rows_of: Callable[..., Callable[[Batches], Batches]],
    arguments: Sequence[Any],
) -> Callable[[Batches], Batches]:
    """For `mapInArrow`: files with the rows of `rows_of(*arguments)`, as FILES_DDL.

    The rows' columns become those of the schema by position. A file ends with the row group in
    which it passes FILE_BYTES. A task that has objects makes at least one, with no rows if need
    be: of one that gives it nothing, Spark may make a file that is not Parquet.
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
    """One file, in memory. A row group ends with the batch in which it passes GROUP_BYTES."""

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
        """Whether no more is to be added."""
        return bool(self._sink.tell() >= FILE_BYTES)

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds the rows of a batch."""
        self._held.append(pa.RecordBatch.from_arrays(batch.columns, schema=self._schema))
        self._held_bytes += batch.nbytes
        self.rows += batch.num_rows
        if self._held_bytes >= GROUP_BYTES:
            self._write_group()

    def finish(self) -> pa.RecordBatch:
        """The file as a row of FILES_DDL; nothing can be added any more."""
        writer = self._write_group()
        # Days before 1582 are of the calendar of Spark 3 and later. Without this, Spark can be set
        # to take them for days of an older calendar.
        writer.add_key_value_metadata({"org.apache.spark.version": "4.0.0"})
        writer.close()
        data = self._sink.getvalue()
        file = binary_value(data.slice(0, data.size - len(END)))
        rows = pa.array([self.rows], pa.int64())
        return pa.RecordBatch.from_arrays([file, rows], names=["file", "rows"])

    def _write_group(self) -> pq.ParquetWriter:
        """Writes what is held as a row group, if there is any."""
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
            # Arrow's statistics ignore NaN, which is the largest number to Spark: by them, Spark
            # would skip row groups that have it.
            write_statistics=[f.name for f in self._schema if not pa.types.is_floating(f.type)],
            store_schema=False,  # only Arrow reads it
            store_decimal_as_integer=True,
        )


def _repetitive(batch: pa.RecordBatch) -> list[str]:
    """The columns with few values: of others a dictionary takes as long to make as all the rest
    of a file, and is given up once it is too large."""
    return [
        name
        for name, values in zip(batch.schema.names, batch.columns, strict=True)
        if not pa.types.is_nested(values.type)
        and pc.count_distinct(values).as_py() <= len(values) // ROWS_OF_A_VALUE
    ]
