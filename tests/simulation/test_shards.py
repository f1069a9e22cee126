"""All that runs, compactions and readers of one shard can do to each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from support.interleavings import Exploration, Explored, run_alone
from support.shard.simulated import (
    HOUR_MS,
    LOCATION,
    STATE,
    Compact,
    GoneError,
    Look,
    Pass,
    Reset,
    Shard,
    ShardStore,
    Write,
    arrive,
    require_readable,
)

from dbt.adapters.mzs3.events import Committed
from dbt.adapters.mzs3.shard import compact as shard_compact
from dbt.adapters.mzs3.shard.state.state import ShardBatch, ShardState
from dbt.adapters.mzs3.shard.state.store import UnknownWriteError
from dbt.adapters.mzs3.shard.write import batch

KEEP_MS = 24 * HOUR_MS
EIGHT_DAYS = Pass(192 * HOUR_MS)
SWEEP = Compact("sweep", keep_ms=0, since=None)
PAIR = Write("a", files=2)
# What a run and a compaction do once everybody else has ended.
NEXT = Write("next")
LAST = Compact("last", keep_ms=0)


class Ends:
    """What must hold once all have ended, died or failed."""

    def __init__(self, programs: Sequence[Any], store: ShardStore, readers_may_fail: bool) -> None:
        self._programs = programs
        self._store = store
        self._readers_may_fail = readers_may_fail
        self._put_in_order: set[Shard] = set()

    def check(self, shard: Shard, outcomes: tuple[Any, ...]) -> None:
        for actor, outcome in enumerate(outcomes):
            if isinstance(outcome, Committed):
                assert actor in shard.wrote, "says that it wrote"
            elif isinstance(outcome, Exception) and not isinstance(outcome, UnknownWriteError):
                assert actor not in shard.wrote, f"says that it did not write: {outcome}"
            if isinstance(outcome, GoneError):
                assert self._readers_may_fail, f"a reader: {outcome}"
        if shard not in self._put_in_order:
            self._put_in_order.add(shard)
            self._require_order(shard)

    def _require_order(self, shard: Shard) -> None:
        """The next run and compaction succeed, and leave nothing that no batch names."""
        for actor, program in ((20, EIGHT_DAYS), (21, NEXT), (22, LAST)):
            shard, outcome = run_alone(program, self._store, shard, actor)
            assert not isinstance(outcome, Exception), f"{program}: {outcome!r}"
        require_readable(shard)
        assert shard.state is not None
        named = {LOCATION.key(name) for name in shard.state.file_names}
        assert set(shard.bucket.keys) == named | {STATE}
        assert not shard.bucket.uploads


def explore(
    *programs: Any,
    before: Sequence[Any] = (Write("a"), Write("b")),
    faults: int = 1,
    readers_may_fail: bool = False,
    orders: int = 0,
) -> Explored:
    """Every order, or so many by chance."""
    actors = {**dict(enumerate(programs)), 21: NEXT}
    actors |= {100 + number: program for number, program in enumerate(before)}
    store, shard = ShardStore(actors), Shard()
    for number, program in enumerate(before):
        shard, outcome = run_alone(program, store, shard, 100 + number)
        assert not isinstance(outcome, Exception), outcome
    ends = Ends(programs, store, readers_may_fail)
    found = Exploration(programs, store, shard, require_readable, ends.check)
    return found.at_random(orders, faults, seed=1) if orders else found.exhaustively(faults)


@pytest.mark.parametrize("modes", [("append", "append"), ("append", "diff"), ("diff", "diff")])
@pytest.mark.parametrize("before", [(), (Write("a"),)], ids=["first", "later"])
def test_two_runs(modes: tuple[str, str], before: tuple[Write, ...]) -> None:
    print(explore(Write("c", modes[0]), Write("d", modes[1]), before=before))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["append", "diff"])
@pytest.mark.parametrize("keep_ms", [0, pytest.param(KEEP_MS, marks=pytest.mark.long)])
def test_a_run_and_a_compaction(mode: str, keep_ms: int) -> None:
    print(explore(Write("c", mode), Compact("d", keep_ms), before=[Write("a")]))


@pytest.mark.slow
def test_two_compactions() -> None:
    print(explore(Compact("c", KEEP_MS), Compact("d", 0), before=[Write("a")]))


MERGED = [Write("a"), Compact("b"), Write("c")]


@pytest.mark.parametrize(
    "faults", [0, pytest.param(1, marks=pytest.mark.slow)], ids=["no fault", "a fault"]
)
def test_a_compaction_beside_one_that_only_sweeps(faults: int) -> None:
    """The sweep may find what the other one has written, and not named yet."""
    print(explore(Compact("d", KEEP_MS), SWEEP, before=MERGED, faults=faults))


@pytest.mark.parametrize(
    "faults", [0, pytest.param(1, marks=pytest.mark.long)], ids=["no fault", "a fault"]
)
def test_two_sweeps_and_a_reader(faults: int) -> None:
    programs, before = (SWEEP, Compact("e", since=None), Look()), [*MERGED, Compact("d", KEEP_MS)]
    print(explore(*programs, before=before, faults=faults, readers_may_fail=True))


@pytest.mark.parametrize(
    "faults", [0, pytest.param(1, marks=pytest.mark.slow)], ids=["no fault", "a fault"]
)
@pytest.mark.parametrize("modes", [("append", "append"), ("append", "diff"), ("diff", "diff")])
def test_two_runs_of_several_files(modes: tuple[str, str], faults: int) -> None:
    """A batch is all of its files, or none."""
    programs = Write("c", modes[0], files=2), Write("d", modes[1], files=2)
    print(explore(*programs, before=[PAIR], faults=faults))


@pytest.mark.slow
@pytest.mark.parametrize(
    "faults", [0, pytest.param(1, marks=pytest.mark.long)], ids=["no fault", "a fault"]
)
def test_a_run_and_a_compaction_of_several_files(faults: int) -> None:
    programs = Write("c", files=2), Compact("d", 0, files=2)
    print(explore(*programs, before=[PAIR], faults=faults))


def test_a_compaction_of_several_files_and_a_reader() -> None:
    before = [PAIR, Write("b", "diff", files=2)]
    print(explore(Compact("c", KEEP_MS, files=2), Look(), before=before))


def test_a_compaction_and_a_reader() -> None:
    """The reader has its files for as long as they are to be kept."""
    print(explore(Compact("c", KEEP_MS), Look()))
    print(explore(Compact("c", 0), Look(), readers_may_fail=True))


@pytest.mark.slow
def test_a_run_that_stalls_for_longer_than_files_are_kept() -> None:
    print(explore(Write("c"), Compact("d", KEEP_MS), Pass(KEEP_MS + 1), faults=0))


@pytest.mark.parametrize("mode", ["append", pytest.param("diff", marks=pytest.mark.long)])
def test_a_write_that_arrives_after_its_time_out(mode: str) -> None:
    print(explore(Write("c", mode, late=True), Compact("d", 0), arrive, faults=0))
    print(explore(Write("c", mode, late=True), Write("d"), arrive))


@pytest.mark.parametrize("mode", ["append", "diff"])
def test_a_run_and_a_reset(mode: str) -> None:
    """The run's rows are the last of the old shard, or the first of the new one."""
    print(explore(Write("c", mode), Reset("d"), before=[Write("a")]))


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True])
def test_a_compaction_and_a_reset(late: bool) -> None:
    programs = (Compact("c", 0), Reset("d", late=late), *([arrive] if late else []))
    print(explore(*programs, before=[Write("a")], faults=0 if late else 1))


