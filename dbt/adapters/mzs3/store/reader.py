"""Reads an object in S3: as a stream, a range of it, or as a file with random access."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import HTTPClientError, IncompleteReadError

from dbt.adapters.mzs3.store.body import AnswerError, Body, TransportError, get_object

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MAX_RESUMES = 4
FIRST_PAUSE_S = 0.2
_READ_BYTES = 1024 * 1024
# After these the same request may well succeed; not without keys, say, or with wrong arguments.
_BROKEN = (TransportError, HTTPClientError, IncompleteReadError)

_CONTENT_RANGE = re.compile(r"\s*bytes\s+(\d+)-(\d+)/(\d+|\*)\s*", re.IGNORECASE)


class RandomAccessFile(io.RawIOBase):
    """An object of `size` bytes as a file, of which `fetch(start, end)` gives a range.

    Each request is for `window` bytes at least, which are kept until the next one. The last
    `tail` bytes are fetched at once and kept for good. `fetched` counts the bytes. `failure` is
    the first exception of `fetch`, as the reader of the file may have turned it into one of its
    own.
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
        self.fetched = 0
        self.failure: Exception | None = None

    def readable(self) -> bool:
        """True."""
        return True

    seekable = readable

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the offset of the next read; nothing is fetched yet."""
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
            last = min(self._size, max(end, start + self._window))
            # The end of an object is read backwards: what is before it is asked for next.
            first = max(0, min(start, last - self._window))
            self._held = b""  # not both at once
            self._start, self._held = first, self._fetch(first, last)
        return self._held[start - self._start : end - self._start]

    def _fetch(self, start: int, end: int) -> bytes:
        try:
            data = self._get(start, end)
        except Exception as exc:
            self.failure = self.failure or exc
            raise
        self.fetched += len(data)
        return data


class ReplacedError(Exception):
    """The object has another ETag than expected."""


class WrongPartError(OSError):
    """The store sent another range than it was asked for."""


@dataclass(eq=False)
class ObjectStream:
    """One version of an object as a stream of bytes: one GET, resumed where it broke.

    The version is that of `etag`, or of the first answer. `span` is the range of bytes to read,
    as in `range`. A connection that breaks is resumed at the byte reached, at most `MAX_RESUMES`
    times without progress. Reading raises ReplacedError, WrongPartError, or AwsFailure.
    """

    client: S3Client
    bucket: str
    key: str
    etag: str | None = None
    _: KW_ONLY
    span: tuple[int, int] | None = None
    pause: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        self.etag = self.etag and self.etag.strip('"')
        # Where reading goes on, and where it ends; without a span the first answer says that.
        self.position, self._end = self.span or (0, 0)
        self._body: Body | None = None

    def read(self, size: int) -> bytes:
        """At least one byte and up to `size`; b"" at the end."""
        failures = 0
        while True:
            try:
                data = self._next(size)
            except (ReplacedError, WrongPartError):
                self.close()
                raise
            except _BROKEN:
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
            raise TransportError(reason="the connection ended early")
        return data

    def rest(self) -> bytes:
        """All remaining bytes, in memory."""
        return b"".join(iter(lambda: self.read(_READ_BYTES), b""))

    def close(self) -> None:
        """Return the connection to the pool; safe to repeat."""
        if self._body is not None:
            self._body.close()
            self._body = None

    def _open(self) -> Body | None:
        """The answer's body from the position on, or None at the end."""
        request: dict[str, Any] = {"Bucket": self.bucket, "Key": self.key}
        if self.etag is not None:
            request["IfMatch"] = f'"{self.etag}"'
        if self.position or self.span:
            if self.position >= self._end:
                return None
            last = self._end - 1 if self.span else ""
            request["Range"] = f"bytes={self.position}-{last}"
        answer = get_object(self.client, **request)
        self._body = answer["Body"]
        # A store or a proxy may leave the conditions and the range of a request out of account.
        etag = answer["ETag"].strip('"')
        if etag != (self.etag or etag):
            raise ReplacedError
        if not begins_at(answer, self.position, whole="Range" not in request):
            status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
            raise WrongPartError(
                f"asked for it from byte {self.position} on, the store sent another part (HTTP "
                f"{status}, Content-Range {answer.get('ContentRange')}, Content-Length "
                f"{answer.get('ContentLength')})"
            )
        if not self.position and not self.span:
            # Of later answers one may be a shorter part; then the next is asked for.
            if "ContentLength" not in answer:
                raise AnswerError(header="Content-Length")
            self._end = answer["ContentLength"]
        self.etag = etag
        return self._body


def begins_at(answer: Mapping[str, Any], position: int, *, whole: bool) -> bool:
    """Whether the body begins at that byte of the object, and has the length of Content-Range.

    If `whole`, it also has to end where the object does. There are stores that send a part with
    the status 200, so that is not looked at.
    """
    content_range, length = answer.get("ContentRange"), answer.get("ContentLength")
    if content_range is None:
        return position == 0
    found = _CONTENT_RANGE.fullmatch(content_range)
    if found is None or int(found[1]) != position:
        return False
    end = int(found[2]) + 1
    return length in (None, end - position) and (not whole or found[3] == str(end))
