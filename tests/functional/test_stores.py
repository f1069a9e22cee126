"""What exports and shards rest on, of the S3 server that tests use; docs/stores.md tells of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError
from support.s3.opened import prefix_of
from support.s3.real_stores import STORE

from dbt.adapters.mzs3.store.client import s3_client
from dbt.adapters.mzs3.store.conditions import store_conditions, supports_conditional_delete
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.prefix import delete_many
from dbt.adapters.mzs3.upload.pending import KnownEtags, PendingFile, complete

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
    found = store_conditions(prefix_of(client, S3Location(BUCKET, "conditions/")))
    assert found.creates
    assert found.replaces
    assert "Contents" not in client.list_objects_v2(Bucket=BUCKET, Prefix="conditions/")


def test_whether_a_delete_compares_is_found_out(client: Any) -> None:
    prefix = prefix_of(client, S3Location(BUCKET, "deletes/"))
    assert supports_conditional_delete(prefix) == (STORE != "minio")
    assert "Contents" not in client.list_objects_v2(Bucket=BUCKET, Prefix="deletes/")


def test_many_objects_are_deleted_whatever_their_keys_are_called(client: Any) -> None:
    prefix = prefix_of(client, S3Location(BUCKET, "many/"))
    names = ["a", "b&c", "d é", "x/<y>", "plus+", "per%20cent", "日本"]
    names += ["line\nfeed", "bell \a"] if STORE else []  # moto's server has no such keys
    for name in names:
        prefix.write(name, b"x")
    keys = [*map(prefix.key, names), *(f"many/gone {n}" for n in range(1000))]
    assert delete_many(prefix, keys) == {}
    assert "Contents" not in client.list_objects_v2(Bucket=BUCKET, Prefix="many/")


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


def test_a_completion_replaces_nothing(client: Any) -> None:
    client.put_object(Bucket=BUCKET, Key="taken", Body=b"old")
    upload = opened(client, "taken", b"new")
    with pytest.raises(ClientError, match="PreconditionFailed"):
        client.complete_multipart_upload(**upload, IfNoneMatch="*")
    assert content(client, "taken") == b"old"
    still_open = {name: upload[name] for name in ("Bucket", "Key", "UploadId")}
    assert len(client.list_parts(**still_open)["Parts"]) == 1
    client.delete_object(Bucket=BUCKET, Key="taken")
    client.complete_multipart_upload(**upload, IfNoneMatch="*")
    assert content(client, "taken") == b"new"


@pytest.mark.skipif(STORE is None, reason="moto's server does not compare before it completes")
def test_a_completion_replaces_what_it_names(client: Any) -> None:
    old = client.put_object(Bucket=BUCKET, Key="replaced", Body=b"old")["ETag"]
    other = client.put_object(Bucket=BUCKET, Key="replaced", Body=b"other")["ETag"]
    upload = opened(client, "replaced", b"new")
    with pytest.raises(ClientError, match="PreconditionFailed"):
        client.complete_multipart_upload(**upload, IfMatch=old)
    client.complete_multipart_upload(**upload, IfMatch=other)
    assert content(client, "replaced") == b"new"
    client.delete_object(Bucket=BUCKET, Key="replaced")
    with pytest.raises(ClientError, match="NoSuchKey"):
        client.complete_multipart_upload(**opened(client, "replaced", b"new"), IfMatch=other)


def test_of_completions_at_once_one_creates(client: Any) -> None:
    for race in range(RACES):
        key = f"completed/{race}"
        uploads = [opened(client, key, body) for body in (b"one", b"two")]
        outcomes = at_once(
            *(
                lambda upload=upload: client.complete_multipart_upload(**upload, IfNoneMatch="*")
                for upload in uploads
            )
        )
        assert outcomes.count("ok") == 1
        assert set(outcomes) <= {"ok", "PreconditionFailed", "ConditionalRequestConflict"}
        assert content(client, key) == (b"one" if outcomes[0] == "ok" else b"two")


def test_a_file_is_completed_by_whoever_and_however_often(client: Any) -> None:
    prefix = prefix_of(client, S3Location(BUCKET, "again/"))
    for race in range(RACES):
        key = f"again/{race}"
        upload = opened(client, key, b"whole")
        etags = tuple(part["ETag"] for part in upload["MultipartUpload"]["Parts"])
        file = PendingFile(0, 1, key, upload["UploadId"], etags, 1, 5, "")
        completed: list[str | None] = []

        def once(file: PendingFile = file, completed: list[str | None] = completed) -> None:
            known = KnownEtags(is_amazon_s3=prefix.store.is_amazon_s3)
            completed.append(complete(prefix, file, known))

        assert at_once(once, once) == ["ok", "ok"]
        once()
        assert None not in completed
        assert content(client, key) == b"whole"
