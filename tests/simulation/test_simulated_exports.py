"""All that two and three exports to one location can do to each other."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from interleavings import Exploration
from s3_model import Bucket, S3Model, run_alone
from simulated_export import (
    COMMITTING,
    INVISIBLE,
    MANIFEST,
    Run,
    named_by_manifest,
    require_readable,
    runs_in_manifest,
)

PARTITIONS = {"partition_by": ["d"]}


@functools.cache
def check_objects(objects: Any) -> None:
    require_readable(Bucket(objects))


def check_state(bucket: Bucket) -> None:
    check_objects(bucket.objects)


class Ends:
    """What must hold once all runs have ended, died or failed."""

    def __init__(self, runs: tuple[Run, ...], store: S3Model) -> None:
        self._runs = runs
        self._store = store
        self._put_in_order: set[Any] = set()

    def check(self, bucket: Bucket, outcomes: tuple[Any, ...]) -> None:
        visible = runs_in_manifest(bucket)
        for run, outcome in zip(self._runs, outcomes, strict=True):
            if isinstance(outcome, Exception):
                assert INVISIBLE not in str(outcome) or run.name not in visible, str(outcome)
        for mode in ("overwrite", "fail", "resume"):
            alike = bucket.objects, bucket.uploads, mode
            if alike not in self._put_in_order:
                self._put_in_order.add(alike)
                self._require_order(bucket, mode)

    def _require_order(self, bucket: Bucket, mode: str) -> None:
        """The next run gets the location back in order, whatever has happened there."""
        run = Run(
            "next",
            mode,
            self._runs[0].parts,
            folders=self._runs[0].folders,
            options=self._runs[0].options,
        )
        after, outcome = run_alone(run, self._store, bucket)
        require_readable(after)
        if mode == "overwrite":
            assert not isinstance(outcome, Exception), f"the next run: {outcome}"
            assert "next" in runs_in_manifest(after)
            assert not after.uploads, f"left open: {after.uploads}"
        named = {entry["url"].removeprefix("s3://b/") for entry in named_by_manifest(after)}
        left = set(after.keys) - named - {MANIFEST, COMMITTING}
        assert not left, f"after the next run ({mode}: {outcome}) there are {left}"


def explore(runs: tuple[Run, ...], before: tuple[Run, ...] = (), faults: int = 1) -> Any:
    store, bucket = S3Model(), Bucket()
    for number, run in enumerate(before):
        bucket, outcome = run_alone(run, store, bucket, 100 + number)
        assert not isinstance(outcome, Exception), outcome
    found = Exploration(runs, store, bucket, check_state, Ends(runs, store).check)
    return found.exhaustively(faults)


@pytest.mark.parametrize("modes", [("fail", "fail"), ("fail", "overwrite"), ("resume", "resume")])
def test_two_first_exports(modes: tuple[str, str]) -> None:
    print(explore((Run("a", modes[0]), Run("b", modes[1]))))


def test_two_overwrites() -> None:
    print(explore((Run("a", "overwrite"), Run("b", "overwrite")), before=(Run("old"),)))
