"""The objects and open uploads below a prefix of a bucket."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from botocore.exceptions import ClientError

from dbt.adapters.mzs3.store.body import get_object
from dbt.adapters.mzs3.store.failures import (
    CONFLICT_CODES,
    AwsFailure,
    describe,
    error_code,
    is_missing,
    on_condition,
)
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.upload_part import content_md5

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_THREADS = 16
_CONFLICTS = 4
_PAUSE_S = 0.1
_PROBE = "_mzs3_"


def probe_name() -> str:
    """A new name, for an object or upload that only tests what S3 does."""
    return f"{_PROBE}{uuid.uuid4().hex}"


@dataclass(frozen=True)
class ListedObject:
    """An object as S3 lists it; the size in bytes, `modified` in ms since the epoch."""

    key: str
    etag: str
    size: int
    modified: int = field(default=0, compare=False)


class BegunUpload(NamedTuple):
    """An upload's id; `is_only` if boto3 has asked once, so that no other one was opened."""

    id: str
    is_only: bool


@dataclass(frozen=True)
class Prefix:
    """A location and a client for it; its methods raise what boto3 raises.

    `properties` are arguments of S3's PutObject for the small objects beside the files.
    """

    client: S3Client
    location: S3Location
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def permissions(self) -> str:
        """The permissions that writing objects with these properties needs."""
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
        return f"s3://{self.location.bucket}/{key}"

    def is_probe(self, key: str) -> bool:
        """Whether the object only tests what S3 does, for this run or another one."""
        return key.startswith(self.key(_PROBE))

    def objects(self, below: str = "") -> Iterator[ListedObject]:
        """Every object below the location, or of those the ones whose names begin so."""
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=self.location.bucket, Prefix=self.key(below)
        )
        for page in pages:
            yield from map(_listed, page.get("Contents", []))

    def find(self, key: str) -> ListedObject | None:
        """The object with this key, or None; needs s3:ListBucket only."""
        page = self.client.list_objects_v2(Bucket=self.location.bucket, Prefix=key, MaxKeys=1)
        found = map(_listed, page.get("Contents", []))
        return next((one for one in found if one.key == key), None)

    def etag(self, key: str) -> str | None:
        """The ETag of the object with this key, or None; needs no more than `find`."""
        found = self.find(key)
        return found.etag if found else None

    def read(self, name: str) -> bytes | None:
        """The content of a small object below the location; None if it does not exist."""
        found = self.read_version(name)
        return found[0] if found else None

    def read_version(self, name: str) -> tuple[bytes, str] | None:
        """As `read`, with the ETag."""
        try:
            found = get_object(self.client, Bucket=self.location.bucket, Key=self.key(name))
        except AwsFailure as exc:
            if is_missing(exc):
                return None
            raise
        return found["Body"].read(), found["ETag"]

    def write(self, name: str, body: bytes, **condition: str) -> str:
        """Write a small JSON object below the location; returns its ETag."""
        written = _tried_again(
            self.client.put_object,
            Bucket=self.location.bucket,
            Key=self.key(name),
            Body=body,
            ContentType="application/json",
            ContentMD5=content_md5(body),  # buckets with Object Lock refuse it otherwise
            **self.properties,
            **condition,
        )
        return str(written["ETag"])

    def delete(self, key: str, **condition: str) -> None:
        """Delete an object; without a condition it need not exist."""
        _tried_again(self.client.delete_object, Bucket=self.location.bucket, Key=key, **condition)

    def begin_upload(self, key: str, properties: Mapping[str, str]) -> BegunUpload:
        """Open a multipart upload of an object that is to have these properties."""
        create: Any = self.client.create_multipart_upload
        answer = create(Bucket=self.location.bucket, Key=key, **properties)
        attempts = answer.get("ResponseMetadata", {}).get("RetryAttempts")
        return BegunUpload(str(answer["UploadId"]), is_only=attempts == 0)

    def parts_of(self, key: str, upload_id: str) -> dict[int, tuple[str, int]]:
        """The parts that S3 has of an open upload: number to ETag and size in bytes."""
        pages = self.client.get_paginator("list_parts").paginate(
            Bucket=self.location.bucket, Key=key, UploadId=upload_id
        )
        return {
            part["PartNumber"]: (part["ETag"], part["Size"])
            for page in pages
            for part in page.get("Parts", [])
        }

    def complete(self, key: str, upload_id: str, etags: Sequence[str], **condition: str) -> str:
        """Make an object of a multipart upload's parts, given in order; its ETag.

        The condition is as for `write`; a store that does not know it does without.
        """
        parts = [{"PartNumber": number, "ETag": etag} for number, etag in enumerate(etags, 1)]
        complete = partial(
            _tried_again,
            self.client.complete_multipart_upload,
            Bucket=self.location.bucket,
            Key=key,
            UploadId=upload_id,
            MultipartUpload={"Parts": parts},
        )
        return str(on_condition(complete, **condition).get("ETag", ""))

    def abort(self, key: str, upload_id: str) -> None:
        """Abort a multipart upload, if it is still there."""
        upload: Any = {"Bucket": self.location.bucket, "Key": key, "UploadId": upload_id}
        try:
            self.client.abort_multipart_upload(**upload)
        except AwsFailure as exc:
            if not is_missing(exc):  # another has aborted it, or boto3 has asked twice
                raise

    def uploads(
        self,
        prefix: str | None = None,
        *,
        begun_by: int | None = None,
        of_whole_bucket: bool = False,
    ) -> Iterator[tuple[str, str]]:
        """Key and id of open uploads below the location or `prefix`, begun at this ms or before.

        `of_whole_bucket` has the store list all of the bucket, as MinIO lists none by prefix.
        """
        below = self.location.prefix if prefix is None else prefix
        pages = self.client.get_paginator("list_multipart_uploads").paginate(
            Bucket=self.location.bucket, Prefix="" if of_whole_bucket else below
        )
        for page in pages:
            for upload in page.get("Uploads", []):
                if upload["Key"].startswith(below) and (
                    begun_by is None or upload["Initiated"].timestamp() * 1000 <= begun_by
                ):
                    yield upload["Key"], upload["UploadId"]


