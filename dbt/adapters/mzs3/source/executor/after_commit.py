"""Tags, moves or deletes objects whose rows are committed: for a source's `mapInArrow`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa

from dbt.adapters.mzs3.errors import ExecutorError, S3Error
from dbt.adapters.mzs3.formats.read.columns import arrow_schema
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.failures import (
    MissingBucketError,
    MissingError,
    PreconditionFailedError,
    StoreError,
    describe,
)
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.opened import open_store
from dbt.adapters.mzs3.store.prefix import Prefix
from dbt.adapters.mzs3.store.store import ObjectHead, Store

THREADS = 8
WAITING = "waiting"
"""State of an object that S3 refused to act on; `error` says why. The next run tries again."""
LEFT = "left"
"""State of an object that must not be touched; `error` says why."""
GONE = "gone"
OUTCOME_DDL = "`object` string, `etag` string, `state` string, `error` string"

_OUTCOME = arrow_schema(OUTCOME_DDL)
_MARK = "mzs3-moved"
_PERMISSIONS = {
    "tag": "s3:GetObjectTagging and s3:PutObjectTagging",
    "move": "s3:DeleteObject on it, s3:GetObject and s3:PutObject on the target, s3:ListBucket on "
    "both buckets",
    "delete": "s3:DeleteObject",
}


@dataclass(frozen=True)
class AfterSpec:
    """What to do with objects, as sent to the executors; `action` is tag, move or delete.

    `location` is the source's; a moved object keeps the part of its key below it.
    """

    connection: AwsConnection
    location: S3Location
    action: str
    tags: tuple[tuple[str, str], ...] = ()
    target: S3Location | None = None


def act_on(spec: AfterSpec) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For `mapInArrow` over rows `object, etag`: acts on each; returns rows of `OUTCOME_DDL`.

    Idempotent. Skips objects whose ETag has changed. Requests that S3 refuses are outcomes; raises
    ExecutorError only if there is no client.
    """

    def act(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            store = open_store(spec.connection, spec.location)
            target = None
            if spec.target is not None:
                target = Prefix(open_store(spec.connection, spec.target), spec.target)
        except S3Error as exc:
            raise ExecutorError(str(exc)) from exc
        with ThreadPoolExecutor(THREADS) as pool:
            for batch in rows:
                objects = batch.select(["object", "etag"]).to_pylist()
                found = pool.map(lambda one: _outcome(spec, store, target, **one), objects)
                outcomes = [
                    {**one, "state": state, "error": error}
                    for one, (state, error) in zip(objects, found, strict=True)
                ]
                yield pa.RecordBatch.from_pylist(outcomes, schema=_OUTCOME)

    return act


def _outcome(
    spec: AfterSpec, store: Store, target: Prefix | None, object: str, etag: str
) -> tuple[str, str | None]:
    """Acts on the object of this URI. Returns its state, and the reason for WAITING and LEFT."""
    key = spec.location.key_of(object)
    overwritten = f"it was overwritten after it was ingested: its ETag was {etag}"
    doing, permission = f"looking for {object}", "s3:GetObject"
    try:
        head = store.head(key)
        if head.etag.strip('"') != etag:
            return LEFT, overwritten
        doing = f"after_commit: {spec.action} of {object}"
        permission = _PERMISSIONS[spec.action]
        return _act(spec, store, target, head)
    except MissingBucketError as exc:  # the target's
        return WAITING, describe(exc, doing, permission)
    except MissingError:
        return GONE, None
    except PreconditionFailedError:
        return LEFT, overwritten
    except StoreError as exc:
        return WAITING, describe(exc, doing, permission)


def _act(
    spec: AfterSpec, store: Store, target: Prefix | None, head: ObjectHead
) -> tuple[str, str | None]:
    if spec.action == "tag":
        # S3 has no If-Match for tags: an object that is overwritten just now is tagged too.
        store.tag(head.key, store.tags(head.key) | dict(spec.tags))
        return "tagged", None
    if target is not None and (obstacle := _copy(spec, store, target, head)):
        return LEFT, obstacle
    store.delete(head.key, if_version=head.etag)
    return "deleted" if target is None else "moved", None


def _copy(spec: AfterSpec, store: Store, target: Prefix, head: ObjectHead) -> str | None:
    """Copies the object to the target. Returns what is wrong if something else is there."""
    key = target.key(head.key.removeprefix(spec.location.prefix))
    source = f"{spec.location.bucket}/{head.key}"
    etag = head.etag.strip('"')
    mark = f"{etag} {hashlib.sha256(source.encode()).hexdigest()[:32]}"
    there = _marked(target.store, key)
    if there is None:
        try:
            store.copy(head, target.location.bucket, key, {_MARK: mark})
        except PreconditionFailedError:
            there = _marked(target.store, key)
            if there is None:
                raise  # it is the object itself that has changed
        else:
            return None
    if there == mark:
        return None
    return f"{target.uri_of(key)} exists, and is not a copy of it"


def _marked(store: Store, key: str) -> str | None:
    """The mark of the copy under this key; empty for another object, None if there is none."""
    try:
        return store.head(key).metadata.get(_MARK, "")
    except MissingError:
        return None