def test_a_reset_and_a_reader() -> None:
    """Files are old, but in use until the reset: the reader has them for as long as others."""
    before = [Write("a"), Pass(KEEP_MS + 1)]
    print(explore(Reset("c"), Reset("d"), Look(), before=before))
    print(explore(Reset("c"), Compact("d", KEEP_MS), Look(), before=before, faults=0))


@pytest.mark.parametrize("reset_late", [False, True])
def test_a_run_or_a_reset_that_arrives_late(reset_late: bool) -> None:
    run, reset = Write("c", late=not reset_late), Reset("d", late=reset_late)
    print(explore(run, reset, arrive, before=[Write("a")], faults=0))


@pytest.mark.parametrize(
    "orders", [200, pytest.param(100_000, marks=[pytest.mark.long, pytest.mark.timeout(3600)])]
)
def test_all_at_once(orders: int) -> None:
    programs = (
        *(Write("c"), Write("d", "diff"), Compact("e", 0), Reset("f")),
        *(Look(), Pass(KEEP_MS + 1)),
    )
    print(explore(*programs, faults=3, readers_may_fail=True, orders=orders))


def sweep_without_saying_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ShardState, "after_sweep", lambda state, _: state)


def sweep_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = shard_compact.sweep
    monkeypatch.setattr(shard_compact, "sweep", lambda store, _: sweep(store, 0))


def name_the_first_file_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    complete = batch.complete_files
    monkeypatch.setattr(batch, "complete_files", lambda *of: complete(*of)[:1])


def replace_what_came_since(monkeypatch: pytest.MonkeyPatch) -> None:
    compacted = ShardState.compacted

    def alone(state: ShardState, old: Any, new: ShardBatch, now: int) -> ShardState:
        return replace(compacted(state, old, new, now), batches=(new,))

    monkeypatch.setattr(ShardState, "compacted", alone)


DEFECTS: dict[Any, tuple[Any, ...]] = {
    sweep_without_saying_so: (MERGED, Compact("d", KEEP_MS), SWEEP),
    sweep_at_once: ([PAIR, Write("b", "diff", files=2)], Compact("c", files=2), Look()),
    name_the_first_file_alone: ([PAIR], Write("c", files=2), Write("d", files=2)),
    replace_what_came_since: ([PAIR], Write("c", files=2), Compact("d", 0, files=2)),
}


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.__name__)
def test_what_would_break_a_shard_is_found(monkeypatch: pytest.MonkeyPatch, defect: Any) -> None:
    before, *programs = DEFECTS[defect]
    defect(monkeypatch)
    with pytest.raises(AssertionError):
        explore(*programs, before=before, faults=0)
