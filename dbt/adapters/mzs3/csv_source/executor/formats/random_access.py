"""An object in S3 as a file that can be read anywhere, for formats that begin at the end."""

from __future__ import annotations

import io

from dbt.adapters.mzs3.csv_source.executor.formats.format import StoredObject
from dbt.adapters.mzs3.csv_source.executor.problem import CsvProblem

# What one request fetches at least; smaller objects are fetched whole.
WINDOW_BYTES = 1024 * 1024


class ObjectFile(io.RawIOBase):
    """Reads parts of one object; all are of the version that was listed, or reading fails.

    Holds what was fetched last. `failure` is the first problem that reading ended in, which what
    reads from here may have turned into an error of its own.
    """

    def __init__(self, stored: StoredObject) -> None:
        super().__init__()
        self._stored = stored
        self._position = 0
        self._start, self._held = 0, b""
        self.failure: CsvProblem | None = None

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Have the next read begin elsewhere; nothing is fetched yet."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._stored.size}
        self._position = base[whence] + offset
        return self._position

    def read(self, size: int = -1, /) -> bytes:
        """Exactly `size` bytes, fewer only at the object's end. Raises CsvProblem."""
        left = max(0, self._stored.size - self._position)
        size = left if size is None or size < 0 else min(size, left)
        if not self._holds(size):
            self._fetch(size)
        begin = self._position - self._start
        self._position += size
        return self._held[begin : begin + size]

    def _holds(self, size: int) -> bool:
        end = self._start + len(self._held)
        return self._start <= self._position and self._position + size <= end

    def _fetch(self, size: int) -> None:
        total = self._stored.size
        end = min(total, self._position + max(size, WINDOW_BYTES))
        # The end of an object is read backwards: what is before it is the next to be asked for.
        start = max(0, min(self._position, end - WINDOW_BYTES))
        self._held = b""  # not both at once
        try:
            self._start, self._held = start, self._stored.part(start, end)
        except CsvProblem as problem:
            self.failure = self.failure or problem
            raise
