"""Every order in which runs of a source can reach its ledger, its rows and its lock, with faults.

The code of a run is the real one: the pass, what the ledger writes, the lock, compaction. In
Spark's place is a catalog that is a value. Clocks say nothing: the number of every epoch is the
least that the ledger allows, and a lock is expired whenever another run looks at it twice.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from support.interleavings import Ask, Exploration, run_alone
from support.source import catalog as source_catalog
from support.source.catalog import (
    DECIDED,
    DECISION,
    NEW,
    OLD,
    Catalog,
    Metastore,
    Transactions,
    compacted,
    fetched_only,
    ingested,
    planned_only,
)
from support.source.simulated import (
    HAS_TRANSACTIONS,
    compacting,
    compacting_twice,
    deciding,
    querying,
    querying_piecemeal,
    reading,
    run_of,
    simulate,
    unlocking,
    visible_in,
)

from dbt.adapters.mzs3.ledger import compaction
from dbt.adapters.mzs3.ledger.epochs import next_epoch
from dbt.adapters.mzs3.ledger.events import Phase
from dbt.adapters.mzs3.ledger.lease import SourceLock
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.ledger.ledger_table import LedgerTable
from dbt.adapters.mzs3.source import ingest


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    simulate(monkeypatch)
    alone.cache_clear()
    return monkeypatch


@pytest.fixture
def transactional(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    simulate(monkeypatch, has_transactions=True)
    alone.cache_clear()
    return monkeypatch


def check_state(state: Catalog) -> None:
    visible = state.visible()
    assert visible in (sorted(OLD), sorted(NEW)), f"a reader sees {visible}"
    assert not state.was_new or visible == sorted(NEW), "what was committed is gone"


def check_end(state: Catalog, outcomes: tuple[Any, ...]) -> None:
    for outcome in outcomes:
        assert not isinstance(outcome, (AssertionError, TypeError, AttributeError)), outcome
        if isinstance(outcome, list):
            assert outcome in (sorted(OLD), sorted(NEW)), f"a reader saw {outcome}"
        elif getattr(outcome, "objects", 0):
            assert state.visible() == sorted(NEW), "a run said that it committed"
    after = alone(state, "next")
    if DECIDED in outcomes:
        assert after.noted() == state.noted() == {DECISION}, "what was decided is gone"
    known = {number for number, phase, _ in after.events() if phase in (Phase.COMMIT, Phase.VOID)}
    ended = {int(number) for number, phase, _ in after.partitions if phase == Phase.COMMIT}
    assert ended <= known, "an epoch looks committed that was closed"
    assert after.visible() == sorted(NEW), "the next run does not get the source going"
    assert alone(after, "last").rows == after.rows, "objects are taken twice"


def check_any_state(state: Catalog) -> None:
    visible = state.visible()
    assert visible in ([], sorted(OLD), sorted(NEW)), f"a reader sees {visible}"


def check_end_of_resets(state: Catalog, outcomes: tuple[Any, ...]) -> None:
    for outcome in outcomes:
        assert not isinstance(outcome, (AssertionError, TypeError, AttributeError)), outcome
    after = alone(state, "next", LATER)
    assert after.visible() == sorted(NEW), "the next run does not get the source going"
    assert alone(after, "last", LATER).rows == after.rows, "objects are taken twice"


def store_now() -> Metastore:
    return Transactions() if HAS_TRANSACTIONS.now else Metastore()


@cache
def alone(state: Catalog, name: str, clock: int = 0) -> Catalog:
    """What a run makes of the source while nobody else does anything."""
    after, outcome = run_alone(run_of(name, clock, makes=True), store_now(), state)
    assert not isinstance(outcome, Exception), outcome
    check_state(after)
    return after


def explored(
    *programs: Callable[[Ask], Any],
    start: Catalog,
    faults: int,
    switches: int | None = None,
    resets: bool = False,
    at_end: Callable[[Catalog, tuple[Any, ...]], None] | None = None,
) -> int:
    check = check_any_state if resets else check_state
    at_end = at_end or (check_end_of_resets if resets else check_end)
    exploration = Exploration(programs, store_now(), start, check, at_end)
    found = exploration.exhaustively(faults, switches)
    print(found)
    return found.orders


A, B, AHEAD = run_of("A"), run_of("B"), run_of("C", clock=50)
CASES = {
    "two runs and a reader": ([A, B, reading], ingested(), 0),
    "two runs of hosts whose clocks differ": ([A, AHEAD, reading], ingested(), 0),
    "a run that loses its lock, and a reader": ([A, unlocking, reading], ingested(), 1),
    "two runs that compact, and a reader": ([A, B, reading], ingested(3), 0),
    "two runs that compact, and clocks that differ": ([A, AHEAD], ingested(3), 0),
}


@pytest.mark.parametrize("case", CASES)
def test_a_source_is_whole_in_every_order(simulated, case):
    programs, start, faults = CASES[case]
    assert explored(*programs, start=start, faults=faults) > 1_000_000


def test_a_source_keeps_its_rows_when_a_run_was_slow_to_compact(simulated):
    assert explored(A, compacting, reading, start=compacted(), faults=0) > 1_000_000


QUERIES = [querying, querying_piecemeal]


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_outlasts_a_compaction_after_it_was_planned(simulated, query):
    def check_query(state, outcomes):
        assert isinstance(outcomes[-1], list), f"the query failed: {outcomes[-1]}"
        check_end(state, outcomes)

    for programs, start, switches in (
        ([A, query], compacted(), None),
        ([A, compacting, query], ingested(), 1),
    ):
        found = explored(*programs, start=start, faults=0, switches=switches, at_end=check_query)
        assert found > 100


@pytest.mark.parametrize("switches", [1, pytest.param(2, marks=pytest.mark.long)])
@pytest.mark.parametrize("query", QUERIES)
def test_a_query_fails_or_is_whole_however_often_it_was_compacted(simulated, query, switches):
    """It may find the ledger's files gone, but no rows."""
    simulated.setattr(compaction, "KEEP_MS", 99)
    programs = A, compacting_twice, query
    assert explored(*programs, start=ingested(), faults=0, switches=switches) > 100


