"""An object as a source reads it: a stream whose errors say what to do with the object."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dbt.adapters.mzs3.errors import ExecutorError, S3Error
from dbt.adapters.mzs3.formats.read.object_error import GONE, NOT_READ, ObjectError
from dbt.adapters.mzs3.store.client import recent_s3_client
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.failures import (
    UNMET_CODES,
    AwsFailure,
    describe,
    error_code,
    is_missing,
    reason_of,
)
from dbt.adapters.mzs3.store.reader import ObjectStream, ReplacedError, WrongPartError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

Read = Callable[[int], bytes]
"""Reads up to that many bytes, at least one; b"" is the end."""

RAW_READ_BYTES = 256 * 1024


def task_client(connection: AwsConnection, source: str) -> S3Client:
    """The client of a task that reads objects of the source. Raises ExecutorError."""
    try:
        return recent_s3_client(connection)
    except S3Error as exc:
        raise ExecutorError(f"{source}: {exc}") from exc


class _RawFile(io.RawIOBase):
    def __init__(self, read: Read) -> None:
        super().__init__()
        self._read = read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._read(min(len(buffer), RAW_READ_BYTES))
        buffer[: len(data)] = data
        return len(data)


def as_file(read: Read) -> io.BufferedReader:
    """A file of the bytes that `read` gives."""
    return io.BufferedReader(_RawFile(read), RAW_READ_BYTES)


class ObjectReader(ObjectStream):
    """Reads one object, as it was when it was listed; raises ObjectError where it can't be."""

    def read(self, size: int) -> bytes:
        """Up to `size` bytes, at least one; b"" at the end."""
        try:
            return super().read(size)
        except (*AwsFailure, ReplacedError, WrongPartError) as exc:
            raise read_problem(exc, self) from exc


def read_problem(exc: Exception, stream: ObjectStream) -> ObjectError:
    """What is wrong with an object that could not be read further, and what to do."""
    if isinstance(exc, ReplacedError) or error_code(exc) in UNMET_CODES:
        problem = f"it was replaced after it was listed: its ETag is no longer {stream.etag}"
        advice = "Do not overwrite objects while they are ingested; run again to list it anew"
        return ObjectError(problem, advice, cause=GONE)
    if isinstance(exc, WrongPartError):
        return ObjectError(
            str(exc),
            "Have the store, or the proxy before it, send the part that is asked for; nothing of "
            "the object was kept; run again",
            cause=NOT_READ,
        )
    if is_missing(exc):
        problem = "it was removed after it was listed"
        return ObjectError(problem, "Put it back, or run again without it", cause=GONE)
    if error_code(exc) == "InvalidObjectState":
        problem = f"it is archived, so that it can't be read ({reason_of(exc)})"
        return ObjectError(problem, "Restore it, then run again")
    problem = describe(exc, f"reading it from byte {stream.position}", "s3:GetObject")
    return ObjectError(problem, "Nothing of it was kept; run again", cause=NOT_READ)
