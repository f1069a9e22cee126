"""Overwrites of a single file, whose name stays: it is replaced whole, or not at all."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace

import pytest
from support.export.committing import prefix, run
from support.export.overwriting import DeathError, holding, overwrite, seen
from support.s3.memory import MemoryS3, failure

from dbt.adapters.mzs3.export.commit.failures import CommitError
from dbt.adapters.mzs3.export.commit.preflight import recover
from dbt.adapters.mzs3.export.commit.protocol import Commit

SINGLE_OLD = {"all.csv": 10}
SINGLE_NEW = {"all.csv": 20}


@pytest.mark.parametrize("dies_at", range(8))
def test_a_single_file_is_replaced_whole(s3: MemoryS3, dies_at: int) -> None:
    commit = overwrite(s3, holding(s3, SINGLE_OLD), SINGLE_NEW)
    requests = 0

    def before(action: str, key: str) -> None:
        nonlocal requests
        requests += 1
        if requests > dies_at:
            raise DeathError

    s3.before = before
    with contextlib.suppress(DeathError):
        run(commit)
    s3.before = lambda action, key: None
    recover(prefix(s3), has_conditional_deletes=True)
    assert seen(s3) == ["all.csv"]
    assert "x/_committing.json" not in s3.objects


def test_a_single_file_that_can_not_get_its_manifest_waits_for_the_next_run(s3: MemoryS3) -> None:
    commit = overwrite(s3, holding(s3, SINGLE_OLD), SINGLE_NEW)

    def refuse(action: str, key: str) -> None:
        if (action, key) == ("PutObject", "x/_manifest.json"):
            raise failure("AccessDenied")

    s3.before = refuse
    with pytest.raises(CommitError) as raised:
        run(commit)
    [left] = raised.value.leftovers
    assert "may not name the new files yet: the next run to this location" in left
    s3.before = lambda action, key: None
    recover(prefix(s3), has_conditional_deletes=True)
    assert seen(s3) == ["all.csv"]
    assert len(s3.objects["x/all.csv"]) == 20


def test_a_single_file_whose_upload_is_gone_is_taken_back(s3: MemoryS3) -> None:
    commit = overwrite(s3, holding(s3, SINGLE_OLD), SINGLE_NEW)
    commit.claim()
    s3.uploads.clear()  # by a lifecycle rule, or another run
    assert recover(prefix(s3), has_conditional_deletes=True).finished is None
    assert sorted(s3.objects) == ["x/_manifest.json", "x/all.csv"]
    assert len(s3.objects["x/all.csv"]) == 10


def test_a_single_file_of_as_many_bytes_whose_upload_is_gone_is_taken_back(s3: MemoryS3) -> None:
    """The old file is not taken for the new one, whose size it has."""
    pending = overwrite(s3, holding(s3, SINGLE_OLD), SINGLE_OLD).pending
    pending = replace(pending, manifest={**pending.manifest, "run_id": "new"})
    before = dict(s3.objects)
    s3.uploads.clear()  # by a lifecycle rule
    with pytest.raises(CommitError, match="uploads of this run are gone") as raised:
        run(Commit(prefix(s3), pending, has_conditional_deletes=True))
    assert raised.value.leftovers == ()
    assert s3.objects == before


def test_a_single_file_whose_completion_is_refused_is_taken_back(s3: MemoryS3) -> None:
    commit = overwrite(s3, holding(s3, SINGLE_OLD), SINGLE_NEW)

    def refuse(action: str, key: str) -> None:
        if action == "CompleteMultipartUpload":
            raise failure("AccessDenied", action)

    s3.before = refuse
    with pytest.raises(CommitError) as raised:
        run(commit)
    assert str(raised.value) == (
        "committing s3://b/x/ failed: completing the upload of s3://b/x/all.csv failed: "
        "AccessDenied: No. (needs s3:PutObject)"
    )
    assert raised.value.leftovers == ()
    assert sorted(s3.objects) == ["x/_manifest.json", "x/all.csv"]
    assert len(s3.objects["x/all.csv"]) == 10


def test_a_single_file_that_became_another_runs_gets_no_manifest(s3: MemoryS3) -> None:
    """The upload is gone, and another run has a file of that size there, but no manifest yet."""
    existing = holding(s3, SINGLE_OLD)
    late, other = overwrite(s3, existing, SINGLE_NEW), overwrite(s3, existing, SINGLE_NEW)
    manifest = {**other.pending.manifest, "run_id": "other"}
    other = Commit(
        prefix(s3), replace(other.pending, manifest=manifest), has_conditional_deletes=True
    )

    def before(action: str, key: str) -> None:
        if action == "CompleteMultipartUpload":
            s3.before = lambda action, key: None
            [file] = late.pending.files
            s3.abort_multipart_upload(Key=file.key, UploadId=file.upload_id)
            assert recover(prefix(s3), has_conditional_deletes=True).finished is None
            other.claim()
            other.complete()

    s3.before = before
    with pytest.raises(CommitError, match="another run has committed an export"):
        run(late)
    other.finish()
    assert json.loads(s3.objects["x/_manifest.json"]) == other.pending.manifest


def test_a_single_file_that_another_run_has_given_up_is_told_of_as_that(s3: MemoryS3) -> None:
    commit = overwrite(s3, holding(s3, SINGLE_OLD), SINGLE_NEW)

    def give_up(action: str, key: str) -> None:
        if action == "CompleteMultipartUpload":
            s3.before = lambda *_: None
            s3.uploads.clear()
            assert recover(prefix(s3), has_conditional_deletes=True).finished is None

    s3.before = give_up
    with pytest.raises(CommitError, match="uploads of this run are gone"):
        run(commit)
    assert seen(s3) == list(SINGLE_OLD)
