"""Uploads parts, with their MD5 where the bucket wants it; runs on the driver and on executors."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class Parts:
    """Uploads parts to one bucket; threads may share it.

    Their MD5 takes time, so it is sent once the bucket has asked for it, as Object Lock does.
    """

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._client = client
        self._bucket = bucket
        self._with_md5 = False

    def put(self, key: str, upload_id: str, number: int, body: bytes) -> str:
        """Uploads a part; returns its ETag. Raises what boto3 raises."""
        put: Any = self._client.upload_part
        part = {"Bucket": self._bucket, "Key": key, "UploadId": upload_id, "PartNumber": number}
        if not self._with_md5:
            try:
                return str(put(**part, Body=body)["ETag"])
            except ClientError as exc:
                if not _asks_for_md5(exc):
                    raise
                self._with_md5 = True
        return str(put(**part, Body=body, ContentMD5=content_md5(body))["ETag"])


def content_md5(body: bytes) -> str:
    """The header Content-MD5 of a body."""
    return base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()


def _asks_for_md5(exc: ClientError) -> bool:
    refused = exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode") == 400
    said = str(exc.response.get("Error", {}).get("Message", ""))
    return refused and "content-md5" in said.lower()
