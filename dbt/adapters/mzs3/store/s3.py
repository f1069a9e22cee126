"""A bucket of Amazon S3, or of a store with the same API, accessed with boto3."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from dbt.adapters.mzs3.store.boto_errors import as_store_errors, refusal, time_of
from dbt.adapters.mzs3.store.client import content_md5, s3_client
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.failures import (
    MissingError,
    NotSupportedError,
    PermissionDeniedError,
    ReplacedError,
    StoreError,
    ThrottledError,
    WrongRangeError,
    nothing_works,
    on_condition,
)
from dbt.adapters.mzs3.store.store import (
    KEYS_PER_PAGE,
    SHA256_AFTER,
    ByteRange,
    Content,
    ListedObject,
    ListedUpload,
    NewUpload,
    ObjectHead,
    Page,
    sha256_of,
)

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# The hosts of Amazon S3 only: other servers on AWS also have names in amazonaws.com.
_AMAZON_S3 = re.compile(
    r"(.+\.)?s3(-fips|-accesspoint|-accesspoint-fips|express-[a-z0-9-]+)?"
    r"(\.dualstack)?(\.[a-z]{2}[a-z-]*-[0-9]+)?(\.vpce)?\.amazonaws\.(com|com\.cn|eu)"
)
_CONTENT_RANGE = re.compile(r"\s*bytes\s+(\d+)-(\d+)/(\d+|\*)\s*", re.IGNORECASE)
# XML can't contain these characters, so a DeleteObjects request can't have keys with them.
_NOT_IN_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
# The largest object that S3 copies in one request.
_ONE_COPY_BYTES = 5 * 1024**3
# A copy with new metadata loses these properties unless the request repeats them.
_COPIED_PROPERTIES = (
    "CacheControl",
    "ContentDisposition",
    "ContentEncoding",
    "ContentLanguage",
    "ContentType",
    "Expires",
    "StorageClass",
    "WebsiteRedirectLocation",
)


def open_bucket(connection: AwsConnection, bucket: str) -> S3Store:
    """Opens the bucket with a new client."""
    return S3Store(s3_client(connection), bucket)


class S3Body:
    """The body of a response; see Body."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def read(self, size: int | None = None) -> bytes:
        """Up to `size` bytes, or all that are left; b"" at the end."""
        with as_store_errors():
            data: bytes = self._raw.read() if size is None else self._raw.read(size)
            return data

    def close(self) -> None:
        """Returns the connection to the pool, or closes it; may be repeated."""
        with contextlib.suppress(Exception):
            self._raw.close()


