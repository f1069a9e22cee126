"""An object in S3 as a source reads it, with errors that say what to do with the object."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from dbt.adapters.mzs3.errors import ExecutorError, S3Error, SourceError
from dbt.adapters.mzs3.formats.read.format import ObjectFormat, RecordField
from dbt.adapters.mzs3.formats.read.object_error import GONE, NOT_READ, ObjectError
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.failures import (
    ArchivedError,
    MissingError,
    PreconditionFailedError,
    StoreError,
    WrongPartError,
    describe,
)
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.opened import recent_store
from dbt.adapters.mzs3.store.reader import ObjectStream
from dbt.adapters.mzs3.store.store import Store


def task_store(connection: AwsConnection, location: S3Location, source: str) -> Store:
    """The store of a task that reads objects of the source. Raises ExecutorError."""
    try:
        return recent_store(connection, location)
    except S3Error as exc:
        raise ExecutorError(f"{source}: {exc}") from exc


@dataclass(frozen=True)
class S3Object:
    """One version of an object, that which was listed; others are refused."""

    store: Store
    location: S3Location
    key: str
    etag: str
    size: int

    @property
    def uri(self) -> str:
        """Its URI."""
        return self.location.uri_of(self.key)

    def open(self, span: tuple[int, int] | None = None) -> ObjectReader:
        """The object, or a span of its bytes, from front to back; to be closed."""
        return ObjectReader(self.store, self.key, self.etag, span=span)

    def part(self, start: int, end: int) -> bytes:
        """The bytes from `start` to the one before `end`, fetched now. Raises ObjectError."""
        with contextlib.closing(self.open((start, end))) as reader:
            return reader.rest()


def read_fields(
    form: ObjectFormat, stored: S3Object, source: str
) -> tuple[RecordField, ...] | None:
    """The object's header; None if it is empty. Raises SourceError, which names the source."""
    try:
        return form.fields(stored)
    except ObjectError as problem:
        raise SourceError(problem.text(stored.uri, source)) from problem


class ObjectReader(ObjectStream):
    """Reads one object, as it was when it was listed; raises ObjectError where it can't be."""

    def read(self, size: int) -> bytes:
        """Up to `size` bytes, at least one; b"" at the end."""
        try:
            return super().read(size)
        except StoreError as exc:
            raise read_problem(exc, self) from exc


def read_problem(exc: StoreError, stream: ObjectStream) -> ObjectError:
    """What is wrong with an object that could not be read further, and what to do."""
    if isinstance(exc, PreconditionFailedError):
        etag = (stream.etag or "").strip('"')
        problem = f"it was replaced after it was listed: its ETag is no longer {etag}"
        advice = "Do not overwrite objects while they are ingested; run again to list it anew"
        return ObjectError(problem, advice, cause=GONE)
    if isinstance(exc, WrongPartError):
        return ObjectError(
            str(exc),
            "Have the store, or the proxy before it, send the part that is asked for; nothing of "
            "the object was kept; run again",
            cause=NOT_READ,
        )
    if isinstance(exc, MissingError):
        problem = "it was removed after it was listed"
        return ObjectError(problem, "Put it back, or run again without it", cause=GONE)
    if isinstance(exc, ArchivedError):
        problem = f"it is archived, so that it can't be read ({exc})"
        return ObjectError(problem, "Restore it, then run again")
    problem = describe(exc, f"reading it from byte {stream.position}", "s3:GetObject")
    return ObjectError(problem, "Nothing of it was kept; run again", cause=NOT_READ)
