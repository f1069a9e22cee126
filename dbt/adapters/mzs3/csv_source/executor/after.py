"""Tags, moves or deletes objects whose rows are committed: for a source's `mapInArrow`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dbt.adapters.mzs3.aws.client import s3_client
from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.aws.failures import AwsFailure, describe, error_code, is_missing
from dbt.adapters.mzs3.errors import ExecutorError, S3Error

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

THREADS = 8
WAITING = "waiting"
"""The state of an object of which nothing could be done; `error` says why. It is tried again."""
LEFT = "left"
"""The state of an object that must be left alone; `error` says why."""
GONE = "gone"
OUTCOME_DDL = "`object` string, `etag` string, `state` string, `error` string"

_OUTCOME = pa.schema([(name, pa.string()) for name in ("object", "etag", "state", "error")])
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


@dataclass(frozen=True)
class AfterSpec:
    """What a task needs: `action` is tag, move or delete; it travels to the executors.

    `prefix` is the source's location; what is behind it in a key is kept below the target.
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

    Safe to repeat. An object that no longer has that ETag is left alone. What S3 refuses is an
    outcome; raises ExecutorError only where there is no client.
    """

    def act(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            client = s3_client(spec.connection)
        except S3Error as exc:
            raise ExecutorError(str(exc)) from exc
        with ThreadPoolExecutor(THREADS) as pool:
            for batch in rows:
                objects, etags = (batch.column(n).to_pylist() for n in ("object", "etag"))
                keys = [uri[len(f"s3://{spec.bucket}/") :] for uri in objects]
                found = list(pool.map(lambda *of: _outcome(spec, client, *of), keys, etags))
                columns = [objects, etags, [state for state, _ in found], [e for _, e in found]]
                arrays = [pa.array(column, pa.string()) for column in columns]
                yield pa.RecordBatch.from_arrays(arrays, schema=_OUTCOME)

    return act


def _outcome(spec: AfterSpec, client: S3Client, key: str, etag: str) -> tuple[str, str | None]:
    """The state, and why if it is one that needs a reason."""
    act, permission = _ACTIONS[spec.action]
    try:
        head = client.head_object(Bucket=spec.bucket, Key=key)
    except AwsFailure as exc:
        if is_missing(exc):
            return GONE, None
        return WAITING, describe(exc, f"looking for s3://{spec.bucket}/{key}", "s3:GetObject")
    if head["ETag"].strip('"') != etag:
        return LEFT, f"it was overwritten after it was ingested: its ETag was {etag}"
    try:
        return act(spec, client, key, etag, head)
    except AwsFailure as exc:
        # A bucket that is missing is the target's.
        if is_missing(exc) and error_code(exc) != "NoSuchBucket":
            return GONE, None
        if error_code(exc) in ("PreconditionFailed", "412"):
            return LEFT, f"it was overwritten after it was ingested: its ETag was {etag}"
        doing = f"after_commit: {spec.action} of s3://{spec.bucket}/{key}"
        return WAITING, describe(exc, doing, permission)


def _tag(
    spec: AfterSpec, client: S3Client, key: str, etag: str, head: Any
) -> tuple[str, str | None]:
    # S3 has no condition for tags: what overwrites the object in this moment is tagged too.
    before = client.get_object_tagging(Bucket=spec.bucket, Key=key)["TagSet"]
    tags = {one["Key"]: one["Value"] for one in before} | dict(spec.tags)
    client.put_object_tagging(
        Bucket=spec.bucket,
        Key=key,
        Tagging={"TagSet": [{"Key": name, "Value": value} for name, value in tags.items()]},
    )
    return "tagged", None


def _move(
    spec: AfterSpec, client: S3Client, key: str, etag: str, head: Any
) -> tuple[str, str | None]:
    target = spec.target_prefix + key[len(spec.prefix) :]
    mark = f"{etag} {hashlib.sha256(f'{spec.bucket}/{key}'.encode()).hexdigest()[:32]}"
    there = _metadata_at(client, spec.target_bucket, target)
    if there is not None and there.get(_MARK) != mark:
        return LEFT, f"s3://{spec.target_bucket}/{target} exists, and is not a copy of it"
    if there is None:
        extra: Any = {name: head[name] for name in _KEPT if head.get(name)}
        extra["Metadata"] = {**head.get("Metadata", {}), _MARK: mark}
        extra |= {"MetadataDirective": "REPLACE", "CopySourceIfMatch": f'"{etag}"'}
        source: Any = {"Bucket": spec.bucket, "Key": key}
        if head["ContentLength"] <= _ONE_COPY_BYTES:
            client.copy_object(Bucket=spec.target_bucket, Key=target, CopySource=source, **extra)
        else:
            client.copy(source, spec.target_bucket, target, ExtraArgs=extra)
    client.delete_object(Bucket=spec.bucket, Key=key, IfMatch=f'"{etag}"')
    return "moved", None


def _metadata_at(client: S3Client, bucket: str, key: str) -> dict[str, str] | None:
    try:
        return client.head_object(Bucket=bucket, Key=key)["Metadata"]
    except AwsFailure as exc:
        if is_missing(exc):
            return None
        raise


def _delete(
    spec: AfterSpec, client: S3Client, key: str, etag: str, head: Any
) -> tuple[str, str | None]:
    client.delete_object(Bucket=spec.bucket, Key=key, IfMatch=f'"{etag}"')
    return "deleted", None


_Act = Callable[[AfterSpec, "S3Client", str, str, Any], "tuple[str, str | None]"]
_ACTIONS: dict[str, tuple[_Act, str]] = {
    "tag": (_tag, "s3:GetObjectTagging and s3:PutObjectTagging"),
    "move": (
        _move,
        "s3:DeleteObject on it, s3:GetObject and s3:PutObject on the target, s3:ListBucket on "
        "both buckets",
    ),
    "delete": (_delete, "s3:DeleteObject"),
}
