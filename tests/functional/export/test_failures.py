"""A refusal or a death at any step: nothing visible, no open upload, and an error that says so."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.processes import wait_until
from support.s3.faulty import Fault, FaultyS3, Request, connection_to
from support.s3.real_stores import keys_in

from dbt.adapters.mzs3.errors import CopyError, LocationError, Mzs3Error, S3Error
from dbt.adapters.mzs3.export import job
from dbt.adapters.mzs3.export.commit import effects
from dbt.adapters.mzs3.export.commit.protocol import Commit
from dbt.adapters.mzs3.export.export import CopyResult
from dbt.adapters.mzs3.export.job import copy_to_s3
from dbt.adapters.mzs3.export.monitor import RunContext
from dbt.adapters.mzs3.spark import job as spark_job
from dbt.adapters.mzs3.spark.engine import close, open_session
from dbt.adapters.mzs3.spark.session import LocalScheduler
from dbt.adapters.mzs3.store.client import s3_client
from dbt.adapters.mzs3.upload import job as upload_job
from dbt.adapters.mzs3.upload.reaper import UploadReaper

pytestmark = pytest.mark.spark
Copy = Callable[..., CopyResult]
Check = Callable[[str], None]

# About 30 MB in two parts: several upload parts of 5 MB in each.
WIDE = "select id, repeat('x', 1000) as filler from range(30000)"
SMALL_PARTS: dict[str, Any] = {"parts": 2, "part_size": "5MB"}
CLEAN = "Nothing of this export is visible, and no upload is left open"


def test_listing_denied(copy: Copy, faulty: FaultyS3, bucket: str, nothing_left: Check) -> None:
    faulty.deny = lambda request: request.action == "ListObjectsV2"
    with pytest.raises(S3Error) as failure:
        copy("select 1 as a", f"s3://{bucket}/x")
    assert str(failure.value) == (
        f"listing s3://{bucket}/x/ failed: AccessDenied: Access Denied (needs s3:ListBucket)"
    )
    nothing_left(bucket)


def test_writing_denied(copy: Copy, faulty: FaultyS3, bucket: str, nothing_left: Check) -> None:
    faulty.deny = lambda request: request.action == "CreateMultipartUpload"
    with pytest.raises(S3Error, match=r"opening an upload at .* \(needs s3:PutObject\)"):
        copy("select 1 as a", f"s3://{bucket}/x")
    nothing_left(bucket)


def test_parts_that_are_denied_are_found_before_any_data(
    copy: Copy, faulty: FaultyS3, bucket: str, nothing_left: Check
) -> None:
    faulty.deny = lambda request: request.action == "UploadProbe"
    with pytest.raises(S3Error, match=r"sending a part of an upload at .* \(needs s3:PutObject\)"):
        copy("select raise_error('the query has run')", f"s3://{bucket}/x")
    nothing_left(bucket)


@pytest.fixture
def two_attempts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Clients try twice at most; in workers too, to whom the code travels, pickled anew."""
    monkeypatch.setitem(s3_client.__kwdefaults__, "max_attempts", 2)
    spark_job._code_of.cache_clear()
    yield
    spark_job._code_of.cache_clear()


@pytest.mark.parametrize(
    ("action", "doing"),
    [
        ("ListObjectsV2", "listing s3://{}/x/"),
        ("UploadPart", "uploading part 1 of s3://{}/x/part-0000-0001.csv"),
    ],
)
def test_a_store_that_throttles_for_ever(
    copy: Copy,
    s3_endpoint: str,
    bucket: str,
    nothing_left: Check,
    two_attempts: None,
    action: str,
    doing: str,
) -> None:
    # A server of its own: neither the driver nor a worker has a client for it that tries longer.
    with FaultyS3(s3_endpoint) as faulty, pytest.raises(Mzs3Error) as failure:
        faulty.fault = lambda r: Fault.SLOW_DOWN if r.action == action else None
        copy("select 1 as a", f"s3://{bucket}/x", parts=1, endpoint=faulty.endpoint)
    text = str(failure.value)
    assert f"{doing.format(bucket)} failed: SlowDown: Please try again" in text
    assert "gave up after 2 attempts. The store asks for fewer requests: run fewer tasks" in text
    assert "Traceback" not in text
    nothing_left(bucket)


