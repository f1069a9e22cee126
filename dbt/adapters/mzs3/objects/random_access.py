"""An object in S3 as a file that can be read anywhere; runs on executors too."""

from __future__ import annotations

import io
from collections.abc import Callable


class RandomAccessFile(io.RawIOBase):
    """Reads parts of one object of `size` bytes; what `fetch` raises ends a read.

    `fetch(start, end)` gives the bytes from `start` to the one before `end`. A request is for
    `window` bytes at least, of which the last request's are held; without, for just what is read.
    The last `tail` bytes are fetched at once and kept. `failure` is the first exception of
    `fetch`, which what reads from here may have turned into an error of its own.
    """

    def __init__(
        self, size: int, fetch: Callable[[int, int], bytes], *, window: int = 0, tail: int = 0
    ) -> None:
        super().__init__()
        self._size = size
        self._get = fetch
        self._window = window
        self._tail_start = max(0, size - tail)
        self._tail: bytes | None = None
        self._position = 0
        self._start, self._held = 0, b""
        self.failure: Exception | None = None

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
        if not (self._start <= start and end <= self._start + len(self._held)):
            self._hold(start, end)
        return self._held[start - self._start : end - self._start]

    def _hold(self, start: int, end: int) -> None:
        end = min(self._size, max(end, start + self._window))
        # The end of an object is read backwards: what is before it is the next to be asked for.
        start = max(0, min(start, end - self._window))
        self._held = b""  # not both at once
        self._start, self._held = start, self._fetch(start, end)

    def _fetch(self, start: int, end: int) -> bytes:
        try:
            return self._get(start, end)
        except Exception as exc:
            self.failure = self.failure or exc
            raise
