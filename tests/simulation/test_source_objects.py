"""What runs, run-operations and others can do to a source's objects, in every order, with faults.

Runs note what waits, fail at an object, delete what they have committed, and are told by a queue
that delivers twice. Whatever happened, each object's rows are there once in the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from pyspark.errors import PySparkException
from support.interleavings import Ask, Exploration, Explored, Failed
from support.source.catalog import failed_before, ingested
from support.source.simulated import reading
from support.source.simulated_objects import (
    BAD,
    PLAIN,
    Declared,
    Lake,
    LakeStore,
    acting,
    coming_back,
    lake,
    putting,
    run_of,
    simulate_objects,
)

from dbt.adapters.mzs3.errors import Mzs3Error
from dbt.adapters.mzs3.ledger.epochs import next_epoch
from dbt.adapters.mzs3.ledger.events import State
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.source import ingest
from dbt.adapters.mzs3.source.ingest import Pass
from dbt.adapters.mzs3.source.operations.object_actions import ActionResult, ObjectAction

SKIP_B = acting(ObjectAction.SKIP, "b")
RETRY_A = acting(ObjectAction.RETRY, "a")
RETRACT_A = acting(ObjectAction.RETRACT, "a")
LIMITED = Declared(max_objects=1)
DELETING = Declared(deletes=True)
QUEUE, LIMITED_QUEUE = Declared(queue=True), Declared(max_objects=1, queue=True)
STORE = LakeStore()


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    simulate_objects(monkeypatch)
    alone.cache_clear()
    return monkeypatch


def check_state(state: Lake) -> None:
    visible = state.visible()
    versions = dict(visible)
    assert len(versions) == len(visible), f"rows are there twice: {visible}"
    retracted = state.decided(State.RETRACTED)
    for name, version in state.rows_shown:
        if name not in retracted:
            assert versions.get(name, 0) >= version, f"rows of {name} are gone"
    assert state.removed <= state.rows_shown, "an object was deleted before its rows were visible"


class Ends:
    """What must hold once all have ended, died or failed, and the next runs have done the rest."""

    def __init__(self, declared: Declared, start: Lake) -> None:
        self._declared = declared
        self._start = start

    def check(self, state: Lake, outcomes: tuple[Any, ...]) -> None:
        committed = 0
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                assert isinstance(outcome, (Mzs3Error, PySparkException)), repr(outcome)
            elif isinstance(outcome, list):
                names = [name for name, _ in outcome]
                assert len(names) == len({*names}), f"a reader saw {outcome}"
                assert {*outcome} <= state.rows_shown, f"a reader saw {outcome}"
                assert "a" in names or state.decided(State.RETRACTED), f"a reader saw {outcome}"
            committed += bool(getattr(outcome, "objects", 0)) and not was_decided(outcome)
        new = state.epochs_shown - self._start.epochs_shown
        assert committed <= len(new), "a run said that it committed"
        self._check_later(state, [one for one in outcomes if was_decided(one)])

    def _check_later(self, state: Lake, done: list[Any]) -> None:
        for result in done:
            of, name = DECIDES[result.action]
            assert name in state.decided(of), "what was decided is gone"
        after = settled(state, self._declared)
        for result in done:
            of, name = DECIDES[result.action]
            assert after.decided(of).get(name) == state.decided(of)[name], "it does not last"
        left_out = {
            (name, version)
            for of in (State.SKIPPED, State.RETRACTED)
            for name, (version, _) in after.decided(of).items()
        }
        latest = dict(sorted({*after.bucket, *after.removed})).items()
        expected = {one for one in latest if one[1] != BAD} - left_out
        found = {*after.visible()}
        assert found == expected, f"the next runs come to {found}, not {expected}"
        for name, (_, number) in state.decided(State.RETRIED).items():
            newest = max(int(row[0]) for row in after.rows if row[1] == name)
            is_there = name in dict(state.bucket)
            assert newest > number or not is_there, f"{name} was not taken again"
        if self._declared.deletes:
            # What comes again as it was is known, and stays.
            assert after.bucket <= after.removed, "objects were not deleted"
        if self._declared.queue:
            assert not after.queue, "messages are left"


def settled(state: Lake, declared: Declared) -> Lake:
    """What the next runs make of it, once an object that can't be read is skipped."""
    state = replace(state, queue=frozenset((message, False) for message, _ in state.queue))
    outcome: Any = None
    for number in range(6):
        after, outcome = alone(state, next_run(declared, number))
        if isinstance(outcome, Exception) and ("b", BAD) in state.bucket:
            after, skipped = alone(after, SKIP_B)
            assert was_decided(skipped), skipped
        is_over = after.rows == state.rows and not isinstance(outcome, Exception)
        state = after
        if is_over:
            break
    assert not isinstance(outcome, Exception), f"the next runs fail: {outcome}"
    after, _ = alone(state, next_run(declared, 6))
    assert after.rows == state.rows, "objects are taken twice"
    return after


DECIDES = {
    ObjectAction.SKIP: (State.SKIPPED, "b"),
    ObjectAction.RETRY: (State.RETRIED, "a"),
    ObjectAction.RETRACT: (State.RETRACTED, "a"),
}


def was_decided(outcome: Any) -> bool:
    return isinstance(outcome, ActionResult)


@cache
def alone(state: Lake, program: Callable[[Ask], Any]) -> tuple[Lake, Any]:
    """What a program makes of the source while nobody else does anything, and its outcome."""

    def ask(*request: Any) -> Any:
        nonlocal state
        after, answer = STORE.apply(state, 9, request)
        assert isinstance(after, Lake)
        state = after
        if isinstance(answer, Failed):
            raise answer.error
        return answer

    try:
        outcome = program(ask)
    except (Mzs3Error, PySparkException) as exc:
        outcome = exc
    check_state(state)
    return state, outcome


