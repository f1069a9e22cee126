"""A run that fails leaves nothing in its own folder, or says what."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from botocore.exceptions import ClientError

from dbt.adapters.mzs3.aws.location import parse_location
from dbt.adapters.mzs3.errors import ShardError
from dbt.adapters.mzs3.objects.prefix import Place
from dbt.adapters.mzs3.shard.write.clean_up import cleaned_up
from dbt.adapters.mzs3.shard.write.parts import make_visible
from dbt.adapters.mzs3.upload import sweep
from dbt.adapters.mzs3.upload.pending import PendingFile

OURS, THEIRS = "orders/batches/5-ours/", "orders/batches/5-theirs/"


@pytest.fixture
def place(client: Any, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(sweep, "_QUIET_S", 0.0)
    return Place(client, parse_location("s3://acme/orders"))


def opened(place: Place, folder: str, part: int) -> PendingFile:
    key = f"{folder}part-{part:04d}-0001.parquet"
    upload_id = place.client.create_multipart_upload(Bucket="acme", Key=key)["UploadId"]
    sent = place.client.upload_part(
        Bucket="acme", Key=key, UploadId=upload_id, PartNumber=1, Body=b"x"
    )
    return PendingFile(part, 1, key, upload_id, (sent["ETag"],), 1, 1, "")


def left(place: Place) -> list[str]:
    return [key for key, _ in place.uploads()] + [one.key for one in place.objects()]


def failed(place: Place, files: list[PendingFile] | None) -> str:
    """A run that knows of these uploads when it fails; what it says."""
    work = cleaned_up(place, OURS, "model.a.b: writing to s3://acme/orders/")
    with pytest.raises(ShardError) as caught, work as known:
        known.files = files
        raise ValueError("out of the blue")
    return str(caught.value)


SAID = "model.a.b: writing to s3://acme/orders/ failed: out of the blue. The shard is what it was"


def test_uploads_of_tasks_are_aborted_and_those_of_others_are_not(place: Place) -> None:
    opened(place, OURS, 0)
    opened(place, OURS, 1)
    other = opened(place, THEIRS, 0)
    assert failed(place, None) == SAID
    assert left(place) == [other.key]


def test_a_run_that_was_cancelled_says_so(place: Place) -> None:
    cancelled = threading.Event()
    cancelled.set()
    doing = cleaned_up(place, OURS, "writing", cancelled)
    with (
        pytest.raises(ShardError, match=r"^writing was cancelled\. The shard is what it was$"),
        doing,
    ):
        raise ValueError("Job 7 cancelled")


def test_where_there_were_no_uploads_none_are_looked_for(place: Place) -> None:
    def denied(**_: Any) -> Any:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "No."}}, "Any")

    place.client.create_multipart_upload = denied  # type: ignore[method-assign]
    place.client.list_multipart_uploads = denied  # type: ignore[method-assign]
    assert failed(place, []) == SAID


def test_uploads_that_are_known_go_and_so_do_their_objects(place: Place) -> None:
    files = [opened(place, OURS, 0), opened(place, OURS, 1)]
    make_visible(place, files[:1])
    assert failed(place, files) == SAID
    assert left(place) == []


def test_what_can_not_be_cleaned_up_is_told(place: Place) -> None:
    files = [opened(place, OURS, 0)]

    def denied(**_: Any) -> Any:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "No."}}, "Any")

    place.client.abort_multipart_upload = denied  # type: ignore[method-assign]
    place.client.delete_object = denied  # type: ignore[method-assign]
    said = failed(place, files)
    assert f"aborting the upload of s3://acme/{files[0].key} failed: AccessDenied" in said
    assert f"s3://acme/{files[0].key} may be left, which no reader sees" in said
    place.client.create_multipart_upload = denied  # type: ignore[method-assign]
    said = failed(place, None)
    assert f"Open uploads may be left below s3://acme/{OURS}" in said
    assert "a lifecycle rule of the bucket" in said


def test_nothing_is_done_of_a_run_that_succeeds(place: Place) -> None:
    file = opened(place, OURS, 0)
    with cleaned_up(place, OURS, "writing") as known:
        known.files = [file]
    assert left(place) == [file.key]
