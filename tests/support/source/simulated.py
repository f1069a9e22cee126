"""The real code of a source's runs, with a catalog that is a value in the place of Spark."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.ledger import compaction, epochs, lease, ledger, ledger_table, rows_table
from dbt.adapters.mzs3.ledger.epochs import current_epochs, latest, unfinished_epochs
from dbt.adapters.mzs3.ledger.events import Phase
from dbt.adapters.mzs3.ledger.lease import (
    LEASE_S,
    Cancellation,
    Holder,
    LockTable,
    Owner,
    SourceLock,
)
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.ledger.relations import EPOCH_COLUMN, SourceRelations
from dbt.adapters.mzs3.source import ingest, pinning
from dbt.adapters.mzs3.source.ingest import Pass
from dbt.adapters.mzs3.source.report import IngestReport
from dbt.adapters.mzs3.source.run import SourceRun
from dbt.adapters.mzs3.source.tables import SourceTables
from dbt.adapters.mzs3.spark.sql import PARQUET
from support.interleavings import Ask
from support.source import catalog as source_catalog
from support.source.catalog import (
    DECIDED,
    DECISION,
    MARK,
    NEW,
    RELATIONS,
    Event,
    Events,
    SimulatedLedgerTable,
    SimulatedTransactions,
)


class SimulatedLockTable(LockTable):
    """A `LockTable` of which nobody ever sees a renewal."""

    def __init__(self, ask: Ask, _: SourceRelations) -> None:
        self._ask = ask

    def create(self, holder: Holder) -> None:
        self._ask("lock", holder.token)

    def holder(self) -> Holder | None:
        token = self._ask("holder")
        return holder_of(token) if token else None

    def drop(self) -> None:
        self._ask("unlock")

    def last_renewal(self, token: str) -> None:
        return None

    def drop_renewals(self, token: str) -> None:
        pass

    def mark(self, holder: Holder) -> None:
        self._ask("mark", holder.token)

    def marks(self) -> list[Holder]:
        return [holder_of(token) for token in self._ask("marks")]

    def drop_mark(self, token: str) -> None:
        self._ask("drop_mark", token)


def holder_of(token: str) -> Holder:
    return Holder(token, Owner(place=token, boot="", pid=7, started="", host=token))


@dataclass
class Named:
    """The `ask` of one run, which has a name of its own."""

    ask: Ask
    name: str
    generation: int | None = None
    """Of the tables that it asks for by name, where they have one."""

    def __call__(self, *request: Any) -> Any:
        if self.generation is not None and request[0] not in ("lock", "holder", "unlock"):
            request = ("of", self.generation, *request)
        return self.ask(*request)


CLOCK = SimpleNamespace(now=0)
"""Of the host of the run whose code is running."""


HAS_TRANSACTIONS = SimpleNamespace(now=False)
"""Whether tables are of a format that has them, and named by their generation."""


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
        named,
        RELATIONS,
        "lake.orders",
        wait_s=9 * LEASE_S,
        cancellation=Unwaiting("lake.orders"),
        clock=lambda: next(ticks),
    )
    taken.holder = holder_of(named.name)
    taken._thread = threading.Lock()  # runs of one process are kept apart elsewhere
    return taken


def run_of(
    name: str, clock: int = 0, *, makes: bool = False, resets: bool = False
) -> Callable[[Ask], Any]:
    """A run that ingests the source, on a host whose clock says so: what S3 has and the ledger
    does not. It makes the source if it is not there, or resets it first and makes it anew."""

    def program(ask: Ask) -> Any:
        CLOCK.now = clock
        named = Named(ask, name)
        with locked(named) as taken:
            if resets:
                named("reset", name)
            if makes or resets:
                generation = named("make")
                named.generation = generation if HAS_TRANSACTIONS.now else None
            run = SourceRun(named, SimpleNamespace(name="lake.orders"), None)
            return Pass(run, None, Ledger(named, RELATIONS, taken)).ingest()

    return program


def first_run_of(name: str) -> Callable[[Ask], Any]:
    """A run of a source of which nothing is committed yet; what it finds is pinned as its name."""

    def program(ask: Ask) -> Any:
        CLOCK.now = 0
        named = Named(ask, name)
        with locked(named) as taken:
            run = SourceRun(named, SimpleNamespace(name="lake.orders", relations=RELATIONS), None)
            pinned = pinning.pin(run, None, taken)
            return Pass(run, pinned.definition.text, pinned.ledger).ingest()

    return program


@dataclass(frozen=True)
class SimulatedPin:
    """A `PinnedDefinition`."""

    text: str
    file_format: str = PARQUET


def read_tables(ask: Named, _: Any) -> SourceTables:
    pinned = ask("pinned")
    there = SimulatedPin(pinned) if pinned else None
    return SourceTables(there, RELATIONS, has_ledger=True, has_owner=True)


def make_relations(ask: Named, _: Any, pinned: SimulatedPin, __: Any) -> SourceRelations:
    ask("make_table", pinned.text)
    return RELATIONS


def simulate_pinning(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a first run asks Spark for its tables, it asks the catalog."""
    patch = monkeypatch.setattr
    patch(pinning, "read_tables", read_tables)
    patch(pinning, "purify_now", lambda run, *_: SimulatedPin(run.spark.name))
    patch(pinning, "require_agreement", lambda *_: None)
    patch(pinning, "require_format", lambda *_: None)
    patch(pinning, "drop_rows", lambda ask, *_: ask("drop_table"))
    patch(pinning, "make_relations", make_relations)
    patch(pinning, "lost_rows_error", lambda _: AssertionError("the table is lost"))
    patch(compaction, "COMPACT_AFTER", 99)


