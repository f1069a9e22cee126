"""Parts carry their MD5 or their SHA-256 where that is asked for, and only there."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from dbt.adapters.mzs3.store.failures import StoreError
from dbt.adapters.mzs3.store.s3 import S3Store

SHA256 = "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="  # of b"abc"


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


class Checking:
    """Takes uploads whose parts have to have a SHA-256, or answers as `refusal` and `echo` say."""

    def __init__(self, refusal: str = "", status: int = 400, echo: str = "SHA256") -> None:
        self.refusal, self.status, self.echo = refusal, status, echo
        self.asked: list[dict[str, Any]] = []

    def create_multipart_upload(self, **asked: Any) -> dict[str, str]:
        self.asked.append(asked)
        if "ChecksumAlgorithm" not in asked:
            return {"UploadId": "plain"}
        if self.refusal:
            error: Any = {
                "Error": {"Code": self.refusal, "Message": ""},
                "ResponseMetadata": {"HTTPStatusCode": self.status},
            }
            raise ClientError(error, "CreateMultipartUpload")
        return {"UploadId": "checked", "ChecksumAlgorithm": self.echo}

    def upload_part(self, **asked: Any) -> dict[str, str]:
        self.asked.append(asked)
        return {"ETag": '"etag"'}

    def complete_multipart_upload(self, **asked: Any) -> dict[str, str]:
        self.asked.append(asked)
        return {"ETag": '"whole"'}


def checking(client: Any) -> S3Store:
    return S3Store(client, "b")


def test_a_part_with_its_sha256_is_completed_with_it() -> None:
    client = Checking()
    store = checking(client)
    upload = store.open_upload("k", {}, with_sha256=True)
    assert (upload.id, upload.has_sha256) == ("checked", True)
    etag = store.put_part("k", upload.id, 1, b"abc", with_sha256=True)
    assert etag == f'"etag" sha256={SHA256}'
    store.complete("k", upload.id, [etag])
    created, part, completed = client.asked
    assert created["ChecksumAlgorithm"] == "SHA256"
    assert part["ChecksumSHA256"] == SHA256
    assert "ContentMD5" not in part
    assert completed["MultipartUpload"]["Parts"] == [
        {"PartNumber": 1, "ETag": '"etag"', "ChecksumSHA256": SHA256}
    ]


def test_a_part_without_is_completed_as_ever() -> None:
    client = Checking()
    store = checking(client)
    upload = store.open_upload("k", {})
    assert (upload.id, upload.has_sha256) == ("plain", False)
    store.complete("k", upload.id, [store.put_part("k", upload.id, 1, b"abc")])
    assert "ChecksumAlgorithm" not in client.asked[0]
    assert "ChecksumSHA256" not in client.asked[1]
    assert client.asked[2]["MultipartUpload"]["Parts"] == [{"PartNumber": 1, "ETag": '"etag"'}]


@pytest.mark.parametrize(
    "client",
    [Checking("NotImplemented", 501), Checking("InvalidArgument"), Checking(echo="")],
    ids=["unknown", "refused", "unheeded"],
)
def test_a_store_that_keeps_no_sha256_gets_parts_without(client: Checking) -> None:
    upload = checking(client).open_upload("k", {}, with_sha256=True)
    assert not upload.has_sha256
    assert upload.id == ("plain" if client.refusal else "checked")


def test_a_denied_upload_is_not_tried_again() -> None:
    client = Checking("AccessDenied", 403)
    with pytest.raises(StoreError):
        checking(client).open_upload("k", {}, with_sha256=True)
    assert len(client.asked) == 1
