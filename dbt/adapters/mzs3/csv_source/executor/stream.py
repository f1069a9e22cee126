"""An object's bytes as a stream: one GET, resumed where it broke, decompressed on the way."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError

from dbt.adapters.mzs3.aws.failures import AwsFailure, describe, error_code, is_missing
from dbt.adapters.mzs3.csv_source.executor.answer import (
    entity_tag,
    replaced,
    require_answer,
)
from dbt.adapters.mzs3.csv_source.executor.problem import FIX_OBJECT, CsvProblem

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

Read = Callable[[int], bytes]
"""Reads up to that many bytes, at least one; b"" is the end."""

MAX_RESUMES = 4
FIRST_PAUSE_S = 0.2
RAW_READ_BYTES = 256 * 1024
GZIP_SUFFIXES = (".gz", ".gzip")
GZIP_MAGIC = b"\x1f\x8b"

# zlib's own number for "a gzip member, header and checksum included".
_GZIP_WINDOW = 31


class ObjectReader:
    """Reads one object, as it was when it was listed.

    With `etag` the object must still have that ETag; without, the ETag of the first answer
    holds for the rest. A connection that breaks is resumed at the byte reached, `MAX_RESUMES`
    times without progress at most; an answer that does not start there is an error. Raises
    CsvProblem where the object cannot be read.
    """

    def __init__(
        self,
        client: S3Client,
        bucket: str,
        key: str,
        etag: str | None = None,
        *,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._bucket = bucket
        self._key = key
        self._etag = etag
        self._pause = pause
        self._position = 0
        self._size = 0
        self._body: Any = None

    def read(self, size: int) -> bytes:
        """Up to `size` bytes, at least one; b"" at the end of the object."""
        failures = 0
        while True:
            try:
                if self._body is None:
                    self._open()
                if self._position >= self._size:
                    return b""
                data: bytes = self._body.read(size)
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
        if self._position:
            if self._position >= self._size:
                return
            request["Range"] = f"bytes={self._position}-"
        try:
            answer = self._client.get_object(**request)
        except AwsFailure as exc:
            if isinstance(exc, BotoCoreError):
                raise
            raise self._refused(exc) from exc
        self._body = answer["Body"]
        require_answer(answer, self._position, self._etag)
        if not self._position:
            # Of later answers one may be a shorter part; then the next is asked for.
            self._size = answer["ContentLength"]
        self._etag = entity_tag(answer)

    def _refused(self, exc: Exception) -> CsvProblem:
        if error_code(exc) in ("PreconditionFailed", "412"):
            return replaced(self._etag)
        if is_missing(exc):
            return CsvProblem(
                "it was removed after it was listed",
                "Put it back, or run again without it",
            )
        return self._unreadable(exc)

    def _unreadable(self, exc: Exception) -> CsvProblem:
        doing = f"reading it from byte {self._position}"
        return CsvProblem(
            describe(exc, doing, "s3:GetObject"), "Nothing of it was kept; run again"
        )


class Gunzip:
    """Decompresses a gzip stream of one or several members, never holding more than it returns.

    Raises CsvProblem where the bytes are not gzip, or end inside a member.
    """

    def __init__(self, read: Read) -> None:
        self._read = read
        self._input = b""
        self._member: Any = None

    def read(self, size: int) -> bytes:
        """Up to `size` decompressed bytes, at least one; b"" at the end of the last member."""
        while self._member is not None or self._begin_member():
            raw = self._input or self._read(RAW_READ_BYTES)
            try:
                data: bytes = self._member.decompress(raw, size)
            except zlib.error as exc:
                raise CsvProblem(
                    f"it is not valid gzip ({exc})",
                    "Correct or remove the object; for objects that are not compressed declare "
                    "`compression: none`",
                ) from exc
            self._input = self._member.unconsumed_tail
            if self._member.eof:
                self._input = self._member.unused_data
                self._member = None
            elif not raw and not data:
                raise CsvProblem("its gzip stream ends early", FIX_OBJECT)
            if data:
                return data
        return b""

    def _begin_member(self) -> bool:
        # Zero bytes between and after members are padding, as they are to gzip itself.
        self._input = self._input.lstrip(b"\0")
        while not self._input:
            raw = self._read(RAW_READ_BYTES)
            if not raw:
                return False
            self._input = raw.lstrip(b"\0")
        self._member = zlib.decompressobj(_GZIP_WINDOW)
        return True


def is_gzip(key: str, compression: str) -> bool:
    """Whether the object at `key` is to be decompressed: by its suffix unless declared."""
    if compression == "by_suffix":
        return key.lower().endswith(GZIP_SUFFIXES)
    return compression == "gzip"


def plain_reader(source: ObjectReader, key: str, compression: str) -> Read:
    """Reads the object's text: its bytes, or what they decompress to."""
    return Gunzip(source.read).read if is_gzip(key, compression) else source.read
