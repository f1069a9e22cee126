"""`on_existing`, on a real Spark and a real S3 server."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.s3.faulty import FaultyS3, Request, connection_to, has_no_condition
from support.s3.real_stores import STORE

from dbt.adapters.mzs3.errors import CopyError, LocationError, S3Error
from dbt.adapters.mzs3.events import CopyEvent
from dbt.adapters.mzs3.export import job
from dbt.adapters.mzs3.export.export import CopyResult
from dbt.adapters.mzs3.export.monitor import RunContext
from dbt.adapters.mzs3.shard.compact import compact_shard
from dbt.adapters.mzs3.shard.options import parse_compaction
from dbt.adapters.mzs3.shard.read.rows import ShardLocation
from dbt.adapters.mzs3.shard.write.job import persist_shard
from dbt.adapters.mzs3.store.check import check_permissions
from dbt.adapters.mzs3.store.location import parse_location
from dbt.adapters.mzs3.upload import job as upload_job

pytestmark = pytest.mark.spark
Copy = Callable[..., CopyResult]
Objects = Callable[[str], dict[str, bytes]]

# About 30 MB in two parts: several upload parts of 5 MB in each.
WIDE = "select id, repeat('x', 1000) as filler from range(30000)"
WIDE_OPTIONS: dict[str, Any] = {"parts": 2, "part_size": "5MB"}


def open_uploads(s3: Any, bucket: str) -> list[str]:
    return [u["Key"] for u in s3.list_multipart_uploads(Bucket=bucket).get("Uploads", [])]


def manifest_of(found: dict[str, bytes]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(found["x/_manifest.json"])
    return document


def test_overwrite_replaces_what_the_manifest_names(
    copy: Copy, s3: Any, bucket: str, objects: Objects
) -> None:
    location = f"s3://{bucket}/x"
    copy("select id from range(100)", location, parts=3, on_existing="overwrite")
    assert sorted(objects(bucket)) == [
        "x/_manifest.json",
        *(f"x/part-000{part}-0001.csv" for part in range(3)),
    ]
    result = copy("select id from range(50)", location, parts=2, on_existing="overwrite")
    found = objects(bucket)
    assert sorted(found) == [
        "x/_manifest.json",
        *(f"x/part-000{part}-0002.csv" for part in range(2)),
    ]
    assert (result.rows, manifest_of(found)["meta"]["record_count"]) == (50, 50)
    copy("select id from range(100)", location, parts=3, on_existing="overwrite")
    assert "x/part-0002-0003.csv" in objects(bucket)


def test_overwrite_needs_a_manifest_of_ours(copy: Copy, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="x/mine.csv", Body=b"1\n")
    with pytest.raises(LocationError, match="is not empty: it holds 1 object"):
        copy("select 1 as a", f"s3://{bucket}/x", on_existing="overwrite")


def test_overwrite_proves_that_it_may_delete_before_any_data(
    copy: Copy, faulty: FaultyS3, bucket: str, objects: Objects
) -> None:
    copy("select 1 as a", f"s3://{bucket}/x", parts=1)
    before = objects(bucket)
    faulty.deny = lambda request: request.action == "DeleteObject"
    with pytest.raises(S3Error, match=r"as on_existing: overwrite has to failed.*DeleteObject"):
        copy("select 2 as a", f"s3://{bucket}/x", parts=1, on_existing="overwrite")
    assert objects(bucket) == before


def test_a_failed_overwrite_leaves_the_old_export(
    copy: Copy, faulty: FaultyS3, s3: Any, bucket: str, objects: Objects
) -> None:
    copy("select 1 as a", f"s3://{bucket}/x", parts=1)
    before = objects(bucket)
    faulty.deny = lambda request: request.part_number == 3
    with pytest.raises(CopyError, match="Nothing of this export is visible"):
        copy(WIDE, f"s3://{bucket}/x", on_existing="overwrite", **WIDE_OPTIONS)
    assert objects(bucket) == before
    assert not open_uploads(s3, bucket)


PARTITIONED = "select id, id % 3 as d, case id % 2 when 0 then 'a/b' end as c from range({})"


def test_partitions_are_folders_and_are_replaced_one_by_one(
    copy: Copy, s3: Any, bucket: str, objects: Objects
) -> None:
    options: dict[str, Any] = {"partition_by": ["d", "c"], "parts": 2, "on_existing": "overwrite"}
    result = copy(PARTITIONED.format(60), f"s3://{bucket}/x", **options)
    found = objects(bucket)
    folders = {key.rsplit("/", 1)[0] for key in found if key.endswith(".csv")}
    null = "__HIVE_DEFAULT_PARTITION__"
    assert folders == {f"x/d={d}/c={c}" for d in range(3) for c in ("a%2Fb", null)}
    rows = [
        (int(line), int(key.split("d=")[1][0]), key.split("c=")[1].split("/")[0])
        for key, body in found.items()
        if key.endswith(".csv")
        for line in body.decode().splitlines()
    ]
    expected = [(i, i % 3, "a%2Fb" if i % 2 == 0 else null) for i in range(60)]
    assert sorted(rows) == sorted(expected)
    assert result.rows == 60

    # New rows for one folder: the others stay as they are, and in the manifest.
    one = copy("select 7L as id, 1L as d, 'a/b' as c", f"s3://{bucket}/x", **options)
    after = objects(bucket)
    changed = {key for key in {*found, *after} if found.get(key) != after.get(key)}
    assert {key.rsplit("/", 1)[0] for key in changed} == {"x", "x/d=1/c=a%2Fb"}
    assert (one.rows, manifest_of(after)["meta"]["record_count"]) == (1, 51)
    urls = {entry["url"] for entry in manifest_of(after)["entries"]}
    assert urls == {f"s3://{bucket}/{key}" for key in after if key.endswith(".csv")}

    # No rows: no folder changes.
    none = copy(PARTITIONED.format(0), f"s3://{bucket}/x", **options)
    assert (none.rows, none.files) == (0, 0)
    assert {k: v for k, v in objects(bucket).items() if k.endswith(".csv")} == {
        k: v for k, v in after.items() if k.endswith(".csv")
    }

    # A full refresh replaces them all.
    copy(PARTITIONED.format(3), f"s3://{bucket}/x", full_refresh=True, **options)
    assert sum(key.endswith(".csv") for key in objects(bucket)) == 3


def test_an_empty_text_can_not_name_a_folder(copy: Copy, bucket: str) -> None:
    with pytest.raises(CopyError, match=r"column c holds an empty text.*Select nullif\(c, ''\)"):
        copy("select 1 as id, '' as c", f"s3://{bucket}/x", partition_by="c")


def test_a_single_file_has_the_name_it_is_given(
    copy: Copy, s3: Any, bucket: str, objects: Objects
) -> None:
    query = "select id, concat('t', id) as t from range(1000)"
    options: dict[str, Any] = {"single_file": "orders.csv", "header": True}
    result = copy(query, f"s3://{bucket}/x", **options)
    found = objects(bucket)
    assert sorted(found) == ["x/_manifest.json", "x/orders.csv"]
    lines = found["x/orders.csv"].decode().splitlines()
    assert (lines[0], len(lines), result.files) == ("id,t", 1001, 1)
    copy("select 1 as id, 'u' as t", f"s3://{bucket}/x", on_existing="overwrite", **options)
    assert objects(bucket)["x/orders.csv"] == b"id,t\n1,u\n"


class DiedError(BaseException):
    """Stands for the death of the driver: nothing after it runs."""


def interrupted(
    copy: Copy, monkeypatch: pytest.MonkeyPatch, location: str, **options: Any
) -> None:
    """A run that has uploaded everything and dies before it commits."""
    with monkeypatch.context() as patch:

        def die(*_: Any, **__: Any) -> None:
            raise DiedError

        patch.setattr(upload_job, "check_count", die)
        patch.setattr(job, "_clean_up", lambda *_: None)
        with pytest.raises(DiedError):
            copy(WIDE, location, **options)


@pytest.mark.parametrize(
    "encryption",
    [
        None,
        pytest.param(
            "aws:kms",
            marks=pytest.mark.skipif(STORE != "minio", reason="its ETags are MD5s under KMS, too"),
        ),
    ],
)
def test_resume_sends_only_what_is_missing(
    encryption: str | None,
    copy: Copy,
    faulty: FaultyS3,
    s3: Any,
    bucket: str,
    objects: Objects,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copy(WIDE, f"s3://{bucket}/whole", **WIDE_OPTIONS)
    whole = {k.removeprefix("whole/"): v for k, v in objects(bucket).items()}
    resumable = {**WIDE_OPTIONS, "on_existing": "resume", "encryption": encryption}
    interrupted(copy, monkeypatch, f"s3://{bucket}/x", **resumable)
    assert len(open_uploads(s3, bucket)) == 2
    # A second upload of a file, as a lost attempt of a task leaves; and one with a wrong part.
    s3.create_multipart_upload(Bucket=bucket, Key="x/part-0000-0001.csv")
    s3.create_multipart_upload(Bucket=bucket, Key="x/part-0009-0001.csv")
    sent: list[Request] = []
    faulty.watch = lambda request: sent.append(request) if request.action == "UploadPart" else None
    told: list[CopyEvent] = []
    result = copy(
        WIDE,
        f"s3://{bucket}/x",
        context=RunContext(tell=told.append),
        **resumable,
    )
    assert not sent
    [resumed] = [event.fields for event in told if event.name == "mzs3.copy.resumed"]
    assert resumed["parts"] == resumed["of_parts"]
    assert int(str(resumed["of_parts"])) > 2
    assert resumed["bytes"] == result.bytes
    found = {k.removeprefix("x/"): v for k, v in objects(bucket).items() if k.startswith("x/")}
    assert {k: v for k, v in found.items() if k.endswith(".csv")} == {
        k: v for k, v in whole.items() if k.endswith(".csv")
    }
    assert result.rows == 30000
    assert not open_uploads(s3, bucket)


def test_a_bucket_that_demands_conditions_takes_every_export(
    copy: Copy, faulty: FaultyS3, s3: Any, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty.deny = has_no_condition
    connection = connection_to(faulty.endpoint)
    checks = check_permissions(connection, parse_location(f"s3://{bucket}/x"))
    assert [check.line for check in checks if check.problem] == []
    for place, options in {"files": {"parts": 2}, "single": {"single_file": "all.csv"}}.items():
        for rows in (10, 20):
            copy(
                f"select id from range({rows})",
                f"s3://{bucket}/{place}",
                on_existing="overwrite" if rows == 20 else "fail",
                **options,
            )
    resumed = {"on_existing": "resume", **WIDE_OPTIONS}
    interrupted(copy, monkeypatch, f"s3://{bucket}/resumed", **resumed)
    copy(WIDE, f"s3://{bucket}/resumed", **resumed)
    for place, rows in (("files", 20), ("single", 20), ("resumed", 30000)):
        assert len(visible(s3, bucket, place).splitlines()) == rows
    assert not open_uploads(s3, bucket)


def test_a_bucket_that_demands_conditions_takes_a_shard(
    spark: Any, faulty: FaultyS3, bucket: str
) -> None:
    faulty.deny = has_no_condition
    connection, location = connection_to(faulty.endpoint), f"s3://{bucket}/shard"

    def persist(query: str, as_of: int) -> None:
        persist_shard(
            spark,
            query,
            node="model.test.shard",
            options={"location": location},
            connections={"default": connection},
            as_of=as_of,
        )

    persist("select id from range(10)", 10)
    persist("select id from range(5)", 20)
    place = ShardLocation(connection, parse_location(location))
    compacted = compact_shard(spark, place, replace(parse_compaction({}), since="latest"))
    assert compacted.new is not None
    assert compacted.new.additions == 5


def visible(s3: Any, bucket: str, place: str) -> bytes:
    """The rows that a reader of the manifest finds."""

    def read(key: str) -> bytes:
        body: bytes = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        return body

    entries = json.loads(read(f"{place}/_manifest.json"))["entries"]
    return b"".join(read(entry["url"].split("/", 3)[3]) for entry in entries)


def test_resume_writes_what_differs_anew(
    copy: Copy, s3: Any, bucket: str, objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(copy, monkeypatch, f"s3://{bucket}/x", on_existing="resume", **WIDE_OPTIONS)
    other = WIDE.replace("'x'", "'y'")
    copy(other, f"s3://{bucket}/x", on_existing="resume", **WIDE_OPTIONS)
    bodies = [body for key, body in objects(bucket).items() if key.endswith(".csv")]
    assert sum(body.count(b"\n") for body in bodies) == 30000
    assert not any(b"x" in body for body in bodies)
    assert not open_uploads(s3, bucket)


@pytest.mark.skipif(STORE == "versitygw", reason="it tells no ACL of an object")
def test_resume_does_not_make_public_what_is_to_be_private(
    copy: Copy, s3: Any, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = {"on_existing": "resume", "acl": "public-read", "object_tags": {"open": "yes"}}
    interrupted(copy, monkeypatch, f"s3://{bucket}/x", **public, **WIDE_OPTIONS)
    copy(WIDE, f"s3://{bucket}/x", on_existing="resume", acl="private", **WIDE_OPTIONS)
    for found in s3.list_objects_v2(Bucket=bucket)["Contents"]:
        grants = s3.get_object_acl(Bucket=bucket, Key=found["Key"])["Grants"]
        assert [grant["Grantee"].get("URI") for grant in grants] == [None], found["Key"]
        assert s3.get_object_tagging(Bucket=bucket, Key=found["Key"])["TagSet"] == []
    assert not open_uploads(s3, bucket)


@pytest.mark.skipif(STORE == "versitygw", reason="it replaces nothing without versions")
def test_a_bucket_with_retention_takes_an_export(copy: Copy, s3: Any, bucket: str) -> None:
    locked = f"{bucket}-locked"
    s3.create_bucket(Bucket=locked, ObjectLockEnabledForBucket=True)
    rule = {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 1}}
    s3.put_object_lock_configuration(
        Bucket=locked, ObjectLockConfiguration={"ObjectLockEnabled": "Enabled", "Rule": rule}
    )
    assert copy("select 1 as a", f"s3://{locked}/x").rows == 1
    assert copy("select 2 as a", f"s3://{locked}/x", on_existing="overwrite").rows == 1


def test_resume_over_a_finished_export_compares_it(
    copy: Copy, faulty: FaultyS3, s3: Any, bucket: str, objects: Objects
) -> None:
    location = f"s3://{bucket}/x"
    first = copy("select id from range(100)", location, parts=2)
    before = objects(bucket)
    sent: list[str] = []
    faulty.watch = lambda request: (
        sent.append(request.key) if request.action == "UploadPart" else None
    )
    assert copy("select id from range(100)", location, parts=2, on_existing="resume") == first
    with pytest.raises(LocationError, match="this run gives another one: 1 of 2 files differ"):
        copy("select id from range(101)", location, parts=2, on_existing="resume")
    assert objects(bucket) == before
    assert not sent
    assert not open_uploads(s3, bucket)


def test_resume_says_what_it_needs(copy: Copy, faulty: FaultyS3, bucket: str) -> None:
    faulty.deny = lambda request: request.action == "ListMultipartUploads"
    with pytest.raises(S3Error, match="resume needs s3:ListBucketMultipartUploads"):
        copy("select 1 as a", f"s3://{bucket}/x", on_existing="resume")


@pytest.mark.skipif(STORE is not None, reason="real stores have not all properties")
def test_objects_have_the_properties_that_were_asked_for(copy: Copy, s3: Any, bucket: str) -> None:
    copy(
        "select 1 as a",
        f"s3://{bucket}/x",
        parts=1,
        encryption="aws:kms",
        kms_key_id="alias/exports",
        storage_class="STANDARD_IA",
        object_tags={"team": "data = more"},
        acl="bucket-owner-full-control",
    )
    for key, storage in (("x/part-0000-0001.csv", "STANDARD_IA"), ("x/_manifest.json", None)):
        head = s3.head_object(Bucket=bucket, Key=key)
        assert head["ServerSideEncryption"] == "aws:kms"
        assert head["SSEKMSKeyId"] == "alias/exports"
        assert head.get("StorageClass") == storage
        tags = s3.get_object_tagging(Bucket=bucket, Key=key)["TagSet"]
        assert tags == [{"Key": "team", "Value": "data = more"}]
    assert s3.head_object(Bucket=bucket, Key="x/part-0000-0001.csv")["ContentType"] == (
        "text/csv; charset=utf-8"
    )
