"""Small objects, fetched some at a time before they are read, and put into groups."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from dbt.adapters.mzs3.formats.read.chunks import BLOCK_BYTES
from dbt.adapters.mzs3.source.executor.stored_object import ObjectReader, S3Object

SMALL_BYTES = 256 * 1024
"""Up to this size an object is held in memory as a whole."""

# One in which a record is bad is read once more, object by object.
_MOST_IN_GROUP = 256

# As many as the client has connections; as many again are fetched when they are asked for.
_THREADS = 16
_AHEAD = 2 * _THREADS


class _HeldReader(ObjectReader):
    """Reads what is already fetched; raises at the first read what fetching it raised."""

    content: Future[bytes]

    def read(self, size: int) -> bytes:
        """Up to `size` bytes, at least one; b"" at the end. Raises ObjectError."""
        end = (
            self.position + size if self.span is None else min(self.position + size, self.span[1])
        )
        data = self.content.result()[self.position : end]
        self.position += len(data)
        return data


@dataclass(frozen=True)
class HeldObject(S3Object):
    """An object that is fetched as a whole, perhaps still on its way."""

    content: Future[bytes]

    def open(self, span: tuple[int, int] | None = None) -> ObjectReader:
        """The object, or a span of its bytes, without a request."""
        reader = _HeldReader(self.store, self.key, self.etag, span=span)
        reader.content = self.content
        return reader


def grouped(objects: Iterable[S3Object]) -> Generator[list[S3Object], None, None]:
    """The objects in their order: small ones that follow each other in groups, others alone.

    A group has at most `BLOCK_BYTES` in all, and 256 objects. Close it, so that nothing is fetched
    any more.
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
                waiting.append(_requested(stored, pool))
                if len(waiting) > _AHEAD:
                    yield waiting.popleft()
            while waiting:
                yield waiting.popleft()
        except GeneratorExit:
            pool.shutdown(cancel_futures=True)
            raise


def _requested(stored: S3Object, pool: ThreadPoolExecutor) -> S3Object:
    if stored.size > SMALL_BYTES:
        return stored
    content = pool.submit(_content, stored)
    return HeldObject(**vars(stored), content=content)


def _content(stored: S3Object) -> bytes:
    with contextlib.closing(stored.open()) as reader:
        return reader.rest()
