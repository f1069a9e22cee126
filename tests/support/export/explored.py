"""An exploration of what exports to one location do to each other, and what must hold there."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from support.export.scenes import Scene
from support.export.simulated import (
    COMMITTING,
    INVISIBLE,
    MANIFEST,
    Committing,
    Expiring,
    Run,
    name_of,
    named_by_manifest,
    require_readable,
    runs_in_manifest,
)
from support.interleavings import ALL_FAULTS, CRASHED, DECLINED, Exploration, run_alone
from support.s3.model import Bucket, S3Model


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
        broken = [outcome for outcome in outcomes if isinstance(outcome, AssertionError)]
        assert not broken, str(broken[0])
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
