"""What becomes of an export whose completions carry a condition, whatever the store answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from support.export.scenes import OLD, OLD_SINGLE, OVER, OVER_SINGLE
from support.export.simulated import (
    COMMITTING,
    Committing,
    Run,
    is_committing,
    recovering,
    require_readable,
    runs_in_manifest,
    simulated,
)
from support.interleavings import CRASHED, DECLINED, Ask, Exploration, Failed, Request, run_alone
from support.s3.model import Bucket, Client, S3Model

from dbt.adapters.mzs3.export.commit import effects
from dbt.adapters.mzs3.export.commit.effects import Effects
from dbt.adapters.mzs3.store import prefix as objects_prefix
from dbt.adapters.mzs3.store.prefix import Prefix
from dbt.adapters.mzs3.upload import pending
from dbt.adapters.mzs3.upload.pending import PendingFile

FIRST_EXPORT = Run("a")
COMMITS = {
    "a first export": (FIRST_EXPORT, ()),
    "an overwrite": (OVER[0], (OLD,)),
    "an overwrite of a single file": (OVER_SINGLE[0], (OLD_SINGLE,)),
}
STORES = {
    "unmet first": S3Model(),
    "gone first": S3Model(gone_first=True),
    "ETags that tell nothing": S3Model(opaque=True),
    "gone first, ETags that tell nothing": S3Model(opaque=True, gone_first=True),
}
TELLING = ["unmet first", "gone first"]
every_commit = pytest.mark.parametrize("commit", COMMITS)
every_store = pytest.mark.parametrize("store", STORES)


@pytest.fixture(autouse=True)
def _simulated() -> Iterator[None]:
    with simulated():
        yield


def begun(run: Run, before: tuple[Run, ...]) -> tuple[Bucket, Committing]:
    """The bucket of a run that has uploaded its files, over what was there before."""
    bucket = Bucket()
    for number, earlier in enumerate(before):
        bucket, outcome = run_alone(earlier, S3Model(), bucket, 100 + number)
        assert not isinstance(outcome, Exception), outcome
    bucket, commit = run_alone(run.begun, S3Model(), bucket, 50)
    assert isinstance(commit, Committing), commit
    return bucket, commit


def ended_by_repetitions(run: Run, before: tuple[Run, ...], store: S3Model) -> None:
    """Any two requests of the run are made twice by its client: it succeeds all the same."""
    bucket, commit = begun(run, before)

    def check_end(after: Bucket, outcomes: tuple[Any, ...]) -> None:
        [outcome] = outcomes
        assert not isinstance(outcome, Exception), f"it failed: {outcome}"
        assert runs_in_manifest(after) == {"a"}

    found = Exploration([commit], store, bucket, require_readable, check_end, ("repeated",))
    assert found.exhaustively(most_faults=2).ends > 1


def ended_by_the_next_run(run: Run, before: tuple[Run, ...], store: S3Model) -> None:
    """The run is killed at any request: what it had claimed is visible once the next one came."""
    bucket, commit = begun(run, before)

    def check_end(after: Bucket, outcomes: tuple[Any, ...]) -> None:
        if outcomes == (CRASHED,) and is_committing(after):
            after, outcome = run_alone(recovering, store, after)
            assert not isinstance(outcome, Exception), outcome
            require_readable(after)
            assert runs_in_manifest(after) == {"a"}, "it was undone, and all of it was there"

    found = Exploration([commit], store, bucket, require_readable, check_end, ("crash",))
    assert found.exhaustively(most_faults=1).ends > 1


@every_store
@every_commit
def test_a_completion_that_comes_again_is_done(commit: str, store: str) -> None:
    ended_by_repetitions(*COMMITS[commit], STORES[store])


@every_store
@every_commit
def test_what_a_killed_run_has_completed_is_done(commit: str, store: str) -> None:
    ended_by_the_next_run(*COMMITS[commit], STORES[store])


class InConflict(S3Model):
    """Says now and then that another request for the key was faster; the next is done."""

    def declined(self, state: Bucket, request: Request) -> Mapping[str, tuple[Bucket, Failed]]:
        found = super().declined(state, request)
        return {word: answer for word, answer in found.items() if word == "in conflict"}


def ended_by_conflicts(commit: str) -> None:
    """Any two requests of the run are in conflict with another one, and it succeeds."""
    bucket, run = begun(*COMMITS[commit])

    def check_end(after: Bucket, outcomes: tuple[Any, ...]) -> None:
        [outcome] = outcomes
        assert not isinstance(outcome, Exception), f"it failed: {outcome}"
        assert runs_in_manifest(after) == {"a"}

    found = Exploration([run], InConflict(), bucket, require_readable, check_end, (DECLINED,))
    assert found.exhaustively(most_faults=2).ends > 1


@every_commit
def test_a_conflict_is_tried_again(commit: str) -> None:
    ended_by_conflicts(commit)


@dataclass(frozen=True)
class Intruding:
    """Somebody else makes a file of the name, the size and the number of parts of a run's first.

    On a condition too, so that it replaces what was there before the run, and nothing of the run;
    that only once the run has begun to commit, as until then the run may take it for the old file.
    """

    of: Committing
    replaced_etag: str | None

    def __call__(self, ask: Ask) -> str:
        client, file = Client(ask), self.of.files[0]
        if self.replaced_etag is not None:
            client.get(COMMITTING)
        upload = (file.key, client.open_upload(file.key, {}).id)
        etag = client.put_part(*upload, 1, b"#" * file.bytes)
        before = self.replaced_etag
        return client.complete(*upload, [etag], if_absent=before is None, if_version=before)


def intruded(
    commit: str, *beside: Any, store: S3Model = STORES["unmet first"], faults: Sequence[str] = ()
) -> Exploration[Bucket]:
    """A run of which somebody else takes the first file's name at any time, and other runs."""
    bucket, run = begun(*COMMITS[commit])
    file = run.files[0]
    there = dict(bucket.objects).get(file.key)
    before = {*bucket.keys, file.key}

    def check_state(state: Bucket) -> None:
        if there is None:  # else the manifest is true until the name is taken
            require_readable(state)

    def check_end(after: Bucket, outcomes: tuple[Any, ...]) -> None:
        exported, *_, took = outcomes
        if isinstance(took, Exception) or took == CRASHED:
            assert faults or beside or not isinstance(exported, Exception), (
                f"it failed: {exported}"
            )
            return
        if faults and is_committing(after):
            after, outcome = run_alone(recovering, store, after)
            assert not isinstance(outcome, Exception), outcome
        assert after.read(file.key) == b"#" * file.bytes, "the file of somebody else is gone"
        assert "a" not in runs_in_manifest(after), "the file of somebody else is another run's"
        assert isinstance(exported, Exception) or exported == CRASHED
        if not (store.opaque and (faults or beside)):  # where nobody knows what is left
            assert {*after.keys} - {COMMITTING} == before, "something of the export is left"
        assert beside or faults or file.key in str(exported), f"no word of the file: {exported}"

    programs = [run, *beside, Intruding(run, there and there.etag)]
    return Exploration(programs, store, bucket, check_state, check_end, faults)