def unlocking(ask: Ask) -> None:
    """Somebody takes the lock away."""
    table = SimulatedLockTable(ask, RELATIONS)
    holder = table.holder()
    if holder is not None:
        table.drop_if_held_by(holder.token)


def noting(ask: Ask, events: Events, *, compacts: bool) -> None:
    """A run that puts these on record, and may compact."""
    CLOCK.now = 0
    named = Named(ask, "D")
    with locked(named) as taken:
        made = Ledger(named, RELATIONS, taken)
        for dead in unfinished_epochs(made.epochs()):
            made.write_void(dead)
        made.write_note(events)
        if compacts:
            compaction.compact(made)
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
    return source_catalog.seen(committed, hiding, ask("look", "rows"))


def querying(ask: Ask) -> Any:
    """A query that lists all files while it is planned, and opens them when it is run."""
    since = ask("since_now")
    listed, listed_later = ask("list", since), ask("list", since)
    rows = ask("look", "rows")
    committed = source_catalog.committed_in(ask("open", listed))
    hiding = source_catalog.hiding_in(ask("open", listed_later))
    return source_catalog.seen(committed, hiding, ask("open_rows", rows))


def querying_piecemeal(ask: Ask) -> Any:
    """A query of which Spark plans the scan of the rows once it has read what is committed."""
    since = ask("since_now")
    listed, listed_later = ask("list", since), ask("list", since)
    committed = source_catalog.committed_in(ask("open", listed))
    hiding = source_catalog.hiding_in(ask("open", listed_later))
    rows = ask("look", "rows")
    return source_catalog.seen(committed, hiding, ask("open_rows", rows))


def read_events(made: Ledger) -> list[tuple[int, str, Any]]:
    """What a run goes by: the epochs that it knows of, as their files are now."""
    epochs = made.epochs()
    snapshot = latest(Phase.SNAPSHOT, epochs) or ""
    names = [e for e in current_epochs(epochs) if Phase.VOID not in epochs[e] or e == snapshot]
    return list(made.spark("read", frozenset(names), snapshot))


@contextmanager
def new_objects(_: Any, made: Ledger, __: Any, *, least: int) -> Iterator[Any]:
    events = read_events(made)
    last: dict[str, tuple[int, int]] = {}
    for number, phase, event in events:
        if phase == Phase.COMMIT:
            last[event[0]] = max(last.get(event[0], (0, 0)), (number, event[1]))
    taken = Events(
        (name, version, name in last)
        for name, version in sorted(NEW)
        if last.get(name, (0, 0))[1] != version
    )
    yield SimpleNamespace(
        notes=None,
        full_since=None,
        waiting_objects=0,
        waiting_bytes=0,
        objects=len(taken),
        bytes=len(taken),
        on_driver=made.spark.name == "A",  # others read what they have planned
        frame=taken,
    )


