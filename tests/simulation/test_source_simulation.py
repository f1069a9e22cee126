"""Every order in which runs of a source can reach its ledger, its rows and its lock, with faults.

The code of a run is the real one: the pass, what the ledger writes, the lock, compaction. In
Spark's place is a catalog that is a value. Clocks say nothing: the number of every epoch is the
least that the ledger allows, and a lock is expired whenever another run looks at it twice.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from interleavings import Ask, Exploration, Failed, Request
from pyspark.errors import AnalysisException

from dbt.adapters.mzs3.csv_source import compaction, epoch, ledger, ledger_table, lock
from dbt.adapters.mzs3.csv_source.epoch import Pass
from dbt.adapters.mzs3.csv_source.events import COMMIT, NOTE, PLAN, SNAPSHOT, VOID
from dbt.adapters.mzs3.csv_source.fetch import Fetched
from dbt.adapters.mzs3.csv_source.ledger import (
    Ledger,
    current_epochs,
    latest_snapshot,
    next_epoch,
    unfinished_epochs,
)
from dbt.adapters.mzs3.csv_source.lock import LEASE_S, Holder, SourceLock
from dbt.adapters.mzs3.csv_source.lock_table import Owner
from dbt.adapters.mzs3.csv_source.relations import SourceRelations
from dbt.adapters.mzs3.csv_source.together import Cancellation
from dbt.adapters.mzs3.errors import SourceError

RELATIONS = SourceRelations("raw", "orders")
OLD, NEW = frozenset({("a", 1)}), frozenset({("a", 2), ("b", 1)})
"""What S3 had when the source was ingested before, and what it has now."""

Event = tuple[str, int, bool]
"""Which version of which object an event is of, and whether it hides the object's earlier rows."""
DECISION: Event = ("c", 1, False)
DECIDED = "decided"
"""What a run-operation answers that has put the decision on record."""


class Events(tuple[Event, ...]):
    """Events, as far as the code under test looks at them."""

    __slots__ = ()
    columns = ()

    def limit(self, _: int) -> Events:
        return self


@dataclass(frozen=True)
class Catalog:
    """All there is of a source: the ledger's partitions by epoch and phase, each a folder; what is
    in folders; rows by epoch; who has the lock; where views start; what was ever visible."""

    partitions: frozenset[tuple[str, str, str]] = frozenset()
    folders: frozenset[tuple[str, tuple[Any, ...]]] = frozenset()
    rows: frozenset[tuple[str, str, int]] = frozenset()
    holder: str = ""
    since: int = 0
    was_new: bool = False

    def events(self, since: int = 0) -> list[tuple[int, str, Any]]:
        """Every event with the epoch and phase that it had when it was written."""
        content = dict(self.folders)
        found: list[tuple[int, str, Any]] = []
        for number, phase, folder in self.partitions:
            if int(number) < since:
                continue
            for event in content.get(folder, ()):
                found.append(event if phase == SNAPSHOT else (int(number), phase, event))
        return found

    def committed(self) -> tuple[frozenset[int], int]:
        """What a reader's first look at the ledger finds."""
        events = self.events(self.since)
        void = {number for number, phase, _ in events if phase == VOID}
        known = {number for number, phase, _ in events if phase == COMMIT}
        return frozenset(known - void), max(known - void, default=0)

    def noted(self) -> set[Event]:
        """The decisions on record that count."""
        events = self.events(self.since)
        void = {number for number, phase, _ in events if phase == VOID}
        return {event for number, phase, event in events if phase == NOTE and number not in void}

    def hiding(self) -> frozenset[tuple[str, int]]:
        """What a reader's second look at the ledger finds."""
        return frozenset(
            (event[0], number)
            for number, phase, event in self.events(self.since)
            if phase == COMMIT and event[2]
        )

    def visible(self) -> list[tuple[str, int]]:
        """What a reader sees for whom the world stands still."""
        return seen(self.committed(), self.hiding(), self.rows)


def seen(
    committed: tuple[frozenset[int], int],
    hiding: frozenset[tuple[str, int]],
    rows: frozenset[tuple[str, str, int]],
) -> list[tuple[str, int]]:
    """The rows that the view shows, from what its three reads found."""
    epochs, upto = committed
    return sorted(
        (name, version)
        for number, name, version in rows
        if int(number) in epochs
        and not any(one == name and int(number) < n <= upto for one, n in hiding)
    )


