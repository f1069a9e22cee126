"""Parquet as a format of objects: the footer's schema is the header, row groups are streamed."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.mzs3.arrow.parquet import RandomAccessFile, batch_rows
from dbt.adapters.mzs3.formats.read.format import RecordField, StoredObject
from dbt.adapters.mzs3.formats.read.object_error import ObjectError
from dbt.adapters.mzs3.formats.read.signatures import LOOK_BYTES, PARQUET_FILE, kind_in
from dbt.adapters.mzs3.formats.read.typed import (
    TypedFile,
    invalid_file,
    other_file,
    own_type,
    unreadable_file,
)

# How many bytes of each column in a file are held in memory, instead of its whole row group.
COLUMN_BYTES = 1024 * 1024

# The least that one request fetches; a smaller object is fetched whole.
WINDOW_BYTES = 1024 * 1024

_ENCRYPTED = re.compile("encrypted metadata|Cannot decrypt|noted as encrypted|Decryption not set")
_NOT_ENCRYPTED = (
    "Have it written without Parquet's encryption, as S3 encrypts objects itself; or, if only "
    "some columns are encrypted, list the others as `header`, with `header_match: subset`"
)

# The last second, since 1970, of which some microseconds fit into 64 bits, but not all.
_LAST_SECOND = (2**63 - 1) // 1_000_000


@contextlib.contextmanager
def parquet_file(stored: StoredObject) -> Iterator[TypedFile]:
    """Opens a Parquet file without nested columns. Raises ObjectError if pyarrow refuses it."""
    source = RandomAccessFile(stored.size, stored.part, window=WINDOW_BYTES)
    try:
        # In nanoseconds, pyarrow's default, years before 1677 would become other years.
        with _opened(source, "us") as file:
            fields = [
                RecordField(field.name, str(field.type), own_type(field.type))
                for field in file.schema_arrow
            ]
            yield fields, partial(_batches, file, _seconds_of(file, source), fields)
    except MemoryError:
        raise
    # UnicodeError: names in the schema may be invalid text.
    except (pa.ArrowException, OSError, UnicodeError) as exc:
        raise source.failure or _problem(exc, stored) from exc


def _opened(source: RandomAccessFile, unit: str, metadata: Any = None) -> pq.ParquetFile:
    """Opens the file, with legacy timestamps of 96 bits in this unit."""
    return pq.ParquetFile(
        source,
        metadata=metadata,
        buffer_size=COLUMN_BYTES,
        pre_buffer=False,
        coerce_int96_timestamp_unit=unit,
        page_checksum_verification=True,
    )


def _seconds_of(file: pq.ParquetFile, source: RandomAccessFile) -> pq.ParquetFile | None:
    """The file with legacy timestamps, if any, in seconds: as microseconds some may overflow."""
    leaves = (file.schema.column(place) for place in range(len(file.schema)))
    if any(leaf.physical_type == "INT96" for leaf in leaves):
        return _opened(source, "s", file.metadata)
    return None


def _batches(
    file: pq.ParquetFile,
    seconds: pq.ParquetFile | None,
    fields: Sequence[RecordField],
    positions: Sequence[int],
) -> Iterator[list[pa.Array]]:
    """The rows' values of these fields, in batches; other columns are not fetched."""
    old: list[int] = []
    if seconds is not None:
        pairs = zip(file.schema_arrow.types, seconds.schema_arrow.types, strict=True)
        differ = [one != other for one, other in pairs]
        old = [position for position in positions if differ[position]]
    done = 0
    for number in range(file.num_row_groups):
        rows = batch_rows(file.metadata.row_group(number))
        batches = _group(file, number, rows, fields, positions)
        exact = _group(seconds, number, rows, fields, old) if old else itertools.repeat([])
        # If one of these ends early, the comparison of row counts below fails.
        for batch, checks in zip(batches, exact, strict=False):
            for position, check in zip(old, checks, strict=True):
                if (seconds_beyond := _beyond(check)) is not None:
                    # The microseconds overflowed: the cast of these seconds to them fails.
                    batch[positions.index(position)] = seconds_beyond
            yield batch
            done += len(batch[0])
    if done != file.metadata.num_rows:
        raise invalid_file("Parquet", f"it has {done} rows and says {file.metadata.num_rows}")


def _group(
    file: pq.ParquetFile,
    number: int,
    rows: int,
    fields: Sequence[RecordField],
    positions: Sequence[int],
) -> Iterator[list[pa.Array]]:
    """The values of these fields in a row group, `rows` rows at a time."""
    names = [fields[position].name for position in positions]
    # A name that occurs twice has the index -1.
    every = len(names) == len(fields) or min(map(file.schema_arrow.get_field_index, names)) < 0
    for batch in file.iter_batches(
        batch_size=rows,
        row_groups=[number],
        columns=None if every else names,
        use_threads=False,
    ):
        # More columns may be read: for pyarrow, `a.b` is also the field b of a column a.
        found = positions if every else map(batch.schema.get_field_index, names)
        yield [batch.column(position) for position in found]


def _beyond(times: pa.Array) -> pa.Array | None:
    """The times, in seconds, if one of them is out of the range of a `timestamp`; else None."""
    seconds = times.view(pa.int64())
    ends = pc.min_max(seconds)
    least, most = ends["min"].as_py(), ends["max"].as_py()
    if most is None or -_LAST_SECOND <= least <= most < _LAST_SECOND:
        return None
    return pc.if_else(pc.equal(seconds, _LAST_SECOND), _LAST_SECOND + 1, seconds).view(times.type)


def _problem(exc: Exception, stored: StoredObject) -> ObjectError:
    text = str(exc)
    # Only pyarrow's message shows this; asking for a column's metadata crashes the process.
    if _ENCRYPTED.search(text):
        return unreadable_file("Parquet", "it is encrypted", _NOT_ENCRYPTED)
    if isinstance(exc, pa.ArrowNotImplementedError):
        return unreadable_file("Parquet", text)
    kind = kind_in(stored.part(0, min(LOOK_BYTES, stored.size)))
    if kind is None or kind == PARQUET_FILE:
        return invalid_file("Parquet", exc)
    return other_file("Parquet", kind)
