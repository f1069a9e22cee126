"""The SHA-256 and the rows of one object, in one pass over it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.mzs3.export.verify.layout import Layout
from dbt.adapters.mzs3.export.verify.object_file import ObjectFile
from dbt.adapters.mzs3.export.verify.records import BLOCK_BYTES, RecordCounter

CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Content:
    """What an object holds; `rows` is None, and `reason` says why, where they can't be counted."""

    sha256: str
    rows: int | None
    reason: str = ""


def content_of(file: ObjectFile, name: str, layout: Layout) -> Content:
    """Reads the object from its start; holds a chunk of it, and of Parquet the footer.

    Raises what `file` raises.
    """
    file_format, compression = layout.of_file(name)
    source = _Hashed(file)
    rows, reason = None, ""
    try:
        if file_format == "csv":
            rows = _csv_rows(source, compression, layout)
        else:
            source.drain()
            rows = int(pq.read_metadata(pa.PythonFile(file, mode="r")).num_rows)
    except (OSError, pa.ArrowException, _Unreadable) as exc:
        if file.failure is not None:
            raise
        reason = str(exc)
    if file_format == "csv":
        source.drain()
    return Content(source.sha256, rows, reason)


class _Unreadable(Exception):
    """The text is not what an export writes."""


class _Hashed:
    """The object read in order, which is how its hash needs it; a file to pyarrow."""

    closed = False

    def __init__(self, file: ObjectFile) -> None:
        self._file = file
        self._hash = hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self._hash.update(data)
        return data

    def drain(self) -> None:
        while self.read(CHUNK_BYTES):
            pass

    def close(self) -> None:
        pass


def _csv_rows(source: _Hashed, compression: str, layout: Layout) -> int:
    text = source
    if compression != "none":
        text = pa.CompressedInputStream(pa.PythonFile(source, mode="r"), compression)
    counter = RecordCounter(layout.dialect)
    while block := text.read(BLOCK_BYTES):
        counter.feed(block)
    if counter.is_inside:
        raise _Unreadable("it ends within quotes")
    return counter.records - 1 if layout.header and counter.records else counter.records
