"""An export through an S3 that fails now and then is the export: the same bytes, nothing more."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from support.export.onlooker import without_run_id
from support.s3.faulty import Fault, FaultyS3, Flaky, Request
from support.s3.real_stores import STORE, objects_in

from dbt.adapters.mzs3.export.export import CopyResult

pytestmark = [pytest.mark.spark, pytest.mark.slow]
Copy = Callable[..., CopyResult]

WIDE = "select id, repeat('x', 1000) as filler from range(50000)"
# About 50 MB in seven files, most of two upload parts; and about 7 MB in 32 files.
LARGE_FILES: dict[str, Any] = {"parts": 2, "part_size": "5MB", "max_file_size": "8MB"}
SMALL_FILES: dict[str, Any] = {"parts": 4, "max_file_size": "256kB"}
# With it, among the large files, 5 MB are cut off and a completion's answer is lost.
SEED = 2855


def exported(s3: Any, bucket: str) -> dict[str, bytes]:
    """Every object's bytes, but those of closed claims; fails if an upload is open."""
    assert s3.list_multipart_uploads(Bucket=bucket).get("Uploads", []) == []
    return objects_in(s3, bucket)


@pytest.mark.parametrize(
    ("rows", "options", "share"),
    [(50_000, LARGE_FILES, 0.05), (7_000, SMALL_FILES, 0.05), (7_000, SMALL_FILES, 0.25)],
    ids=["large files, 5 %", "small files, 5 %", "small files, 25 %"],
)
def test_the_files_are_those_of_an_export_without_faults(
    copy: Copy,
    faulty: FaultyS3,
    s3: Any,
    bucket: str,
    rows: int,
    options: dict[str, Any],
    share: float,
) -> None:
    query = WIDE.replace("50000", str(rows))
    smooth = copy(query, f"s3://{bucket}/x", **options)
    expected = exported(s3, bucket)
    for entry in s3.list_objects_v2(Bucket=bucket)["Contents"]:
        s3.delete_object(Bucket=bucket, Key=entry["Key"])

    faulty.fault = flaky = Flaky(SEED, share)
    assert copy(query, f"s3://{bucket}/x", **options) == smooth

    assert flaky.befallen.total() >= 3
    found = exported(s3, bucket)
    assert {key: without_run_id(body) for key, body in found.items()} == {
        key: without_run_id(body) for key, body in expected.items()
    }
    manifest = json.loads(expected["x/_manifest.json"])
    assert manifest["meta"]["record_count"] == rows
    assert len(manifest["entries"]) == smooth.files >= 7


class First:
    """A fault for the first request of an action below a name that a bucket has."""

    def __init__(self, fault: Fault, action: str, name: str) -> None:
        self._fault = fault
        self._action = action
        self._name = name
        self.happened = False

    def __call__(self, request: Request) -> Fault | None:
        wanted = request.action == self._action and request.key.endswith(self._name)
        if self.happened or not wanted:
            return None
        self.happened = True
        return self._fault


@pytest.mark.parametrize(
    ("fault", "action", "name"),
    [
        (Fault.LOST, "ListObjectsV2", ""),
        (Fault.LOST, "CreateMultipartUpload", ""),  # of the proof of writing, as the next
        (Fault.LOST, "AbortMultipartUpload", ""),
        (Fault.LOST, "ListMultipartUploads", ""),
        (Fault.LOST, "CreateMultipartUpload", "part-0001-0001.csv"),
        (Fault.LOST, "UploadPart", "part-0001-0001.csv"),
        (Fault.LOST, "PutObject", "_committing.json"),
        (Fault.LOST, "CompleteMultipartUpload", "part-0001-0001.csv"),
        (Fault.LOST, "PutObject", "_manifest.json"),
        pytest.param(
            *(Fault.LOST, "DeleteObject", "_committing.json"),
            marks=pytest.mark.skipif(STORE is not None, reason="such stores keep it, closed"),
        ),
        (Fault.CUT, "UploadPart", "part-0001-0001.csv"),
        (Fault.CUT, "PutObject", "_manifest.json"),
    ],
)
def test_an_answer_or_a_request_that_is_lost_changes_nothing(
    copy: Copy, faulty: FaultyS3, s3: Any, bucket: str, fault: Fault, action: str, name: str
) -> None:
    faulty.fault = first = First(fault, action, name)
    result = copy("select id from range(100)", f"s3://{bucket}/x", parts=2)

    assert first.happened
    assert (result.rows, result.files) == (100, 2)
    found = exported(s3, bucket)
    assert sorted(found) == [
        "x/_manifest.json",
        "x/part-0000-0001.csv",
        "x/part-0001-0001.csv",
    ]
    lines = (found["x/part-0000-0001.csv"] + found["x/part-0001-0001.csv"]).split()
    assert sorted(map(int, lines)) == list(range(100))