def test_what_fails_of_tidying_up_does_not_fail_an_export_that_is_there(
    copy: Copy, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("an answer that is no XML")

    monkeypatch.setattr(UploadReaper, "abort_after_commit", fail)
    assert copy("select 1 as a", f"s3://{bucket}/x").rows == 1


def test_aborting_denied_is_found_before_any_data(
    copy: Copy, faulty: FaultyS3, s3: Any, bucket: str
) -> None:
    faulty.deny = lambda request: request.action == "AbortMultipartUpload"
    with pytest.raises(S3Error, match=r"needs s3:AbortMultipartUpload.*stays open"):
        copy("select 1 as a", f"s3://{bucket}/x")
    [upload] = s3.list_multipart_uploads(Bucket=bucket)["Uploads"]
    assert upload["Key"].startswith("x/_mzs3_")


def test_upload_refused_after_the_third_part(
    copy: Copy, faulty: FaultyS3, bucket: str, nothing_left: Check
) -> None:
    faulty.deny = lambda request: request.part_number > 3
    with pytest.raises(CopyError) as failure:
        copy(WIDE, f"s3://{bucket}/x", **{**SMALL_PARTS, "parts": 1})
    assert str(failure.value) == (
        f"model.test.export: the export to s3://{bucket}/x/ failed: uploading part 4 of "
        f"s3://{bucket}/x/part-0000-0001.csv failed: AccessDenied: Access Denied "
        f"(needs s3:PutObject). {CLEAN}"
    )
    nothing_left(bucket)


def workers() -> list[int]:
    """The process ids of the Python workers below this process."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"pyspark.daemon" in stat.read_bytes():
                found.append(int(stat.parent.name))
        except OSError:
            continue
    return [pid for pid in found if os.getpid() in ancestors(pid)]


def ancestors(pid: int) -> set[int]:
    above: set[int] = set()
    while pid > 1:
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            break
        above.add(pid)
    return above


def test_a_worker_killed_while_it_uploads(
    copy: Copy, faulty: FaultyS3, bucket: str, nothing_left: Check
) -> None:
    def kill_workers(request: Request) -> None:
        if request.part_number == 2:
            for pid in workers():
                os.kill(pid, signal.SIGKILL)

    faulty.watch = kill_workers
    with pytest.raises(CopyError) as failure:
        copy(WIDE, f"s3://{bucket}/x", **SMALL_PARTS)
    assert str(failure.value).endswith(CLEAN)
    nothing_left(bucket)


def test_an_upload_that_a_task_opens_long_after_the_failure_of_another(
    spark: Any, copy: Copy, faulty: FaultyS3, bucket: str, nothing_left: Check
) -> None:
    """Spark kills the worker of the one task; S3 gets the request to open an upload after that."""
    opening, scheduler = threading.Event(), LocalScheduler(spark)

    def stall(request: Request) -> None:
        if request.action == "CreateMultipartUpload" and "part-0001" in request.key:
            opening.set()
            wait_until(lambda: not scheduler.running())
        elif request.action == "UploadPart":
            opening.wait(60)

    faulty.watch = stall
    faulty.deny = lambda request: request.action == "UploadPart"
    with pytest.raises(CopyError) as failure:
        copy("select id, uuid() as u from range(100)", f"s3://{bucket}/x", parts=2)
    assert str(failure.value).endswith(CLEAN)
    nothing_left(bucket)


@pytest.mark.slow
def test_over_connect_an_upload_may_be_left(
    connect_url: str,
    faulty: FaultyS3,
    bucket: str,
    nothing_left: Check,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server does not tell when tasks that were cancelled have ended."""
    # The session sets it for its process, and tests that come later are of another Spark.
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    faulty.deny = lambda request: request.action == "UploadPart"
    session = open_session(connect_url, {}, 0)
    try:
        with pytest.raises(CopyError) as failure:
            copy_to_s3(
                session,
                "select 1 as a",
                node="model.test.export",
                options={"location": f"s3://{bucket}/x", "parts": 1},
                connections={"default": connection_to(faulty.endpoint)},
                as_of=1700000000000,
            )
    finally:
        close(session)
    assert ". Spark does not tell whether all tasks that opened uploads have ended. Open " in str(
        failure.value
    )
    assert f"aws s3api list-multipart-uploads --bucket {bucket} --prefix x/" in str(failure.value)
    nothing_left(bucket)


def test_a_row_count_that_does_not_agree(
    copy: Copy, monkeypatch: pytest.MonkeyPatch, bucket: str, nothing_left: Check
) -> None:
    check = upload_job.check_count
    monkeypatch.setattr(
        upload_job, "check_count", lambda written, counted: check(written, counted + 1)
    )
    with pytest.raises(CopyError) as failure:
        copy("select id from range(10)", f"s3://{bucket}/x")
    assert "workers wrote 10 rows, but Spark counted 11" in str(failure.value)
    assert str(failure.value).endswith(CLEAN)
    nothing_left(bucket)


def test_completion_refused_for_one_file(
    copy: Copy, faulty: FaultyS3, bucket: str, nothing_left: Check
) -> None:
    faulty.deny = lambda request: (
        request.action == "CompleteMultipartUpload" and "part-0002" in request.key
    )
    with pytest.raises(CopyError) as failure:
        copy("select id from range(100)", f"s3://{bucket}/x", parts=4)
    assert "committing" in str(failure.value)
    assert str(failure.value).endswith(CLEAN)
    nothing_left(bucket)


def test_the_manifest_refused(
    copy: Copy, faulty: FaultyS3, bucket: str, nothing_left: Check
) -> None:
    faulty.deny = lambda request: (
        request.action == "PutObject" and request.key.endswith("_manifest.json")
    )
    with pytest.raises(CopyError, match=CLEAN):
        copy("select id from range(100)", f"s3://{bucket}/x", parts=2)
    nothing_left(bucket)


def test_what_could_not_be_taken_back_is_named(
    copy: Copy, faulty: FaultyS3, s3: Any, bucket: str
) -> None:
    faulty.deny = lambda request: (
        request.action == "DeleteObject"
        or (request.action == "CompleteMultipartUpload" and "part-0001" in request.key)
    )
    with pytest.raises(CopyError) as failure:
        copy("select id from range(100)", f"s3://{bucket}/x", parts=2)
    left = keys_in(s3, bucket)
    assert left == ["x/_committing.json", "x/part-0000-0001.csv"]
    for key in left[1:]:
        assert f"removing s3://{bucket}/{key} failed: AccessDenied" in str(failure.value)
    assert "(needs s3:DeleteObject)" in str(failure.value)
    assert CLEAN not in str(failure.value)


def test_uploads_that_can_not_be_listed_are_spoken_of(
    copy: Copy, faulty: FaultyS3, bucket: str
) -> None:
    faulty.deny = lambda request: (
        request.action == "ListMultipartUploads" or request.action == "UploadPart"
    )
    with pytest.raises(CopyError) as failure:
        copy("select 1 as a", f"s3://{bucket}/x")
    assert "needs s3:ListBucketMultipartUploads" in str(failure.value)
    assert f"aws s3api list-multipart-uploads --bucket {bucket} --prefix x/" in str(failure.value)


def test_without_the_right_to_delete_the_export_still_works(
    copy: Copy, faulty: FaultyS3, s3: Any, bucket: str
) -> None:
    faulty.deny = lambda request: request.action in {"DeleteObject", "ListMultipartUploads"}
    assert copy("select id from range(10)", f"s3://{bucket}/x", parts=1).rows == 10
    keys = [entry["Key"] for entry in s3.list_objects_v2(Bucket=bucket)["Contents"]]
    assert keys == ["x/_committing.json", "x/_manifest.json", "x/part-0000-0001.csv"]


class Died(BaseException):
    """Stands for the death of the driver: nothing after it runs."""


@pytest.mark.parametrize("on_existing", ["fail", "overwrite"])
def test_a_driver_that_died_inside_the_commit_is_finished_by_the_next_run(
    copy: Copy, s3: Any, bucket: str, monkeypatch: pytest.MonkeyPatch, on_existing: str
) -> None:
    with monkeypatch.context() as patch:
        complete = effects.complete

        def die_at_the_second(place: Any, file: Any, **more: Any) -> str | None:
            if file.part == 1:
                raise Died
            return complete(place, file, **more)

        patch.setattr(effects, "complete", die_at_the_second)
        patch.setattr(Commit, "_roll_back_unless_forward", lambda *_: False)
        patch.setattr(job, "_clean_up", lambda *_: None)
        with pytest.raises(Died):
            copy("select id from range(100)", f"s3://{bucket}/x", parts=3)
    keys = [entry["Key"] for entry in s3.list_objects_v2(Bucket=bucket)["Contents"]]
    assert "x/_manifest.json" not in keys
    assert "x/_committing.json" in keys

    told: list[Any] = []
    how: Any = {"parts": 3, "on_existing": on_existing, "context": RunContext(tell=told.append)}
    if on_existing == "fail":
        number = "0001"
        with pytest.raises(LocationError) as failure:
            copy("select id from range(90)", f"s3://{bucket}/x", **how)
        said = str(failure.value)
    else:
        number = "0002"
        copy("select id from range(90)", f"s3://{bucket}/x", **how)
        [said] = [event.message for event in told if event.name == "mzs3.copy.recovered"]
    assert "export is complete now: 100 rows" in said
    keys = keys_in(s3, bucket)
    assert keys == ["x/_manifest.json", *(f"x/part-000{part}-{number}.csv" for part in range(3))]
    assert not s3.list_multipart_uploads(Bucket=bucket).get("Uploads")


def test_two_runs_that_commit_to_one_location(
    copy: Copy, faulty: FaultyS3, s3: Any, bucket: str
) -> None:
    def other_run_claims_first(request: Request) -> None:
        if request.action == "PutObject" and request.key.endswith("_committing.json"):
            faulty.watch = lambda _: None
            s3.put_object(Bucket=bucket, Key="x/_committing.json", Body=b"{}")

    faulty.watch = other_run_claims_first
    with pytest.raises(Mzs3Error, match="another run is committing an export"):
        copy("select 1 as a", f"s3://{bucket}/x")
    assert not s3.list_multipart_uploads(Bucket=bucket).get("Uploads")
    keys = [entry["Key"] for entry in s3.list_objects_v2(Bucket=bucket)["Contents"]]
    assert keys == ["x/_committing.json"]


def test_a_run_that_is_cancelled_early_exports_nothing(
    spark: Any, s3_endpoint: str, bucket: str, nothing_left: Check
) -> None:
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(CopyError, match=r"was cancelled\. Nothing of this export is visible"):
        job.copy_to_s3(
            spark,
            "select 1 as a",
            node="model.test.export",
            options={"location": f"s3://{bucket}/x"},
            connections={"default": connection_to(s3_endpoint)},
            as_of=1,
            cancelled=cancelled,
        )
    nothing_left(bucket)
