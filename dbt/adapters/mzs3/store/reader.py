"""Reads an object of a store, or a range of it, as a stream."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

from dbt.adapters.mzs3.store.failures import BrokenError, UnreadableError
from dbt.adapters.mzs3.store.store import Body, ByteRange, Store

MAX_RESUMES = 4
FIRST_PAUSE_S = 0.2
_READ_BYTES = 1024 * 1024


@dataclass(eq=False)
class ObjectStream:
    """One version of an object as a stream of bytes: one GET, resumed if the connection breaks.

    The version is `etag`, or that of the first response. The end of `byte_range` is excluded.
    Reading is resumed where the connection broke, at most `MAX_RESUMES` times without progress. It
    raises StoreError.
    """

    store: Store
    key: str
    etag: str | None = None
    _: KW_ONLY
    byte_range: tuple[int, int] | None = None
    pause: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        # The next byte and the end; without a range, the first response tells the end.
        self.position, self._end = self.byte_range or (0, 0)
        self._body: Body | None = None
        self.time: int | None = None
        """The time of the last response, by the store's clock, in ms since the epoch."""

    def read(self, size: int) -> bytes:
        """At least one byte and up to `size`; b"" at the end."""
        failures = 0
        while True:
            try:
                data = self._next(size)
            except BrokenError:
                self.close()
                failures += 1
                if failures > MAX_RESUMES:
                    raise
                self.pause(FIRST_PAUSE_S * 2 ** (failures - 1))
            else:
                self.position += len(data)
                return data

    def _next(self, size: int) -> bytes:
        body = self._body or self._open()
        if body is None or self.position >= self._end:
            return b""
        data = body.read(min(size, self._end - self.position))
        if not data:
            raise BrokenError("the connection ended early")
        return data

    def rest(self) -> bytes:
        """All remaining bytes, in memory."""
        return b"".join(iter(lambda: self.read(_READ_BYTES), b""))

    def close(self) -> None:
        """Returns the connection to the pool; may be repeated."""
        if self._body is not None:
            self._body.close()
            self._body = None

    def _open(self) -> Body | None:
        """Requests the object from `position` on; returns the body, or None at the end."""
        byte_range: ByteRange | None = None
        if self.position or self.byte_range:
            if self.position >= self._end:
                return None
            byte_range = self.position, self._end if self.byte_range else None
        answer = self.store.get(self.key, version=self.etag, byte_range=byte_range)
        self._body, self.time = answer.body, answer.time
        if byte_range is None:
            # Only a whole object's response tells the end. A range's may be short, and is resumed.
            if answer.length is None:
                self.close()
                raise UnreadableError("the answer has no Content-Length", code="AnswerError")
            self._end = answer.length
        self.etag = answer.etag
        return self._body
