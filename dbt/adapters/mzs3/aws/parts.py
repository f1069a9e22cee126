"""Sending parts of uploads, also where each is checked; runs on the driver and on executors."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_MD5_HEADER = "content-md5"


class Parts:
    """Sends parts to one bucket, with their MD5 from the moment on that the bucket asks for it.

    Buckets with a retention by Object Lock do, and MD5 is what every store knows. Elsewhere it is
    not sent, as it costs time; safe to share by threads.
    """

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._client = client
        self._bucket = bucket
        self._with_md5 = False

    def put(self, key: str, upload_id: str, number: int, body: bytes) -> str:
        """The part's ETag; raises what boto3 raises."""
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
    """Whether a body was refused only because it came without the header."""
    answer = exc.response
    refused = answer.get("ResponseMetadata", {}).get("HTTPStatusCode") == 400
    return refused and _MD5_HEADER in str(answer.get("Error", {}).get("Message", "")).lower()
