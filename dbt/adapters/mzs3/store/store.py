"""The interface of stores: one bucket, and some fifteen requests to it.

Each kind of store has a module in this folder, with a class that has these methods, and a line in
`location.py`. Requests raise only StoreError. A version is the ETag exactly as the store sent it
(quotes included), or the store's equivalent. Properties of objects have the names of boto3's
arguments, such as `ContentType`, `StorageClass` and `Tagging`; each store translates them.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, NamedTuple, Protocol

from dbt.adapters.mzs3.store.failures import StoreError

KEYS_PER_PAGE = 1000
"""How many keys a page of a listing has; the last page may have fewer."""
MAX_DELETES = 1000
"""The most keys for one call of `delete_many`."""
SHA256_AFTER = " sha256="
"""What is between the ETag of a part and its SHA-256 in base64, if it was sent with that."""
ByteRange = tuple[int, int | None]
"""`(start, end)`, end excluded; None for `end` is the end of the object."""
_UNKNOWN_TIME = datetime.fromtimestamp(0, timezone.utc)


class ListedObject(NamedTuple):
    """An object in a listing; its size is in bytes."""

    key: str
    etag: str
    size: int
    modified: datetime = _UNKNOWN_TIME

    @property
    def modified_ms(self) -> int:
        """When the object was written, in ms since the epoch."""
        return int(self.modified.timestamp() * 1000)


class Page(NamedTuple):
    """A page of a listing: the objects in the order of their keys, the folders, and the `time` of
    the response, by the store's clock in ms since the epoch, if known."""

    objects: Sequence[ListedObject]
    folders: Sequence[str] = ()
    is_last: bool = True
    time: int | None = None


class Body(Protocol):
    """The body of a response. `read` raises StoreError; `close` raises nothing."""

    def read(self, size: int | None = None) -> bytes:
        """Up to `size` bytes, or all that are left; b"" at the end."""

    def close(self) -> None:
        """Returns the connection to the pool, or closes it; may be repeated."""


class Content(NamedTuple):
    """An object, or the requested range of it; `length` is that of the body."""

    body: Body
    etag: str
    length: int | None
    time: int | None = None


class ObjectHead(NamedTuple):
    """The result of HEAD for an object; only `copy` uses its `properties`."""

    key: str
    etag: str
    size: int
    modified: datetime
    metadata: Mapping[str, str]
    properties: Mapping[str, Any]


class NewUpload(NamedTuple):
    """The id of an upload that was just opened.

    Unless `is_sole_upload`, retries of the request may have opened more uploads. With
    `has_sha256`, each part has to be sent with its SHA-256.
    """

    id: str
    is_sole_upload: bool
    has_sha256: bool = False


class ListedUpload(NamedTuple):
    """An open multipart upload in a listing."""

    key: str
    id: str
    begun: datetime = _UNKNOWN_TIME


class Store(Protocol):
    """A bucket; threads may share it. Requests may have a condition: with `if_absent`, no existing
    object is replaced; with `if_version`, only that version is replaced or deleted."""

    @property
    def identity(self) -> str:
        """A key for the bucket: equal for two stores that reach the same one, as far as known."""

    @property
    def is_amazon_s3(self) -> bool:
        """Whether the store is known to be Amazon S3, without testing it.

        Then all writes and deletes can be conditional, and the ETag of a completed upload is
        computed from its parts' ETags by S3's formula, and ends with their number.
        """

    def get(
        self, key: str, *, version: str | None = None, byte_range: ByteRange | None = None
    ) -> Content:
        """An object, or a range of its bytes. Raises PreconditionFailedError if the object has
        another version, and WrongRangeError if the store sends another range."""

    def head(self, key: str) -> ObjectHead:
        """The result of HEAD for an object."""

    def put(
        self,
        key: str,
        body: bytes,
        properties: Mapping[str, str],
        *,
        if_absent: bool = False,
        if_version: str | None = None,
    ) -> str:
        """Writes an object; returns its version."""

    def delete(self, key: str, *, if_version: str | None = None) -> None:
        """Deletes an object, which need not exist unless there is a condition."""

    def delete_many(self, keys: Sequence[str]) -> Mapping[str, StoreError]:
        """Deletes at most `MAX_DELETES` objects with one request; returns the failures by key.

        NotSupportedError means that `delete` has to be called for this key.
        """

    def pages(
        self, prefix: str, *, after: str = "", limit: int | None = None, folders: bool = False
    ) -> Iterator[Page]:
        """The objects whose keys begin with `prefix` and come after `after`; with `limit`, one
        page of at most that many. With `folders`, folders are listed instead of their objects."""

    def copy(self, head: ObjectHead, bucket: str, key: str, metadata: Mapping[str, str]) -> None:
        """Copies the version of an object that `head` describes, with its properties and with
        `metadata` added to its own; replaces no object where the store can prevent that."""

    def tags(self, key: str) -> dict[str, str]:
        """The tags of an object."""

    def tag(self, key: str, tags: Mapping[str, str]) -> None:
        """Replaces the tags of an object."""

    def open_upload(
        self, key: str, properties: Mapping[str, str], *, with_sha256: bool = False
    ) -> NewUpload:
        """Opens a multipart upload, whose object will have these properties; `with_sha256` asks
        the store to keep the SHA-256 of each part."""

    def put_part(
        self, key: str, upload_id: str, number: int, body: bytes, *, with_sha256: bool = False
    ) -> str:
        """Sends a part; returns its ETag, and after SHA256_AFTER the SHA-256 if sent with it."""

    def complete(
        self,
        key: str,
        upload_id: str,
        etags: Sequence[str],
        *,
        if_absent: bool = False,
        if_version: str | None = None,
    ) -> str:
        """Completes an upload, with its parts' ETags in order; returns the object's version, or ""
        if the response has none."""

    def abort(self, key: str, upload_id: str) -> None:
        """Aborts a multipart upload."""

    def parts(self, key: str, upload_id: str) -> dict[int, tuple[str, int]]:
        """The parts of an open upload: number to ETag, as `put_part` has it, and size in bytes."""

    def uploads(self, prefix: str) -> Iterator[ListedUpload]:
        """The open uploads whose keys begin with `prefix`; some stores do not list all of them."""


def sha256_of(body: bytes) -> str:
    """The SHA-256 of a part, in base64."""
    return base64.b64encode(hashlib.sha256(body).digest()).decode()