def test_a_query_would_miss_rows_that_are_dropped_at_once(simulated):
    programs = A, compacting_twice, querying_piecemeal
    with pytest.raises(AssertionError, match="a reader saw"):
        explored(*programs, start=ingested(), faults=0, switches=1)


@pytest.mark.slow
def test_rows_are_dropped_by_a_snapshot_that_is_old_enough(simulated):
    simulated.setattr(compaction, "KEEP_MS", 20)
    assert explored(A, AHEAD, reading, start=compacted(), faults=0) > 1_000


def test_a_decision_stays_whatever_a_run_plans_late(simulated):
    assert explored(A, deciding, start=ingested(), faults=0) > 1_000
    assert explored(AHEAD, deciding, start=ingested(), faults=0) > 1_000


def test_who_is_told_of_a_commit_has_committed(simulated):
    assert explored(A, compacting_twice, start=compacted(), faults=0, switches=2) > 1_000


def test_what_a_run_was_closing_when_it_died_is_closed_by_the_next(simulated):
    assert explored(A, start=planned_only(), faults=1) > 20


def test_a_source_is_whole_in_orders_by_chance_of_three_runs_with_faults(simulated):
    runs = [A, B, AHEAD, reading]
    exploration = Exploration(runs, Metastore(), ingested(2), check_state, check_end)
    print(exploration.at_random(100, most_faults=3, seed=14))


IN_TRANSACTIONS = {
    "two runs and a reader": ([A, B, reading], ingested(), 0),
    "a run that loses its lock, and a reader": ([A, unlocking, reading], ingested(), 1),
    "two runs that compact": ([A, B], ingested(3), 0),
    "a run after one that was killed between rows and commit": ([A, reading], fetched_only(), 1),
    "two runs after such a one": ([A, B], fetched_only(), 0),
}


