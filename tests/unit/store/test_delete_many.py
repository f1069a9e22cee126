"""Deletions of many keys: one request for a thousand, and what is done where it is not known."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from dbt.adapters.mzs3.store.client import s3_client
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.failures import PermissionDeniedError, StoreError
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.prefix import Prefix, delete_all, delete_many
from dbt.adapters.mzs3.store.s3 import S3Store

BUCKET = "deletions"
CONNECTION = AwsConnection(access_key_id="testing", secret_access_key="testing")


class Requests:
    """What is asked of S3, and answers in its place: by the operation, one after the other."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.answers: dict[str, list[tuple[int, dict[str, Any]]]] = {}

    def before(self, model: Any, params: Any, **_: Any) -> Any:
        self.seen.append(model.name)
        self.bodies.append(dict(params["headers"]))
        if self.answers.get(model.name):
            status, answer = self.answers[model.name].pop(0)
            about = {"HTTPStatusCode": status, "RetryAttempts": 0, "HTTPHeaders": {}}
            response = type("Response", (), {"status_code": status, "headers": {}})()
            return response, {**answer, "ResponseMetadata": about}
        return None


@pytest.fixture
def asked() -> Requests:
    return Requests()


@pytest.fixture
def store(asked: Requests) -> Iterator[S3Store]:
    with mock_aws():
        boto3.client("s3", region_name="us-east-1").create_bucket(Bucket=BUCKET)
        client = s3_client(CONNECTION, max_attempts=1)
        client.meta.events.register_last("before-call.s3", asked.before)
        yield S3Store(client, BUCKET)


def put(store: S3Store, *keys: str) -> None:
    for key in keys:
        store.put(key, b"x", {})


def keys_in(store: S3Store) -> list[str]:
    return [one.key for page in store.pages("") for one in page.objects]


def test_keys_are_deleted_by_one_request(store: S3Store, asked: Requests) -> None:
    put(store, "a", "b&c", "d é", "kept")
    asked.seen.clear()
    assert store.delete_many(["a", "b&c", "d é", "gone before"]) == {}
    assert asked.seen == ["DeleteObjects"]
    assert "Content-MD5" in asked.bodies[-1]
    assert keys_in(store) == ["kept"]


def test_tags_have_an_md5_too(store: S3Store, asked: Requests) -> None:
    """Stores that do not know boto3's newer checksums demand it."""
    put(store, "a")
    store.tag("a", {"seen": "yes"})
    assert asked.seen[-1] == "PutObjectTagging"
    assert "Content-MD5" in asked.bodies[-1]


def test_more_than_a_thousand_are_several_requests(store: S3Store, asked: Requests) -> None:
    prefix = Prefix(store, S3Location(BUCKET, ""))
    put(store, "key 0", "key 999", "key 1000", "key 1999", "key 2000", "key 2499", "kept")
    asked.seen.clear()
    assert delete_all(prefix, (f"key {n}" for n in range(2500))) == []
    assert asked.seen == ["DeleteObjects"] * 3
    assert keys_in(store) == ["kept"]


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (501, "NotImplemented"),
        (405, "MethodNotAllowed"),
        (400, "MissingContentMD5"),
        (400, "InvalidArgument"),  # of Google Cloud Storage
        (400, "MalformedXML"),
    ],
)
def test_a_store_that_does_not_know_it_is_asked_for_each_key(
    store: S3Store, asked: Requests, status: int, code: str
) -> None:
    put(store, "a", "b")
    asked.seen.clear()
    asked.answers["DeleteObjects"] = [(status, {"Error": {"Code": code, "Message": "No."}})]
    prefix = Prefix(store, S3Location(BUCKET, ""))
    assert delete_many(prefix, ["a", "b"]) == {}
    assert delete_many(prefix, ["c", "d"]) == {}
    assert asked.seen == ["DeleteObjects", *["DeleteObject"] * 4]
    assert keys_in(store) == []


def test_keys_are_then_asked_for_at_once(store: S3Store, asked: Requests) -> None:
    """As a thousand requests, one after another, take a minute."""
    asked.answers["DeleteObjects"] = [(501, {"Error": {"Code": "NotImplemented"}})]
    together = threading.Barrier(8)

    def wait_for_others(model: Any, **_: Any) -> None:
        if model.name == "DeleteObject":
            together.wait(timeout=10)

    store._client.meta.events.register("before-call.s3", wait_for_others)
    prefix = Prefix(store, S3Location(BUCKET, ""))
    assert delete_many(prefix, [f"key {n}" for n in range(8)]) == {}


def test_keys_that_xml_can_not_have_are_asked_for_alone(store: S3Store, asked: Requests) -> None:
    """S3 would refuse the whole request as malformed."""
    prefix = Prefix(store, S3Location(BUCKET, ""))
    keys = ["a", "b", "bell \a", "no\ufffe", "line\r\n"]
    put(store, *keys)
    asked.seen.clear()
    assert delete_many(prefix, keys) == {}
    assert sorted(asked.seen) == ["DeleteObject", "DeleteObject", "DeleteObjects"]
    assert keys_in(store) == []


@pytest.mark.parametrize("code", ["NoSuchKey", "NotFound", "404"])
def test_a_key_that_a_store_says_is_missing_is_gone(
    store: S3Store, asked: Requests, code: str
) -> None:
    asked.answers["DeleteObjects"] = [(200, {"Errors": [{"Key": "a", "Code": code}]})]
    asked.answers["DeleteObject"] = [(404, {"Error": {"Code": code}})]
    prefix = Prefix(store, S3Location(BUCKET, ""))
    assert delete_many(prefix, ["a", "b"]) == {}
    assert delete_many(prefix, ["a"]) == {}


def test_what_a_key_is_refused_for_is_told_of_that_key(store: S3Store, asked: Requests) -> None:
    denied = {"Key": "a", "Code": "AccessDenied", "Message": "Access Denied"}
    asked.answers["DeleteObjects"] = [(200, {"Errors": [denied]})]
    prefix = Prefix(store, S3Location(BUCKET, ""))
    assert delete_all(prefix, ["a", "b"]) == [
        f"removing s3://{BUCKET}/a failed: AccessDenied: Access Denied (needs s3:DeleteObject)"
    ]
    assert asked.seen == ["DeleteObjects"]


def test_a_key_that_failed_for_the_moment_is_asked_for_alone(
    store: S3Store, asked: Requests
) -> None:
    put(store, "a", "b")
    asked.seen.clear()
    failed = {"Key": "a", "Code": "InternalError", "Message": "Please try again."}
    asked.answers["DeleteObjects"] = [(200, {"Errors": [failed]})]
    assert delete_many(Prefix(store, S3Location(BUCKET, "")), ["a", "b"]) == {}
    assert asked.seen == ["DeleteObjects", "DeleteObject"]


def test_a_refusal_of_the_request_is_one_of_each_key(store: S3Store, asked: Requests) -> None:
    refused = {"Error": {"Code": "AccessDenied", "Message": "Access Denied"}}
    asked.answers["DeleteObjects"] = [(403, refused)]
    failed: dict[str, StoreError] = dict(store.delete_many(["a", "b"]))
    assert list(failed) == ["a", "b"]
    assert all(isinstance(exc, PermissionDeniedError) for exc in failed.values())
