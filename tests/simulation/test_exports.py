"""All that two and three exports to one location can do to each other."""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from support.export.scenes import (
    EXPIRED,
    LATE,
    NOTHING_NEW,
    OLD,
    ONE_FILE,
    OVER,
    PAIRS,
    RECOVERED,
    Scene,
)
from support.export.simulated import (
    COMMITTING,
    INVISIBLE,
    MANIFEST,
    Committing,
    Expiring,
    Run,
    name_of,
    named_by_manifest,
    recovering,
    require_readable,
    runs_in_manifest,
    simulated,
)
from support.interleavings import ALL_FAULTS, CRASHED, DECLINED, Exploration, Explored
from support.s3.model import Bucket, S3Model, run_alone

from dbt.adapters.mzs3.export.commit.effects import Effects
from dbt.adapters.mzs3.export.commit.existing import Existing
from dbt.adapters.mzs3.export.commit.manifest import to_json
from dbt.adapters.mzs3.store.failures import StoreError
from dbt.adapters.mzs3.upload.names import UsedNames


@pytest.fixture(autouse=True)
def _simulated() -> Iterator[None]:
    with simulated():
        yield


@functools.cache
def check_objects(objects: Any) -> None:
    require_readable(Bucket(objects))


def check_state(bucket: Bucket) -> None:
    check_objects(bucket.objects)


class Ends:
    """What must hold once all runs have ended, died or failed."""

    def __init__(self, runs: Sequence[Run], store: S3Model) -> None:
        self._runs = runs
        self._store = store
        self._put_in_order: set[Any] = set()

    def check(self, bucket: Bucket, outcomes: tuple[Any, ...]) -> None:
        visible, seen = runs_in_manifest(bucket), {name_of(run_id) for run_id in bucket.seen}
        ids = [run.ids or run.name for run in self._runs]
        invisible = set()
        for run, outcome in zip(ids, outcomes, strict=False):
            if isinstance(outcome, Exception):
                if INVISIBLE in str(outcome):
                    assert run not in visible, str(outcome)
                    invisible.add(run)
            elif outcome != CRASHED:
                assert run in seen, f"{run} says that it has exported, and never was visible"
        if not any(isinstance(outcome, Exception) or outcome == CRASHED for outcome in outcomes):
            assert seen & set(ids)
        for mode in ("overwrite", "fail", "resume"):
            alike = bucket.objects, bucket.uploads, mode, frozenset(invisible)
            if alike not in self._put_in_order:
                self._put_in_order.add(alike)
                self._require_order(bucket, mode, invisible)

    def _require_order(self, bucket: Bucket, mode: str, invisible: Collection[str]) -> None:
        """The next run gets the location back in order, whatever has happened there."""
        run = replace(self._runs[0], name="next", ids="", mode=mode)
        after, outcome = run_alone(run, self._store, bucket)
        require_readable(after)
        after_all = {name_of(run_id) for run_id in after.seen - bucket.seen}.intersection(
            invisible
        )
        assert not after_all, f"{after_all} had said that nothing of them is visible"
        retired = isinstance(outcome, Exception) and "choose another single_file" in str(outcome)
        if mode == "overwrite" and not retired:
            assert not isinstance(outcome, Exception), f"the next run: {outcome}"
            assert "next" in runs_in_manifest(after)
            assert not after.uploads, f"left open: {after.uploads}"
        named = {entry["url"].removeprefix("s3://b/") for entry in named_by_manifest(after)}
        left = set(after.keys) - named - {MANIFEST, COMMITTING}
        assert not left, f"after the next run ({mode}: {outcome}) there are {left}"


def exploration(
    scene: Scene,
    store: S3Model | None = None,
    faults: Sequence[str] = (*ALL_FAULTS, DECLINED),
) -> Exploration[Bucket]:
    store, bucket, begun = store or S3Model(), Bucket(), []
    for number, run in enumerate(scene.before):
        bucket, outcome = run_alone(run, S3Model(), bucket, 100 + number)
        assert not isinstance(outcome, Exception), outcome
    for number, run in enumerate(scene.runs):
        bucket, commit = run_alone(run.begun, S3Model(), bucket, 50 + number)
        assert isinstance(commit, Committing), commit
        begun.append(commit)
    check = Ends(scene.runs, S3Model()).check
    beside = [*scene.beside, *([Expiring(begun[0])] if scene.expires else [])]
    return Exploration([*begun, *beside], store, bucket, check_state, check, faults)


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest) -> Any:
    """How much was tried, for whoever runs the tests to see."""

    def told(explored: Explored) -> None:
        with capsys.disabled():
            print(f"\n  {request.node.name}: {explored}", end="")

    return told


