"""The tables of a source as a value: ledger, rows and lock, and what Spark does to them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from pyspark.errors import AnalysisException

from dbt.adapters.mzs3.ledger.events import Phase
from dbt.adapters.mzs3.ledger.ledger_table import LedgerTable
from dbt.adapters.mzs3.ledger.relations import SourceRelations
from support.interleavings import Ask, Failed, Request

RELATIONS = SourceRelations("raw", "orders")
OLD, NEW = frozenset({("a", 1)}), frozenset({("a", 2), ("b", 1)})
"""What S3 had when the source was ingested before, and what it has now."""

Event = tuple[str, int, bool]
"""Which version of which object an event is of, and whether it hides the object's earlier rows."""
Written = list[tuple[int, str, Any]]
"""Events, each with the epoch and phase that it had when it was written."""
Partitions = frozenset[tuple[str, str, str]]
"""The ledger's partitions: epoch, phase, and the folder that has the events."""
DECISION: Event = ("c", 1, False)
DECIDED = "decided"
"""What a run-operation answers that has put the decision on record."""


class Events(tuple[Event, ...]):
    """Events, as far as the code under test looks at them."""

    __slots__ = ()
    columns = ()

    def limit(self, _: int) -> Events:
        return self

    def count(self) -> int:
        return len(self)


@dataclass(frozen=True)
class Catalog:
    """All there is of a source: the ledger's partitions by epoch and phase, each a folder; what is
    in folders; rows by epoch; who has the lock; where views start; what was ever visible; which
    tables these are, and whether the source has any since it was reset."""

    partitions: Partitions = frozenset()
    folders: frozenset[tuple[str, tuple[Any, ...]]] = frozenset()
    rows: frozenset[tuple[Any, ...]] = frozenset()
    holder: str = ""
    since: int = 0
    was_new: bool = False
    generation: int = 1
    is_made: bool = True
    pin: str | None = None
    """What the table of rows pins; empty where there is none. None where nobody looks at it."""
    marks: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    """Epochs whose rows were read by another definition than the table pins."""

    def events(self, since: int = 0) -> Written:
        """Every event that a reader finds who starts there."""
        return self.events_of(self.listed(since))

    def listed(self, since: int) -> Partitions:
        """The partitions that a reader lists who starts there."""
        return frozenset(one for one in self.partitions if int(one[0]) >= since)

    def events_of(self, partitions: Partitions) -> Written:
        """What is in partitions that were listed, as long as it is there."""
        content = dict(self.folders)
        found: Written = []
        for number, phase, folder in partitions:
            for event in content.get(folder, ()):
                found.append(event if phase == Phase.SNAPSHOT else (int(number), phase, event))
        return found

    def committed(self) -> tuple[frozenset[int], int]:
        """What a reader's first look at the ledger finds."""
        return committed_in(self.events(self.since))

    def noted(self) -> set[Event]:
        """The decisions on record that count."""
        events = self.events(self.since)
        void = {number for number, phase, _ in events if phase == Phase.VOID}
        return {
            event for number, phase, event in events if phase == Phase.NOTE and number not in void
        }

    def hiding(self) -> frozenset[tuple[str, int]]:
        """What a reader's second look at the ledger finds."""
        return hiding_in(self.events(self.since))

    def visible(self) -> list[tuple[str, int]]:
        """What a reader sees for whom the world stands still."""
        return seen(self.committed(), self.hiding(), self.rows)


def committed_in(events: Written) -> tuple[frozenset[int], int]:
    """The committed epochs, and the last one of which anything counts."""
    void = {number for number, phase, _ in events if phase == Phase.VOID}
    known = {number for number, phase, _ in events if phase == Phase.COMMIT}
    noted = {number for number, phase, _ in events if phase == Phase.NOTE}
    return frozenset(known - void), max((known | noted) - void, default=0)


def hiding_in(events: Written) -> frozenset[tuple[str, int]]:
    """Which objects have their rows hidden, of epochs before which one."""
    decided = (Phase.COMMIT, Phase.NOTE)
    return frozenset(
        (event[0], number) for number, phase, event in events if phase in decided and event[2]
    )


def seen(
    committed: tuple[frozenset[int], int],
    hiding: frozenset[tuple[str, int]],
    rows: frozenset[tuple[Any, ...]],
) -> list[tuple[str, int]]:
    """The rows that the view shows, from what its three reads found."""
    epochs, upto = committed
    return sorted(
        (name, version)
        for number, name, version, *_ in rows
        if int(number) in epochs
        and not any(one == name and int(number) < n <= upto for one, n in hiding)
    )


@cache
def failed(text: str) -> Failed:
    """One answer for each text, as two errors of Spark's never look the same."""
    return Failed(AnalysisException(text))