def failed(text: str) -> Failed:
    return Failed(AnalysisException(text))


class Metastore:
    """What each request makes of the catalog; what Spark writes is all there or not at all."""

    refused = failed("no connection")
    lost = failed("timed out")

    def is_private(self, request: Request) -> bool:
        """A folder of a name of its own is nothing to anybody before it is made a partition."""
        return request[0] == "stage"

    def changes(self, request: Request) -> bool:
        return request[0] not in ("epochs", "folder", "read", "rows", "written", "holder", "look")

    def apply(self, state: Catalog, actor: int, request: Request) -> tuple[Catalog, Any]:
        action, *arguments = request
        after, answer = getattr(self, f"_{action}")(state, *arguments)
        if after is not state and not after.was_new and frozenset(after.visible()) == NEW:
            after = replace(after, was_new=True)
        return after, answer

    def _epochs(self, state: Catalog) -> tuple[Catalog, Any]:
        return state, frozenset((number, phase) for number, phase, _ in state.partitions)

    def _folder(self, state: Catalog, number: str, phase: str) -> tuple[Catalog, Any]:
        found = {(n, p): folder for n, p, folder in state.partitions}
        return state, found.get((number, phase))

    def _stage(self, state: Catalog, folder: str, events: Any) -> tuple[Catalog, Any]:
        return replace(state, folders=state.folders | {(folder, events)}), True

    def _add(self, state: Catalog, number: str, phase: str, folder: str) -> tuple[Catalog, Any]:
        if self._folder(state, number, phase)[1] is not None:
            return state, failed("PARTITIONS_ALREADY_EXIST")
        return replace(state, partitions=state.partitions | {(number, phase, folder)}), True

    def _insert(self, state: Catalog, number: str, phase: str, events: Any) -> tuple[Catalog, Any]:
        after = self._stage(state, f"{number}-{phase}", events)[0]
        if self._folder(state, number, phase)[1] is not None:
            return after, True
        return self._add(after, number, phase, f"{number}-{phase}")

    def _drop(self, state: Catalog, gone: Any) -> tuple[Catalog, Any]:
        dropped = {one for one in state.partitions if one[:2] in gone}
        folders = {folder for _, _, folder in dropped}
        left = frozenset(one for one in state.folders if one[0] not in folders)
        return replace(state, partitions=state.partitions - dropped, folders=left), True

    def _read(self, state: Catalog, numbers: Any, snapshot: str) -> tuple[Catalog, Any]:
        wanted = frozenset(
            (number, phase, folder)
            for number, phase, folder in state.partitions
            if number in numbers and (number != snapshot or phase == SNAPSHOT)
        )
        return state, tuple(sorted(replace(state, partitions=wanted).events(), key=repr))

    def _fetch(self, state: Catalog, number: str, events: Any) -> tuple[Catalog, Any]:
        new = {(number, name, version) for name, version, _ in events}
        return replace(state, rows=state.rows | new), True

    def _rows(self, state: Catalog, number: str) -> tuple[Catalog, Any]:
        return state, frozenset(row for row in state.rows if row[0] == number)

    def _written(self, state: Catalog) -> tuple[Catalog, Any]:
        return state, frozenset(number for number, _, _ in state.rows)

    def _drop_rows(self, state: Catalog, gone: Any) -> tuple[Catalog, Any]:
        return replace(state, rows=frozenset(r for r in state.rows if r[0] not in gone)), True

    def _lock(self, state: Catalog, token: str) -> tuple[Catalog, Any]:
        if state.holder:
            return state, failed("_LEGACY_ERROR_TEMP_3065 AlreadyExistsException")
        return replace(state, holder=token), True

    def _holder(self, state: Catalog) -> tuple[Catalog, Any]:
        return state, state.holder

    def _unlock(self, state: Catalog) -> tuple[Catalog, Any]:
        return replace(state, holder=""), True

    def _since(self, state: Catalog, number: int) -> tuple[Catalog, Any]:
        return replace(state, since=number), True

    def _look(self, state: Catalog, what: str) -> tuple[Catalog, Any]:
        found = {"committed": state.committed, "hiding": state.hiding, "rows": lambda: state.rows}
        return state, found[what]()


