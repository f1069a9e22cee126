"""Every order in which first runs of a source can make its tables anew, with faults.

Each run finds another header, and pins it. What one has committed stays, in a table that is as
that run has read it, whatever another one that has lost the lock still does.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from support.interleavings import Exploration, run_alone
from support.source.catalog import NEW, Catalog, Metastore, never_committed
from support.source.simulated import first_run_of, simulate, simulate_pinning, unlocking

from dbt.adapters.mzs3.ledger.lease import SourceLock
from dbt.adapters.mzs3.source import pinning

A, B = first_run_of("A"), first_run_of("B")


@pytest.fixture
def simulated(monkeypatch):
    simulate(monkeypatch)
    simulate_pinning(monkeypatch)
    return monkeypatch


def check_state(state: Catalog) -> None:
    visible = state.visible()
    assert visible in ([], sorted(NEW)), f"a reader sees {visible}"
    assert not state.was_new or visible == sorted(NEW), "what was committed is gone"
    committed = {str(number) for number in state.committed()[0]}
    assert committed.isdisjoint(state.others), "rows are not as their table is pinned"


def check_end(state: Catalog, outcomes: tuple[Any, ...]) -> None:
    for outcome in outcomes:
        assert not isinstance(outcome, (AssertionError, TypeError, AttributeError)), outcome
        if getattr(outcome, "objects", 0):
            assert state.visible() == sorted(NEW), "a run said that it committed"
    # The user has seen to it that all runs are gone.
    after = alone(replace(state, marks=frozenset()))
    assert after.visible() == sorted(NEW), "the next run does not get the source going"


def alone(state: Catalog) -> Catalog:
    after, outcome = run_alone(first_run_of("next"), Metastore(), state)
    assert not isinstance(outcome, Exception), outcome
    check_state(after)
    return after


def explored(*programs: Any, faults: int, switches: int | None = None) -> int:
    exploration = Exploration(programs, Metastore(), never_committed(), check_state, check_end)
    found = exploration.exhaustively(faults, switches)
    print(found)
    return found.orders


def test_what_is_committed_first_is_pinned_in_every_order(simulated):
    assert explored(A, B, faults=0) > 1_000


def test_a_run_that_loses_its_lock_drops_nothing_that_another_one_has_made(simulated):
    assert explored(A, B, unlocking, faults=0, switches=2) > 1_000


def test_a_first_run_that_dies_anywhere_is_made_good(simulated):
    assert explored(A, faults=1) > 20


@pytest.mark.slow
def test_two_first_runs_of_which_one_dies_anywhere_are_made_good(simulated):
    assert explored(A, B, faults=1, switches=2) > 1_000


def drop_without_saying_so(monkeypatch):
    @contextmanager
    def dropping_tables(lock):
        lock.require()
        yield

    monkeypatch.setattr(SourceLock, "dropping_tables", dropping_tables)


def look_for_nobody(monkeypatch):
    monkeypatch.setattr(SourceLock, "require_no_pending_drops", lambda _: None)


def close_nothing(monkeypatch):
    monkeypatch.setattr(pinning, "void_unfinished", lambda *_: None)


@pytest.mark.parametrize("defect", [drop_without_saying_so, look_for_nobody, close_nothing])
def test_what_would_break_a_first_run_is_found(simulated, defect):
    defect(simulated)
    with pytest.raises(AssertionError):
        explored(A, B, faults=0)
