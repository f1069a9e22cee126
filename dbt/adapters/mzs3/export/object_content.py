"""The SHA-256 and the row count of an object, in one pass over it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from dbt.adapters.mzs3.formats.format import ExportFormat
from dbt.adapters.mzs3.objects.prefix import ListedObject, Prefix
from dbt.adapters.mzs3.objects.reader import ObjectStream

CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Content:
    """What an object holds; `rows` is None, and `reason` says why, where they can't be counted."""

    sha256: str
    rows: int | None
    reason: str = ""


def content_of(file: ObjectFile, file_format: ExportFormat) -> Content:
    """Reads the object once; holds a chunk of it, and what its format needs.

    Raises what requests for the object raise.
    """
    rows, reason = None, ""
    try:
        rows = file_format.count_rows(pa.PythonFile(file, mode="r"))
    except (OSError, pa.ArrowException, ValueError) as exc:
        if file.failure is not None:
            raise
        reason = str(exc)
    return Content(file.sha256(), rows, reason)


class ObjectFile:
    """The version of an object that was listed, as a file that can be read from any byte on.

    One GET per stretch read in order; holds only what is asked for. Raises what ObjectStream
    raises, and keeps it as `failure`, as pyarrow may turn it into an error of its own.
    """

    closed = False  # to pyarrow; there is nothing to close but the connection

    def __init__(
        self, prefix: Prefix, listed: ListedObject, *, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._size = listed.size
        bucket, span = prefix.location.bucket, (0, listed.size)
        self._stream = ObjectStream(
            prefix.client, bucket, listed.key, listed.etag, span=span, pause=pause
        )
        self._hash = hashlib.sha256()
        self._hashed = 0
        self.failure: Exception | None = None

    def sha256(self) -> str:
        """The hash of the whole object; fetches what was not yet read in order."""
        if self.tell() != self._hashed:
            self.seek(self._hashed)
        while self.read(CHUNK_BYTES):
            pass
        return self._hash.hexdigest()

    def read(self, size: int = -1) -> bytes:
        """Exactly `size` bytes, or all up to the end; fewer only at the end."""
        start = self.tell()
        left = self._size - start
        missing = left if size < 0 else min(size, left)
        pieces = []
        try:
            while missing > 0:
                pieces.append(self._stream.read(missing))
                missing -= len(pieces[-1])
        except Exception as exc:
            self.failure = exc
            raise
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if start == self._hashed:
            self._hash.update(data)
            self._hashed += len(data)
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        """Have the next read begin at another byte."""
        self.close()
        self._stream.position = offset + (0, self.tell(), self._size)[whence]
        return self.tell()

    def tell(self) -> int:
        """The byte that is read next."""
        return self._stream.position

    def seekable(self) -> bool:
        """It is."""
        return True

    def close(self) -> None:
        """Give the connection back; the next read opens another."""
        self._stream.close()