@every_store
@every_commit
def test_a_file_of_somebody_else_is_neither_replaced_nor_taken_for_the_runs(
    commit: str, store: str
) -> None:
    assert intruded(commit, store=STORES[store]).exhaustively(most_faults=0).ends > 1


@every_store
@every_commit
def test_a_file_of_somebody_else_outlives_the_death_of_the_run(commit: str, store: str) -> None:
    found = intruded(commit, store=STORES[store], faults=("crash",))
    assert found.exhaustively(most_faults=1).ends > 1


@pytest.mark.parametrize("store", TELLING)
@every_commit
def test_a_file_of_somebody_else_stays_that_whatever_s3_declines(commit: str, store: str) -> None:
    """Also where S3 removes the upload, because of a conflict with the completion of that file."""
    found = intruded(commit, store=STORES[store], faults=(DECLINED,))
    assert found.exhaustively(most_faults=1).ends > 1


class Kept(S3Model):
    """Removes no upload because of a conflict: by what is open, runs know whose an object is."""

    def declined(self, state: Bucket, request: Request) -> Mapping[str, tuple[Bucket, Failed]]:
        found = super().declined(state, request)
        return {word: answer for word, answer in found.items() if word != "in conflict, and gone"}


@pytest.mark.parametrize("gone_first", [False, pytest.param(True, marks=pytest.mark.slow)])
@every_commit
def test_an_open_upload_tells_whose_a_file_is_where_etags_tell_nothing(
    commit: str, gone_first: bool
) -> None:
    store = Kept(opaque=True, gone_first=gone_first)
    for faults in [DECLINED], ["lost", "refused", "repeated"]:
        assert intruded(commit, store=store, faults=faults).exhaustively(most_faults=1).ends > 1


