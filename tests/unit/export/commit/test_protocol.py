"""Commits that meet refusals, interrupts, and each other: all of an export, or none of it."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from support.export.committing import (
    EXPORT,
    FILES,
    decide_back,
    export,
    once,
    prefix,
    prepared,
    refuse,
    run,
)
from support.s3.memory import MemoryS3, failure
from support.s3.opened import prefix_of

from dbt.adapters.mzs3.errors import CopyError, LocationError
from dbt.adapters.mzs3.export.commit.failures import CommitError
from dbt.adapters.mzs3.export.commit.intent import (
    CommitIntent,
    probe_conditional_writes,
    read_intent,
)
from dbt.adapters.mzs3.export.commit.preflight import recover
from dbt.adapters.mzs3.export.commit.protocol import Commit
from dbt.adapters.mzs3.store.conditions import known_conditional_writes
from dbt.adapters.mzs3.store.location import S3Location


def test_everything_is_visible_and_the_claim_is_gone(s3: MemoryS3) -> None:
    run(export(s3, "a")[0])
    assert sorted(s3.objects) == EXPORT
    assert not s3.uploads


@pytest.mark.parametrize(
    ("action", "key"),
    [
        ("CompleteMultipartUpload", FILES[1]),
        ("PutObject", "x/_manifest.json"),
        ("PutObject", "x/_committing.json"),
    ],
)
def test_a_refusal_takes_everything_back(s3: MemoryS3, action: str, key: str) -> None:
    commit, _ = export(s3, "a")
    once(s3, action, key, refuse("AccessDenied"))
    with pytest.raises(CommitError, match="AccessDenied") as raised:
        run(commit)
    assert raised.value.leftovers == ()
    assert s3.objects == {}


def test_an_interrupt_after_the_decision_is_made_good_by_the_next_run(s3: MemoryS3) -> None:
    commit, _ = export(s3, "a")

    def interrupt() -> None:
        raise KeyboardInterrupt

    once(s3, "PutObject", "x/_manifest.json", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(commit)
    assert recover(prefix(s3), has_conditional_deletes=True).finished is not None
    assert sorted(s3.objects) == EXPORT


def test_an_interrupt_before_the_decision_takes_everything_back(s3: MemoryS3) -> None:
    commit, _ = export(s3, "a")

    def interrupt() -> None:
        raise KeyboardInterrupt

    once(s3, "CompleteMultipartUpload", FILES[2], interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(commit)
    assert s3.objects == {}


def test_a_refused_claim_leaves_another_runs_export_alone(s3: MemoryS3) -> None:
    run(export(s3, "a")[0])
    before = dict(s3.objects)
    other, _ = export(s3, "b", ["x/part-0009-0001.csv"])
    once(s3, "PutObject", "x/_committing.json", refuse("SlowDown"))
    with pytest.raises(CommitError, match="SlowDown"):
        run(other)
    assert s3.objects == before


def test_a_run_that_looked_before_another_committed_finds_out(s3: MemoryS3) -> None:
    late, _ = export(s3, "b", FILES[:2])
    once(s3, "PutObject", "x/_committing.json", lambda: run(export(s3, "a")[0]))
    with pytest.raises(LocationError, match="is not empty"):
        run(late)
    assert sorted(s3.objects) == EXPORT
    assert b'"a"' in s3.objects["x/_manifest.json"]


def test_another_name_of_the_bucket_is_no_reason_to_delete(s3: MemoryS3) -> None:
    client: Any = s3
    late, _ = export(s3, "b")
    first, _ = export(s3, "a")
    for entry in first.pending.manifest["entries"]:
        entry["url"] = entry["url"].replace("s3://b/", "s3://alias/")
    alias = prefix_of(client, S3Location("alias", "x/"))
    first = Commit(alias, first.pending, has_conditional_deletes=True)
    once(s3, "PutObject", "x/_committing.json", lambda: run(first))
    with pytest.raises(LocationError, match="is not empty"):
        run(late)
    assert sorted(s3.objects) == EXPORT


def md5s(s3: MemoryS3) -> Commit:
    """A run whose parts have MD5s, so that the ETag of each file is known beforehand."""
    pending = export(s3, "a")[0].pending
    files = [replace(file, etags=("0" * 32,)) for file in pending.files]
    return Commit(prefix(s3), replace(pending, files=tuple(files)), has_conditional_deletes=True)


@pytest.mark.parametrize("size", [9, 10], ids=["another size", "the same size"])
@pytest.mark.parametrize("when", ["ListObjectsV2", "PutObject"], ids=["before", "while claiming"])
def test_what_something_else_has_written_stays(s3: MemoryS3, when: str, size: int) -> None:
    commit = md5s(s3)

    def write() -> None:
        s3.objects |= {FILES[1]: b"y" * size, "x/readme.txt": b""}

    once(s3, when, "x/" if when == "ListObjectsV2" else "x/_committing.json", write)
    with pytest.raises((LocationError, CommitError), match=r"another|not empty") as raised:
        run(commit)
    assert s3.objects[FILES[1]] == b"y" * size
    unproven = raised.value.unproven if isinstance(raised.value, CommitError) else ()
    assert bool(unproven) == (when == "PutObject" and size == 10)


def test_what_a_run_has_completed_goes_whatever_etag_the_store_gives_it(s3: MemoryS3) -> None:
    commit = md5s(s3)
    once(s3, "PutObject", "x/_manifest.json", refuse("AccessDenied"))
    with pytest.raises(CommitError, match="AccessDenied") as raised:
        run(commit)
    assert (raised.value.leftovers, raised.value.unproven) == ((), ())
    assert not s3.objects


def test_what_was_there_before_stays_if_its_etag_is_another_one(s3: MemoryS3) -> None:
    """Only what S3 has answered to a completion is known to be a file of the export."""
    commit = md5s(s3)
    commit.claim()
    s3.complete_multipart_upload(Key=FILES[0], UploadId=f"a {FILES[0]}")
    s3.abort_multipart_upload(Key=FILES[1], UploadId=f"a {FILES[1]}")
    assert recover(prefix(s3), has_conditional_deletes=True).finished is None
    assert FILES[0] in s3.objects


def test_what_an_undone_run_takes_for_somebody_elses_is_told_and_does_not_keep_the_location(
    s3: MemoryS3,
) -> None:
    commit = md5s(s3)

    def replace_one() -> None:
        s3.objects[FILES[0]] = b"y" * 10
        raise failure("AccessDenied")

    once(s3, "PutObject", "x/_manifest.json", replace_one)
    with pytest.raises(CommitError, match="AccessDenied") as raised:
        run(commit)
    assert (raised.value.leftovers, raised.value.unproven) == ((), (f"s3://b/{FILES[0]}",))
    assert sorted(s3.objects) == ["x/_committing.json", FILES[0]]
    assert not recover(prefix(s3), has_conditional_deletes=True).used.allows(
        ["part-0000-0001.csv"]
    )


def test_files_that_another_run_is_still_removing_are_told_of(s3: MemoryS3) -> None:
    commit, _ = export(s3, "a")

    def undo() -> None:
        s3.uploads.pop(f"a {FILES[2]}")
        decide_back(s3)

    once(s3, "CompleteMultipartUpload", FILES[2], undo)
    with pytest.raises(CommitError) as raised:
        run(commit)
    assert raised.value.leftovers == ("files of this run at s3://b/x/, which another run removes",)


def test_a_location_is_freed_when_the_caller_has_time_or_by_the_next_run(s3: MemoryS3) -> None:
    commit, _ = export(s3, "a")
    with commit:
        commit.claim()
        commit.complete()
        commit.finish()
    claimed = dict(s3.objects)
    assert sorted(claimed) == sorted([*EXPORT, "x/_committing.json"])
    commit.release()
    assert sorted(s3.objects) == EXPORT
    s3.objects = claimed
    assert recover(prefix(s3), has_conditional_deletes=True).finished is not None
    commit.release()
    assert sorted(s3.objects) == EXPORT


def test_a_run_that_does_not_get_the_claim_completes_nothing(s3: MemoryS3) -> None:
    export(s3, "a")[0].claim()
    other, _ = export(s3, "b")
    with pytest.raises(LocationError), other:
        other.claim()
    assert set(s3.objects) == {"x/_committing.json"}


def test_only_one_of_two_runs_gets_the_claim(s3: MemoryS3) -> None:
    first, _ = export(s3, "a")
    second, _ = export(s3, "b")
    outcome: list[str] = []

    def try_the_second() -> None:
        with pytest.raises(LocationError) as raised:
            run(second)
        outcome.append(str(raised.value))

    once(s3, "CompleteMultipartUpload", FILES[0], try_the_second)
    run(first)
    assert outcome[0].startswith("another run is committing an export to s3://b/x/")
    assert b'"a"' in s3.objects["x/_manifest.json"]
    assert sorted(s3.objects) == EXPORT


def test_a_live_commit_survives_being_finished_by_another_run(s3: MemoryS3) -> None:
    commit, _ = export(s3, "a")

    def finish() -> None:
        recover(prefix(s3), has_conditional_deletes=True)

    once(s3, "CompleteMultipartUpload", FILES[2], finish)
    run(commit)
    assert sorted(s3.objects) == EXPORT


def test_a_run_of_which_a_later_export_keeps_a_file_has_been_visible(s3: MemoryS3) -> None:
    """Another run has finished it, and a third one has replaced the rest of its files."""
    commit, files = export(s3, "a")

    def others() -> None:
        recover(prefix(s3), has_conditional_deletes=True)
        manifest = json.loads(s3.objects["x/_manifest.json"])
        kept = {"url": "s3://b/x/part-0000-0007.csv", "meta": {"run_id": "c"}}
        manifest |= {"run_id": "c", "entries": [manifest["entries"][0], kept]}
        s3.objects["x/_manifest.json"] = json.dumps(manifest).encode()

    once(s3, "PutObject", "x/_manifest.json", others)
    run(commit)
    assert files[0].key in s3.objects


def test_a_commit_that_died_is_finished(s3: MemoryS3) -> None:
    commit, _ = export(s3, "a")
    commit.claim()
    s3.complete_multipart_upload(Key=FILES[0], UploadId=f"a {FILES[0]}")
    assert "is complete now: 15 rows" in str(
        recover(prefix(s3), has_conditional_deletes=True).finished
    )
    assert sorted(s3.objects) == EXPORT


@pytest.mark.parametrize("turned_back", [True, False])
def test_a_commit_that_can_not_be_finished_is_taken_back(s3: MemoryS3, turned_back: bool) -> None:
    commit, _ = export(s3, "a")
    commit.claim()
    s3.complete_multipart_upload(Key=FILES[0], UploadId=f"a {FILES[0]}")
    if turned_back:
        decide_back(s3)
    else:
        s3.abort_multipart_upload(Key=FILES[1], UploadId=f"a {FILES[1]}")
    assert recover(prefix(s3), has_conditional_deletes=True).finished is None
    assert set(s3.objects) <= {"x/_committing.json"}
    assert not s3.uploads


def test_what_a_slow_run_completes_while_it_is_rolled_back_does_not_stay(s3: MemoryS3) -> None:
    """Its upload is aborted before anything is removed: so the request comes too late."""
    commit, files = export(s3, "a")
    commit.claim()
    first, last = ({"Key": file.key, "UploadId": file.upload_id} for file in (files[0], files[2]))
    s3.complete_multipart_upload(**first)
    decide_back(s3)

    def complete_late() -> None:
        with contextlib.suppress(ClientError):
            s3.complete_multipart_upload(**last)

    once(s3, "DeleteObject", files[0].key, complete_late)
    recover(prefix(s3), has_conditional_deletes=True)
    assert [*s3.objects] == ["x/_committing.json"]  # which is closed
    assert not s3.uploads


def test_a_store_without_conditional_writes_is_good_enough(s3: MemoryS3) -> None:
    commit, _ = export(s3, "a")
    once(s3, "PutObject", "x/_committing.json", refuse("NotImplemented"))
    run(commit)
    assert sorted(s3.objects) == EXPORT


@pytest.mark.parametrize("heeds", [True, False])
def test_whether_a_store_compares_is_proven_once(s3: MemoryS3, heeds: bool) -> None:
    put_object = s3.put_object

    def heedless(*, IfNoneMatch: str = "", IfMatch: str = "", **request: Any) -> dict[str, str]:
        return put_object(**request)

    if not heeds:
        s3.put_object = heedless  # type: ignore[method-assign]
    puts: list[int] = []
    for _ in range(2):
        pending = export(s3, "a")[0].pending
        has_conditional_writes = known_conditional_writes(prefix(s3))
        commit = Commit(
            prefix(s3),
            pending,
            has_conditional_deletes=True,
            has_conditional_writes=has_conditional_writes,
        )
        requests: list[str] = []
        s3.before = lambda action, _, to=requests: to.append(action)
        run(commit)
        puts.append(requests.count("PutObject"))
        s3.objects.clear()
    assert known_conditional_writes(prefix(s3)) is heeds
    assert puts == [5, 3]


def test_a_claim_is_looked_after_where_the_store_is_known_not_to_compare(s3: MemoryS3) -> None:
    pending = export(s3, "a")[0].pending
    commit = Commit(
        prefix(s3), pending, has_conditional_deletes=True, has_conditional_writes=False
    )

    def claim_too() -> None:
        s3.before = lambda *_: None
        other = export(s3, "b")[0]
        s3.objects["x/_committing.json"] = CommitIntent(
            "open", "b", "b", pending=other.pending
        ).to_json()

    once(s3, "GetObject", "x/_committing.json", claim_too)
    with pytest.raises(CommitError, match="another run is committing"):
        run(commit)
    assert "x/_manifest.json" not in s3.objects


@pytest.mark.parametrize("code", ["AccessDenied", "InternalError"])
def test_a_proof_without_an_answer_proves_nothing_for_later(s3: MemoryS3, code: str) -> None:
    pending = export(s3, "a")[0].pending
    commit = Commit(prefix(s3), pending, has_conditional_deletes=True, has_conditional_writes=None)
    puts: list[str] = []

    def before(action: str, key: str) -> None:
        if (action, key) == ("PutObject", "x/_committing.json"):
            puts.append(key)
            if len(puts) in (2, 3):
                raise failure(code)

    s3.before = before
    run(commit)
    assert sorted(s3.objects) == EXPORT
    assert known_conditional_writes(prefix(s3)) is None


def test_a_proof_that_another_run_came_across_proves_nothing_for_later(s3: MemoryS3) -> None:
    commit, _ = export(s3, "a")
    commit.claim()
    version = read_intent(prefix(s3))
    assert version is not None
    # Which the store then takes for the first one, as it should.
    once(s3, "PutObject", "x/_committing.json", s3.objects.clear)
    assert not probe_conditional_writes(prefix(s3), version)
    assert known_conditional_writes(prefix(s3)) is None


def test_a_name_that_is_retired_can_be_had_back(s3: MemoryS3) -> None:
    commit, _ = export(s3, "a", ["x/all.csv"])
    commit.claim()
    decide_back(s3, shared=True)
    recover(prefix(s3), has_conditional_deletes=True)
    with pytest.raises(LocationError, match=r"then remove s3://b/x/_committing\.json"):
        prepared(s3, "fail", single_file="all.csv")
    del s3.objects["x/_committing.json"]
    prepared(s3, "fail", single_file="all.csv")


def test_a_claim_that_is_none_is_an_error_that_says_so(s3: MemoryS3) -> None:
    s3.objects["x/_committing.json"] = b"{}"
    with pytest.raises(CopyError, match="is not what an export to this location writes"):
        recover(prefix(s3), has_conditional_deletes=True)
