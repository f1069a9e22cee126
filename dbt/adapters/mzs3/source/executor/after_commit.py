"""Tags, moves or deletes objects whose rows are committed: for a source's `mapInArrow`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dbt.adapters.mzs3.errors import ExecutorError, S3Error
from dbt.adapters.mzs3.formats.read.columns import arrow_schema
from dbt.adapters.mzs3.store.body import transport
from dbt.adapters.mzs3.store.client import s3_client
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.failures import (
    UNMET_CODES,
    AwsFailure,
    describe,
    error_code,
    is_missing,
    on_condition,
)

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

THREADS = 8
WAITING = "waiting"
"""State of an object that S3 refused to act on; `error` says why. The next run tries again."""
LEFT = "left"
"""State of an object that must not be touched; `error` says why."""
GONE = "gone"
OUTCOME_DDL = "`object` string, `etag` string, `state` string, `error` string"

_OUTCOME = arrow_schema(OUTCOME_DDL)
# S3 copies no object in one request that is larger.
_ONE_COPY_BYTES = 5 * 1024**3
# What a copy keeps only if it is told, once metadata is added to it.
_KEPT = (
    "CacheControl",
    "ContentDisposition",
    "ContentEncoding",
    "ContentLanguage",
    "ContentType",
    "Expires",
    "StorageClass",
    "WebsiteRedirectLocation",
)
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

    `prefix` is the source's location; what follows it in a key is kept below the target prefix.
    """

    connection: AwsConnection
    bucket: str
    prefix: str
    action: str
    tags: tuple[tuple[str, str], ...] = ()
    target_bucket: str = ""
    target_prefix: str = ""


def act_on(spec: AfterSpec) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For `mapInArrow` over rows `object, etag`: what became of each, as `OUTCOME_DDL`.

    Idempotent. An object whose ETag has changed is left alone. What S3 refuses is an outcome;
    raises ExecutorError only where there is no client.
    """

    def act(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            client = s3_client(spec.connection)
        except S3Error as exc:
            raise ExecutorError(str(exc)) from exc
        with ThreadPoolExecutor(THREADS) as pool:
            for batch in rows:
                objects = batch.select(["object", "etag"]).to_pylist()
                found = pool.map(lambda one: _outcome(spec, client, **one), objects)
                outcomes = [
                    {**one, "state": state, "error": error}
                    for one, (state, error) in zip(objects, found, strict=True)
                ]
                yield pa.RecordBatch.from_pylist(outcomes, schema=_OUTCOME)

    return act


def _outcome(spec: AfterSpec, client: S3Client, object: str, etag: str) -> tuple[str, str | None]:
    """The state of an object, given its URI, and why if it is a state that needs a reason."""
    key = object.removeprefix(f"s3://{spec.bucket}/")
    overwritten = f"it was overwritten after it was ingested: its ETag was {etag}"
    doing, permission = f"looking for s3://{spec.bucket}/{key}", "s3:GetObject"
    try:
        head = client.head_object(Bucket=spec.bucket, Key=key)
        if head["ETag"].strip('"') != etag:
            return LEFT, overwritten
        doing = f"after_commit: {spec.action} of s3://{spec.bucket}/{key}"
        permission = _PERMISSIONS[spec.action]
        return _act(spec, client, key, etag, head)
    except AwsFailure as exc:
        # A bucket that is missing is the target's.
        if is_missing(exc) and error_code(exc) != "NoSuchBucket":
            return GONE, None
        if error_code(exc) in UNMET_CODES:
            return LEFT, overwritten
        return WAITING, describe(exc, doing, permission)


def _act(
    spec: AfterSpec, client: S3Client, key: str, etag: str, head: Any
) -> tuple[str, str | None]:
    if spec.action == "tag":
        # S3 has no condition for tags: what overwrites the object in this moment is tagged too.
        before = client.get_object_tagging(Bucket=spec.bucket, Key=key)["TagSet"]
        tags = {one["Key"]: one["Value"] for one in before} | dict(spec.tags)
        tag_set: Any = [{"Key": name, "Value": value} for name, value in tags.items()]
        client.put_object_tagging(Bucket=spec.bucket, Key=key, Tagging={"TagSet": tag_set})
        return "tagged", None
    if spec.action == "move" and (obstacle := _copy(spec, client, key, etag, head)):
        return LEFT, obstacle
    client.delete_object(Bucket=spec.bucket, Key=key, IfMatch=f'"{etag}"')
    return "moved" if spec.action == "move" else "deleted", None


def _copy(spec: AfterSpec, client: S3Client, key: str, etag: str, head: Any) -> str | None:
    """What is at the target instead of the copy, if it is something else."""
    target = spec.target_prefix + key[len(spec.prefix) :]
    mark = f"{etag} {hashlib.sha256(f'{spec.bucket}/{key}'.encode()).hexdigest()[:32]}"
    there = _marked(client, spec.target_bucket, target)
    if there is None:
        try:
            _make_copy(spec, client, key, target, head, mark)
        except AwsFailure as exc:
            if error_code(exc) not in UNMET_CODES:
                raise
            there = _marked(client, spec.target_bucket, target)
            if there is None:
                raise  # then it is the object that has changed
        else:
            return None
    if there == mark:
        return None
    return f"s3://{spec.target_bucket}/{target} exists, and is not a copy of it"


def _marked(client: S3Client, bucket: str, key: str) -> str | None:
    """Of which object this is a copy, as its mark has it; empty for no copy, None for none."""
    try:
        return client.head_object(Bucket=bucket, Key=key)["Metadata"].get(_MARK, "")
    except AwsFailure as exc:
        if not is_missing(exc):
            raise
        return None


def _make_copy(
    spec: AfterSpec, client: S3Client, key: str, target: str, head: Any, mark: str
) -> None:
    """Copy the object with all that belongs to it; replaces nothing where the store compares."""
    extra: Any = {name: head[name] for name in _KEPT if head.get(name)}
    extra["Metadata"] = {**head.get("Metadata", {}), _MARK: mark}
    etag = head["ETag"].strip('"')
    extra |= {"MetadataDirective": "REPLACE", "CopySourceIfMatch": f'"{etag}"'}
    source: Any = {"Bucket": spec.bucket, "Key": key}
    if head["ContentLength"] <= _ONE_COPY_BYTES:
        copy = partial(client.copy_object, Bucket=spec.target_bucket, Key=target, **extra)
        takes: Any = client.meta.service_model.operation_model("CopyObject").input_shape
        # A newer boto3 does.
        replaced = {"IfNoneMatch": "*"} if "IfNoneMatch" in takes.members else {}
        on_condition(partial(copy, CopySource=source), **replaced)
    else:
        with transport():
            client.copy(source, spec.target_bucket, target, ExtraArgs=extra)
