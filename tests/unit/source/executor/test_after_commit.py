"""Objects are tagged, moved or deleted only as they were ingested; safe to repeat."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from support.s3.faulty import demanding_conditions

from dbt.adapters.mzs3.source.executor.after_commit import AfterSpec, act_on
from dbt.adapters.mzs3.store import client as client_module
from dbt.adapters.mzs3.store import s3 as store_s3
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import S3Location

CONNECTION = AwsConnection(
    "lake", region="us-east-1", access_key_id="AKIAEXAMPLE", secret_access_key="the-secret-key"
)
LAKE = S3Location("lake", "in/")
TAG = AfterSpec(CONNECTION, LAKE, "tag", (("mzs3-ingested", "17"),))
MOVE = AfterSpec(CONNECTION, LAKE, "move", (), S3Location("attic", "old/"))
DELETE = AfterSpec(CONNECTION, LAKE, "delete")


@pytest.fixture
def s3() -> Iterator[Any]:
    with mock_aws():
        client: Any = client_module.s3_client(CONNECTION)
        client.create_bucket(Bucket="lake")
        client.create_bucket(Bucket="attic")
        yield client


def put(s3: Any, key: str, body: bytes = b"id\n1\n", **more: Any) -> tuple[str, str]:
    answer = s3.put_object(Bucket="lake", Key=key, Body=body, **more)
    return f"s3://lake/{key}", answer["ETag"].strip('"')


def act(spec: AfterSpec, *objects: tuple[str, str]) -> list[tuple[str, str | None]]:
    """Of every object its state and reason."""
    columns = [pa.array([one[n] for one in objects], pa.string()) for n in (0, 1)]
    batch = pa.RecordBatch.from_arrays(columns, names=["object", "etag"])
    (found,) = act_on(spec)(iter([batch]))
    assert found.column("object").to_pylist() == [uri for uri, _ in objects]
    assert found.column("etag").to_pylist() == [etag for _, etag in objects]
    return list(zip(found["state"].to_pylist(), found["error"].to_pylist(), strict=True))


def keys(s3: Any, bucket: str) -> list[str]:
    return [one["Key"] for one in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]


def test_a_tag_is_added_to_those_that_are_there(s3: Any) -> None:
    one = put(s3, "in/a.csv", Tagging="team=sales&mzs3-ingested=3")
    for _ in range(2):
        assert act(TAG, one) == [("tagged", None)]
    found = s3.get_object_tagging(Bucket="lake", Key="in/a.csv")["TagSet"]
    assert {tag["Key"]: tag["Value"] for tag in found} == {"team": "sales", "mzs3-ingested": "17"}


def test_a_move_keeps_the_key_below_the_location_and_all_that_belongs_to_the_object(
    s3: Any,
) -> None:
    one = put(s3, "in/x/a b+ü.csv", ContentType="text/csv", Metadata={"by": "me"}, Tagging="t=1")
    other = put(s3, "in/y/a b+ü.csv", b"id\n2\n")
    assert act(MOVE, one, other) == [("moved", None)] * 2
    assert keys(s3, "lake") == []
    assert keys(s3, "attic") == ["old/x/a b+ü.csv", "old/y/a b+ü.csv"]
    moved = s3.get_object(Bucket="attic", Key="old/x/a b+ü.csv")
    assert moved["Body"].read() == b"id\n1\n"
    assert moved["ContentType"] == "text/csv"
    assert moved["Metadata"]["by"] == "me"
    tags = s3.get_object_tagging(Bucket="attic", Key="old/x/a b+ü.csv")["TagSet"]
    assert tags == [{"Key": "t", "Value": "1"}]


def test_a_move_that_was_cut_off_after_the_copy_is_finished(
    s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = put(s3, "in/a.csv")
    refuse(monkeypatch, "DeleteObject", "InternalError")
    assert act(MOVE, one)[0][0] == "waiting"
    assert keys(s3, "lake") == ["in/a.csv"]
    monkeypatch.undo()
    assert act(MOVE, one) == [("moved", None)]
    assert (keys(s3, "lake"), keys(s3, "attic")) == ([], ["old/a.csv"])


def test_a_move_destroys_nothing_at_the_target(s3: Any) -> None:
    s3.put_object(Bucket="attic", Key="old/a.csv", Body=b"id\n1\n")
    one = put(s3, "in/a.csv")
    says = "s3://attic/old/a.csv exists, and is not a copy of it"
    assert act(MOVE, one) == [("left", says)]
    assert keys(s3, "lake") == ["in/a.csv"]
    # Neither a later object of the same key nor one of another source is a copy of the first.
    s3.delete_object(Bucket="attic", Key="old/a.csv")
    assert act(MOVE, one) == [("moved", None)]
    assert act(MOVE, put(s3, "in/a.csv", b"id\n2\n")) == [("left", says)]
    uri, etag = put(s3, "in2/a.csv")
    assert act(replace(MOVE, location=S3Location("lake", "in2/")), (uri, etag)) == [("left", says)]


def test_a_target_that_demands_conditions_takes_a_move(
    s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = s3.meta.service_model.operation_model("CopyObject")
    if "IfNoneMatch" not in copy.input_shape.members:
        pytest.skip("this version of boto3 knows no condition of a copy")
    one = put(s3, "in/a.csv")
    demanding = demanding_conditions(client_module.s3_client(CONNECTION))
    monkeypatch.setattr(store_s3, "s3_client", lambda _: demanding)
    assert act(MOVE, one) == [("moved", None)]
    assert (keys(s3, "lake"), keys(s3, "attic")) == ([], ["old/a.csv"])


def test_a_store_that_knows_no_condition_of_a_copy_takes_a_move(
    s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(model: Any, params: Any, **_: Any) -> None:
        if "If-None-Match" in params["headers"]:
            raise ClientError({"Error": {"Code": "NotImplemented", "Message": "No."}}, model.name)

    one = put(s3, "in/a.csv")
    before(monkeypatch, "CopyObject", unknown)
    assert act(MOVE, one) == [("moved", None)]


@pytest.mark.parametrize("is_own", [True, False])
def test_a_target_that_is_taken_at_the_last_moment_is_not_replaced(
    s3: Any, monkeypatch: pytest.MonkeyPatch, is_own: bool
) -> None:
    """By our own request, of which the answer was lost, or by somebody else."""
    uri, etag = put(s3, "in/a.csv")
    refused: list[str] = []

    def copied_already(model: Any, **_: Any) -> None:
        s3.put_object(Bucket="attic", Key="old/a.csv", Body=b"id\n2\n")
        if is_own:
            mark = f"{etag} {hashlib.sha256(b'lake/in/a.csv').hexdigest()[:32]}"
            metadata = {"mzs3-moved": mark}
            s3.put_object(Bucket="attic", Key="old/a.csv", Body=b"id\n1\n", Metadata=metadata)
        refused.append(model.name)
        code = {"Code": "PreconditionFailed", "Message": "No."}
        raise ClientError({"Error": code}, model.name)

    before(monkeypatch, "CopyObject", copied_already)
    says = "s3://attic/old/a.csv exists, and is not a copy of it"
    assert act(MOVE, (uri, etag)) == [("moved", None) if is_own else ("left", says)]
    assert refused == ["CopyObject"]


def test_a_large_object_that_changes_while_it_is_copied_is_left_alone(
    s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_s3, "_ONE_COPY_BYTES", 0)
    one = put(s3, "in/a.csv", b"x" * (9 * 1024 * 1024))

    refuse(monkeypatch, "UploadPartCopy", "PreconditionFailed")
    ((state, why),) = act(MOVE, one)
    assert state in ("waiting", "left")  # by version of boto3; the next run leaves it
    assert why is not None
    assert "\n" not in why
    assert keys(s3, "lake") == ["in/a.csv"]
    assert keys(s3, "attic") == []


def test_a_target_that_is_not_there_is_no_reason_to_take_the_object_for_moved(s3: Any) -> None:
    one = put(s3, "in/a.csv")
    ((state, why),) = act(replace(MOVE, target=S3Location("no-such", "old/")), one)
    assert state == "waiting"
    assert why is not None
    assert why.startswith("after_commit: move of s3://lake/in/a.csv failed: NoSuchBucket: ")
    assert keys(s3, "lake") == ["in/a.csv"]


def test_a_large_object_is_moved_in_parts(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_s3, "_ONE_COPY_BYTES", 0)
    one = put(s3, "in/a.csv", b"x" * (9 * 1024 * 1024), ContentType="text/csv")
    assert act(MOVE, one) == [("moved", None)]
    moved = s3.head_object(Bucket="attic", Key="old/a.csv")
    assert (moved["ContentLength"], moved["ContentType"]) == (9 * 1024 * 1024, "text/csv")
    assert keys(s3, "lake") == []


def test_a_deletion(s3: Any) -> None:
    one, other = put(s3, "in/a.csv"), put(s3, "in/b.csv")
    assert act(DELETE, one) == [("deleted", None)]
    assert keys(s3, "lake") == ["in/b.csv"]
    assert act(DELETE, one, other) == [("gone", None), ("deleted", None)]


@pytest.mark.parametrize("spec", [TAG, MOVE, DELETE], ids=["tag", "move", "delete"])
def test_what_was_overwritten_is_left_alone(s3: Any, spec: AfterSpec) -> None:
    uri, etag = put(s3, "in/a.csv")
    put(s3, "in/a.csv", b"id\n2\n")
    assert act(spec, (uri, etag)) == [
        ("left", f"it was overwritten after it was ingested: its ETag was {etag}")
    ]
    assert s3.get_object(Bucket="lake", Key="in/a.csv")["Body"].read() == b"id\n2\n"
    assert s3.get_object_tagging(Bucket="lake", Key="in/a.csv")["TagSet"] == []
    assert keys(s3, "attic") == []


@pytest.mark.parametrize("spec", [MOVE, DELETE], ids=["move", "delete"])
def test_what_is_overwritten_at_the_last_moment_is_left_alone(
    s3: Any, spec: AfterSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, etag = put(s3, "in/a.csv")

    def overwrite(**_: Any) -> None:
        put(s3, "in/a.csv", b"id\n2\n")

    before(monkeypatch, "DeleteObject", overwrite)
    assert act(spec, (uri, etag))[0][0] == "left"
    assert keys(s3, "lake") == ["in/a.csv"]


def test_what_is_overwritten_before_it_is_copied_is_not_moved(
    s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, etag = put(s3, "in/a.csv")

    def overwrite(model: Any, params: Any, **_: Any) -> None:
        """Then compares as S3 does, and moto doesn't."""
        now = put(s3, "in/a.csv", b"id\n2\n")[1]
        if params["headers"].get("x-amz-copy-source-if-match", now).strip('"') != now:
            refusal: Any = {"Error": {"Code": "PreconditionFailed", "Message": "No."}}
            raise ClientError(refusal, model.name)

    before(monkeypatch, "CopyObject", overwrite)
    says = f"it was overwritten after it was ingested: its ETag was {etag}"
    assert act(MOVE, (uri, etag)) == [("left", says)]
    assert (keys(s3, "lake"), keys(s3, "attic")) == (["in/a.csv"], [])


