"""An object's bytes as a stream: one GET, resumed where it broke."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError

from dbt.adapters.mzs3.aws.failures import AwsFailure, describe, error_code, is_missing, reason_of
from dbt.adapters.mzs3.csv_source.executor.object_error import GONE, NOT_READ, ObjectError
from dbt.adapters.mzs3.objects.reader import begins_at

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

Read = Callable[[int], bytes]
"""Reads up to that many bytes, at least one; b"" is the end."""

MAX_RESUMES = 4
FIRST_PAUSE_S = 0.2
RAW_READ_BYTES = 256 * 1024


class ObjectReader:
    """Reads one object, as it was when it was listed.

    With `etag` the object must still have that ETag; without, the ETag of the first answer
    holds for the rest. `span` is the first byte to read and the one behind the last; None is the
    whole object. A connection that breaks is resumed at the byte reached, `MAX_RESUMES`
    times without progress at most; an answer that does not start there is an error. Raises
    ObjectError where the object cannot be read.
    """

    def __init__(
        self,
        client: S3Client,
        bucket: str,
        key: str,
        etag: str | None = None,
        *,
        span: tuple[int, int] | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._bucket = bucket
        self._key = key
        self._etag = etag
        self._pause = pause
        self._span = span
        # Where reading goes on, and where it ends; without a span the first answer says that.
        self._position, self._end = span or (0, 0)
        self._body: Any = None

    def read(self, size: int) -> bytes:
        """Up to `size` bytes, at least one; b"" at the end."""
        failures = 0
        while True:
            try:
                if self._body is None:
                    self._open()
                if self._position >= self._end:
                    return b""
                data: bytes = self._body.read(min(size, self._end - self._position))
                if not data:
                    raise ConnectionResetError("the connection ended early")
            except (BotoCoreError, OSError) as exc:
                self.close()
                failures += 1
                if failures > MAX_RESUMES:
                    raise self._unreadable(exc) from exc
                self._pause(FIRST_PAUSE_S * 2 ** (failures - 1))
            else:
                self._position += len(data)
                return data

    def close(self) -> None:
        """Give the connection back; safe to repeat."""
        if self._body is not None:
            self._body.close()
            self._body = None

    def _open(self) -> None:
        request: dict[str, Any] = {"Bucket": self._bucket, "Key": self._key}
        if self._etag is not None:
            request["IfMatch"] = f'"{self._etag}"'
        if self._position or self._span:
            if self._position >= self._end:
                return
            last = self._end - 1 if self._span else ""
            request["Range"] = f"bytes={self._position}-{last}"
        try:
            answer = self._client.get_object(**request)
        except AwsFailure as exc:
            if isinstance(exc, BotoCoreError):
                raise
            raise self._refused(exc) from exc
        self._body = answer["Body"]
        require_answer(answer, self._position, self._etag, whole="Range" not in request)
        if not self._position and not self._span:
            # Of later answers one may be a shorter part; then the next is asked for.
            self._end = answer["ContentLength"]
        self._etag = entity_tag(answer)

    def _refused(self, exc: Exception) -> ObjectError:
        if error_code(exc) in ("PreconditionFailed", "412"):
            return replaced(self._etag)
        if is_missing(exc):
            return ObjectError(
                "it was removed after it was listed",
                "Put it back, or run again without it",
                cause=GONE,
            )
        if error_code(exc) == "InvalidObjectState":
            return ObjectError(
                f"it is archived, so that it can't be read ({reason_of(exc)})",
                "Restore it, then run again",
            )
        return self._unreadable(exc)

    def _unreadable(self, exc: Exception) -> ObjectError:
        doing = f"reading it from byte {self._position}"
        return ObjectError(
            describe(exc, doing, "s3:GetObject"),
            "Nothing of it was kept; run again",
            cause=NOT_READ,
        )


def entity_tag(answer: Mapping[str, Any]) -> str:
    """The answer's ETag without its quotes."""
    tag: str = answer["ETag"]
    return tag.strip('"')


def replaced(etag: str | None) -> ObjectError:
    """What is wrong where the object is not the one that was listed."""
    return ObjectError(
        f"it was replaced after it was listed: its ETag is no longer {etag}",
        "Do not overwrite objects while they are ingested; run again to list it anew",
        cause=GONE,
    )


def require_answer(
    answer: Mapping[str, Any], position: int, etag: str | None, *, whole: bool
) -> None:
    """Raise ObjectError unless the answer is the object with that ETag, from that byte on.

    `whole` if no range was asked for. A store or a proxy may leave out of account the conditions
    and the range of a request.
    """
    if etag is not None and entity_tag(answer) != etag:
        raise replaced(etag)
    if not begins_at(answer, position, whole=whole):
        status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
        content_range, length = answer.get("ContentRange"), answer.get("ContentLength")
        raise ObjectError(
            f"asked for it from byte {position} on, the store sent another part (HTTP {status}, "
            f"Content-Range {content_range}, Content-Length {length})",
            "Have the store, or the proxy before it, send the part that is asked for; nothing of "
            "the object was kept; run again",
            cause=NOT_READ,
        )
