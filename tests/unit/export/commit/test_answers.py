"""Answers that are lost, refusals and conflicts: what a commit tells, and what it leaves."""

from __future__ import annotations

from typing import Any

import pytest
from support.export.committing import EXPORT, FILES, export, once, prefix, run
from support.export.overwriting import holding, overwrite
from support.s3.memory import MemoryS3, failure
from urllib3.exceptions import SSLError

from dbt.adapters.mzs3.errors import CopyError, LocationError
from dbt.adapters.mzs3.export.commit.failures import (
    CommitError,
    StaleFilesError,
)
from dbt.adapters.mzs3.export.commit.intent import read_intent
from dbt.adapters.mzs3.export.commit.preflight import Recovered, recover
from dbt.adapters.mzs3.export.commit.protocol import Commit
from dbt.adapters.mzs3.store import prefix as objects_prefix
from dbt.adapters.mzs3.store.failures import StoreError
from dbt.adapters.mzs3.upload import pending


@pytest.mark.parametrize("key", ["x/_manifest.json", "x/_committing.json"])
def test_a_body_that_breaks_off_after_the_decision_hides_nothing(s3: MemoryS3, key: str) -> None:
    commit = overwrite(s3, holding(s3, {"old.csv": 3}), {FILES[0].removeprefix("x/"): 10})

    class Broken:
        def read(self) -> bytes:
            raise SSLError("bad record mac")

    get_object = s3.get_object

    def broken(*, Key: str, **more: Any) -> dict[str, Any]:
        found = get_object(Key=Key, **more)
        return {**found, "Body": Broken()} if Key == key else found

    s3.get_object = broken  # type: ignore[method-assign]
    if key == "x/_committing.json":
        run(commit)
        return
    with pytest.raises(StaleFilesError, match="names the new export, whole"):
        run(commit)
    assert FILES[0] in s3.objects


def test_a_failure_of_any_kind_after_the_decision_is_not_told_as_if_nothing_were_there(
    s3: MemoryS3,
) -> None:
    commit, _ = export(s3, "a")

    def no_thread() -> None:
        raise RuntimeError("can't start new thread")

    once(s3, "PutObject", "x/_manifest.json", no_thread)
    with pytest.raises(CommitError, match="can't start new thread") as raised:
        run(commit)
    assert "the next run to this location finishes the export" in raised.value.leftovers[0]


def test_a_claim_whose_answer_was_lost_is_known_where_another_run_goes_on(s3: MemoryS3) -> None:
    run(Commit(prefix(s3), export(s3, "z", [])[0].pending, has_conditional_deletes=False))
    del s3.objects["x/_manifest.json"]  # what is left is a closed intent
    commit, _ = export(s3, "a")
    put_object = s3.put_object

    def put_and_lose_the_answer(**request: Any) -> dict[str, str]:
        if "IfMatch" not in request:
            return put_object(**request)
        s3.put_object = put_object  # type: ignore[method-assign]
        put_object(**request)
        recover(prefix(s3), has_conditional_deletes=False)
        raise failure("PreconditionFailed")

    s3.put_object = put_and_lose_the_answer  # type: ignore[method-assign]
    run(commit)
    assert sorted(set(s3.objects) - {"x/_committing.json"}) == EXPORT


def test_uploads_of_a_claim_without_an_answer_are_aborted(s3: MemoryS3) -> None:
    commit, _ = export(s3, "a")

    def before(action: str, key: str) -> None:
        if key == "x/_committing.json":
            raise failure("InternalError")

    s3.before = before
    with pytest.raises(CommitError) as raised:
        run(commit)
    assert "_committing.json may be there" in raised.value.leftovers[0]
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
        run(commit)
    assert "_committing.json may be there" in raised.value.leftovers[-1]
    assert not s3.uploads


def test_a_claim_that_was_surely_refused_leaves_nothing(s3: MemoryS3) -> None:
    commit, _ = export(s3, "a")

    def before(action: str, key: str) -> None:
        if action in ("GetObject", "PutObject"):
            raise failure("AccessDenied")

    s3.before = before
    with pytest.raises(CommitError, match="AccessDenied") as raised:
        run(commit)
    assert raised.value.leftovers == ()


def test_a_completion_that_is_refused_each_time_does_not_keep_the_location(s3: MemoryS3) -> None:
    commit, _ = export(s3, "a")
    commit.claim()

    def before(action: str, key: str) -> None:
        if action == "CompleteMultipartUpload":
            raise failure("AccessDenied", action)

    s3.before = before
    assert recover(prefix(s3), has_conditional_deletes=True).finished is None
    assert set(s3.objects) <= {"x/_committing.json"}
    assert not s3.uploads


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects_prefix, "_PAUSE_S", 0.0)


@pytest.mark.usefixtures("no_pause")
def test_a_recovery_aborts_no_upload_whose_completion_may_be_under_way(
    s3: MemoryS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending, "_PAUSES_S", ())
    commit, files = export(s3, "a")
    commit.claim()

    def in_conflict(action: str, key: str) -> None:
        if action == "CompleteMultipartUpload":
            raise failure("ConditionalRequestConflict", action)

    s3.before = in_conflict
    with pytest.raises(CopyError, match="another request for the same name is under way"):
        recover(prefix(s3), has_conditional_deletes=True)
    assert {*s3.uploads} == {file.upload_id for file in files}


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
        run(commit)
    assert "the next run to this location finishes the export" in raised.value.leftovers[-1]
    s3.before = lambda action, key: None
    assert recover(prefix(s3), has_conditional_deletes=True).finished is not None
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
    run(commit)
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
        run(late)
    s3.before = lambda action, key: None
    assert recover(prefix(s3), has_conditional_deletes=True) == Recovered()
    del s3.objects["x/other.csv"]
    run(export(s3, "c")[0])
    assert sorted(s3.objects) == EXPORT


def test_what_can_not_be_removed_is_named(s3: MemoryS3) -> None:
    commit, _ = export(s3, "a")

    def before(action: str, key: str) -> None:
        if action == "DeleteObject" or (action, key) == ("PutObject", "x/_manifest.json"):
            raise failure("AccessDenied")

    s3.before = before
    with pytest.raises(CommitError) as raised:
        run(commit)
    assert [text.split(" failed")[0] for text in raised.value.leftovers] == [
        f"removing s3://b/{key}" for key in FILES
    ]
    s3.before = lambda action, key: None
    assert recover(prefix(s3), has_conditional_deletes=True).finished is None
    assert set(s3.objects) == {"x/_committing.json"}


@pytest.mark.parametrize("conflicts", [1, 4])
def test_a_refusal_after_a_conflict_of_an_attempt_that_was_repeated_is_not_sure(
    s3: MemoryS3, no_pause: None, conflicts: int
) -> None:
    """The attempt before the conflict may still be under way, whatever is answered to the next."""
    conflict, denial = failure("ConditionalRequestConflict"), failure("AccessDenied")
    conflict.response["ResponseMetadata"]["RetryAttempts"] = 1
    answers = [*[conflict] * conflicts, denial]

    def before(action: str, key: str) -> None:
        if action == "PutObject":
            raise answers.pop(0)

    s3.before = before
    with pytest.raises(StoreError, match="AccessDenied") as raised:
        prefix(s3).write("_committing.json", b"{}", if_absent=True)
    assert not answers
    assert not raised.value.is_certain_refusal