@pytest.mark.parametrize("store", ["unmet first", "ETags that tell nothing"])
@pytest.mark.parametrize("commit", ["a first export", "an overwrite of a single file"])
def test_a_file_of_somebody_else_comes_while_another_run_recovers(commit: str, store: str) -> None:
    found = intruded(commit, recovering, store=STORES[store])
    assert found.exhaustively(most_faults=0, most_switches=3).ends > 1


def test_an_old_file_that_somebody_removes_is_no_obstacle() -> None:
    bucket, run = begun(*COMMITS["an overwrite of a single file"])
    key = run.files[0].key
    old = dict(bucket.objects)[key].etag

    def remove(ask: Ask) -> None:
        Client(ask).delete(key, if_version=old)

    def check_end(after: Bucket, outcomes: tuple[Any, ...]) -> None:
        assert not isinstance(outcomes[0], Exception), f"it failed: {outcomes[0]}"
        require_readable(after)
        assert runs_in_manifest(after) == {"a"}

    programs = [run, remove]
    found = Exploration(programs, S3Model(), bucket, lambda _: None, check_end, ())
    assert found.exhaustively(most_faults=0).ends > 1


WHOLE = [
    *((Run("a", mode), ()) for mode in ("fail", "overwrite", "resume")),
    (Run("a", parts=1, options={"single_file": "all.csv"}), ()),
    (OVER[0], (OLD,)),
    (OVER_SINGLE[0], (OLD_SINGLE,)),
]
KINDS = {
    "demands conditions": S3Model(denied={9: frozenset({"unconditional"})}),
    "knows none in a completion": S3Model(unknown=frozenset({"complete"})),
    "knows none at all": S3Model(unknown=frozenset({"put", "delete", "complete"})),
    "takes no notice": S3Model(conditions=False, conditional_deletes=False),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_export_on_each_kind_of_store(kind: str) -> None:
    for run, before in WHOLE:
        bucket = Bucket()
        for earlier in before:
            bucket, _ = run_alone(earlier, S3Model(), bucket, 100)
        bucket, outcome = run_alone(run, KINDS[kind], bucket)
        assert not isinstance(outcome, Exception), f"{run.mode} {run.options}: {outcome}"
        assert runs_in_manifest(bucket) == {"a"}
        require_readable(bucket)
        assert not is_committing(bucket)


class TestAProtocolThatIsWrong:
    def test_a_completion_without_a_condition(self, monkeypatch: pytest.MonkeyPatch) -> None:
        complete = Prefix.complete

        def unconditional(prefix: Any, *given: Any, **_: str) -> str:
            return complete(prefix, *given)

        monkeypatch.setattr(Prefix, "complete", unconditional)
        with pytest.raises(AssertionError, match="AccessDenied"):
            test_a_whole_export_on_each_kind_of_store("demands conditions")
        with pytest.raises(AssertionError, match="of somebody else is gone"):
            intruded("a first export").exhaustively(most_faults=0)

    @pytest.mark.parametrize("store", TELLING)
    def test_whatever_has_the_name_is_taken_for_the_file(
        self, monkeypatch: pytest.MonkeyPatch, store: str
    ) -> None:
        monkeypatch.setattr(pending, "is_file", lambda *_, **__: True)
        with pytest.raises(AssertionError, match="is another run's"):
            intruded("a first export", store=STORES[store]).exhaustively(most_faults=0)

    @pytest.mark.parametrize("commit", COMMITS)
    def test_what_has_the_size_is_taken_for_the_file_once_the_upload_is_gone(
        self, monkeypatch: pytest.MonkeyPatch, commit: str
    ) -> None:
        monkeypatch.setattr(pending.KnownEtags, "follow_formula", False)
        found = intruded(commit, faults=(DECLINED,))
        with pytest.raises(AssertionError, match="is another run's"):
            found.exhaustively(most_faults=1)

    def test_whether_the_upload_is_open_is_not_asked(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pending, "_is_open", lambda *_: False)
        found = intruded("a first export", store=STORES["ETags that tell nothing"])
        with pytest.raises(AssertionError, match="is another run's"):
            found.exhaustively(most_faults=0)

    def test_an_upload_whose_name_is_taken_is_aborted_though_nothing_is_decided(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        abort = Effects.abort
        monkeypatch.setattr(Effects, "abort", lambda effects, **_: abort(effects))
        found = intruded("an overwrite", store=Kept(opaque=True), faults=(DECLINED,))
        with pytest.raises(AssertionError, match="is another run's"):
            found.exhaustively(most_faults=1)

    def test_what_may_be_of_the_run_is_removed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def may_be(*given: Any) -> bool:
            return pending.is_file(*given) is not False

        monkeypatch.setattr(effects, "is_file", may_be)
        found = intruded(
            "a first export", store=STORES["ETags that tell nothing"], faults=("crash",)
        )
        with pytest.raises(AssertionError, match="of somebody else is gone"):
            found.exhaustively(most_faults=1)

    def test_what_has_the_name_is_taken_for_somebody_elses(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pending, "is_file", lambda *_, **__: False)
        with pytest.raises(AssertionError, match=r"failed: .* is there, which this run"):
            ended_by_repetitions(*COMMITS["a first export"], S3Model())
        with pytest.raises(AssertionError, match="it was undone, and all of it was there"):
            ended_by_the_next_run(*COMMITS["a first export"], S3Model())

    def test_a_condition_that_does_not_hold_is_taken_for_a_refusal(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pending, "PreconditionFailedError", ())
        with pytest.raises(AssertionError, match=r"it failed: .*PreconditionFailed"):
            ended_by_repetitions(*COMMITS["a first export"], S3Model())

    def test_a_conflict_is_taken_for_a_refusal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(objects_prefix, "_CONFLICTS", 0)
        with pytest.raises(AssertionError, match=r"it failed: .*ConditionalRequestConflict"):
            ended_by_conflicts("an overwrite")

    def test_an_upload_whose_name_is_taken_is_aborted_before_that_is_decided(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        complete_or_abort = Effects._complete_or_abort

        def aborts(effects: Any, file: PendingFile) -> bool:
            is_there = complete_or_abort(effects, file)
            if not is_there:
                effects._prefix.abort(file.key, file.upload_id)
            return is_there

        monkeypatch.setattr(Effects, "_complete_or_abort", aborts)
        found = intruded("a first export", recovering, store=STORES["ETags that tell nothing"])
        with pytest.raises(AssertionError, match="is another run's"):
            found.exhaustively(0, most_switches=3)