class S3Store:
    """A bucket and a client for it; see Store.

    Parts are sent without an MD5, which takes time to compute, until the bucket requires one, as
    buckets with Object Lock do.
    """

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._client: Any = client
        self.bucket = bucket
        self._parts_have_md5 = False
        self._deletes_many = True

    @property
    def identity(self) -> str:
        """The endpoint and the bucket."""
        return f"{self._client.meta.endpoint_url} {self.bucket}"

    @property
    def is_amazon_s3(self) -> bool:
        """Whether the host of the endpoint is one of Amazon S3."""
        host = urlsplit(str(self._client.meta.endpoint_url)).hostname or ""
        return _AMAZON_S3.fullmatch(host) is not None

    def get(
        self, key: str, *, version: str | None = None, byte_range: ByteRange | None = None
    ) -> Content:
        """An object, or a range of its bytes."""
        request: dict[str, Any] = {"Bucket": self.bucket, "Key": key}
        if version is not None:
            request["IfMatch"] = _quoted(version)
        start = 0
        if byte_range is not None:
            start, end = byte_range
            request["Range"] = f"bytes={start}-{'' if end is None else end - 1}"
        with as_store_errors():
            answer = self._client.get_object(**request)
            body = S3Body(answer["Body"])
            try:
                _require_requested(answer, version, start, whole=byte_range is None)
            except Exception:
                body.close()
                raise
            return Content(body, answer["ETag"], answer.get("ContentLength"), time_of(answer))

    def head(self, key: str) -> ObjectHead:
        """The result of HEAD for an object."""
        with as_store_errors():
            answer = self._client.head_object(Bucket=self.bucket, Key=key)
            return ObjectHead(
                key,
                answer["ETag"],
                answer["ContentLength"],
                answer["LastModified"],
                answer.get("Metadata", {}),
                {name: answer[name] for name in _COPIED_PROPERTIES if answer.get(name)},
            )

    def put(self, key: str, body: bytes, properties: Mapping[str, str], **condition: Any) -> str:
        """Writes an object; returns its ETag."""
        with as_store_errors():
            answer = self._client.put_object(
                Bucket=self.bucket,
                Key=key,
                Body=body,
                ContentMD5=content_md5(body),  # buckets with Object Lock require it
                **properties,
                **_headers(**condition),
            )
            return str(answer["ETag"])

    def delete(self, key: str, *, if_version: str | None = None) -> None:
        """Deletes an object."""
        with as_store_errors():
            self._client.delete_object(
                Bucket=self.bucket, Key=key, **_headers(if_version=if_version)
            )

    def delete_many(self, keys: Sequence[str]) -> Mapping[str, StoreError]:
        """Deletes objects with one request."""
        by_itself = NotSupportedError("the object has to be deleted by a request of its own")
        sendable = [key for key in keys if not _NOT_IN_XML.search(key)]
        if not self._deletes_many or len(sendable) < 2:
            return dict.fromkeys(keys, by_itself)
        failed: dict[str, StoreError] = dict.fromkeys(set(keys).difference(sendable), by_itself)
        objects = {"Objects": [{"Key": key} for key in sendable], "Quiet": True}
        try:
            with as_store_errors():
                answer = self._client.delete_objects(Bucket=self.bucket, Delete=objects)
                for error in answer.get("Errors", ()):
                    exc = refusal({"Error": error}, "DeleteObject")
                    # boto3 does not retry keys that failed: the caller deletes them one by one.
                    is_final = isinstance(exc, (PermissionDeniedError, MissingError))
                    failed[error["Key"]] = exc if is_final else by_itself
        except StoreError as exc:
            if not _may_be_unknown(exc):
                return dict.fromkeys(keys, exc)
            self._deletes_many = False
            return dict.fromkeys(keys, by_itself)
        return failed

    def pages(
        self, prefix: str, *, after: str = "", limit: int | None = None, folders: bool = False
    ) -> Iterator[Page]:
        """The objects whose keys begin with `prefix`, in pages."""
        request: dict[str, Any] = {"Bucket": self.bucket, "Prefix": prefix}
        request["MaxKeys"] = KEYS_PER_PAGE if limit is None else limit
        request |= {"StartAfter": after} if after else {}
        request |= {"Delimiter": "/"} if folders else {}
        with as_store_errors():
            if limit is not None:
                yield _page(self._client.list_objects_v2(**request))
                return
            for answer in self._client.get_paginator("list_objects_v2").paginate(**request):
                yield _page(answer)

    def copy(self, head: ObjectHead, bucket: str, key: str, metadata: Mapping[str, str]) -> None:
        """Copies that version of an object; up to 5 GB, a new boto3 replaces no other object."""
        extra = {
            **head.properties,
            "Metadata": {**head.metadata, **metadata},
            "MetadataDirective": "REPLACE",
            "CopySourceIfMatch": _quoted(head.etag),
        }
        source = {"Bucket": self.bucket, "Key": head.key}
        if head.size > _ONE_COPY_BYTES:
            with as_store_errors():
                self._client.copy(source, bucket, key, ExtraArgs=extra)
            return

        def copy(**condition: Any) -> None:
            with as_store_errors():
                self._client.copy_object(
                    Bucket=bucket, Key=key, CopySource=source, **extra, **condition
                )

        arguments = self._client.meta.service_model.operation_model("CopyObject").input_shape
        has_condition = "IfNoneMatch" in arguments.members  # not in old versions of boto3
        on_condition(copy, **({"IfNoneMatch": "*"} if has_condition else {}))

    def tags(self, key: str) -> dict[str, str]:
        """The tags of an object."""
        with as_store_errors():
            answer = self._client.get_object_tagging(Bucket=self.bucket, Key=key)
            return {tag["Key"]: tag["Value"] for tag in answer["TagSet"]}

    def tag(self, key: str, tags: Mapping[str, str]) -> None:
        """Sets the tags of an object."""
        tag_set = [{"Key": name, "Value": value} for name, value in tags.items()]
        with as_store_errors():
            self._client.put_object_tagging(
                Bucket=self.bucket, Key=key, Tagging={"TagSet": tag_set}
            )

    def open_upload(
        self, key: str, properties: Mapping[str, str], *, with_sha256: bool = False
    ) -> NewUpload:
        """Opens a multipart upload."""
        algorithm = {"ChecksumAlgorithm": "SHA256"} if with_sha256 else {}
        try:
            with as_store_errors():
                answer = self._client.create_multipart_upload(
                    Bucket=self.bucket, Key=key, **properties, **algorithm
                )
                has_sha256 = with_sha256 and answer.get("ChecksumAlgorithm") == "SHA256"
                retries = answer.get("ResponseMetadata", {}).get("RetryAttempts")
                return NewUpload(str(answer["UploadId"]), retries == 0, has_sha256)
        except StoreError as exc:
            if not with_sha256 or not _may_be_unknown(exc):
                raise
        return self.open_upload(key, properties)

    def put_part(
        self, key: str, upload_id: str, number: int, body: bytes, *, with_sha256: bool = False
    ) -> str:
        """Sends a part; returns its ETag."""
        part = {"Bucket": self.bucket, "Key": key, "UploadId": upload_id, "PartNumber": number}
        if with_sha256:
            sha256 = {"ChecksumSHA256": sha256_of(body)}
            with as_store_errors():
                return _etag_of(self._client.upload_part(**part, Body=body, **sha256) | sha256)
        if not self._parts_have_md5:
            try:
                with as_store_errors():
                    return str(self._client.upload_part(**part, Body=body)["ETag"])
            except StoreError as exc:
                if not _asks_for_md5(exc):
                    raise
                self._parts_have_md5 = True
        with as_store_errors():
            md5 = content_md5(body)
            return str(self._client.upload_part(**part, Body=body, ContentMD5=md5)["ETag"])

    def complete(self, key: str, upload_id: str, etags: Sequence[str], **condition: Any) -> str:
        """Completes an upload; returns the object's ETag."""
        parts = [{"PartNumber": number, **_part(etag)} for number, etag in enumerate(etags, 1)]
        with as_store_errors():
            answer = self._client.complete_multipart_upload(
                Bucket=self.bucket,
                Key=key,
                UploadId=upload_id,
                MultipartUpload={"Parts": parts},
                **_headers(**condition),
            )
            return str(answer.get("ETag", ""))

    def abort(self, key: str, upload_id: str) -> None:
        """Aborts a multipart upload."""
        with as_store_errors():
            self._client.abort_multipart_upload(Bucket=self.bucket, Key=key, UploadId=upload_id)

    def parts(self, key: str, upload_id: str) -> dict[int, tuple[str, int]]:
        """The parts of an open upload."""
        paginator = self._client.get_paginator("list_parts")
        with as_store_errors():
            pages = paginator.paginate(Bucket=self.bucket, Key=key, UploadId=upload_id)
            return {
                part["PartNumber"]: (_etag_of(part), part["Size"])
                for page in pages
                for part in page.get("Parts", [])
            }

    def uploads(self, prefix: str) -> Iterator[ListedUpload]:
        """The open uploads whose keys begin with `prefix`."""
        paginator = self._client.get_paginator("list_multipart_uploads")
        with as_store_errors():
            for page in paginator.paginate(Bucket=self.bucket, Prefix=prefix):
                for upload in page.get("Uploads", []):
                    yield ListedUpload(upload["Key"], upload["UploadId"], upload["Initiated"])