GONE = failed("FAILED_READ_FILE.FILE_NOT_EXIST")
READS = (
    *("epochs", "folder", "read", "rows", "written", "holder", "look", "pinned", "marks"),
    *("since_now", "list", "open", "open_rows"),
)


class Metastore:
    """What each request makes of the catalog; what Spark writes is all there or not at all."""

    refused = failed("no connection")
    lost = failed("timed out")

    def is_private(self, request: Request) -> bool:
        """A folder of a name of its own is nothing to anybody before it is made a partition."""
        return request[0] == "stage"

    def changes(self, request: Request) -> bool:
        return request[0] not in READS

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
            if number in numbers and (number != snapshot or phase == Phase.SNAPSHOT)
        )
        return state, tuple(sorted(state.events_of(wanted), key=repr))

    def _fetch(self, state: Catalog, number: str, events: Any, by: str) -> tuple[Catalog, Any]:
        if state.pin == "":
            return state, failed("TABLE_OR_VIEW_NOT_FOUND")
        others = state.others
        if state.pin is not None and by != state.pin:
            others |= {number}
        new = {(number, name, version) for name, version, _ in events}
        return replace(state, rows=state.rows | new, others=others), True

    def _pinned(self, state: Catalog) -> tuple[Catalog, Any]:
        return state, state.pin

    def _drop_table(self, state: Catalog) -> tuple[Catalog, Any]:
        return replace(state, pin="", rows=frozenset(), others=frozenset()), True

    def _make_table(self, state: Catalog, pin: str) -> tuple[Catalog, Any]:
        return (state if state.pin else replace(state, pin=pin)), True

    def _mark(self, state: Catalog, token: str) -> tuple[Catalog, Any]:
        return replace(state, marks=state.marks | {token}), True

    def _marks(self, state: Catalog) -> tuple[Catalog, Any]:
        return state, tuple(sorted(state.marks))

    def _drop_mark(self, state: Catalog, token: str) -> tuple[Catalog, Any]:
        return replace(state, marks=state.marks - {token}), True

    def _rows(self, state: Catalog, number: str) -> tuple[Catalog, Any]:
        return state, tuple(sorted(row[:3] for row in state.rows if row[0] == number))

    def _written(self, state: Catalog) -> tuple[Catalog, Any]:
        return state, frozenset(row[0] for row in state.rows)

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
        if not state.is_made:
            return state, failed("TABLE_OR_VIEW_NOT_FOUND")
        return replace(state, since=number), True

    def _make(self, state: Catalog) -> tuple[Catalog, Any]:
        if not state.is_made:
            state = replace(state, is_made=True, generation=state.generation + 1)
        return state, state.generation

    def _reset(self, state: Catalog, token: str) -> tuple[Catalog, Any]:
        """A reset in one step, while it has the lock; folders are below the tables."""
        if state.holder != token:
            return state, failed("the lock is lost")
        return Catalog(holder=token, generation=state.generation, is_made=False), True

    def _look(self, state: Catalog, what: str) -> tuple[Catalog, Any]:
        found = {"committed": state.committed, "hiding": state.hiding, "rows": lambda: state.rows}
        return state, found[what]()

    def _since_now(self, state: Catalog) -> tuple[Catalog, Any]:
        """The view's text, by which a query goes from then on."""
        return state, state.since

    def _list(self, state: Catalog, since: int) -> tuple[Catalog, Any]:
        return state, state.listed(since)

    def _open(self, state: Catalog, partitions: Partitions) -> tuple[Catalog, Any]:
        """What is in the ledger's files that a query has listed."""
        there = {folder for folder, _ in state.folders}
        if any(one not in there for *_, one in partitions if not one.startswith("nothing-")):
            return state, GONE
        return state, tuple(sorted(state.events_of(partitions), key=repr))

    def _open_rows(self, state: Catalog, rows: frozenset[Any]) -> tuple[Catalog, Any]:
        return state, (rows if rows <= state.rows else GONE)


