"""What a store is to the rest of the package: one bucket, and some fifteen requests to it.

A store is a module of this room that has a class with these methods, and a line in `registry.py`.
Requests raise StoreError, and nothing else. Versions are ETags, or what the store has like them,
just as it gives them. Properties of objects have the names that S3 has for them as arguments,
such as `ContentType`, `StorageClass` and `Tagging`: each store translates them to its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, NamedTuple, Protocol

from dbt.adapters.mzs3.store.failures import StoreError

KEYS_PER_PAGE = 1000
"""How many keys a page of a listing has, but for its last one."""
MAX_DELETES = 1000
"""How many keys `delete_many` takes."""
_LONG_AGO = datetime.fromtimestamp(0, timezone.utc)


class ListedObject(NamedTuple):
    """An object as it is listed; its size in bytes."""

    key: str
    etag: str
    size: int
    modified: datetime = _LONG_AGO

    @property
    def modified_ms(self) -> int:
        """When it was written, in ms since the epoch."""
        return int(self.modified.timestamp() * 1000)


class Page(NamedTuple):
    """A page of a listing: objects in the order of their keys, or folders; `time` is the store's,
    in ms since the epoch, if it says so."""

    objects: Sequence[ListedObject]
    folders: Sequence[str] = ()
    is_last: bool = True
    time: int | None = None


class Body(Protocol):
    """The bytes of an answer: `read` raises StoreError, and `close` nothing."""

    def read(self, size: int | None = None) -> bytes:
        """Up to `size` bytes, or all that are left; b"" at the end."""

    def close(self) -> None:
        """Return the connection to the pool, or give it up; safe to repeat."""


class Content(NamedTuple):
    """An object, or the range of it that was asked for; `length` is the body's."""

    body: Body
    etag: str
    length: int | None
    time: int | None = None


class ObjectHead(NamedTuple):
    """What is known of an object; `properties` are for the store alone, which copies them."""

    key: str
    etag: str
    size: int
    modified: datetime
    metadata: Mapping[str, str]
    properties: Mapping[str, Any]


class BegunUpload(NamedTuple):
    """An upload's id; `is_only` if it was asked for once, so that no other one was opened."""

    id: str
    is_only: bool


class OpenedUpload(NamedTuple):
    """An open multipart upload as it is listed."""

    key: str
    id: str
    begun: datetime = _LONG_AGO


class Traits(NamedTuple):
    """What is known of a store without trying it.

    `heeds_conditions`: of all writes and deletions. `numbers_etags`: the ETag of an object that
    was uploaded in parts is S3's formula of theirs, and ends with their number.
    """

    heeds_conditions: bool = False
    numbers_etags: bool = False


class Store(Protocol):
    """A bucket; threads may share it. Without `if_absent`, which replaces nothing, and
    `if_version`, which is about that version alone, a request has no condition."""

    @property
    def place(self) -> str:
        """The same for two stores with the same objects, as far as that can be told."""

    @property
    def traits(self) -> Traits:
        """What is known of it."""

    def get(
        self, key: str, *, version: str | None = None, span: tuple[int, int | None] | None = None
    ) -> Content:
        """An object; or its bytes from the first of `span` to before the second, or its end.

        Raises ReplacedError, or PreconditionFailedError, for another version, WrongPartError for
        other bytes.
        """

    def head(self, key: str) -> ObjectHead:
        """What is known of an object."""

    def put(
        self,
        key: str,
        body: bytes,
        properties: Mapping[str, str],
        *,
        if_absent: bool = False,
        if_version: str | None = None,
    ) -> str:
        """Write an object; its version."""

    def delete(self, key: str, *, if_version: str | None = None) -> None:
        """Delete an object; without a condition it need not exist."""

    def delete_many(self, keys: Sequence[str]) -> Mapping[str, StoreError]:
        """Delete at most `MAX_DELETES` objects by one request; what failed, by key.

        NotSupportedError is for the keys that have to be deleted one by one.
        """

    def pages(
        self, prefix: str, *, after: str = "", limit: int | None = None, folders: bool = False
    ) -> Iterator[Page]:
        """The objects whose keys begin so, and come after `after`; one page of at most `limit`
        where that is given. With `folders`, objects in folders below are told as those."""

    def copy(self, head: ObjectHead, bucket: str, key: str, metadata: Mapping[str, str]) -> None:
        """Copy that version of an object, with all that belongs to it and the metadata; replaces
        nothing, where the store can tell."""

    def tags(self, key: str) -> dict[str, str]:
        """The tags of an object."""

    def tag(self, key: str, tags: Mapping[str, str]) -> None:
        """Set the tags of an object, in place of those it has."""

    def open_upload(self, key: str, properties: Mapping[str, str]) -> BegunUpload:
        """Open a multipart upload of an object that is to have these properties."""

    def put_part(self, key: str, upload_id: str, number: int, body: bytes) -> str:
        """Send a part; its ETag."""

    def complete(
        self,
        key: str,
        upload_id: str,
        etags: Sequence[str],
        *,
        if_absent: bool = False,
        if_version: str | None = None,
    ) -> str:
        """Make an object of the parts, in order; its version, or "" if the store is silent."""

    def abort(self, key: str, upload_id: str) -> None:
        """Abort a multipart upload."""

    def parts(self, key: str, upload_id: str) -> dict[int, tuple[str, int]]:
        """The parts of an open upload: number to ETag and size in bytes."""

    def uploads(self, prefix: str) -> Iterator[OpenedUpload]:
        """The open uploads whose keys begin so, as far as the store lists them."""
