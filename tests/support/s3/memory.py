"""An S3 of one bucket in memory, with what commits and sweeps use of it."""

from __future__ import annotations

import datetime as dt
import hashlib
import io
import threading
import uuid
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ClientError

from dbt.adapters.mzs3.upload.pending import PendingFile, multipart_etag

_STATUS = {
    "AccessDenied": 403,
    "ConditionalRequestConflict": 409,
    "InternalError": 500,
    "NoSuchKey": 404,
    "NoSuchUpload": 404,
    "NotImplemented": 501,
    "PreconditionFailed": 412,
    "SlowDown": 503,
}


def failure(code: str, action: str = "Action") -> ClientError:
    """S3's answer, with the status that S3 gives it."""
    answer: Any = {
        "Error": {"Code": code, "Message": "No."},
        "ResponseMetadata": {"HTTPStatusCode": _STATUS.get(code, 400)},
    }
    return ClientError(answer, action)


def _md5(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest()


_BEGINNING = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)


class MemoryS3:
    """`before` is told action and key ahead of every request; what it raises is the answer."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, tuple[str, int]] = {}
        self.lists_uploads = True
        self.lists_uploads_by_prefix = True
        self.before: Callable[[str, str], None] = lambda action, key: None
        self.meta = SimpleNamespace(endpoint_url=f"memory:{uuid.uuid4()}")
        self._lock = threading.RLock()
        self._completed: dict[str, tuple[bytes, str]] = {}  # by key, as long as it is that object

    def opened(self, key: str, size: int = 10, upload_id: str | None = None) -> PendingFile:
        """A file whose upload is open."""
        upload_id = upload_id or f"upload {len(self.uploads)} of {key}"
        self.uploads[upload_id] = (key, size)
        return PendingFile(0, 1, key, upload_id, (_md5(b"x" * size),), 5, size, "sum")

    def put_object(
        self, *, Key: str, Body: bytes, IfNoneMatch: str = "", IfMatch: str = "", **_: Any
    ) -> dict[str, str]:
        self.before("PutObject", Key)
        with self._lock:
            self._compare(Key, IfNoneMatch, IfMatch, "PutObject")
            self.objects[Key] = Body
            return {"ETag": self._etag(Key)}

    def _compare(self, key: str, absent: str, etag: str, action: str) -> None:
        if etag and key not in self.objects:
            raise failure("NoSuchKey", action)
        if (absent and key in self.objects) or (etag and etag != self._etag(key)):
            raise failure("PreconditionFailed", action)

    def get_object(self, *, Key: str, **_: Any) -> dict[str, Any]:
        self.before("GetObject", Key)
        if Key not in self.objects:
            raise failure("NoSuchKey", "GetObject")
        body = self.objects[Key]
        return {"Body": io.BytesIO(body), "ETag": self._etag(Key), "ContentLength": len(body)}

    def delete_object(self, *, Key: str, IfMatch: str = "", **_: Any) -> None:
        self.before("DeleteObject", Key)
        with self._lock:
            if IfMatch and Key not in self.objects:
                raise failure("NoSuchKey", "DeleteObject")
            if IfMatch and IfMatch != self._etag(Key):
                raise failure("PreconditionFailed", "DeleteObject")
            self.objects.pop(Key, None)

    def delete_objects(self, *, Delete: dict[str, Any], **_: Any) -> dict[str, Any]:
        errors = []
        for one in Delete["Objects"]:
            try:
                self.delete_object(Key=one["Key"])
            except ClientError as exc:
                errors.append({**exc.response["Error"], "Key": one["Key"]})
        return {"Errors": errors}

    def list_objects_v2(self, *, Prefix: str, **_: Any) -> dict[str, Any]:
        self.before("ListObjectsV2", Prefix)
        keys = sorted(key for key in self.objects if key.startswith(Prefix))
        return {"Contents": [self._listed(key) for key in keys]}

    def _listed(self, key: str) -> dict[str, Any]:
        size, modified = len(self.objects[key]), dt.datetime.now(dt.timezone.utc)
        return {"Key": key, "Size": size, "ETag": self._etag(key), "LastModified": modified}

    def _etag(self, key: str) -> str:
        body, etag = self._completed.get(key, (None, ""))
        is_it = body is not None and body is self.objects.get(key)
        return etag if is_it else f'"{_md5(self.objects.get(key, b""))}"'

    def create_multipart_upload(self, *, Key: str, **_: Any) -> dict[str, str]:
        self.before("CreateMultipartUpload", Key)
        return {"UploadId": self.opened(Key).upload_id}

    def upload_part(self, *, Key: str, UploadId: str, **_: Any) -> dict[str, str]:
        self.before("UploadPart", Key)
        return {"ETag": _md5(b"x" * self.uploads[UploadId][1])}

    def complete_multipart_upload(
        self, *, Key: str, UploadId: str, IfNoneMatch: str = "", IfMatch: str = "", **_: Any
    ) -> dict[str, str]:
        self.before("CompleteMultipartUpload", Key)
        with self._lock:
            self._compare(Key, IfNoneMatch, IfMatch, "CompleteMultipartUpload")
            if UploadId not in self.uploads:
                raise failure("NoSuchUpload", "CompleteMultipartUpload")
            key, size = self.uploads.pop(UploadId)
            body = self.objects[key] = b"x" * size
            self._completed[key] = body, f'"{multipart_etag((_md5(body),))}"'
            return {"ETag": self._etag(key)}

    def abort_multipart_upload(self, *, Key: str, UploadId: str, **_: Any) -> None:
        self.before("AbortMultipartUpload", Key)
        if self.uploads.pop(UploadId, None) is None:
            raise failure("NoSuchUpload", "AbortMultipartUpload")

    def get_paginator(self, name: str) -> Any:
        fake = self

        class Paginator:
            def paginate(
                self, *, Prefix: str = "", Key: str = "", UploadId: str = "", **_: Any
            ) -> Iterator[dict[str, Any]]:
                if name == "list_parts":
                    fake.before("ListParts", Key)
                    if UploadId not in fake.uploads:
                        raise failure("NoSuchUpload", "ListParts")
                    yield {}
                    return
                if name == "list_objects_v2":
                    yield fake.list_objects_v2(Prefix=Prefix)
                    return
                fake.before("ListMultipartUploads", Prefix)
                yield {
                    "Uploads": [
                        {"Key": key, "UploadId": upload_id, "Initiated": _BEGINNING}
                        for upload_id, (key, _) in list(fake.uploads.items())
                        if fake.lists_uploads and key.startswith(Prefix)
                        if not Prefix or fake.lists_uploads_by_prefix
                    ]
                }

        return Paginator()
