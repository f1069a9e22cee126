"""Reads Parquet with bounded memory, by ranges of an object; runs on executors."""

from __future__ import annotations

import io
from collections.abc import Callable

import pyarrow.parquet as pq

# The most rows of a batch, and about the most bytes.
BATCH_ROWS = 8 * 1024
BATCH_BYTES = 8 * 1024 * 1024


def batch_rows(group: pq.RowGroupMetaData) -> int:
    """How many rows of a row group are read at once; batches of several groups are not bounded."""
    row_bytes: int = group.total_byte_size // max(1, group.num_rows)
    return max(1, min(BATCH_ROWS, BATCH_BYTES // max(1, row_bytes)))


class RandomAccessFile(io.RawIOBase):
    """An object of `size` bytes as a file; `fetch(start, end)` returns a range of the object.

    Each request is for at least `window` bytes, which are kept until the next request. The last
    `tail` bytes are fetched in one request and kept for good. `fetched` counts the fetched bytes.
    `failure` is the first exception of `fetch`: the reader of the file may have raised another
    exception in its place.
    """

    def __init__(
        self, size: int, fetch: Callable[[int, int], bytes], *, window: int = 0, tail: int = 0
    ) -> None:
        super().__init__()
        self._size = size
        self._fetch_range = fetch
        self._window = window
        self._tail_start = max(0, size - tail)
        self._tail: bytes | None = None
        self._position = 0
        self._kept_start, self._kept = 0, b""
        self.fetched = 0
        self.failure: Exception | None = None

    def readable(self) -> bool:
        """Always true."""
        return True

    seekable = readable

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Sets the offset of the next read, without fetching anything."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}
        self._position = base[whence] + offset
        return self._position

    def read(self, size: int = -1, /) -> bytes:
        """Exactly `size` bytes, fewer only at the object's end."""
        left = max(0, self._size - self._position)
        size = left if size is None or size < 0 else min(size, left)
        start, end = self._position, self._position + size
        data = self._bytes(start, end) if size else b""
        self._position = end
        return data

    def _bytes(self, start: int, end: int) -> bytes:
        tail_start = self._tail_start
        if start >= tail_start and self._tail is None:
            self._tail = self._fetch(tail_start, self._size)
        if self._tail is None or end <= tail_start:
            return self._part(start, end)
        before = self._part(start, tail_start) if start < tail_start else b""
        return before + self._tail[max(0, start - tail_start) : end - tail_start]

    def _part(self, start: int, end: int) -> bytes:
        if not self._window:
            return self._fetch(start, end)
        if not (self._kept_start <= start and end <= self._kept_start + len(self._kept)):
            last = min(self._size, max(end, start + self._window))
            # The end of an object is read backwards: the window also has bytes before `start`.
            first = max(0, min(start, last - self._window))
            self._kept = b""  # never two windows in memory
            self._kept_start, self._kept = first, self._fetch(first, last)
        return self._kept[start - self._kept_start : end - self._kept_start]

    def _fetch(self, start: int, end: int) -> bytes:
        try:
            data = self._fetch_range(start, end)
        except Exception as exc:
            self.failure = self.failure or exc
            raise
        self.fetched += len(data)
        return data