class Transactions(Metastore):
    """Tables of a format with transactions, which another generation of the source does not have:
    rows are appended, whoever appends them, and what was staged is no file of theirs."""

    def is_private(self, request: Request) -> bool:
        return super().is_private(_bare(request))

    def changes(self, request: Request) -> bool:
        return super().changes(_bare(request))

    def _of(self, state: Catalog, generation: int, *request: Any) -> tuple[Catalog, Any]:
        if generation != state.generation or not state.is_made:
            return state, failed("TABLE_OR_VIEW_NOT_FOUND")
        return getattr(self, f"_{request[0]}")(state, *request[1:])

    def _fetch(self, state: Catalog, number: str, events: Any, by: str) -> tuple[Catalog, Any]:
        copy = sum(row[0] == number and row[3][0] == by for row in state.rows)
        new = {(number, name, version, (by, copy)) for name, version, _ in events}
        return replace(state, rows=state.rows | new), True

    def _close(self, state: Catalog, number: str, phase: str) -> tuple[Catalog, Any]:
        """What closes the commit makes the epoch void, in the same step."""
        if self._folder(state, number, phase)[1] is not None:
            return state, failed("ConcurrentTransactionException")
        for of in (phase, Phase.VOID) if phase == Phase.COMMIT else (phase,):
            folder = f"nothing-{number}-{of}"
            state = self._stage(state, folder, ((None, 0, False),))[0]
            there = {one for one in state.partitions if one[:2] != (number, of)}
            state = replace(state, partitions=frozenset({*there, (number, of, folder)}))
        return state, True

    def _reset(self, state: Catalog, token: str) -> tuple[Catalog, Any]:
        after, answer = super()._reset(state, token)
        return (replace(after, folders=state.folders) if after is not state else after), answer


def _bare(request: Request) -> Request:
    return request[2:] if request[0] == "of" else request


class SimulatedLedgerTable(LedgerTable):
    """A `LedgerTable`; what takes the place of the session is `ask`."""

    def __init__(self, ask: Ask, _: SourceRelations) -> None:
        self._ask = ask
        self._staged = itertools.count()

    def epochs(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for number, phase in self._ask("epochs"):
            found.setdefault(number, set()).add(phase)
        return found

    def stage(self, number: str, events: Any, *, fits_driver: bool = False) -> str:
        folder = f"{self._ask.name}-{number}-{next(self._staged)}"  # type: ignore[attr-defined]
        self._ask("stage", folder, tuple(events))
        return folder

    def add(self, number: str, phase: str, folder: str) -> None:
        self._ask("add", number, phase, folder)

    def folder(self, number: str, phase: str) -> Any:
        return self._ask("folder", number, phase)

    def drop(self, partitions: list[tuple[str, str]]) -> None:
        self._ask("drop", frozenset(partitions))


class SimulatedTransactions(SimulatedLedgerTable):
    """One of a format with transactions."""

    def add(self, number: str, phase: str, folder: str) -> None:
        if folder.startswith("nothing-"):
            self._ask("close", number, phase)
        else:
            super().add(number, phase, folder)


MARK = (0, Phase.SNAPSHOT, ())
"""What every snapshot has."""


def ingested(epochs: int = 1) -> Catalog:
    """A source that has ingested what S3 had; with as many epochs before that void."""
    state = Catalog()
    store = Metastore()
    event = (("a", 1, False),)
    for number in range(1, epochs + 1):
        state, _ = store.apply(state, 9, ("insert", str(number), Phase.PLAN, event))
        if number < epochs:
            state, _ = store.apply(state, 9, ("insert", str(number), Phase.VOID, event))
    state, _ = store.apply(state, 9, ("fetch", str(epochs), event, "before"))
    state, _ = store.apply(state, 9, ("insert", str(epochs), Phase.COMMIT, event))
    return state


def planned_only() -> Catalog:
    """A source that has ingested, and of which a run died when it had planned."""
    return Metastore().apply(ingested(), 9, ("insert", "2", Phase.PLAN, (("a", 2, True),)))[0]


def failed_before() -> Catalog:
    """A source that has ingested, and of which a run has failed at an object after that."""
    planned, wrong = (("a", 2, True), ("b", 13, False)), (("b", 13, False),)
    state, store = ingested(), Metastore()
    state, _ = store.apply(state, 9, ("insert", "2", Phase.PLAN, planned))
    return store.apply(state, 9, ("insert", "2", Phase.FAILED, wrong))[0]


def fetched_only() -> Catalog:
    """A source that has ingested, and of which a run died between its rows and their commit."""
    taken = (("a", 2, True), ("b", 1, False))
    state, store = ingested(), Metastore()
    state, _ = store.apply(state, 9, ("insert", "2", Phase.PLAN, taken))
    return store.apply(state, 9, ("fetch", "2", taken, "dead"))[0]


def never_committed() -> Catalog:
    """A source whose first run died when it had planned."""
    state = Catalog(pin="dead")
    return Metastore().apply(state, 9, ("insert", "1", Phase.PLAN, (("a", 1, False),)))[0]


def compacted() -> Catalog:
    """A source that was compacted after what it has ingested, and has to be again."""
    state, store = ingested(), Metastore()
    copies = ((1, Phase.COMMIT, ("a", 1, False)), MARK)
    state, _ = store.apply(state, 9, ("insert", "2", Phase.SNAPSHOT, copies))
    for number in ("3", "4", "5"):
        state, _ = store.apply(state, 9, ("insert", number, Phase.VOID, (("a", 1, False),)))
    return replace(state, since=2)
