"""Each permission of exports, refused in turn: one error that names it, and nothing is left."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.s3.faulty import FaultyS3
from support.s3.real_stores import objects_in

from dbt.adapters.mzs3.errors import S3Error
from dbt.adapters.mzs3.export.export import CopyResult

pytestmark = pytest.mark.spark
Copy = Callable[..., CopyResult]

PAGE = Path(__file__).parents[3] / "docs" / "permissions.md"
# How the page calls the tasks that are exports.
TASKS = {
    "fail": "export",
    "overwrite": "`on_existing: overwrite`",
    "resume": "`on_existing: resume`",
}
# What a policy without the permission refuses; S3 asks for no other one for any of these.
REFUSED = {
    "s3:ListBucket": {"ListObjectsV2"},
    "s3:PutObject": {
        "PutObject",
        "CreateMultipartUpload",
        "UploadProbe",
        "UploadPart",
        "CompleteMultipartUpload",
    },
    "s3:AbortMultipartUpload": {"AbortMultipartUpload"},
    "s3:GetObject": {"GETObject", "HEADObject"},
    "s3:DeleteObject": {"DeleteObject"},
    "s3:ListBucketMultipartUploads": {"ListMultipartUploads"},
    "s3:ListMultipartUploadParts": {"ListParts"},
}


def needed() -> Iterator[tuple[str, str]]:
    """Each way of exporting with each permission that the page says it needs."""
    rows = [line.split(" | ", 1) for line in PAGE.read_text().splitlines() if line.startswith("|")]
    of_task = {row[0].removeprefix("| "): re.findall(r"s3:\w+", row[-1]) for row in rows}
    for on_existing, task in TASKS.items():
        for permission in dict.fromkeys([*of_task[TASKS["fail"]], *of_task[task]]):
            yield on_existing, permission


def uploads_in(s3: Any, bucket: str) -> dict[str, str]:
    """The open uploads of a bucket: id to key."""
    found = s3.list_multipart_uploads(Bucket=bucket).get("Uploads", [])
    return {upload["UploadId"]: upload["Key"] for upload in found}


@pytest.mark.parametrize(("on_existing", "permission"), [*needed()])
def test_each_permission_refused_in_turn(
    copy: Copy, faulty: FaultyS3, s3: Any, bucket: str, on_existing: str, permission: str
) -> None:
    location = f"s3://{bucket}/x"
    if on_existing != "fail":
        copy("select 1 as a", location, parts=1)
        # As a run that was killed leaves it.
        s3.create_multipart_upload(Bucket=bucket, Key="x/part-0001-0001.csv")
    objects, uploads = objects_in(s3, bucket), uploads_in(s3, bucket)
    faulty.deny = lambda request: request.action in REFUSED[permission]
    with pytest.raises(S3Error) as failure:
        copy("select raise_error('the query has run')", location, on_existing=on_existing)
    text = str(failure.value)
    assert permission in re.findall(r"s3:\w+", text[text.index("needs ") :])
    assert f"s3://{bucket}/x/" in text
    assert objects_in(s3, bucket) == objects
    more = uploads_in(s3, bucket).items() - uploads.items()
    # The one with which that permission was tried stays, of which the error tells.
    assert [key for _, key in more if not key.startswith("x/_mzs3_")] == []
    assert len(more) == (permission == "s3:AbortMultipartUpload")
    assert all(f"{upload} of s3://{bucket}/{key} stays open" in text for upload, key in more)


def test_the_policy_allows_what_the_page_says_is_needed() -> None:
    policy = PAGE.read_text().split("```json\n", 1)[1].split("```", 1)[0]
    allowed = set(re.findall(r's3:[A-Z]\w+(?=")', policy))
    assert allowed == {permission for _, permission in needed()} == set(REFUSED)
