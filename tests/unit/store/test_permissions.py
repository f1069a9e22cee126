"""Every permission is tried on its own, each denial is explained, and nothing is left behind."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from support.s3.faulty import demanding_conditions

from dbt.adapters.mzs3.errors import S3Error
from dbt.adapters.mzs3.store import check as check_module
from dbt.adapters.mzs3.store import client as client_module
from dbt.adapters.mzs3.store.check import Check, check_permissions
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import S3Location

CONNECTION = AwsConnection(
    "lake", region="us-east-1", access_key_id="AKIAEXAMPLE", secret_access_key="the-secret-key"
)
LOCATION = S3Location("lake", "x/")
Refuse = Callable[..., None]
ALL_FINE = [
    "ok: list (s3:ListBucket)",
    "ok: open an upload (s3:PutObject)",
    "ok: list the parts of an upload (s3:ListMultipartUploadParts)",
    "ok: abort an upload (s3:AbortMultipartUpload)",
    "ok: list open uploads (s3:ListBucketMultipartUploads)",
    "ok: put an object (s3:PutObject)",
    "ok: get an object (s3:GetObject)",
    "ok: delete an object (s3:DeleteObject)",
]


@pytest.fixture
def s3() -> Iterator[Any]:
    with mock_aws():
        client: Any = client_module.s3_client(CONNECTION)
        client.create_bucket(Bucket="lake")
        yield client


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch) -> Refuse:
    """`refuse("DeleteObject")`: from now on the check's client gets AccessDenied for it."""

    def make(*actions: str, code: str = "AccessDenied") -> None:
        def refusing(connection: AwsConnection, **options: Any) -> Any:
            client: Any = client_module.s3_client(connection, **options)
            for action in actions:
                client.meta.events.register(f"before-call.s3.{action}", answer)
            return client

        def answer(model: Any, **_: Any) -> None:
            raise ClientError({"Error": {"Code": code, "Message": "No."}}, model.name)

        monkeypatch.setattr(check_module, "s3_client", refusing)

    return make


def left(s3: Any) -> list[str]:
    objects = [entry["Key"] for entry in s3.list_objects_v2(Bucket="lake").get("Contents", [])]
    uploads = [
        entry["Key"] for entry in s3.list_multipart_uploads(Bucket="lake").get("Uploads", [])
    ]
    return objects + uploads


def not_ok(checks: list[Check]) -> dict[str, str]:
    return {check.need.permission: check.line for check in checks if check.problem is not None}


def test_all_is_tried_and_nothing_is_left(s3: Any) -> None:
    s3.put_object(Bucket="lake", Key="x/of-somebody", Body=b"1")
    s3.create_multipart_upload(Bucket="lake", Key="x/of-somebody")
    checks = check_permissions(CONNECTION, LOCATION)
    assert [check.line for check in checks] == ALL_FINE
    assert not any(check.stops_all for check in checks)
    assert left(s3) == ["x/of-somebody", "x/of-somebody"]


def test_a_whole_bucket_is_a_location(s3: Any) -> None:
    assert [
        check.line for check in check_permissions(CONNECTION, S3Location("lake", ""))
    ] == ALL_FINE
    assert left(s3) == []


@pytest.mark.parametrize(
    ("action", "permission", "says", "stops"),
    [
        ("ListObjectsV2", "s3:ListBucket", "Needed for every export", True),
        ("AbortMultipartUpload", "s3:AbortMultipartUpload", "Needed for every export", True),
        (
            "ListMultipartUploads",
            "s3:ListBucketMultipartUploads",
            "Needed for on_existing: resume, and for aborting what lost tasks leave open",
            False,
        ),
        ("ListParts", "s3:ListMultipartUploadParts", "Needed for on_existing: resume", False),
        ("PutObject", "s3:PutObject", "Needed for every export", True),
        ("GetObject", "s3:GetObject", "Needed for on_existing: overwrite and resume", False),
    ],
)
def test_one_denial_is_one_line_that_says_what_it_costs(
    s3: Any, refuse: Refuse, action: str, permission: str, says: str, stops: bool
) -> None:
    refuse(action)
    checks = check_permissions(CONNECTION, LOCATION)
    [(found, line)] = not_ok(checks).items()
    assert found == permission
    assert line.startswith("DENIED: ")
    assert f"({permission}); " in line
    assert "at s3://lake/x/ failed: AccessDenied: No. " + says in line
    assert any(check.stops_all for check in checks) is stops
    assert len(checks) == len(ALL_FINE)


