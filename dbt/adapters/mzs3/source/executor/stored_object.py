"""Objects in S3 as a source reads them, with errors that say what to do with the object.

Small objects are fetched several at a time, before they are read, and returned in groups.
"""

from __future__ import annotations

import contextlib
import io
from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from dbt.adapters.mzs3.errors import ExecutorError, S3Error, SourceError
from dbt.adapters.mzs3.formats.read.chunks import BLOCK_BYTES
from dbt.adapters.mzs3.formats.read.format import ByteStream, ObjectFormat, RecordField
from dbt.adapters.mzs3.formats.read.object_error import GONE, NOT_READ, ObjectError
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.failures import (
    ArchivedError,
    MissingError,
    PreconditionFailedError,
    StoreError,
    WrongRangeError,
    describe,
)
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.opened import shared_store
from dbt.adapters.mzs3.store.reader import ObjectStream
from dbt.adapters.mzs3.store.store import Store

SMALL_BYTES = 256 * 1024
"""Up to this size an object is held in memory as a whole."""

# Not more, as a group with a bad record is read again, object by object.
_MOST_IN_GROUP = 256

# As many threads as the client has connections; twice as many objects are fetched ahead.
_THREADS = 16
_AHEAD = 2 * _THREADS


def task_store(connection: AwsConnection, location: S3Location, source: str) -> Store:
    """The store of a task that reads objects of the source. Raises ExecutorError."""
    try:
        return shared_store(connection, location)
    except S3Error as exc:
        raise ExecutorError(f"{source}: {exc}") from exc


@dataclass(frozen=True)
class S3Object:
    """The version of an object that was listed; reading fails if there is another one now."""

    store: Store
    location: S3Location
    key: str
    etag: str
    size: int

    @property
    def uri(self) -> str:
        """The object's URI."""
        return self.location.uri_of(self.key)

    def open(self) -> ByteStream:
        """A reader of the object, which the caller closes."""
        return ObjectReader(self.store, self.key, self.etag)

    def part(self, start: int, end: int) -> bytes:
        """The bytes from `start` to the one before `end`, fetched now. Raises ObjectError."""
        return self.fetch((start, end))

    def fetch(self, byte_range: tuple[int, int] | None = None) -> bytes:
        """The bytes of the object, or of a range of it, from one GET. Raises ObjectError."""
        reader = ObjectReader(self.store, self.key, self.etag, byte_range=byte_range)
        with contextlib.closing(reader):
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
    """Reads the listed version of one object; raises ObjectError if that fails."""

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
    if isinstance(exc, WrongRangeError):
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


@dataclass(frozen=True)
class HeldObject(S3Object):
    """An object that is fetched as a whole, perhaps by a request that is still running.

    Reading it raises what fetching it has raised.
    """

    content: Future[bytes]

    def open(self) -> io.BytesIO:
        """A reader of the object, without a request. Raises ObjectError."""
        return io.BytesIO(self.content.result())

    def part(self, start: int, end: int) -> bytes:
        """The bytes from `start` to the one before `end`, without a request."""
        return self.content.result()[start:end]


def object_groups(objects: Iterable[S3Object]) -> Generator[list[S3Object], None, None]:
    """The objects in their order: small ones that follow each other in groups, others alone.

    A group has at most `BLOCK_BYTES` in all, and 256 objects. Close the generator to stop the
    fetching.
    """
    group: list[S3Object] = []
    size = 0
    with contextlib.closing(_fetched_ahead(objects)) as ahead:
        for stored in ahead:
            is_small = stored.size <= SMALL_BYTES
            fits = size + stored.size <= BLOCK_BYTES and len(group) < _MOST_IN_GROUP
            if group and not (is_small and fits):
                yield group
                group, size = [], 0
            if is_small:
                group.append(stored)
                size += stored.size
            else:
                yield [stored]
    if group:
        yield group


def _fetched_ahead(objects: Iterable[S3Object]) -> Generator[S3Object, None, None]:
    waiting: deque[S3Object] = deque()
    with ThreadPoolExecutor(_THREADS) as pool:
        try:
            for stored in objects:
                if stored.size <= SMALL_BYTES:
                    content = pool.submit(stored.fetch)
                    stored = HeldObject(**vars(stored), content=content)
                waiting.append(stored)
                if len(waiting) > _AHEAD:
                    yield waiting.popleft()
            while waiting:
                yield waiting.popleft()
        except GeneratorExit:
            pool.shutdown(cancel_futures=True)
            raise
