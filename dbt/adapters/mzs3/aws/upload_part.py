"""Uploads parts, with their MD5 where the bucket wants it; runs on the driver and on executors."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_MD5_HEADER = "content-md5"


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
        if not self._with_md5:
            try:
                return self._put(key, upload_id, number, body)
            except ClientError as exc:
                if not asks_for_md5(exc):
                    raise
                self._with_md5 = True
        return self._put(key, upload_id, number, body, ContentMD5=content_md5(body))

    def _put(self, key: str, upload_id: str, number: int, body: bytes, **header: str) -> str:
        return self._client.upload_part(
            Bucket=self._bucket,
            Key=key,
            UploadId=upload_id,
            PartNumber=number,
            Body=body,
            **header,  # type: ignore[arg-type]
        )["ETag"]


def content_md5(body: bytes) -> str:
    """The header Content-MD5 of a body."""
    return base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()


def asks_for_md5(exc: ClientError) -> bool:
    """Whether a request was refused because it has no Content-MD5."""
    answer = exc.response
    refused = answer.get("ResponseMetadata", {}).get("HTTPStatusCode") == 400
    return refused and _MD5_HEADER in str(answer.get("Error", {}).get("Message", "")).lower()
