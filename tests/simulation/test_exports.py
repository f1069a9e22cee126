"""All that two and three exports to one location can do to each other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.export.explored import Ends, check_state, exploration
from support.export.scenes import (
    EXPIRED,
    EXPIRED_OF_TWO,
    LATE,
    NOTHING_NEW,
    OLD,
    ONE_FILE,
    OVER,
    PAIRS,
    READ,
    READ_LATE,
    RECOVERED,
    Scene,
)
from support.export.simulated import Run, recovering, runs_in_manifest, simulated
from support.interleavings import DECLINED, Exploration, run_alone
from support.s3.model import Bucket, S3Model

from dbt.adapters.mzs3.export.commit.effects import Effects
from dbt.adapters.mzs3.export.commit.existing import Existing
from dbt.adapters.mzs3.export.commit.manifest import to_json
from dbt.adapters.mzs3.export.commit.protocol import Commit
from dbt.adapters.mzs3.store.failures import StoreError
from dbt.adapters.mzs3.upload.names import UsedNames


@pytest.fixture(autouse=True)
def _simulated() -> Iterator[None]:
    with simulated():
        yield


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


@pytest.mark.parametrize("name", ["overwrites of a single file", "first exports of a single file"])
def test_two_commits_of_which_one_suffers_a_fault(name: str, tell: Any) -> None:
    tell(exploration(PAIRS[name]).exhaustively(most_faults=1, most_switches=1))


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_two_commits_that_give_way_twice_and_of_which_one_suffers_a_fault(
    name: str, tell: Any
) -> None:
    tell(exploration(PAIRS[name]).exhaustively(most_faults=1, most_switches=2))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["overwrites of a single file", "first exports of a single file"])
def test_two_commits_one_after_the_other_with_a_fault_each(name: str, tell: Any) -> None:
    tell(exploration(PAIRS[name]).exhaustively(most_faults=2, most_switches=0))


@pytest.mark.parametrize("name", EXPIRED_OF_TWO)
def test_an_export_of_two_files_of_which_one_expires(name: str, tell: Any) -> None:
    tell(exploration(EXPIRED_OF_TWO[name]).exhaustively(most_faults=0, most_switches=1))


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPIRED_OF_TWO)
def test_an_export_of_two_files_that_gives_way_twice_and_of_which_one_expires(
    name: str, tell: Any
) -> None:
    tell(exploration(EXPIRED_OF_TWO[name]).exhaustively(most_faults=0, most_switches=2))


@pytest.mark.parametrize("name", READ)
def test_a_reader_who_reads_the_manifest_now_and_the_files_later(name: str, tell: Any) -> None:
    tell(exploration(READ[name], faults=["crash", "lost"]).exhaustively(most_faults=1))


def test_a_reader_who_has_not_read_all_files_three_exports_later(tell: Any) -> None:
    tell(exploration(READ_LATE).exhaustively(most_faults=0, most_switches=1))


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


def test_the_docs_count_no_test_that_is_gone() -> None:
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    page = Path(__file__).parents[2] / "docs" / "inside" / "simulation.md"
    counted = re.findall(r"^\| ([^:|]+).*`make ", page.read_text(), re.MULTILINE)
    assert counted
    gone = [name for name in counted if f"def test_{name.strip().replace(' ', '_')}(" not in tests]
    assert not gone


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

    def test_a_commit_that_is_taken_over_without_a_word(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        change = Commit._change
        monkeypatch.setattr(Commit, "_change", lambda commit, state, **_: change(commit, state))
        with pytest.raises(AssertionError, match="the manifest names"):
            exploration(EXPIRED_OF_TWO["an overwrite"]).exhaustively(0, most_switches=1)

    def test_a_name_that_comes_back_while_somebody_reads(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def to_and_fro(existing: Any, before: Any) -> UsedNames:
            return UsedNames(2 if "-0001." in str(existing.entries) else 1)

        monkeypatch.setattr(Existing, "used", to_and_fro)
        with pytest.raises(AssertionError, match="another run's bytes"):
            exploration(READ_LATE).exhaustively(most_faults=0, most_switches=1)


class TestLong:
    pytestmark = pytest.mark.long

    @pytest.mark.parametrize("scene", [pytest.param(s, id=n) for n, s in PAIRS.items()])
    def test_two_commits_of_which_one_suffers_a_fault_in_every_order(
        self, scene: Scene, tell: Any
    ) -> None:
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
