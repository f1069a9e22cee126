"""A run that fails leaves nothing in its own folder, or says what."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from support.s3.opened import prefix_of

from dbt.adapters.mzs3.errors import ShardError
from dbt.adapters.mzs3.shard.state.state import ShardBatch
from dbt.adapters.mzs3.shard.write import batch
from dbt.adapters.mzs3.shard.write.batch import BatchWriter, complete_files, write_batch
from dbt.adapters.mzs3.spark import engine
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import parse_location
from dbt.adapters.mzs3.store.prefix import Prefix
from dbt.adapters.mzs3.upload import reaper
from dbt.adapters.mzs3.upload.pending import PendingFile

OURS, THEIRS = "orders/batches/5-ours/", "orders/batches/5-theirs/"


@pytest.fixture
def prefix(client: Any, monkeypatch: pytest.MonkeyPatch) -> Prefix:
    monkeypatch.setattr(reaper, "_QUIET_S", 0.0)
    monkeypatch.setattr(engine, "has_running_tasks", lambda _: False)
    return prefix_of(client, parse_location("s3://acme/orders"))


def opened(prefix: Prefix, folder: str, part: int) -> PendingFile:
    key = f"{folder}part-{part:04d}-0001.parquet"
    upload_id = prefix.store._client.create_multipart_upload(Bucket="acme", Key=key)["UploadId"]
    sent = prefix.store._client.upload_part(
        Bucket="acme", Key=key, UploadId=upload_id, PartNumber=1, Body=b"x"
    )
    return PendingFile(part, 1, key, upload_id, (sent["ETag"],), 1, 1, "")


def left(prefix: Prefix) -> list[str]:
    return [key for key, _ in prefix.uploads()] + [one.key for one in prefix.objects()]


def failed(prefix: Prefix, files: list[PendingFile] | None, **how: Any) -> str:
    """What a run says that fails when it knows of these uploads; None: when only tasks do."""

    def fail(*_: Any) -> Any:
        raise ValueError("out of the blue")

    def fail_after_one(*_: Any) -> Any:
        complete_files(prefix, (files or [])[:1])
        fail()

    with pytest.MonkeyPatch.context() as patch, pytest.raises(ShardError) as caught:
        patch.setattr(batch, "upload", fail if files is None else lambda *_: (files, 0, 0))
        patch.setattr(batch, "complete_files", fail_after_one)
        patch.setattr(batch, "speculates", lambda _: False)
        parts = SimpleNamespace(sparkSession=None)
        written(prefix, fail if files == [] else lambda: parts, **how)
    return str(caught.value)


def written(prefix: Prefix, changes: Any, cancelled: threading.Event | None = None) -> ShardBatch:
    doing = "model.a.b: writing to s3://acme/orders/"
    writer = BatchWriter(AwsConnection(), prefix, doing, cancelled)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("uuid.uuid4", lambda: SimpleNamespace(hex="ours"))
        empty = ShardBatch(0, 6, 0, "dual")
        return write_batch(writer, empty, (), changes)


SAID = "model.a.b: writing to s3://acme/orders/ failed: out of the blue. The shard is what it was"


def test_uploads_of_tasks_are_aborted_and_those_of_others_are_not(prefix: Prefix) -> None:
    opened(prefix, OURS, 0)
    opened(prefix, OURS, 1)
    other = opened(prefix, THEIRS, 0)
    assert failed(prefix, None) == SAID
    assert left(prefix) == [other.key]


def test_a_run_that_was_cancelled_says_so(prefix: Prefix) -> None:
    cancelled = threading.Event()
    cancelled.set()
    said = "model.a.b: writing to s3://acme/orders/ was cancelled. The shard is what it was"
    assert failed(prefix, [], cancelled=cancelled) == said


def test_where_there_were_no_uploads_none_are_looked_for(prefix: Prefix) -> None:
    def denied(**_: Any) -> Any:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "No."}}, "Any")

    prefix.store._client.create_multipart_upload = denied  # type: ignore[method-assign]
    prefix.store._client.list_multipart_uploads = denied  # type: ignore[method-assign]
    assert failed(prefix, []) == SAID


def test_uploads_that_are_known_go_and_so_do_their_objects(prefix: Prefix) -> None:
    files = [opened(prefix, OURS, 0), opened(prefix, OURS, 1)]
    opened(prefix, OURS, 1)  # by an attempt that was lost
    assert failed(prefix, files) == SAID
    assert left(prefix) == []


def test_what_something_else_has_written_stays_and_is_told(
    prefix: Prefix, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [opened(prefix, OURS, part) for part in range(3)]
    for file in files[::2]:
        prefix.store._client.put_object(Bucket="acme", Key=file.key, Body=b"#")
    monkeypatch.setattr(batch, "upload", lambda *_: (files, 3, 0))
    monkeypatch.setattr(batch, "speculates", lambda _: False)
    with pytest.raises(ShardError) as raised:
        written(prefix, lambda: None)
    theirs = [file.key for file in files[::2]]
    assert left(prefix) == theirs
    listed = ", ".join(f"s3://acme/{key}" for key in theirs)
    assert f"something else than this run has written {listed}" in str(raised.value)
    assert str(raised.value).count("Run again") == 1


def test_what_can_not_be_cleaned_up_is_told(prefix: Prefix) -> None:
    files = [opened(prefix, OURS, 0)]

    def denied(**_: Any) -> Any:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "No."}}, "Any")

    prefix.store._client.abort_multipart_upload = denied  # type: ignore[method-assign]
    prefix.store._client.delete_object = denied  # type: ignore[method-assign]
    said = failed(prefix, files)
    assert f"aborting the upload of s3://acme/{files[0].key} failed: AccessDenied" in said
    assert f"s3://acme/{files[0].key} may be left, which no reader sees" in said
    prefix.store._client.create_multipart_upload = denied  # type: ignore[method-assign]
    said = failed(prefix, None)
    assert f"Open uploads may be left below s3://acme/{OURS}" in said
    assert "a lifecycle rule of the bucket" in said


def test_files_of_a_run_that_succeeds_are_visible(
    prefix: Prefix, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = opened(prefix, OURS, 0)
    monkeypatch.setattr(batch, "upload", lambda *_: ([file], 3, 1))
    monkeypatch.setattr(batch, "speculates", lambda _: False)
    found = written(prefix, lambda: None)
    assert [f"orders/{one.name}" for one in found.files] == left(prefix) == [file.key]
    assert (found.upper, found.additions, found.retractions) == (6, 3, 1)


@pytest.mark.parametrize("speculative", [False, True])
def test_a_run_that_succeeds_aborts_what_lost_attempts_have_open(
    prefix: Prefix, monkeypatch: pytest.MonkeyPatch, speculative: bool
) -> None:
    file, other = opened(prefix, OURS, 0), opened(prefix, THEIRS, 0)
    lost = [] if speculative else [opened(prefix, OURS, 0)]
    late: list[PendingFile] = []
    now = [0.0]  # only the reaper's own waits take time

    def pause(seconds: float) -> None:
        now[0] += seconds
        if not late:
            late.append(opened(prefix, OURS, 0))

    monkeypatch.setattr(reaper, "Event", lambda: SimpleNamespace(wait=pause))
    monkeypatch.setattr(reaper, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(batch, "upload", lambda *_: ([file], 3, 1))
    monkeypatch.setattr(batch, "speculates", lambda _: speculative)
    written(prefix, lambda: None)
    assert left(prefix) == [other.key, file.key]
    assert late and (lost or speculative)


def test_what_lost_attempts_leave_of_a_run_that_fails_is_told(prefix: Prefix) -> None:
    files, lost = [opened(prefix, OURS, 0)], opened(prefix, OURS, 0)
    abort = prefix.store._client.abort_multipart_upload

    def denied_of_lost(**request: Any) -> Any:
        if request["UploadId"] == lost.upload_id:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "No."}}, "Any")
        return abort(**request)

    prefix.store._client.abort_multipart_upload = denied_of_lost  # type: ignore[method-assign]
    said = failed(prefix, files)
    assert said.startswith(f"{SAID}. looking for open uploads to abort failed: AccessDenied")
    assert "aws s3api list-multipart-uploads" in said
