"""Parquet as a format of objects: the footer's schema is the header, row groups are streamed."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.mzs3.arrow.parquet import batch_rows
from dbt.adapters.mzs3.csv_source.executor.formats.format import RecordField, StoredObject
from dbt.adapters.mzs3.csv_source.executor.formats.typed import FIX_FILE, TypedFile, own_type
from dbt.adapters.mzs3.csv_source.executor.object_error import ObjectError
from dbt.adapters.mzs3.csv_source.executor.signatures import (
    LOOK_BYTES,
    PARQUET_FILE,
    kind_in,
)
from dbt.adapters.mzs3.objects.reader import RandomAccessFile

# Of each column this much is held as it is in the file, and not the rest of its row group.
COLUMN_BYTES = 1024 * 1024

# What one request fetches at least; smaller objects are fetched whole.
WINDOW_BYTES = 1024 * 1024

_ENCRYPTED = re.compile("encrypted metadata|Cannot decrypt|noted as encrypted|Decryption not set")
_NOT_ENCRYPTED = (
    "Have it written without Parquet's encryption, as S3 encrypts objects itself; or, if only "
    "some columns are encrypted, list the others as `header`, with `header_match: subset`"
)


@contextlib.contextmanager
def parquet_file(stored: StoredObject) -> Iterator[TypedFile]:
    """A Parquet file with columns that are not nested; ObjectError where pyarrow refuses it."""
    source = RandomAccessFile(stored.size, stored.part, window=WINDOW_BYTES)
    try:
        with pq.ParquetFile(
            source,
            buffer_size=COLUMN_BYTES,
            pre_buffer=False,
            # In nanoseconds, as it would be, years before 1677 come out as others.
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=True,
        ) as file:
            fields = [
                RecordField(field.name, str(field.type), own_type(field.type))
                for field in file.schema_arrow
            ]
            yield fields, partial(_batches, file, fields)
    except MemoryError:
        raise
    # Names in the schema may be no text.
    except (pa.ArrowException, OSError, UnicodeError) as exc:
        raise source.failure or _problem(exc, stored) from exc


def _batches(
    file: pq.ParquetFile, fields: Sequence[RecordField], positions: Sequence[int]
) -> Iterator[list[pa.Array]]:
    """The rows' values of these fields; of columns that are not wanted nothing is fetched."""
    names = None
    if len(positions) < len(fields):
        names = [fields[position].name for position in positions]
    done = 0
    for number in range(file.num_row_groups):
        rows = batch_rows(file.metadata.row_group(number))
        for batch in file.iter_batches(
            batch_size=rows, row_groups=[number], columns=names, use_threads=False
        ):
            if names is not None:
                # To pyarrow, `a.b` is also the field b of a column a.
                positions = [batch.schema.get_field_index(name) for name in names]
            yield [batch.column(position) for position in positions]
            done += batch.num_rows
    if done != file.metadata.num_rows:
        raise _invalid(f"it has {done} rows and says {file.metadata.num_rows}")


def _problem(exc: Exception, stored: StoredObject) -> ObjectError:
    text = str(exc)
    # pyarrow does not say so in another way, and ends the process if a column's metadata is asked.
    if _ENCRYPTED.search(text):
        return _unreadable("it is encrypted", _NOT_ENCRYPTED)
    if isinstance(exc, pa.ArrowNotImplementedError):
        return _unreadable(text, FIX_FILE)
    kind = kind_in(stored.part(0, min(LOOK_BYTES, stored.size)))
    return _invalid(exc if kind in (None, PARQUET_FILE) else f"it is {kind}")


def _unreadable(what: str, advice: str) -> ObjectError:
    return ObjectError(f"it is Parquet that a source can't read ({what})", advice)


def _invalid(what: object) -> ObjectError:
    return ObjectError(f"it is not valid Parquet ({what})", FIX_FILE)