@pytest.mark.parametrize("scene", [pytest.param(s, id=n) for n, s in RECOVERED.items()])
def test_a_run_that_recovers_a_commit_beside_its_own_run(scene: Scene, tell: Any) -> None:
    explored = exploration(scene).exhaustively(most_faults=0)
    tell(explored)
    assert explored.orders > 100_000 or "single" in str(scene.runs[0].options)


@pytest.mark.parametrize("scene", [pytest.param(s, id=n) for n, s in PAIRS.items()])
def test_two_commits_at_once(scene: Scene, tell: Any) -> None:
    tell(exploration(scene).exhaustively(most_faults=0))


@pytest.mark.parametrize("scene", [pytest.param(s, id=n) for n, s in LATE.items()])
def test_a_run_that_stalls_for_as_long_as_it_takes(scene: Scene, tell: Any) -> None:
    tell(exploration(scene).exhaustively(most_faults=0, most_switches=2))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["first exports", "overwrites of a single file"])
def test_two_commits_of_which_one_suffers_a_fault(
    name: str, tell: Any, request: pytest.FixtureRequest
) -> None:
    tell(exploration(PAIRS[name]).exhaustively(most_faults=1))


@pytest.mark.slow
@pytest.mark.parametrize("scene", [pytest.param(s, id=n) for n, s in EXPIRED.items()])
def test_a_commit_of_which_an_upload_expires_beside_another_run(scene: Scene, tell: Any) -> None:
    tell(exploration(scene).exhaustively(most_faults=0, most_switches=4))


def test_an_overwrite_of_as_many_bytes_of_which_the_upload_expires(tell: Any) -> None:
    scene = replace(EXPIRED["an overwrite of a single file"], beside=(recovering,))
    tell(exploration(scene).exhaustively(most_faults=0))


def test_a_first_export_that_may_not_read_and_of_which_an_upload_expires(tell: Any) -> None:
    store = S3Model(denied={0: frozenset({"get"})})
    scene = EXPIRED["a first export"]
    tell(exploration(scene, store).exhaustively(most_faults=0, most_switches=3))


def test_a_store_that_does_not_compare_before_it_deletes(tell: Any) -> None:
    store = S3Model(conditional_deletes=False)
    with simulated(has_conditional_deletes=False):
        for scene in (RECOVERED["first exports"], PAIRS["overwrites of a single file"]):
            tell(exploration(scene, store).exhaustively(most_faults=0))


def test_a_store_that_was_seen_to_compare_before_it_writes(tell: Any) -> None:
    with simulated(has_conditional_writes=True):
        tell(exploration(PAIRS["first exports"]).exhaustively(most_faults=0))
        tell(exploration(RECOVERED["first exports"]).exhaustively(most_faults=0))


@pytest.mark.parametrize("faults", [1, 2])
def test_a_run_alone_with_faults(faults: int, tell: Any) -> None:
    tell(exploration(Scene(OVER[:1], (OLD,))).exhaustively(most_faults=faults))


POOR = {"get": frozenset({"get", "delete"}), "delete": frozenset({"delete"})}


@pytest.mark.slow
@pytest.mark.parametrize("lacks", POOR)
def test_a_first_export_without_a_right(lacks: str, tell: Any) -> None:
    """It needs s3:ListBucket, s3:PutObject and s3:AbortMultipartUpload, and no more."""
    store = S3Model(denied={0: POOR[lacks]})
    tell(exploration(RECOVERED["first exports"], store).exhaustively(most_faults=0))
    tell(exploration(ONE_FILE, store).exhaustively(most_faults=1, most_switches=2))


@pytest.mark.slow
def test_a_commit_and_a_recovery_of_which_requests_are_declined(tell: Any) -> None:
    tell(exploration(ONE_FILE, faults=(DECLINED,)).exhaustively(most_faults=2, most_switches=2))


def test_a_first_export_to_a_store_that_takes_no_notice_of_conditions() -> None:
    store = S3Model(conditions=False, conditional_deletes=False)
    bucket, outcome = run_alone(Run("a"), store, Bucket())
    assert not isinstance(outcome, Exception)
    assert runs_in_manifest(bucket) == {"a"}


