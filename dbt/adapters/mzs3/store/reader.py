"""Reads an object in S3: as a stream, or a range of it."""

from __future__ import annotations

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
