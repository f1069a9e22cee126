"""Parts carry their MD5 where a bucket asks for it, and only there."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from dbt.adapters.mzs3.store.failures import StoreError
from dbt.adapters.mzs3.store.s3 import S3Store


class LockedBucket:
    """Takes no part without an MD5, as a bucket with a retention by Object Lock."""

    def __init__(self, message: str, status: int = 400) -> None:
        self.refusal: Any = {
            "Error": {"Code": "InvalidRequest", "Message": message},
            "ResponseMetadata": {"HTTPStatusCode": status},
        }
        self.asked: list[str | None] = []

    def upload_part(self, *, ContentMD5: str | None = None, **_: Any) -> dict[str, str]:
        self.asked.append(ContentMD5)
        if ContentMD5 is None:
            raise ClientError(self.refusal, "UploadPart")
        return {"ETag": "etag"}


def store(bucket: LockedBucket) -> S3Store:
    client: Any = bucket
    return S3Store(client, "b")


def test_a_bucket_that_asks_for_an_md5_is_told_it_from_then_on() -> None:
    bucket = LockedBucket(
        "Content-MD5 OR x-amz-checksum- HTTP header is required for Put Part requests with "
        "Object Lock parameters"
    )
    sent = store(bucket)
    assert [sent.put_part("k", "id", number, b"abc") for number in (1, 2)] == ["etag", "etag"]
    assert bucket.asked == [None, "kAFQmDzST7DWlj99KOF/cg==", "kAFQmDzST7DWlj99KOF/cg=="]


@pytest.mark.parametrize(
    ("message", "status"), [("The part is too small.", 400), ("Content-MD5 is denied", 403)]
)
def test_another_refusal_is_one(message: str, status: int) -> None:
    bucket = LockedBucket(message, status)
    with pytest.raises(StoreError):
        store(bucket).put_part("k", "id", 1, b"abc")
    assert bucket.asked == [None]