def test_what_can_not_be_deleted_is_not_written(s3: Any, refuse: Refuse) -> None:
    refuse("DeleteObject")
    checks = check_permissions(CONNECTION, LOCATION)
    lines = [check.line for check in checks]
    assert lines[:5] == ALL_FINE[:5]
    assert lines[5].startswith("not tried: put an object (s3:PutObject), as what it writes could")
    assert lines[6] == ALL_FINE[6]
    assert lines[7].startswith("DENIED: delete an object (s3:DeleteObject); ")
    assert "on_existing: overwrite" in lines[7]
    assert not any(check.stops_all for check in checks)
    assert left(s3) == []


def test_an_upload_that_can_not_be_aborted_is_named(s3: Any, refuse: Refuse) -> None:
    refuse("AbortMultipartUpload")
    line = not_ok(check_permissions(CONNECTION, LOCATION))["s3:AbortMultipartUpload"]
    [upload] = s3.list_multipart_uploads(Bucket="lake")["Uploads"]
    stays = f"An empty upload of s3://lake/{upload['Key']} stays open: {upload['UploadId']}"
    assert line.endswith(stays)
    assert upload["Key"].startswith("x/_mzs3_check-")


def test_who_may_do_nothing_hears_of_everything_at_once(s3: Any, refuse: Refuse) -> None:
    refuse("*")
    checks = check_permissions(CONNECTION, LOCATION)
    assert [check.line.split(":")[0] for check in checks] == [
        "DENIED",
        "DENIED",
        "not tried",
        "not tried",
        "DENIED",
        "not tried",
        "not tried",
        "DENIED",
    ]
    assert left(s3) == []


def test_a_store_that_lacks_an_action_denies_nothing(s3: Any, refuse: Refuse) -> None:
    refuse("ListMultipartUploads", code="NotImplemented")
    line = not_ok(check_permissions(CONNECTION, LOCATION))["s3:ListBucketMultipartUploads"]
    assert line.startswith("FAILED: list open uploads")


def test_an_upload_whose_opening_was_never_answered_is_aborted(
    s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def losing(connection: AwsConnection, **options: Any) -> Any:
        client: Any = client_module.s3_client(connection, **options)
        once = client.create_multipart_upload

        def twice(**target: Any) -> Any:
            once(**target)
            return once(**target)

        client.create_multipart_upload = twice
        return client

    monkeypatch.setattr(check_module, "s3_client", losing)
    assert [check.line for check in check_permissions(CONNECTION, LOCATION)] == ALL_FINE
    assert left(s3) == []


def made_so(monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], Any]) -> None:
    """The check's client is changed so."""

    def changed(connection: AwsConnection, **options: Any) -> Any:
        return change(client_module.s3_client(connection, **options))

    monkeypatch.setattr(check_module, "s3_client", changed)


def test_a_bucket_that_demands_conditions_denies_nothing(
    s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_so(monkeypatch, demanding_conditions)
    assert [check.line for check in check_permissions(CONNECTION, LOCATION)] == ALL_FINE
    assert left(s3) == []


@pytest.mark.parametrize("code", [None, "NotImplemented"])
def test_a_put_that_is_made_twice_or_whose_condition_is_unknown_is_fine(
    s3: Any, monkeypatch: pytest.MonkeyPatch, code: str | None
) -> None:
    def twice(client: Any) -> Any:
        put = client.put_object

        def put_twice(**given: Any) -> Any:
            if code is None:
                put(**given)
            elif "IfNoneMatch" in given:
                raise ClientError({"Error": {"Code": code, "Message": "No."}}, "PutObject")
            return put(**given)

        client.put_object = put_twice
        return client

    made_so(monkeypatch, twice)
    assert [check.line for check in check_permissions(CONNECTION, LOCATION)] == ALL_FINE
    assert left(s3) == []


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("InvalidAccessKeyId", "check the keys under aws_connections"),
        ("SignatureDoesNotMatch", "check the keys under aws_connections"),
        ("ExpiredToken", "a session_token can't be renewed"),
        ("PermanentRedirect", "the bucket is in another region: set region under"),
    ],
)
def test_what_lets_nothing_work_is_one_line(s3: Any, refuse: Refuse, code: str, says: str) -> None:
    refuse("*", code=code)
    with pytest.raises(S3Error) as failure:
        check_permissions(CONNECTION, LOCATION)
    text = str(failure.value)
    assert text.startswith(f"aws_connections.lake: list at s3://lake/x/ failed: {code}: No")
    assert says in text
    assert "\n" not in text
    assert "the-secret-key" not in text


def test_a_bucket_that_does_not_exist_is_one_line(s3: Any) -> None:
    with pytest.raises(S3Error, match="list at s3://other/x/ failed: NoSuchBucket: The specified"):
        check_permissions(CONNECTION, S3Location("other", "x/"))


def test_an_endpoint_that_does_not_answer_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(S3Error, match=rf"aws_connections.lake: nothing answers at {endpoint}"):
            check_permissions(AwsConnection("lake", endpoint=endpoint), LOCATION)