@pytest.mark.parametrize("case", IN_TRANSACTIONS)
def test_a_source_is_whole_in_every_order_of_transactions(transactional, case):
    programs, start, faults = IN_TRANSACTIONS[case]
    assert explored(*programs, start=start, faults=faults) > 1_000


SLOW, SLOW_AND_AHEAD = run_of("A", makes=True), run_of("A", clock=50, makes=True)
RESETTING, LATER = run_of("R", resets=True), 100
RESETS = {
    "transactional, and a fault": ([SLOW, RESETTING], ingested(), 2),
    "transactional, and clocks that differ": ([SLOW_AND_AHEAD, RESETTING], ingested(), None),
    "transactional, while it compacts": ([SLOW, RESETTING], ingested(3), None),
    "transactional, while it closes": ([SLOW, RESETTING], planned_only(), None),
    # Whose tables and views have the same names again: there, what is late has an earlier number.
    "simulated": ([SLOW, run_of("R", LATER, resets=True)], ingested(), None),
    "simulated, while it compacts": ([SLOW, run_of("R", LATER, resets=True)], ingested(3), None),
}


@pytest.mark.parametrize("case", RESETS)
def test_what_comes_late_of_a_run_leaves_a_source_alone_that_was_reset(request, case):
    request.getfixturevalue(case.partition(",")[0])
    programs, start, switches = RESETS[case]
    faults = 0 if switches is None else 1
    assert explored(*programs, start=start, faults=faults, switches=switches, resets=True) > 1_000


def test_tables_that_keep_their_names_would_take_what_comes_late(transactional):
    def make(store, state):
        return replace(state, is_made=True), state.generation

    transactional.setattr(Transactions, "_make", make)
    with pytest.raises(AssertionError):
        explored(SLOW, RESETTING, start=ingested(), faults=0, resets=True)


def void_without_asking(monkeypatch):
    monkeypatch.setattr(LedgerTable, "close", lambda table, number, phase: True)


def snapshot_under_a_number_of_its_own(monkeypatch):
    write = Ledger.write_snapshot

    def later(made, _, events):
        write(made, next_epoch(made.epochs()), events)

    monkeypatch.setattr(Ledger, "write_snapshot", later)


def never_look_at_the_lock(monkeypatch):
    monkeypatch.setattr(SourceLock, "require", lambda *_: None)


def read_without_a_bound(monkeypatch):
    bounded = source_catalog.seen

    def unbounded(committed, hiding, rows):
        return bounded((committed[0], 99), hiding, rows)

    monkeypatch.setattr(source_catalog, "seen", unbounded)


def go_by_a_snapshot_that_is_gone(monkeypatch):
    monkeypatch.setattr(
        compaction, "visible_epochs", lambda made, snapshot: visible_in(made, snapshot) or set()
    )
    monkeypatch.setattr(ingest, "compact", compact_without_asking)


def compact_without_asking(made):
    unlocked = copy(made)
    unlocked._lock = None
    compaction.compact(unlocked)
    made._epochs = unlocked._epochs


def plan_under_any_number(monkeypatch):
    monkeypatch.setattr(ingest, "next_plan", next_epoch)


DEFECTS = {
    plan_under_any_number: ([A, deciding], ingested()),
    void_without_asking: ([A, B], ingested()),
    snapshot_under_a_number_of_its_own: ([A, AHEAD], ingested(3)),
    never_look_at_the_lock: ([A, AHEAD], ingested()),
    read_without_a_bound: ([A, reading], ingested()),
    go_by_a_snapshot_that_is_gone: ([A, compacting], compacted()),
}


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.__name__)
def test_what_would_break_a_source_is_found(simulated, defect):
    defect(simulated)
    programs, start = DEFECTS[defect]
    with pytest.raises(AssertionError):
        explored(*programs, start=start, faults=0)
