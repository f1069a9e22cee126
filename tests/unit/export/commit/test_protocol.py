"""Commits that meet refusals, interrupts, and each other: all of an export, or none of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from memory_s3 import MemoryS3, failure
from urllib3.exceptions import SSLError

from dbt.adapters.mzs3.aws.location import S3Location
from dbt.adapters.mzs3.errors import CopyError, LocationError
from dbt.adapters.mzs3.export.commit.intent import (
    CommitError,
    PendingExport,
    StaleFilesError,
    read_intent,
)
from dbt.adapters.mzs3.export.commit.preflight import Recovered, prepare, recover
from dbt.adapters.mzs3.export.commit.protocol import Commit
from dbt.adapters.mzs3.objects import prefix as prefix_module
from dbt.adapters.mzs3.objects.prefix import Prefix
from dbt.adapters.mzs3.upload.pending import PendingFile

LOCATION = S3Location("b", "x/")
FILES = [f"x/part-000{part}-0001.csv" for part in range(3)]
EXPORT = ["x/_manifest.json", *FILES]


@pytest.fixture
def s3() -> MemoryS3:
    return MemoryS3()


def prefix(s3: MemoryS3) -> Prefix:
    client: Any = s3
    return Prefix(client, LOCATION)


def export(s3: MemoryS3, name: str, keys: list[str] = FILES) -> tuple[Commit, list[PendingFile]]:
    """A run that has uploaded its files and goes on to commit them."""
    opened = [s3.opened(key, upload_id=f"{name} {key}") for key in keys]
    files = [replace(file, sha256=f"{name} {file.key}") for file in opened]
    entries = [{"url": f"s3://b/{f.key}", "meta": {"run_id": name}} for f in files]
    manifest = {"of": name, "run_id": name, "entries": entries, "meta": {"record_count": 15}}
    return Commit(prefix(s3), PendingExport(tuple(files), manifest), deletes=True), files


def once(s3: MemoryS3, action: str, key: str, then: Any) -> None:
    """Do something right before the first such request."""

    def before(found: str, at: str) -> None:
        if (found, at) == (action, key):
            s3.before = lambda *_: None
            then()

    s3.before = before


def refuse(code: str) -> Any:
    def answer() -> None:
        raise failure(code)

    return answer


def test_everything_is_visible_and_the_claim_is_gone(s3: MemoryS3) -> None:
    export(s3, "a")[0].run()
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
        commit.run()
    assert raised.value.remains == ()
    assert s3.objects == {}


def test_an_interrupt_after_the_decision_is_made_good_by_the_next_run(s3: MemoryS3) -> None:
    commit, _ = export(s3, "a")

    def interrupt() -> None:
        raise KeyboardInterrupt

    once(s3, "PutObject", "x/_manifest.json", interrupt)
    with pytest.raises(KeyboardInterrupt):
        commit.run()
    assert recover(prefix(s3), deletes=True).finished is not None
    assert sorted(s3.objects) == EXPORT


def test_an_interrupt_before_the_decision_takes_everything_back(s3: MemoryS3) -> None:
    commit, _ = export(s3, "a")

    def interrupt() -> None:
        raise KeyboardInterrupt

    once(s3, "CompleteMultipartUpload", FILES[2], interrupt)
    with pytest.raises(KeyboardInterrupt):
        commit.run()
    assert s3.objects == {}


def test_a_refused_claim_leaves_another_runs_export_alone(s3: MemoryS3) -> None:
    export(s3, "a")[0].run()
    before = dict(s3.objects)
    other, _ = export(s3, "b", ["x/part-0009-0001.csv"])
    once(s3, "PutObject", "x/_committing.json", refuse("SlowDown"))
    with pytest.raises(CommitError, match="SlowDown"):
        other.run()
    assert s3.objects == before


def test_a_run_that_looked_before_another_committed_finds_out(s3: MemoryS3) -> None:
    late, _ = export(s3, "b", FILES[:2])
    once(s3, "PutObject", "x/_committing.json", export(s3, "a")[0].run)
    with pytest.raises(LocationError, match="is not empty"):
        late.run()
    assert sorted(s3.objects) == EXPORT
    assert b'"a"' in s3.objects["x/_manifest.json"]


def test_another_name_of_the_bucket_is_no_reason_to_delete(s3: MemoryS3) -> None:
    client: Any = s3
    late, _ = export(s3, "b")
    first, _ = export(s3, "a")
    for entry in first.pending.manifest["entries"]:
        entry["url"] = entry["url"].replace("s3://b/", "s3://alias/")
    first._prefix = Prefix(client, S3Location("alias", "x/"))
    once(s3, "PutObject", "x/_committing.json", first.run)
    with pytest.raises(LocationError, match="is not empty"):
        late.run()
    assert sorted(s3.objects) == EXPORT


def md5s(commit: Commit) -> None:
    """S3 tells what the ETag of each file will be."""
    files = [replace(file, etags=("0" * 32,)) for file in commit.pending.files]
    commit.pending = commit._effects.pending = replace(commit.pending, files=tuple(files))


@pytest.mark.parametrize("size", [9, 10], ids=["another size", "the same size"])
@pytest.mark.parametrize("when", ["ListObjectsV2", "PutObject"], ids=["before", "while claiming"])
def test_what_something_else_has_written_stays(s3: MemoryS3, when: str, size: int) -> None:
    commit, _ = export(s3, "a")
    md5s(commit)

    def write() -> None:
        s3.objects |= {FILES[1]: b"y" * size, "x/readme.txt": b""}

    once(s3, when, "x/" if when == "ListObjectsV2" else "x/_committing.json", write)
    with pytest.raises((LocationError, CommitError), match=r"another|not empty") as raised:
        commit.run()
    assert s3.objects[FILES[1]] == b"y" * size
    spared = raised.value.spared if isinstance(raised.value, CommitError) else ()
    assert bool(spared) == (when == "PutObject" and size == 10)


@pytest.mark.parametrize("key", ["x/_manifest.json", "x/_committing.json"])
def test_a_body_that_breaks_off_after_the_decision_hides_nothing(s3: MemoryS3, key: str) -> None:
    commit, _ = export(s3, "a")
    commit.pending = commit._effects.pending = replace(commit.pending, stale=("x/old.csv",))
    s3.objects["x/old.csv"] = b"old"
    commit._effects.require_unchanged = lambda: None  # type: ignore[method-assign]

    class Broken:
        def read(self) -> bytes:
            raise SSLError("bad record mac")

    get_object = s3.get_object

    def broken(*, Key: str, **more: Any) -> dict[str, Any]:
        found = get_object(Key=Key, **more)
        return {**found, "Body": Broken()} if Key == key else found

    s3.get_object = broken  # type: ignore[method-assign]
    if key == "x/_committing.json":
        commit.run()
        return
    with pytest.raises(StaleFilesError, match="names the new export, whole"):
        commit.run()
    assert FILES[0] in s3.objects


def test_a_failure_of_any_kind_after_the_decision_is_not_told_as_if_nothing_were_there(
    s3: MemoryS3,
) -> None:
    commit, _ = export(s3, "a")

    def no_thread() -> None:
        raise RuntimeError("can't start new thread")

    once(s3, "PutObject", "x/_manifest.json", no_thread)
    with pytest.raises(CommitError, match="can't start new thread") as raised:
        commit.run()
    assert "the next run to this location finishes the export" in raised.value.remains[0]


def test_a_claim_whose_answer_was_lost_is_known_where_another_run_goes_on(s3: MemoryS3) -> None:
    Commit(prefix(s3), export(s3, "z", [])[0].pending, deletes=False).run()
    del s3.objects["x/_manifest.json"]  # what is left is a closed intent
    commit, _ = export(s3, "a")
    put_object = s3.put_object

    def put_and_lose_the_answer(**request: Any) -> dict[str, str]:
        if "IfMatch" not in request:
            return put_object(**request)
        s3.put_object = put_object  # type: ignore[method-assign]
        put_object(**request)
        recover(prefix(s3), deletes=False)
        raise failure("PreconditionFailed")

    s3.put_object = put_and_lose_the_answer  # type: ignore[method-assign]
    commit.run()
    assert sorted(set(s3.objects) - {"x/_committing.json"}) == EXPORT


def test_what_a_run_has_completed_goes_whatever_etag_the_store_gives_it(s3: MemoryS3) -> None:
    commit, _ = export(s3, "a")
    md5s(commit)
    once(s3, "PutObject", "x/_manifest.json", refuse("AccessDenied"))
    with pytest.raises(CommitError, match="AccessDenied") as raised:
        commit.run()
    assert (raised.value.remains, raised.value.spared) == ((), ())
    assert not s3.objects


def test_what_was_there_before_stays_if_its_etag_is_another_one(s3: MemoryS3) -> None:
    """Only what S3 has answered to a completion is known to be a file of the export."""
    commit, _ = export(s3, "a")
    md5s(commit)
    commit._claim()
    s3.complete_multipart_upload(Key=FILES[0], UploadId=f"a {FILES[0]}")
    s3.abort_multipart_upload(Key=FILES[1], UploadId=f"a {FILES[1]}")
    assert recover(prefix(s3), deletes=True).finished is None
    assert FILES[0] in s3.objects


def test_what_an_undone_run_takes_for_somebody_elses_is_told_and_does_not_keep_the_location(
    s3: MemoryS3,
) -> None:
    commit, _ = export(s3, "a")
    md5s(commit)

    def replace_one() -> None:
        s3.objects[FILES[0]] = b"y" * 10
        raise failure("AccessDenied")

    once(s3, "PutObject", "x/_manifest.json", replace_one)
    with pytest.raises(CommitError, match="AccessDenied") as raised:
        commit.run()
    assert (raised.value.remains, raised.value.spared) == ((), (f"s3://b/{FILES[0]}",))
    assert sorted(s3.objects) == ["x/_committing.json", FILES[0]]
    assert not recover(prefix(s3), deletes=True).used.allows(["part-0000-0001.csv"])


def test_uploads_of_a_claim_without_an_answer_are_aborted(s3: MemoryS3) -> None:
    commit, _ = export(s3, "a")

    def before(action: str, key: str) -> None:
        if key == "x/_committing.json":
            raise failure("InternalError")

    s3.before = before
    with pytest.raises(CommitError) as raised:
        commit.run()
    assert "_committing.json may be there" in raised.value.remains[0]
    assert not s3.uploads


def test_a_claim_that_took_effect_though_its_repetition_was_denied_is_told(s3: MemoryS3) -> None:
    commit, _ = export(s3, "a")
    put_object = s3.put_object

    def put_and_deny(**request: Any) -> dict[str, str]:
        put_object(**request)
        exc = failure("AccessDenied")
        exc.response["ResponseMetadata"]["RetryAttempts"] = 1
        raise exc

    def before(action: str, key: str) -> None:
        if action == "GetObject":
            raise failure("AccessDenied")

    s3.put_object = put_and_deny  # type: ignore[method-assign]
    s3.before = before
    with pytest.raises(CommitError, match="AccessDenied") as raised:
        commit.run()
    assert "_committing.json may be there" in raised.value.remains[-1]
    assert not s3.uploads


def test_a_claim_that_was_surely_refused_leaves_nothing(s3: MemoryS3) -> None:
    commit, _ = export(s3, "a")

    def before(action: str, key: str) -> None:
        if action in ("GetObject", "PutObject"):
            raise failure("AccessDenied")

    s3.before = before
    with pytest.raises(CommitError, match="AccessDenied") as raised:
        commit.run()
    assert raised.value.remains == ()


def test_a_completion_that_is_refused_each_time_does_not_keep_the_location(s3: MemoryS3) -> None:
    commit, _ = export(s3, "a")
    commit._claim()

    def before(action: str, key: str) -> None:
        if action == "CompleteMultipartUpload":
            raise failure("AccessDenied")

    s3.before = before
    assert recover(prefix(s3), deletes=True).finished is None
    assert set(s3.objects) <= {"x/_committing.json"}
    assert not s3.uploads


def test_files_that_another_run_is_still_removing_are_told_of(s3: MemoryS3) -> None:
    commit, _ = export(s3, "a")

    def undo() -> None:
        s3.uploads.pop(f"a {FILES[2]}")
        found = read_intent(prefix(s3))
        assert found is not None
        other = Commit.found(prefix(s3), found, deletes=True)
        other._change("back")  # and then it dies

    once(s3, "CompleteMultipartUpload", FILES[2], undo)
    with pytest.raises(CommitError) as raised:
        commit.run()
    assert raised.value.remains == ("files of this run at s3://b/x/, which another run removes",)


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefix_module, "_PAUSE_S", 0.0)


@pytest.mark.usefixtures("no_pause")
def test_a_commit_that_conflicts_with_another_request_each_time_is_told_as_undecided(
    s3: MemoryS3,
) -> None:
    commit, _ = export(s3, "a")

    def before(action: str, key: str) -> None:
        if (action, key) == ("PutObject", "x/_committing.json") and key in s3.objects:
            raise failure("ConditionalRequestConflict")

    s3.before = before
    with pytest.raises(CommitError, match="ConditionalRequestConflict") as raised:
        commit.run()
    assert "the next run to this location finishes the export" in raised.value.remains[-1]
    s3.before = lambda action, key: None
    assert recover(prefix(s3), deletes=True).finished is not None
    assert sorted(s3.objects) == EXPORT


@pytest.mark.usefixtures("no_pause")
@pytest.mark.parametrize("times", [1, 100])
def test_an_intent_whose_removal_conflicts_with_another_request_is_removed_or_closed(
    s3: MemoryS3, times: int
) -> None:
    commit, _ = export(s3, "a")
    conflicts = [failure("ConditionalRequestConflict")] * times

    def before(action: str, key: str) -> None:
        if (action, key) == ("DeleteObject", "x/_committing.json") and conflicts:
            raise conflicts.pop()

    s3.before = before
    commit.run()
    found = read_intent(prefix(s3))
    assert found is None if times == 1 else found and found.intent.state == "closed"


def test_an_intent_that_can_not_be_removed_is_closed(s3: MemoryS3) -> None:
    late, _ = export(s3, "b")
    s3.objects["x/other.csv"] = b"x"

    def before(action: str, key: str) -> None:
        if action == "DeleteObject":
            raise failure("AccessDenied")

    s3.before = before
    with pytest.raises(LocationError, match="is not empty"):
        late.run()
    s3.before = lambda action, key: None
    assert recover(prefix(s3), deletes=True) == Recovered()
    del s3.objects["x/other.csv"]
    export(s3, "c")[0].run()
    assert sorted(s3.objects) == EXPORT


def test_what_lost_attempts_left_is_swept_under_the_claim(s3: MemoryS3) -> None:
    commit, _ = export(s3, "a")
    seen: list[bool] = []
    commit.run(once_claimed=lambda: seen.append("x/_committing.json" in s3.objects))
    assert seen == [True]


def test_a_run_that_does_not_get_the_claim_aborts_nothing_of_others(s3: MemoryS3) -> None:
    export(s3, "a")[0]._claim()
    swept: list[bool] = []
    with pytest.raises(LocationError):
        export(s3, "b")[0].run(once_claimed=lambda: swept.append(True))
    assert not swept


def test_only_one_of_two_runs_gets_the_claim(s3: MemoryS3) -> None:
    first, _ = export(s3, "a")
    second, _ = export(s3, "b")
    outcome: list[str] = []

    def try_the_second() -> None:
        with pytest.raises(LocationError) as raised:
            second.run()
        outcome.append(str(raised.value))

    once(s3, "CompleteMultipartUpload", FILES[0], try_the_second)
    first.run()
    assert outcome[0].startswith("another run is committing an export to s3://b/x/")
    assert b'"a"' in s3.objects["x/_manifest.json"]
    assert sorted(s3.objects) == EXPORT


def test_a_live_commit_survives_being_finished_by_another_run(s3: MemoryS3) -> None:
    commit, _ = export(s3, "a")

    def finish() -> None:
        recover(prefix(s3), deletes=True)

    once(s3, "CompleteMultipartUpload", FILES[2], finish)
    commit.run()
    assert sorted(s3.objects) == EXPORT


def test_a_commit_that_died_is_finished(s3: MemoryS3) -> None:
    commit, _ = export(s3, "a")
    commit._claim()
    s3.complete_multipart_upload(Key=FILES[0], UploadId=f"a {FILES[0]}")
    assert "is complete now: 15 rows" in str(recover(prefix(s3), deletes=True).finished)
    assert sorted(s3.objects) == EXPORT


@pytest.mark.parametrize("turned_back", [True, False])
def test_a_commit_that_can_not_be_finished_is_taken_back(s3: MemoryS3, turned_back: bool) -> None:
    commit, _ = export(s3, "a")
    commit._claim()
    s3.complete_multipart_upload(Key=FILES[0], UploadId=f"a {FILES[0]}")
    if turned_back:
        commit._change("back")
    else:
        s3.abort_multipart_upload(Key=FILES[1], UploadId=f"a {FILES[1]}")
    assert recover(prefix(s3), deletes=True).finished is None
    assert set(s3.objects) <= {"x/_committing.json"}
    assert not s3.uploads


def test_a_store_without_conditional_writes_is_good_enough(s3: MemoryS3) -> None:
    commit, _ = export(s3, "a")
    once(s3, "PutObject", "x/_committing.json", refuse("NotImplemented"))
    commit.run()
    assert sorted(s3.objects) == EXPORT


def test_what_can_not_be_removed_is_named(s3: MemoryS3) -> None:
    commit, _ = export(s3, "a")

    def before(action: str, key: str) -> None:
        if action == "DeleteObject" or (action, key) == ("PutObject", "x/_manifest.json"):
            raise failure("AccessDenied")

    s3.before = before
    with pytest.raises(CommitError) as raised:
        commit.run()
    assert [text.split(" failed")[0] for text in raised.value.remains] == [
        f"removing s3://b/{key}" for key in FILES
    ]
    s3.before = lambda action, key: None
    assert recover(prefix(s3), deletes=True).finished is None
    assert set(s3.objects) == {"x/_committing.json"}


def test_a_name_that_is_retired_can_be_had_back(s3: MemoryS3) -> None:
    commit, _ = export(s3, "a", ["x/all.csv"])
    commit._claim()
    commit._change("back", shared=True)
    recover(prefix(s3), deletes=True)
    with pytest.raises(LocationError, match=r"then remove s3://b/x/_committing\.json"):
        prepare(prefix(s3), "fail", single_file="all.csv")
    del s3.objects["x/_committing.json"]
    prepare(prefix(s3), "fail", single_file="all.csv")


def test_a_claim_that_is_none_is_an_error_that_says_so(s3: MemoryS3) -> None:
    s3.objects["x/_committing.json"] = b"{}"
    with pytest.raises(CopyError, match="is not what an export to this location writes"):
        recover(prefix(s3), deletes=True)