@cache
def next_run(declared: Declared, number: int) -> Callable[[Ask], Any]:
    return run_of(f"next{number}", declared)


def explored(
    *programs: Callable[[Ask], Any],
    start: Lake,
    declared: Declared = PLAIN,
    faults: int = 0,
    switches: int | None = None,
) -> Explored:
    ends = Ends(declared, start)
    exploration = Exploration(programs, STORE, start, check_state, ends.check)
    return exploration.exhaustively(faults, switches)


def runs(declared: Declared) -> tuple[Any, Any]:
    return run_of("A", declared), run_of("B", declared)


A = run_of("A")
OVERWRITTEN = lake(ingested(), ("a", 2), ("b", 1))
WITH_BAD = lake(ingested(), ("a", 2), ("b", BAD))
FAILED = lake(failed_before(), ("a", 2), ("b", BAD))
TOLD = lake(ingested(), ("a", 2), ("b", 1), told=("a2", "b1"))
KNOWN = lake(ingested(), ("a", 1), ("b", 1))
SCENES: dict[str, tuple[Declared, Lake, list[Any]]] = {
    "limits": (LIMITED, lake(ingested(), ("a", 1), ("b", 1), ("c", 1)), [*runs(LIMITED)]),
    "limits and a queue": (LIMITED_QUEUE, TOLD, [*runs(LIMITED_QUEUE)]),
    "an object that fails": (PLAIN, WITH_BAD, [*runs(PLAIN)]),
    "an object that failed and is skipped": (PLAIN, FAILED, [A, SKIP_B]),
    "an object that fails and is put again": (PLAIN, WITH_BAD, [*runs(PLAIN), putting("b", 14)]),
    "after_commit": (DELETING, OVERWRITTEN, [*runs(DELETING)]),
    "after_commit and an overwrite": (DELETING, OVERWRITTEN, [*runs(DELETING), putting("a", 3)]),
    "after_commit and a retry": (DELETING, OVERWRITTEN, [runs(DELETING)[0], RETRY_A]),
    "retract": (PLAIN, KNOWN, [A, RETRACT_A, reading]),
    "retry": (PLAIN, KNOWN, [A, RETRY_A]),
    "a queue": (QUEUE, TOLD, [*runs(QUEUE)]),
    "a queue that delivers twice": (QUEUE, TOLD, [*runs(QUEUE), coming_back]),
}
# Those that have many situations, and very many once anything fails.
MANY = (
    *("limits and a queue", "an object that fails and is put again"),
    *("after_commit and an overwrite", "a queue that delivers twice"),
)


def scenes(mark: pytest.MarkDecorator) -> list[Any]:
    return [pytest.param(scene, marks=[mark] if scene in MANY else []) for scene in SCENES]


@pytest.mark.parametrize("scene", scenes(pytest.mark.slow))
def test_objects_are_taken_once_in_every_order(simulated, tell, scene):
    declared, start, programs = SCENES[scene]
    tell(explored(*programs, start=start, declared=declared))


@pytest.mark.slow
@pytest.mark.parametrize("scene", scenes(pytest.mark.long))
def test_objects_are_taken_once_whatever_fails(simulated, tell, scene):
    declared, start, programs = SCENES[scene]
    tell(explored(*programs, start=start, declared=declared, faults=1, switches=1))


def forget_what_waits(monkeypatch):
    monkeypatch.setattr(Pass, "_note", lambda *_: None)


def fail_without_saying_so(monkeypatch):
    monkeypatch.setattr(ingest, "executor_error", lambda _: None)


def plan_under_any_number(monkeypatch):
    monkeypatch.setattr(ingest, "next_plan", next_epoch)


def never_say_what_is_due(monkeypatch):
    monkeypatch.setattr(Ledger, "write_due", lambda *_: None)


def delete_whatever_is_there(monkeypatch):
    remove = LakeStore._remove

    def remove_any(store, state, name, _):
        return remove(store, state, name, dict(state.bucket).get(name, 0))

    monkeypatch.setattr(LakeStore, "_remove", remove_any)


def delete_messages_before_the_commit(monkeypatch):
    take = Pass._epoch

    def acknowledged(this, plan):
        this.inbox.acknowledge()
        return take(this, plan)

    monkeypatch.setattr(Pass, "_epoch", acknowledged)


def void_nothing(monkeypatch):
    monkeypatch.setattr(ingest, "void_unfinished", lambda *_: None)


DEFECTS = {
    "limits": void_nothing,
    "limits and a queue": forget_what_waits,
    "an object that fails": fail_without_saying_so,
    "an object that failed and is skipped": plan_under_any_number,
    "an object that fails and is put again": void_nothing,
    "after_commit": never_say_what_is_due,
    "after_commit and an overwrite": delete_whatever_is_there,
    "after_commit and a retry": plan_under_any_number,
    "retract": plan_under_any_number,
    "retry": plan_under_any_number,
    "a queue": delete_messages_before_the_commit,
    "a queue that delivers twice": void_nothing,
}


@pytest.mark.parametrize("scene", SCENES)
def test_what_would_break_the_scene_is_found(simulated, scene):
    DEFECTS[scene](simulated)
    declared, start, programs = SCENES[scene]
    with pytest.raises(AssertionError):
        explored(*programs, start=start, declared=declared)