@dataclass
class SimulatedRows:
    """The rows of an epoch, as `EpochRows`."""

    ledger: Ledger
    spec: Any
    epoch: str
    plan: Any
    objects: int
    size: int
    are_few = True

    def write(self) -> int:
        by = self.spec or self.ledger.spark.name
        self.ledger.spark("fetch", self.epoch, tuple(self.plan), by)
        return len(self.plan)

    @contextmanager
    def counted(self, _: int) -> Iterator[Any]:
        planned = tuple(sorted((self.epoch, name, version) for name, version, _ in self.plan))
        if self.ledger.spark("rows", self.epoch) != planned:
            raise SourceError("rows are missing, or there twice")
        yield self.plan, IngestReport("lake.orders", len(self.plan), len(self.plan))


def record_failure(this: Pass, rows: SimulatedRows, *_: str | None) -> None:
    this.ledger.write_failed(rows.epoch, rows.plan, Anything())


def kept(made: Ledger, _: Any) -> Any:
    events = read_events(made)
    hidden: dict[str, int] = {}
    for number, phase, event in events:
        if phase == Phase.COMMIT and event[2]:
            hidden[event[0]] = max(hidden.get(event[0], 0), number)
    voids = {one for one in events if one[1] == Phase.VOID}
    for number, phases in made.epochs().items():
        if Phase.VOID in phases:
            voids.add((int(number), Phase.VOID, ()))
    visible = {
        (number, phase, event)
        for number, phase, event in events
        if phase == Phase.NOTE or (phase == Phase.COMMIT and number >= hidden.get(event[0], 0))
    }
    return Events(sorted({*visible, *voids, MARK}, key=repr))


def visible_in(made: Ledger, snapshot: str) -> set[str] | None:
    copies = made.spark("read", frozenset({snapshot}), snapshot)
    if MARK not in copies:
        return None
    return {str(number) for number, phase, _ in copies if phase == Phase.COMMIT}


class Anything:
    """Spark's functions on columns, of which nothing is asked."""

    def __getattr__(self, _: str) -> Anything:
        return self

    def __call__(self, *_: Any, **__: Any) -> Anything:
        return self


def simulate(monkeypatch: pytest.MonkeyPatch, *, has_transactions: bool = False) -> None:
    """Everything that asks Spark asks the catalog."""
    patch = monkeypatch.setattr
    table = SimulatedTransactions if has_transactions else SimulatedLedgerTable
    patch(HAS_TRANSACTIONS, "now", has_transactions)
    patch(ledger, "ledger_table", table)
    patch(ledger, "with_all_columns", lambda events, given: events)
    patch(ledger, "rows_table", lambda *_: SimpleNamespace(register_partition=lambda _: None))
    patch(ledger, "F", Anything())
    patch(epochs.time, "time_ns", lambda: CLOCK.now * 1_000_000)
    patch(ledger_table, "uuid", SimpleNamespace(uuid4=lambda: SimpleNamespace(hex="")))
    patch(Ledger, "plan", lambda made, number: Events(planned(made, number)))
    patch(lease, "LockTable", SimulatedLockTable)
    patch(lease, "host_guard", lambda name: nullcontext(False))
    patch(lease, "current_owner", lambda: Owner("", "", 0, "", ""))
    patch(lease.threading, "Thread", Unstarted)
    patch(ingest, "new_objects", new_objects)
    patch(ingest, "EpochRows", SimulatedRows)
    patch(Pass, "record_failure", record_failure)
    patch(Pass, "acts_after_commit", False)
    patch(compaction, "COMPACT_AFTER", 3)
    patch(compaction, "KEEP_MS", -99)
    patch(compaction, "snapshot_events", kept)
    patch(compaction, "visible_epochs", visible_in)
    patch(rows_table, "list_partitions", lambda spark, _: [(e,) for e in sorted(spark("written"))])
    patch(rows_table, "drop_partitions", drop_rows)
    patch(compaction, "show_since", lambda spark, _, number: spark("since", int(number)))


def drop_rows(spark: Any, _: str, partitions: list[dict[str, str]]) -> None:
    spark("drop_rows", frozenset(one[EPOCH_COLUMN] for one in partitions))


def planned(made: Ledger, number: str) -> list[Event]:
    found = made.spark("read", frozenset({number}), "")
    return [event for _, phase, event in found if phase == Phase.PLAN]