def test_what_is_gone_is_done_with(s3: Any) -> None:
    for spec in (TAG, MOVE, DELETE):
        assert act(spec, ("s3://lake/in/a.csv", "0")) == [("gone", None)]


@pytest.mark.parametrize(
    ("spec", "action", "says"),
    [
        (TAG, "PutObjectTagging",
         "after_commit: tag of s3://lake/in/a.csv failed: AccessDenied: No. (needs "
         "s3:GetObjectTagging and s3:PutObjectTagging)"),
        (MOVE, "CopyObject",
         "after_commit: move of s3://lake/in/a.csv failed: AccessDenied: No. (needs "
         "s3:DeleteObject on it, s3:GetObject and s3:PutObject on the target, s3:ListBucket on "
         "both buckets)"),
        (DELETE, "DeleteObject",
         "after_commit: delete of s3://lake/in/a.csv failed: AccessDenied: No. (needs "
         "s3:DeleteObject)"),
        (DELETE, "HeadObject",
         "looking for s3://lake/in/a.csv failed: AccessDenied: No. (needs s3:GetObject)"),
    ],
)  # fmt: skip
def test_what_s3_refuses_waits_and_says_why(
    s3: Any, spec: AfterSpec, action: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = put(s3, "in/a.csv")
    refuse(monkeypatch, action, "AccessDenied")
    assert act(spec, one) == [("waiting", says)]
    assert keys(s3, "lake") == ["in/a.csv"]


def refuse(monkeypatch: pytest.MonkeyPatch, action: str, code: str) -> None:
    def answer(model: Any, **_: Any) -> None:
        raise ClientError({"Error": {"Code": code, "Message": "No."}}, model.name)

    before(monkeypatch, action, answer)


def before(monkeypatch: pytest.MonkeyPatch, action: str, do: Any) -> None:
    """From now on the module's clients do this before they ask for that."""

    def watched(connection: AwsConnection) -> Any:
        client: Any = client_module.s3_client(connection)
        client.meta.events.register(f"before-call.s3.{action}", do)
        return client

    monkeypatch.setattr(store_s3, "s3_client", watched)
