"""The objects and open uploads below a prefix of a bucket."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import Any, TypeVar

from dbt.adapters.mzs3.store.failures import (
    ConflictError,
    MissingBucketError,
    MissingError,
    NotSupportedError,
    StoreError,
    describe,
    on_condition,
)
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.reader import ObjectStream
from dbt.adapters.mzs3.store.store import MAX_DELETES, ListedObject, Store

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_THREADS = 16
_CONFLICTS = 4  # how often a request is retried after a conflict
_PAUSE_S = 0.1  # before the first retry; then twice as long each time
_PROBE = "_mzs3_"


def probe_name() -> str:
    """A new name for an object or upload that serves only to test the store."""
    return f"{_PROBE}{uuid.uuid4().hex}"


@dataclass(frozen=True)
class Prefix:
    """A location and its store; the methods raise StoreError.

    `properties`, such as encryption and tags, are set on objects that `write` writes.
    """

    store: Store
    location: S3Location
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def permissions(self) -> str:
        """The permissions for writing objects with these properties."""
        more = {
            "Tagging": "s3:PutObjectTagging",
            "ACL": "s3:PutObjectAcl",
            "SSEKMSKeyId": "kms:GenerateDataKey and kms:Decrypt on the key",
        }
        needed = [need for name, need in more.items() if name in self.properties]
        return ", ".join(["s3:PutObject", *needed])

    @property
    def uri(self) -> str:
        """The URI of the location."""
        return self.location.uri

    def key(self, name: str) -> str:
        """The key of an object `name` below the location."""
        return self.location.key(name)

    def uri_of(self, key: str) -> str:
        """The URI of a key."""
        return self.location.uri_of(key)

    def is_probe(self, key: str) -> bool:
        """Whether the key is a `probe_name` of any run."""
        return key.startswith(self.key(_PROBE))

    def objects(self, below: str = "") -> Iterator[ListedObject]:
        """The objects below the location whose names begin with `below`."""
        for page in self.store.pages(self.key(below)):
            yield from page.objects

    def now(self) -> int:
        """The time in ms since the epoch, by the store's clock if it tells that, else by ours."""
        page = next(self.store.pages(self.location.prefix, limit=1))
        return page.time or int(time.time() * 1000)

    def find(self, key: str) -> ListedObject | None:
        """The object with this key, or None; needs s3:ListBucket only."""
        found = next(self.store.pages(key, limit=1)).objects
        return next((listed for listed in found if listed.key == key), None)

    def etag(self, key: str) -> str | None:
        """The ETag of the object with this key, or None; needs s3:ListBucket only."""
        found = self.find(key)
        return found.etag if found else None

    def read(self, name: str) -> bytes | None:
        """The content of a small object below the location; None if it does not exist."""
        found = self.read_version(name)
        return found[0] if found else None

    def read_version(self, name: str) -> tuple[bytes, str] | None:
        """The content and the ETag of a small object; None if it does not exist."""
        stream = ObjectStream(self.store, self.key(name))
        try:
            with contextlib.closing(stream):
                return stream.rest(), stream.etag or ""
        except MissingError:
            return None

    def write(self, name: str, body: bytes, **condition: Any) -> str:
        """Writes a small JSON object below the location; returns its ETag.

        The condition is `if_absent=True` (If-None-Match) or `if_version=` an ETag (If-Match).
        """
        properties = {"ContentType": "application/json", **self.properties}
        put = self.store.put
        return _repeat_conflicts(put, self.key(name), body, properties, **condition)

    def delete(self, key: str, **condition: Any) -> None:
        """Deletes an object, which need not exist unless the condition `if_version` is given."""
        _repeat_conflicts(self.store.delete, key, **condition)

    def complete(self, key: str, upload_id: str, etags: Sequence[str], **condition: Any) -> str:
        """Completes a multipart upload, with its parts' ETags in order; returns the object's ETag.

        The condition is as for `write`; it is left out if the store does not support it.
        """
        complete = partial(_repeat_conflicts, self.store.complete, key, upload_id, etags)
        return on_condition(complete, **condition)

    def abort(self, key: str, upload_id: str) -> None:
        """Aborts a multipart upload if it is still open."""
        with contextlib.suppress(MissingError):  # another run or attempt has aborted it
            self.store.abort(key, upload_id)

    def uploads(
        self,
        prefix: str | None = None,
        *,
        begun_by: int | None = None,
        of_whole_bucket: bool = False,
    ) -> Iterator[tuple[str, str]]:
        """Key and id of the open uploads whose keys begin with `prefix`, by default the location,
        and which were opened no later than `begun_by`, in ms since the epoch. `of_whole_bucket`
        lists the whole bucket to find them, as MinIO does not list uploads by prefix."""
        below = self.location.prefix if prefix is None else prefix
        for upload in self.store.uploads("" if of_whole_bucket else below):
            if upload.key.startswith(below) and (
                begun_by is None or upload.begun.timestamp() * 1000 <= begun_by
            ):
                yield upload.key, upload.id