class TestAProtocolThatIsWrong:
    """What the exploration is for: each of these was so, or nearly."""

    def test_a_manifest_that_is_written_whatever_is_there(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def write(effects: Any) -> bool:
            effects._prefix.write("_manifest.json", to_json(effects.pending.manifest))
            return True

        monkeypatch.setattr(Effects, "write_manifest", write)
        with pytest.raises(AssertionError, match="its manifest does not name"):
            exploration(LATE["a late overwrite"]).exhaustively(0, most_switches=2)

    def test_a_commit_that_is_known_by_its_bytes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def has_alike(effects: Any, content: bytes | None) -> bool:
            entries = json.loads(content)["entries"] if content else []
            there = {(entry["url"], entry["meta"]["sha256"]) for entry in entries}
            mine = {(f"s3://b/{file.key}", file.sha256) for file in effects.pending.files}
            return bool(there & mine)

        monkeypatch.setattr(Effects, "_is_of_this", has_alike)
        with pytest.raises(AssertionError, match=r"never was visible|the manifest names"):
            scene = PAIRS["partitions of which both have one alike"]
            exploration(scene).exhaustively(most_faults=0)

    def test_a_refused_completion_that_is_taken_for_an_upload_that_is_gone(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def completes(effects: Any) -> bool:
            try:
                return bool(effects.complete_all())
            except StoreError:
                return False

        monkeypatch.setattr(Effects, "complete_or_abort_all", completes)
        store = S3Model(denied={0: POOR["get"]})
        with pytest.raises(AssertionError, match="the manifest names"):
            exploration(ONE_FILE, store).exhaustively(most_faults=1, most_switches=2)

    def test_numbers_that_come_back(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def to_and_fro(existing: Any, before: Any) -> UsedNames:
            return UsedNames(2 if "-0001." in str(existing.entries) else 1)

        monkeypatch.setattr(Existing, "used", to_and_fro)
        with pytest.raises(AssertionError, match="the manifest names"):
            exploration(LATE["a late overwrite"]).exhaustively(0, most_switches=2)

    def test_deleting_before_anything_is_decided(self, monkeypatch: pytest.MonkeyPatch) -> None:
        abort = Effects.abort

        def abort_and_delete(effects: Any) -> list[str]:
            return abort(effects) + effects.delete_visible()

        monkeypatch.setattr(Effects, "require_unchanged", lambda effects: effects.abort())
        monkeypatch.setattr(Effects, "abort", abort_and_delete)
        with pytest.raises(AssertionError):
            exploration(RECOVERED["first exports"]).exhaustively(most_faults=0)


class TestLong:
    pytestmark = pytest.mark.long

    @pytest.mark.parametrize("scene", [pytest.param(s, id=n) for n, s in PAIRS.items()])
    def test_two_commits_of_which_one_suffers_a_fault(self, scene: Scene, tell: Any) -> None:
        tell(exploration(scene).exhaustively(most_faults=1))

    @pytest.mark.parametrize("scene", [pytest.param(s, id=n) for n, s in RECOVERED.items()])
    def test_a_commit_and_a_recovery_of_which_one_suffers_a_fault(
        self, scene: Scene, tell: Any
    ) -> None:
        tell(exploration(scene).exhaustively(most_faults=1))

    @pytest.mark.parametrize("scene", [pytest.param(s, id=n) for n, s in RECOVERED.items()])
    def test_a_commit_and_a_recovery_of_which_requests_are_declined(
        self, scene: Scene, tell: Any
    ) -> None:
        tell(exploration(scene, faults=(DECLINED,)).exhaustively(most_faults=2, most_switches=2))

    def test_numbers_that_an_overwrite_without_rows_has_not_used(self, tell: Any) -> None:
        store = S3Model(denied={0: frozenset({"manifest"})})
        tell(exploration(NOTHING_NEW, store).exhaustively(most_faults=0, most_switches=4))

    @pytest.mark.parametrize("mode", ["fail", "overwrite", "resume"])
    def test_three_whole_runs_at_random(self, mode: str, tell: Any) -> None:
        runs = tuple(Run(name, mode) for name in "abc")
        store, bucket = S3Model(), Bucket()
        if mode == "overwrite":
            bucket, _ = run_alone(OLD, store, bucket, 100)
        found = Exploration(runs, store, bucket, check_state, Ends(runs, store).check)
        tell(found.at_random(20_000, most_faults=2, seed=1))