def _tried_again(request: Callable[..., Any], **arguments: Any) -> Any:
    """The answer; repeats what S3 refuses because of another request for the key (409)."""
    was_repeated = False
    attempt = 0
    while True:
        try:
            return request(**arguments)
        except ClientError as exc:
            about = exc.response.setdefault("ResponseMetadata", {})  # type: ignore[typeddict-item]
            is_conflict = error_code(exc) in CONFLICT_CODES
            if was_repeated:  # then one that this answer is not about may take effect
                about["RetryAttempts"] = max(1, about.get("RetryAttempts", 0))
            if not is_conflict or attempt == _CONFLICTS:
                raise
            was_repeated |= about.get("RetryAttempts", 0) > 0
        Event().wait(_PAUSE_S * 2**attempt)
        attempt += 1


def _listed(entry: Any) -> ListedObject:
    modified = int(entry["LastModified"].timestamp() * 1000)
    return ListedObject(entry["Key"], entry.get("ETag", ""), entry["Size"], modified)


def map_concurrently(items: Iterable[Item], work: Callable[[Item], Answer]) -> list[Answer]:
    """The results of the work, done in threads; waits for all, then raises the first failure."""
    with ThreadPoolExecutor(_THREADS) as pool:
        outcomes = [pool.submit(work, item) for item in items]
    return [outcome.result() for outcome in outcomes]


def abort_all(prefix: Prefix, uploads: Iterable[tuple[str, str]]) -> list[str]:
    """Aborts uploads, given by key and id; returns a line for each that could not be."""

    def abort(upload: tuple[str, str]) -> str | None:
        try:
            prefix.abort(*upload)
        except AwsFailure as exc:
            doing = f"aborting the upload of {prefix.uri_of(upload[0])}"
            return describe(exc, doing, "s3:AbortMultipartUpload")
        return None

    return [problem for problem in map_concurrently(uploads, abort) if problem is not None]


def delete_all(prefix: Prefix, keys: Iterable[str]) -> list[str]:
    """Deletes objects; returns a line for each that could not be."""

    def delete(key: str) -> str | None:
        try:
            prefix.delete(key)
        except AwsFailure as exc:
            return describe(exc, f"removing {prefix.uri_of(key)}", "s3:DeleteObject")
        return None

    return [problem for problem in map_concurrently(keys, delete) if problem is not None]