def _repeat_conflicts(request: Callable[..., Answer], *arguments: Any, **condition: Any) -> Answer:
    """Sends the request; retries it after a conflict with another request for the key (409)."""
    was_retried = False
    attempt = 0
    while True:
        try:
            return request(*arguments, **condition)
        except StoreError as exc:
            if was_retried:  # an earlier attempt without a response may have had an effect
                exc.retries = max(1, exc.retries)
            if not isinstance(exc, ConflictError) or attempt == _CONFLICTS:
                raise
            was_retried |= exc.retries > 0
        Event().wait(_PAUSE_S * 2**attempt)
        attempt += 1


def map_concurrently(items: Iterable[Item], work: Callable[[Item], Answer]) -> list[Answer]:
    """Calls `work` in threads; once all have ended, returns the results or raises an error."""
    with ThreadPoolExecutor(_THREADS) as pool:
        outcomes = [pool.submit(work, item) for item in items]
    return [outcome.result() for outcome in outcomes]


def abort_all(prefix: Prefix, uploads: Iterable[tuple[str, str]]) -> list[str]:
    """Aborts uploads, given by key and id; returns a line for each failure."""
    return [
        describe(exc, f"aborting the upload of {prefix.uri_of(key)}", "s3:AbortMultipartUpload")
        for (key, _), exc in _failures(uploads, lambda upload: prefix.abort(*upload)).items()
    ]


def delete_all(prefix: Prefix, keys: Iterable[str]) -> list[str]:
    """Deletes objects; returns a line for each failure."""
    return [
        describe(exc, f"removing {prefix.uri_of(key)}", "s3:DeleteObject")
        for key, exc in delete_many(prefix, keys).items()
    ]


def delete_many(prefix: Prefix, keys: Iterable[str]) -> dict[str, StoreError]:
    """Deletes objects, with DeleteObjects if the store supports that; returns the failures by key.
    Objects need not exist."""
    all_keys = list(keys)
    chunks = [all_keys[at : at + MAX_DELETES] for at in range(0, len(all_keys), MAX_DELETES)]
    failed: dict[str, StoreError] = {}
    for chunk_failures in map_concurrently(chunks, prefix.store.delete_many):
        failed |= chunk_failures
    single = [key for key, exc in failed.items() if isinstance(exc, NotSupportedError)]
    for key in single:
        del failed[key]
    failed |= _failures(single, prefix.delete)
    return {
        key: exc
        for key, exc in failed.items()
        if not isinstance(exc, MissingError) or isinstance(exc, MissingBucketError)
    }


def _failures(items: Iterable[Item], work: Callable[[Item], object]) -> dict[Item, StoreError]:
    """Calls `work` for each item in threads; returns the failures by item."""

    def attempt(item: Item) -> tuple[Item, StoreError | None]:
        try:
            work(item)
        except StoreError as exc:
            return item, exc
        return item, None

    return {item: exc for item, exc in map_concurrently(items, attempt) if exc is not None}
