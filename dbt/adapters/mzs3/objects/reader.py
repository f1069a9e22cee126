"""Reading an object in S3: a part of it, or anywhere as a file."""

from __future__ import annotations

import contextlib
import io
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MAX_RESUMES = 4
FIRST_PAUSE_S = 0.2
_READ_BYTES = 1024 * 1024

_CONTENT_RANGE = re.compile(r"\s*bytes\s+(\d+)-(\d+)/(\d+|\*)\s*", re.IGNORECASE)


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


class ReplacedError(Exception):
    """The object is no longer the one that was meant."""


@dataclass(frozen=True)
class ObjectVersion:
    """One object, as it was when it had this ETag: as another one it is not read."""

    client: S3Client
    bucket: str
    key: str
    etag: str
    pause: Callable[[float], None] = time.sleep

    def part(self, start: int, end: int) -> bytes:
        """The bytes from `start` to the one before `end`.

        A connection that breaks is resumed at the byte reached, `MAX_RESUMES` times without
        progress at most. Raises ReplacedError, AwsFailure or OSError.
        """
        pieces: list[bytes] = []
        position, failures = start, 0
        while position < end:
            try:
                with contextlib.closing(self._open(position, end)) as body:
                    while position < end:
                        data: bytes = body.read(min(end - position, _READ_BYTES))
                        if not data:
                            raise ConnectionResetError("the connection ended early")
                        pieces.append(data)
                        position += len(data)
                        failures = 0
            except (BotoCoreError, OSError):
                failures += 1
                if failures > MAX_RESUMES:
                    raise
                self.pause(FIRST_PAUSE_S * 2 ** (failures - 1))
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _open(self, start: int, end: int) -> Any:
        answer = self.client.get_object(
            Bucket=self.bucket,
            Key=self.key,
            Range=f"bytes={start}-{end - 1}",
            IfMatch=f'"{self._tag()}"',
        )
        body: Any = answer["Body"]
        # A store or a proxy may leave the conditions and the range of a request out of account.
        if answer["ETag"].strip('"') != self._tag():
            body.close()
            raise ReplacedError
        if not begins_at(answer, start, whole=False):
            body.close()
            raise OSError(f"asked for it from byte {start} on, the store sent another part")
        return body

    def _tag(self) -> str:
        return self.etag.strip('"')


def begins_at(answer: Mapping[str, Any], position: int, *, whole: bool) -> bool:
    """Whether the body begins at that byte of the object, and is as long as the answer says.

    If `whole`, for a request without a range, it also has to end where the object does. A store
    or a proxy may leave the range of a request out of account. What counts is Content-Range, not
    the status: there are stores that send a part with 200 instead of 206.
    """
    content_range, length = answer.get("ContentRange"), answer.get("ContentLength")
    if content_range is None:
        return position == 0
    found = _CONTENT_RANGE.fullmatch(content_range)
    if found is None:
        return False
    first, last = int(found[1]), int(found[2])
    if whole and found[3] != str(last + 1):
        return False
    return first == position and length in (None, last - first + 1)
