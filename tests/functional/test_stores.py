"""What exports and shards rest on, of the S3 server that tests use; docs/stores.md tells of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError
from support.real_stores import STORE

from dbt.adapters.mzs3.aws.client import s3_client
from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.aws.location import S3Location
from dbt.adapters.mzs3.objects.conditions import heeds_conditional_delete, store_conditions
from dbt.adapters.mzs3.objects.prefix import Prefix

BUCKET = "stores"
RACES = 50


@pytest.fixture(scope="module")
def client(aws_connection: dict[str, str], s3: Any) -> Any:
    s3.create_bucket(Bucket=BUCKET)
    return s3_client(AwsConnection(**aws_connection), max_attempts=1)


def at_once(*actions: Callable[[], object]) -> list[str]:
    """What came of each: `ok`, or the code of the refusal."""
    start = threading.Barrier(len(actions))

    def one(action: Callable[[], object]) -> str:
        start.wait()
        try:
            action()
        except ClientError as exc:
            return str(exc.response["Error"]["Code"])
        return "ok"

    with ThreadPoolExecutor(len(actions)) as pool:
        return list(pool.map(one, actions))


def content(client: Any, key: str) -> bytes | None:
    try:
        body: bytes = client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
    except ClientError:
        return None
    return body


def opened(client: Any, key: str, *bodies: bytes) -> dict[str, Any]:
    """An upload with these parts, as what completes it."""
    upload_id = client.create_multipart_upload(Bucket=BUCKET, Key=key)["UploadId"]
    upload = {"Bucket": BUCKET, "Key": key, "UploadId": upload_id}
    etags = [
        client.upload_part(**upload, PartNumber=number, Body=body)["ETag"]
        for number, body in enumerate(bodies, start=1)
    ]
    parts = [{"PartNumber": number, "ETag": etag} for number, etag in enumerate(etags, start=1)]
    return {**upload, "MultipartUpload": {"Parts": parts}}


def test_the_conditions_of_writes_are_heeded(client: Any) -> None:
    found = store_conditions(Prefix(client, S3Location(BUCKET, "conditions/")))
    assert found.creates
    assert found.replaces
    assert "Contents" not in client.list_objects_v2(Bucket=BUCKET, Prefix="conditions/")


def test_whether_a_delete_compares_is_found_out(client: Any) -> None:
    prefix = Prefix(client, S3Location(BUCKET, "deletes/"))
    assert heeds_conditional_delete(prefix) == (STORE != "minio")
    assert "Contents" not in client.list_objects_v2(Bucket=BUCKET, Prefix="deletes/")


def test_of_writers_at_once_one_creates(client: Any) -> None:
    for race in range(RACES):

        def create(body: bytes, key: str = f"create/{race}") -> None:
            client.put_object(Bucket=BUCKET, Key=key, Body=body, IfNoneMatch="*")

        outcomes = at_once(lambda: create(b"one"), lambda: create(b"two"))
        assert outcomes.count("ok") == 1
        winner = b"one" if outcomes[0] == "ok" else b"two"
        assert content(client, f"create/{race}") == winner


def test_of_writers_at_once_one_replaces(client: Any) -> None:
    for race in range(RACES):
        key = f"replace/{race}"
        etag = client.put_object(Bucket=BUCKET, Key=key, Body=b"old")["ETag"]

        def replace(body: bytes, key: str = key, etag: str = etag) -> None:
            client.put_object(Bucket=BUCKET, Key=key, Body=body, IfMatch=etag)

        outcomes = at_once(*(lambda n=n: replace(bytes([n])) for n in range(4)))
        assert outcomes.count("ok") == 1
        assert content(client, key) == bytes([outcomes.index("ok")])


def test_an_upload_is_completed_or_aborted_and_nothing_between(client: Any) -> None:
    for race in range(RACES):
        key = f"abort/{race}"
        upload = opened(client, key, b"whole")
        abort = {name: upload[name] for name in ("Bucket", "Key", "UploadId")}
        completed, _ = at_once(
            lambda upload=upload: client.complete_multipart_upload(**upload),
            lambda abort=abort: client.abort_multipart_upload(**abort),
        )
        assert content(client, key) == (b"whole" if completed == "ok" else None)


def test_a_part_that_no_completion_lists_is_dropped(client: Any) -> None:
    upload = opened(client, "unlisted", b"a" * (5 << 20), b"b")
    note = {name: upload[name] for name in ("Bucket", "Key", "UploadId")}
    client.upload_part(**note, PartNumber=10_000, Body=b"note")
    client.complete_multipart_upload(**upload)
    assert content(client, "unlisted") == b"a" * (5 << 20) + b"b"


def test_a_listing_has_what_was_written_and_not_what_was_deleted(client: Any) -> None:
    keys = [f"listed/{number:02}" for number in range(20)]

    def listed() -> list[str]:
        page = client.list_objects_v2(Bucket=BUCKET, Prefix="listed/")
        return [found["Key"] for found in page.get("Contents", [])]

    for count, key in enumerate(keys, start=1):
        client.put_object(Bucket=BUCKET, Key=key, Body=b"")
        assert listed() == keys[:count]
    for count, key in enumerate(keys, start=1):
        client.delete_object(Bucket=BUCKET, Key=key)
        assert listed() == keys[count:]