class SimulatedLedgerTable:
    """A `LedgerTable`; what takes the place of the session is `ask`."""

    def __init__(self, ask: Ask, _: SourceRelations) -> None:
        self._ask = ask
        self._staged = itertools.count()

    def epochs(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for number, phase in self._ask("epochs"):
            found.setdefault(number, set()).add(phase)
        return found

    def insert(self, number: str, phase: str, events: Any) -> None:
        self._ask("insert", number, phase, tuple(events))

    def stage(self, number: str, events: Any) -> str:
        folder = f"{self._ask.name}-{number}-{next(self._staged)}"  # type: ignore[attr-defined]
        self._ask("stage", folder, tuple(events))
        return folder

    def add(self, number: str, phase: str, folder: str) -> None:
        self._ask("add", number, phase, folder)

    def folder(self, number: str, phase: str) -> Any:
        return self._ask("folder", number, phase)

    def drop(self, partitions: list[tuple[str, str]]) -> None:
        self._ask("drop", frozenset(partitions))


class SimulatedLockTable:
    """A `LockTable` of which nobody ever sees the holder's beat."""

    def __init__(self, ask: Ask, _: SourceRelations) -> None:
        self._ask = ask

    def create(self, values: dict[str, str]) -> None:
        self._ask("lock", values["taken_as"])

    def read(self) -> dict[str, str] | None:
        token = self._ask("holder")
        return {"taken_as": token, **owner_of(token)} if token else None

    def drop(self) -> None:
        self._ask("unlock")

    def beat(self, token: str) -> None:
        return None

    def drop_beat(self, token: str) -> None:
        pass


def owner_of(token: str) -> dict[str, str]:
    return {"place": token, "boot": "", "pid": "7", "started": "", "host": token}


@dataclass
class Named:
    """The `ask` of one run, which has a name of its own."""

    ask: Ask
    name: str

    def __call__(self, *request: Any) -> Any:
        return self.ask(*request)


CLOCK = SimpleNamespace(now=0)
"""Of the host of the run whose code is running."""


class Unwaiting(Cancellation):
    """Time passes without anybody waiting for it."""

    def wait(self, seconds: float) -> None:
        pass


class Unstarted(threading.Thread):
    """The holder's thread, which would only renew the lock."""

    def start(self) -> None:
        pass

    def join(self, timeout: float | None = None) -> None:
        pass


def locked(named: Named) -> SourceLock:
    """The lock of the source, for one run."""
    ticks = itertools.count(step=LEASE_S)
    taken = SourceLock(
        named, RELATIONS, "lake.orders", wait_s=9 * LEASE_S, clock=lambda: next(ticks)
    )
    owner = owner_of(named.name)
    taken._me = Holder(named.name, Owner(**{**owner, "pid": 7}))
    taken._cancellation = Unwaiting("lake.orders")
    taken._thread = threading.Lock()  # runs of one process are kept apart elsewhere
    return taken


def run_of(name: str, clock: int = 0) -> Callable[[Ask], Any]:
    """A run that ingests the source, on a host whose clock says so: what S3 has and the ledger
    does not."""

    def program(ask: Ask) -> Any:
        CLOCK.now = clock
        named = Named(ask, name)
        with locked(named) as taken:
            return Pass(
                spark=named,
                definition=SimpleNamespace(name="lake.orders"),
                connection=None,
                relations=RELATIONS,
                spec=None,
                lock=taken,
                cancellation=taken._cancellation,
                on_step=lambda step: None,
            ).run()

    return program


def unlocking(ask: Ask) -> None:
    """Somebody takes the lock away."""
    table = SimulatedLockTable(ask, RELATIONS)
    holder = lock.holder_of(table)
    if holder is not None:
        lock.take_away(table, holder.token)


def noting(ask: Ask, events: Events, *, compacts: bool) -> None:
    """A run that puts these on record, and may compact."""
    CLOCK.now = 0
    named = Named(ask, "D")
    with locked(named) as taken:
        made = Ledger(named, RELATIONS, taken)
        for dead in unfinished_epochs(made.epochs()):
            made.write_void(dead)
        made.write_note(next_epoch(made.epochs()), events)
        if compacts:
            compaction.compact(named, RELATIONS, made, require_lock=taken.require)
        taken.require()


def compacting(ask: Ask) -> None:
    """A run that compacts, and has nothing to say."""
    noting(ask, Events(), compacts=True)


def compacting_twice(ask: Ask) -> None:
    """Two runs, one after the other: the second drops what the first had closed."""
    compacting(ask)
    compacting(ask)


def deciding(ask: Ask) -> str:
    """A run-operation: what it put on record is there to stay."""
    noting(ask, Events([DECISION]), compacts=False)
    return DECIDED


def reading(ask: Ask) -> Any:
    """A query on the source, which makes its three reads at three moments."""
    committed = ask("look", "committed")
    hiding = ask("look", "hiding")
    return seen(committed, hiding, ask("look", "rows"))


def read_events(made: Ledger) -> list[tuple[int, str, Any]]:
    """What a run goes by: the epochs that it knows of, as their files are now."""
    epochs = made.epochs()
    latest = latest_snapshot(epochs) or ""
    names = [e for e in current_epochs(epochs) if VOID not in epochs[e] or e == latest]
    return list(made._spark("read", frozenset(names), latest))


@contextmanager
def new_objects(_: Any, __: Any, ___: Any, made: Ledger, ____: Any) -> Iterator[Any]:
    events = read_events(made)
    latest: dict[str, tuple[int, int]] = {}
    for number, phase, event in events:
        if phase == COMMIT:
            latest[event[0]] = max(latest.get(event[0], (0, 0)), (number, event[1]))
    taken = Events(
        (name, version, name in latest)
        for name, version in sorted(NEW)
        if latest.get(name, (0, 0))[1] != version
    )
    yield SimpleNamespace(
        refusal=None,
        notes=None,
        full_since=None,
        waiting_objects=0,
        waiting_bytes=0,
        objects=len(taken),
        bytes=len(taken),
        frame=taken,
    )


@contextmanager
def counted_rows(spark: Any, _: Any, __: Any, number: str, plan: Any, *___: Any) -> Iterator[Any]:
    if spark("rows", number) != frozenset((number, name, version) for name, version, _ in plan):
        raise SourceError("rows are missing, or there twice")
    yield plan, Fetched(len(plan), len(plan))


def record_failure(_: Any, made: Ledger, number: str, plan: Any, __: str) -> None:
    made.write_failed(number, plan, Anything())


MARK = (0, SNAPSHOT, ())
"""What every snapshot has."""


def kept(_: Any, made: Ledger, __: Any) -> Any:
    events = read_events(made)
    hidden: dict[str, int] = {}
    for number, phase, event in events:
        if phase == COMMIT and event[2]:
            hidden[event[0]] = max(hidden.get(event[0], 0), number)
    voids = {one for one in events if one[1] == VOID}
    for number, phases in made.epochs().items():
        if VOID in phases:
            voids.add((int(number), VOID, ()))
    visible = {
        (number, phase, event)
        for number, phase, event in events
        if phase == NOTE or (phase == COMMIT and number >= hidden.get(event[0], 0))
    }
    return Events(sorted({*visible, *voids, MARK}, key=repr))


def visible_in(made: Ledger, snapshot: str) -> set[str] | None:
    copies = made._spark("read", frozenset({snapshot}), snapshot)
    if MARK not in copies:
        return None
    return {str(number) for number, phase, _ in copies if phase == COMMIT}


class Anything:
    """Spark's functions on columns, of which nothing is asked."""

    def __getattr__(self, _: str) -> Anything:
        return self

    def __call__(self, *_: Any, **__: Any) -> Anything:
        return self


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Everything that asks Spark asks the catalog."""
    patch = monkeypatch.setattr
    patch(ledger, "LedgerTable", SimulatedLedgerTable)
    patch(ledger, "_framed", lambda events, given: events)
    patch(ledger, "add_partition", lambda *_: None)  # of rows that nobody sees
    patch(ledger, "F", Anything())
    patch(ledger.time, "time_ns", lambda: CLOCK.now * 1_000_000)
    patch(ledger_table, "uuid", SimpleNamespace(uuid4=lambda: SimpleNamespace(hex="")))
    patch(Ledger, "plan", lambda made, number: Events(planned(made, number)))
    patch(lock, "LockTable", SimulatedLockTable)
    patch(lock, "_host_guard", lambda name: nullcontext(False))
    patch(lock, "current_owner", lambda: Owner("", "", 0, "", ""))
    patch(lock.threading, "Thread", Unstarted)
    patch(epoch, "new_objects", new_objects)
    patch(epoch, "counted_rows", counted_rows)
    patch(
        Pass, "_fetch", lambda this, number, plan, batch: this.spark("fetch", number, tuple(plan))
    )
    patch(Pass, "_record_failure", record_failure)
    patch(Pass, "_acts_after_commit", False)
    patch(compaction, "COMPACT_AFTER", 3)
    patch(compaction, "_kept", kept)
    patch(compaction, "_visible_in", visible_in)
    patch(compaction, "_written_epochs", lambda spark, _: sorted(spark("written")))
    patch(compaction, "_drop_epochs", lambda spark, _, gone: spark("drop_rows", frozenset(gone)))
    patch(compaction, "show_since", lambda spark, _, number: spark("since", int(number)))
    alone.cache_clear()
    return monkeypatch


def planned(made: Ledger, number: str) -> list[Event]:
    found = made._spark("read", frozenset({number}), "")
    return [event for _, phase, event in found if phase == PLAN]


def ingested(epochs: int = 1) -> Catalog:
    """A source that has ingested what S3 had; with as many epochs before that void."""
    state = Catalog()
    store = Metastore()
    event = (("a", 1, False),)
    for number in range(1, epochs + 1):
        state, _ = store.apply(state, 9, ("insert", str(number), PLAN, event))
        if number < epochs:
            state, _ = store.apply(state, 9, ("insert", str(number), VOID, event))
    state, _ = store.apply(state, 9, ("fetch", str(epochs), event))
    state, _ = store.apply(state, 9, ("insert", str(epochs), COMMIT, event))
    return state


def planned_only() -> Catalog:
    """A source that has ingested, and of which a run died when it had planned."""
    return Metastore().apply(ingested(), 9, ("insert", "2", PLAN, (("a", 2, True),)))[0]


def compacted() -> Catalog:
    """A source that was compacted after what it has ingested, and has to be again."""
    state, store = ingested(), Metastore()
    copies = ((1, COMMIT, ("a", 1, False)), MARK)
    state, _ = store.apply(state, 9, ("insert", "2", SNAPSHOT, copies))
    for number in ("3", "4", "5"):
        state, _ = store.apply(state, 9, ("insert", number, VOID, (("a", 1, False),)))
    return replace(state, since=2)


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
    known = {number for number, phase, _ in after.events() if phase in (COMMIT, VOID)}
    ended = {int(number) for number, phase, _ in after.partitions if phase == COMMIT}
    assert ended <= known, "an epoch looks committed that was closed"
    assert after.visible() == sorted(NEW), "the next run does not get the source going"
    assert alone(after, "last").rows == after.rows, "objects are taken twice"


@cache
def alone(state: Catalog, name: str) -> Catalog:
    """What a run makes of the source while nobody else does anything."""
    store = Metastore()

    def ask(*request: Any) -> Any:
        nonlocal state
        state, answer = store.apply(state, 9, request)
        if isinstance(answer, Failed):
            raise answer.error
        return answer

    run_of(name)(ask)
    check_state(state)
    return state


def explored(
    *programs: Callable[[Ask], Any], start: Catalog, faults: int, switches: int | None = None
) -> int:
    exploration = Exploration(programs, Metastore(), start, check_state, check_end)
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


def void_without_asking(monkeypatch):
    monkeypatch.setattr(ledger, "close", lambda table, number, phase: True)


def snapshot_under_a_number_of_its_own(monkeypatch):
    write = Ledger.write_snapshot

    def later(made, _, events):
        write(made, next_epoch(made.epochs()), events)

    monkeypatch.setattr(Ledger, "write_snapshot", later)


def never_look_at_the_lock(monkeypatch):
    monkeypatch.setattr(SourceLock, "require", lambda *_: None)


def read_without_a_bound(monkeypatch):
    bounded = seen

    def unbounded(committed, hiding, rows):
        return bounded((committed[0], 99), hiding, rows)

    monkeypatch.setitem(globals(), "seen", unbounded)


def go_by_a_snapshot_that_is_gone(monkeypatch):
    monkeypatch.setattr(
        compaction, "_visible_in", lambda made, snapshot: visible_in(made, snapshot) or set()
    )
    compact = compaction.compact
    monkeypatch.setattr(epoch, "compact", lambda *given, **_: compact(*given, require_lock=int))


def plan_under_any_number(monkeypatch):
    monkeypatch.setattr(epoch, "next_plan", next_epoch)


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
