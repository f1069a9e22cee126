"""Parquet as a format of objects: the footer's schema is the header, row groups are streamed."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.mzs3.arrow.parquet import batch_rows
from dbt.adapters.mzs3.csv_source.executor.columns import Column
from dbt.adapters.mzs3.csv_source.executor.formats.format import RecordField, Records, StoredObject
from dbt.adapters.mzs3.csv_source.executor.formats.typed import TypedColumns, own_type
from dbt.adapters.mzs3.csv_source.executor.object_error import ObjectError
from dbt.adapters.mzs3.csv_source.executor.reading import SUBSET, Reading
from dbt.adapters.mzs3.objects.reader import RandomAccessFile

# Of each column this much is held as it is in the file, and not the rest of its row group.
COLUMN_BYTES = 1024 * 1024

# What one request fetches at least; smaller objects are fetched whole.
WINDOW_BYTES = 1024 * 1024


@dataclass(frozen=True)
class ParquetFormat:
    """Parquet files with columns that are not nested."""

    reading: Reading

    def fields(self, stored: StoredObject) -> tuple[RecordField, ...] | None:
        """The file's columns. Raises ObjectError."""
        if stored.size == 0:
            return None
        with _opened(stored) as file:
            return _fields(file)

    def decoder(self, header: tuple[str, ...] | None, columns: Sequence[Column]) -> ParquetRecords:
        """See `ObjectFormat`; there is always a header."""
        assert header is not None
        match = self.reading.header_match
        return ParquetRecords(TypedColumns(header, tuple(columns), match))


@dataclass(frozen=True)
class ParquetRecords:
    """Reads Parquet objects of one source, some rows at a time."""

    columns: TypedColumns

    def records(self, stored: StoredObject) -> Generator[Records, None, None]:
        """See `ObjectDecoder`. Of columns that are dropped nothing is fetched."""
        if stored.size == 0:
            return
        with _opened(stored) as file:
            fields = _fields(file)
            layout = self.columns.layout(fields)
            wanted = [fields[position] for position in layout.fields]
            names = [f.name for f in wanted] if self.columns.match == SUBSET else None
            done = 0
            for batch in _batches(file, names):
                values = _values(batch, layout.fields, names)
                yield self.columns.records(values, wanted, done)
                done += batch.num_rows
            if done != file.metadata.num_rows:
                raise _invalid(f"it has {done} rows and says {file.metadata.num_rows}")


@contextlib.contextmanager
def _opened(stored: StoredObject) -> Iterator[pq.ParquetFile]:
    """The object as a Parquet file; what pyarrow can't make of it is an ObjectError."""
    source = open_object(stored)
    try:
        with pq.ParquetFile(
            source,
            buffer_size=COLUMN_BYTES,
            pre_buffer=False,
            # In nanoseconds, as it would be, years before 1677 come out as others.
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=True,
        ) as file:
            yield file
    except MemoryError:
        raise
    # Names in the schema may be no text.
    except (pa.ArrowException, OSError, UnicodeError) as exc:
        raise source.failure or _invalid(exc) from exc


def _invalid(what: object) -> ObjectError:
    return ObjectError(
        f"it is not valid Parquet ({what})",
        "Write it again, or remove it, or narrow `pattern` so that it is left out, then run again",
    )


def _fields(file: pq.ParquetFile) -> tuple[RecordField, ...]:
    return tuple(RecordField(f.name, str(f.type), own_type(f.type)) for f in file.schema_arrow)


def _batches(file: pq.ParquetFile, names: list[str] | None) -> Iterator[pa.RecordBatch]:
    """The rows in their order, of the columns with these names; None is all columns."""
    for number in range(file.num_row_groups):
        rows = batch_rows(file.metadata.row_group(number))
        yield from file.iter_batches(
            batch_size=rows, row_groups=[number], columns=names, use_threads=False
        )


def _values(
    batch: pa.RecordBatch, positions: Sequence[int], names: Sequence[str] | None
) -> list[pa.Array]:
    """The columns' values: by position where all columns were read, else by their names."""
    if names is None:
        return [batch.column(position) for position in positions]
    # To pyarrow, `a.b` is also the field b of a column a.
    return [batch.column(batch.schema.get_field_index(name)) for name in names]


def open_object(stored: StoredObject) -> RandomAccessFile:
    """The object; all parts of it are of the version that was listed, or reading it raises
    ObjectError. Holds what was fetched last."""
    return RandomAccessFile(stored.size, stored.part, window=WINDOW_BYTES)