def _headers(*, if_absent: bool = False, if_version: str | None = None) -> dict[str, str]:
    if if_absent:
        return {"IfNoneMatch": "*"}
    return {} if if_version is None else {"IfMatch": _quoted(if_version)}


def _etag_of(part: Mapping[str, str]) -> str:
    sha256 = part.get("ChecksumSHA256")
    return f"{part['ETag']}{SHA256_AFTER}{sha256}" if sha256 else part["ETag"]


def _part(etag: str) -> dict[str, str]:
    """The reverse of `_etag_of`."""
    etag, _, sha256 = etag.partition(SHA256_AFTER)
    return {"ETag": etag, "ChecksumSHA256": sha256} if sha256 else {"ETag": etag}


def _quoted(etag: str) -> str:
    return '"' + etag.strip('"') + '"'


def _page(answer: Mapping[str, Any]) -> Page:
    return Page(
        [
            ListedObject(item["Key"], item.get("ETag", ""), item["Size"], item["LastModified"])
            for item in answer.get("Contents", ())
        ],
        [item["Prefix"] for item in answer.get("CommonPrefixes", ())],
        not answer.get("IsTruncated"),
        time_of(answer),
    )


def _require_requested(
    answer: Mapping[str, Any], version: str | None, start: int, *, whole: bool
) -> None:
    """Raises StoreError if a store, or a proxy, ignored the condition or the range."""
    etag = answer["ETag"]
    if version is not None and etag.strip('"') != version.strip('"'):
        raise ReplacedError("it has another ETag than expected")
    if not begins_at(answer, start, whole=whole):
        status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
        raise WrongRangeError(
            f"asked for it from byte {start} on, the store sent another part (HTTP "
            f"{status}, Content-Range {answer.get('ContentRange')}, Content-Length "
            f"{answer.get('ContentLength')})"
        )


def begins_at(answer: Mapping[str, Any], position: int, *, whole: bool) -> bool:
    """Whether the body begins at byte `position`, and has the length that Content-Range says.

    If `whole`, the body must also end at the end of the object. The HTTP status is not checked, as
    some stores send ranges with status 200.
    """
    content_range, length = answer.get("ContentRange"), answer.get("ContentLength")
    if content_range is None:
        return position == 0
    found = _CONTENT_RANGE.fullmatch(content_range)
    if found is None or int(found[1]) != position:
        return False
    end = int(found[2]) + 1
    return length in (None, end - position) and (not whole or found[3] == str(end))


def _asks_for_md5(exc: StoreError) -> bool:
    return exc.status == 400 and "content-md5" in str(exc).lower()


def _may_be_unknown(exc: StoreError) -> bool:
    """Whether the store may lack what was asked for: DeleteObjects, or a checksum of parts."""
    is_known = isinstance(exc, (PermissionDeniedError, ThrottledError)) or nothing_works(exc)
    return not is_known and (400 <= exc.status < 500 or isinstance(exc, NotSupportedError))
