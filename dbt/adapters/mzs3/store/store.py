"""A store as the rest of the package sees it: one bucket, and some fifteen requests to it.

A store is a module of this room with a class that has these methods, and a line in `location.py`.
Requests raise StoreError only. Versions are ETags, or what the store has instead, unchanged.
Properties of objects have the names of boto3's arguments, such as `ContentType`, `StorageClass`
and `Tagging`; each store translates them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, NamedTuple, Protocol

from dbt.adapters.mzs3.store.failures import StoreError

KEYS_PER_PAGE = 1000
"""How many keys each page of a listing has but the last."""
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
    """A page of a listing: objects in the order of their keys, or folders; and the time by the
    store's clock, in ms since the epoch, if it is known."""

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
    """An object, or the requested range of it; `length` is that of the body."""

    body: Body
    etag: str
    length: int | None
    time: int | None = None


class ObjectHead(NamedTuple):
    """What HEAD says of an object; `properties` are for the store alone, which copies them."""

    key: str
    etag: str
    size: int
    modified: datetime
    metadata: Mapping[str, str]
    properties: Mapping[str, Any]


class BegunUpload(NamedTuple):
    """An upload's id; `is_only` if the request was sent once, so that it opened no other one."""

    id: str
    is_only: bool


class OpenedUpload(NamedTuple):
    """An open multipart upload as it is listed."""

    key: str
    id: str
    begun: datetime = _LONG_AGO


class Traits(NamedTuple):
    """What is known of a store without a trial.

    `heeds_conditions`: it obeys those of all writes and deletions. `numbers_etags`: the ETag of a
    multipart upload follows from those of its parts by S3's formula, and ends with their number.
    """

    heeds_conditions: bool = False
    numbers_etags: bool = False


class Store(Protocol):
    """A bucket; threads may share it. Without `if_absent`, which replaces nothing, and
    `if_version`, which is about that version alone, a request has no condition."""

    @property
    def place(self) -> str:
        """Equal for two stores with the same objects, as far as that can be known."""

    @property
    def traits(self) -> Traits:
        """What is known of the store without a trial."""

    def get(
        self, key: str, *, version: str | None = None, span: tuple[int, int | None] | None = None
    ) -> Content:
        """An object; or its bytes from the first of `span` to before the second, or its end.

        Raises ReplacedError, or PreconditionFailedError, for another version, WrongPartError for
        other bytes.
        """

    def head(self, key: str) -> ObjectHead:
        """What the store says of an object."""

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
        """The objects whose keys begin with `prefix` and come after `after`; with a `limit`, one
        page of so many. With `folders`, the folders below in the place of the objects in them."""

    def copy(self, head: ObjectHead, bucket: str, key: str, metadata: Mapping[str, str]) -> None:
        """Copy that version of an object, with its properties and the metadata; replaces nothing
        if the store has the condition."""

    def tags(self, key: str) -> dict[str, str]:
        """The tags of an object."""

    def tag(self, key: str, tags: Mapping[str, str]) -> None:
        """Replace the tags of an object."""

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
        """Make an object of the parts, in order; its version, or "" if the answer has none."""

    def abort(self, key: str, upload_id: str) -> None:
        """Abort a multipart upload."""

    def parts(self, key: str, upload_id: str) -> dict[int, tuple[str, int]]:
        """The parts of an open upload: number to ETag and size in bytes."""

    def uploads(self, prefix: str) -> Iterator[OpenedUpload]:
        """The open uploads whose keys begin with `prefix`, as far as the store lists them."""
