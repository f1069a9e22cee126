"""A simulated source over a bucket that changes, with a queue: what runs note, miss and delete.

The code of runs and of run-operations is the real one, but for what they have Spark compute: the
states of objects, and what is to be done about each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from dbt.adapters.mzs3.errors import ExecutorError, S3Error, SourceError
from dbt.adapters.mzs3.formats.read.object_error import GONE
from dbt.adapters.mzs3.ledger import compaction
from dbt.adapters.mzs3.ledger.events import Phase, State
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.source import after_commit, ingest
from dbt.adapters.mzs3.source.discovery import AfterAction, AfterCommit, Discovery
from dbt.adapters.mzs3.source.ingest import Pass
from dbt.adapters.mzs3.source.operations import object_actions
from dbt.adapters.mzs3.source.operations.object_actions import ObjectAction, act
from dbt.adapters.mzs3.source.queue import inbox
from dbt.adapters.mzs3.source.queue.inbox import Inbox
from dbt.adapters.mzs3.source.queue.messages import Kind
from dbt.adapters.mzs3.source.run import SourceRun
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.store import ListedObject
from support.interleavings import Ask, Request
from support.source.catalog import MARK, RELATIONS, Catalog, Events, Metastore
from support.source.sequences import Message
from support.source.simulated import (
    CLOCK,
    Anything,
    Named,
    SimulatedRows,
    locked,
    read_events,
    simulate,
)

LOCATION = S3Location("b", "orders/")
BAD = 13
"""The version of an object that can't be read."""


@dataclass(frozen=True)
class Lake(Catalog):
    """A source and what it is over: S3's objects, and those that are gone; the messages of its
    queue, each with the object it is about and whether a run has it; which epochs and rows were
    ever visible."""

    bucket: frozenset[tuple[str, int]] = frozenset()
    removed: frozenset[tuple[str, int]] = frozenset()
    queue: frozenset[tuple[str, bool]] = frozenset()
    epochs_shown: frozenset[int] = frozenset()
    rows_shown: frozenset[tuple[str, int]] = frozenset()

    def decided(self, state: str) -> dict[str, tuple[int, int]]:
        """Of which objects a note says so that counts: of which version, and in which epoch."""
        return {
            event[0]: (event[1], number)
            for number, phase, event in self.events(self.since)
            if phase == Phase.NOTE and event[3:] == (state,)
        }


class LakeStore(Metastore):
    """What each request makes of a lake."""

    def changes(self, request: Request) -> bool:
        return request[0] not in ("objects", "head") and super().changes(request)

    def apply(self, state: Catalog, actor: int, request: Request) -> tuple[Catalog, Any]:
        after, answer = super().apply(state, actor, request)
        assert isinstance(after, Lake)
        if after is not state:
            rows = after.rows_shown.union(after.visible())
            epochs = after.epochs_shown | after.committed()[0]
            if (rows, epochs) != (after.rows_shown, after.epochs_shown):
                after = replace(after, rows_shown=rows, epochs_shown=epochs)
        return after, answer

    def _fetch(self, state: Any, number: str, events: Any, by: str) -> tuple[Catalog, Any]:
        """Every object that can be read, and the first one that can't."""
        there = {one for one in state.bucket if one[1] != BAD}
        wrong = next((name for name, version, _ in events if (name, version) not in there), None)
        good = tuple(one for one in events if one[:2] in there)
        return super()._fetch(state, number, good, by)[0], wrong

    def _objects(self, state: Any) -> tuple[Catalog, Any]:
        return state, state.bucket

    def _head(self, state: Any, name: str) -> tuple[Catalog, Any]:
        return state, dict(state.bucket).get(name)

    def _put(self, state: Any, name: str, version: int) -> tuple[Catalog, Any]:
        others = {one for one in state.bucket if one[0] != name}
        told = state.queue | {(f"{name}{version}", False)}
        return replace(state, bucket=frozenset({*others, (name, version)}), queue=told), True

    def _remove(self, state: Any, name: str, version: int) -> tuple[Catalog, Any]:
        gone = state.bucket & {(name, version)}
        return replace(state, bucket=state.bucket - gone, removed=state.removed | gone), True

    def _receive(self, state: Any) -> tuple[Catalog, Any]:
        found = sorted(message for message, is_hidden in state.queue if not is_hidden)
        return replace(state, queue=frozenset((one, True) for one, _ in state.queue)), tuple(found)

    def _show(self, state: Any, messages: tuple[str, ...]) -> tuple[Catalog, Any]:
        shown = {(one, hidden and one not in messages) for one, hidden in state.queue}
        return replace(state, queue=frozenset(shown)), True

    def _delete(self, state: Any, messages: tuple[str, ...]) -> tuple[Catalog, Any]:
        left = frozenset(one for one in state.queue if one[0] not in messages)
        return replace(state, queue=left), True

    def _come_back(self, state: Any) -> tuple[Catalog, Any]:
        return replace(state, queue=frozenset((one, False) for one, _ in state.queue)), True


def coming_back(ask: Ask) -> None:
    """The messages that runs hold are delivered once more."""
    ask("come_back")


def putting(name: str, version: int) -> Callable[[Ask], None]:
    """Somebody puts an object into the bucket, of which the queue tells."""
    return lambda ask: ask("put", name, version)


class SimulatedQueue:
    """A `Queue`."""

    name = "events"

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def _asked(self, *request: Any) -> Any:
        try:
            return self._ask(*request)
        except AnalysisException as exc:
            raise S3Error(str(exc)) from None

    def receive(self, **_: Any) -> list[tuple[str, str, str]]:
        return [
            (one, one, Message(one[0], "put", int(one[1:])).body(LOCATION.bucket))
            for one in self._asked("receive")
        ]

    def hide(self, handles: list[str], seconds: int) -> list[str]:
        self._asked("show", tuple(handles))
        return []

    def delete(self, handles: list[str]) -> list[str]:
        self._asked("delete", tuple(handles))
        return []


@dataclass(frozen=True)
class Declared:
    """What a source declares, as far as scenes need it."""

    max_objects: int | None = None
    deletes: bool = False
    queue: bool = False
    name: str = "lake.orders"
    relations: Any = RELATIONS
    location: S3Location = LOCATION
    pattern: str = "**"

    @property
    def intake(self) -> Any:
        return SimpleNamespace(max_objects=self.max_objects, max_bytes=None)

    @property
    def after_commit(self) -> AfterCommit:
        return AfterCommit(AfterAction.DELETE if self.deletes else AfterAction.KEEP)

    @property
    def discovery(self) -> Discovery:
        return Discovery(bucket_scan=not self.queue, queue="events" if self.queue else None)


PLAIN = Declared()


def run_of(name: str, declared: Any = PLAIN, clock: int = 0) -> Callable[[Ask], Any]:
    """A run of the source that is declared so."""

    def program(ask: Ask) -> Any:
        CLOCK.now = clock
        named = Named(ask, name)
        run: Any = SourceRun(named, declared, None)
        with locked(named) as taken:
            ledger = Ledger(named, RELATIONS, taken)
            if not declared.queue:
                return Pass(run, None, ledger).ingest()
            queue: Any = SimulatedQueue(named)
            with closing(Inbox(run, queue)) as received:
                return Pass(run, None, ledger, received).ingest()

    return program


def acting(action: ObjectAction, name: str, clock: int = 0) -> Callable[[Ask], Any]:
    """A run-operation on one object."""

    def program(ask: Ask) -> Any:
        CLOCK.now = clock
        spark: Any = Named(ask, "operation")
        return act(spark, Declared(), action, [name])

    return program


# What Spark computes.


@dataclass
class Known:
    """What the ledger has of an object, as `objects_sql`: versions, states and epochs."""

    latest: tuple[int, str, int] = (0, "", 0)
    decision: tuple[int, str, int] = (0, "", 0)
    fetched: tuple[int, str, int] = (0, "", 0)
    hidden_before: int = 0

    @property
    def visible(self) -> bool:
        return self.fetched[2] > 0 and self.fetched[2] >= self.hidden_before

    @property
    def is_open(self) -> bool:
        return self.latest[1] in State.OPEN

    @property
    def was_settled(self) -> bool:
        return self.decision[1] in State.SETTLED

    def gone(self, version: int) -> tuple[int, str]:
        """Version and state of a note that it is not there any more."""
        if self.was_settled:
            return self.decision[:2]
        return (self.fetched[0], State.FETCHED) if self.visible else (version, State.REMOVED)


_STATES = {Phase.PLAN: State.LISTED, Phase.FAILED: State.FAILED, Phase.COMMIT: State.FETCHED}
_ORDER = (Phase.PLAN, Phase.NOTE, Phase.FAILED, Phase.COMMIT)


def _in_order(events: list[tuple[int, str, Any]]) -> list[tuple[int, str, Any]]:
    found = [one for one in events if one[1] in _ORDER and one[2][0] is not None]
    return sorted(found, key=lambda one: (one[0], _ORDER.index(one[1])))


def known_objects(made: Ledger) -> dict[str, Known]:
    """The state of every object that the ledger has."""
    objects: dict[str, Known] = {}
    for number, phase, (name, version, hides, *state) in _in_order(read_events(made)):
        known = objects.setdefault(name, Known())
        known.latest = (version, state[0] if state else _STATES[phase], number)
        if phase in (Phase.NOTE, Phase.COMMIT):
            known.decision = known.latest
            known.hidden_before = number if hides else known.hidden_before
        if phase == Phase.COMMIT:
            known.fetched = known.latest
    return objects


def kept(made: Ledger, _: Any) -> Any:
    """The events of a snapshot."""
    objects, events = known_objects(made), read_events(made)
    voids = {one for one in events if one[1] == Phase.VOID}
    voids |= {(int(n), Phase.VOID, ()) for n, on in made.epochs().items() if Phase.VOID in on}
    last = {one[2][0]: one for one in _in_order(events)}
    kept = {
        one
        for one in _in_order(events)
        if one[1] == Phase.NOTE
        or (one[1] == Phase.COMMIT and one[0] >= objects[one[2][0]].hidden_before)
        or one == last[one[2][0]]
    }
    return Events(sorted({*kept, *voids, MARK}, key=repr))


@contextmanager
def new_objects(run: Any, made: Ledger, announced: Any, *, least: int) -> Iterator[Any]:
    """What `reconcile` decides, where what is overwritten is replaced."""
    declared = run.definition
    complete = not declared.queue
    found = dict(made.spark("objects") if announced is None else announced)
    objects = known_objects(made)
    new, notes = [], []
    for name in sorted({*found, *objects}):
        known = objects.get(name, Known())
        remembered = (known.decision, known.latest)[:: 1 if complete else -1]
        version = found.get(name) or next((one[0] for one in remembered if one[0]), 0)
        retried = known.decision[1] == State.RETRIED
        settled = known.was_settled and known.decision[0] == version
        if not (name in found or (known.is_open and not complete)):
            if known.is_open and complete:
                notes.append((name, known.gone(version)[0], False, known.gone(version)[1]))
        elif settled or (not retried and known.visible and known.fetched[0] == version):
            if known.is_open:
                state = known.decision[1] if settled else State.FETCHED
                notes.append((name, version, False, state))
        else:
            waits = known.decision[1] in State.WAITING
            since = known.decision[2] if waits else 1 << 62
            is_noted = waits and known.decision[0] == version
            new.append((since, name, version, known.visible, retried, is_noted))
    taken = sorted(new)[: declared.max_objects]
    if len(taken) < len(new):
        notes += [
            (name, version, False, State.RETRIED if retried else State.LISTED)
            for _, name, version, _, retried, is_noted in new
            if not is_noted
        ]
    frame = Events((name, version, hides) for _, name, version, hides, *_ in sorted(taken))
    yield SimpleNamespace(
        notes=Events(notes) if notes else None,
        full_since=None,
        waiting_objects=len(new) - len(taken),
        waiting_bytes=0,
        objects=len(taken),
        bytes=len(taken),
        on_driver=True,
        frame=frame,
    )


class ReadRows(SimulatedRows):
    """The rows of objects of which one may be wrong."""

    def write(self) -> int:
        by = self.ledger.spark.name
        wrong = self.ledger.spark("fetch", self.epoch, tuple(self.plan), by)
        if wrong is None:
            return len(self.plan)
        gone = GONE if (wrong, BAD) not in {one[:2] for one in self.plan} else ""
        raise AnalysisException(str(ExecutorError(f"{wrong} is wrong", gone, wrong)))


def record_failure(this: Pass, rows: Any, _: str, wrong: str | None) -> None:
    """The failure of the one object that was wrong."""
    failures = Events(one for one in rows.plan if one[0] == wrong)
    nothing = Events([(None, 0, False)])
    this.ledger.write_failed(rows.epoch, failures or nothing, Anything())


def delete_committed(_: Any, made: Ledger, epoch: str) -> dict[str, Any]:
    """Deletes an epoch's objects whose rows are visible, as they were ingested."""
    done = [
        (name, known.fetched[0], False)
        for name, known in sorted(known_objects(made).items())
        if known.fetched[2] == int(epoch) and known.visible and not known.is_open
    ]
    for name, version, _hides in done:
        made.spark("remove", name, version)
    made.write_done(epoch, Events(done))
    return {"waiting": 0, "why_waiting": None, "left": 0, "why_left": None, "objects": len(done)}


def note_gone(received: Inbox, made: Ledger) -> None:
    """Notes what was announced, or is looked for again, and is not there."""
    objects, notes = known_objects(made), []
    for event in received.events_without_object:
        name = event.key[-1]
        known = objects.get(name)
        if known is None and event.kind is Kind.CREATED:
            notes.append((name, 0, False, State.REMOVED))
        elif known is not None and known.is_open:
            notes.append((name, known.gone(known.latest[0])[0], False, known.gone(0)[1]))
    if notes:
        made.write_note(Events(notes))


def look_up(run: Any, keys: Any) -> Iterator[tuple[str, ListedObject | None]]:
    """What S3 has under each key."""
    for key in keys:
        version = run.spark("head", key[-1])
        yield key, version and ListedObject(key, str(version), 1)


def open_objects(made: Ledger) -> list[str]:
    """Objects that failed, or that are to be taken again."""
    objects = known_objects(made)
    return [
        LOCATION.uri_of(LOCATION.key(name))
        for name, known in sorted(objects.items())
        if known.decision[1] == State.RETRIED
        or (known.is_open and known.latest[2] > known.decision[2])
    ]


class Selected(dict[str, Known]):
    """The objects of a ledger, as far as a run-operation looks at them."""

    def where(self, _: Any) -> Selected:
        return self


def select_one(source: str, objects: Selected, wanted: Any) -> Selected:
    if wanted[0].text not in objects:
        raise SourceError(f"{source}: no such object")
    return Selected({wanted[0].text: objects[wanted[0].text]})


def require_sense(source: str, action: ObjectAction, selected: Selected) -> None:
    for known in selected.values():
        fits = {
            ObjectAction.RETRY: known.visible or known.latest[1] != State.REMOVED,
            ObjectAction.SKIP: known.is_open,
            ObjectAction.RETRACT: known.visible,
        }
        if not fits[action]:
            raise SourceError(f"{source}: {action} makes no sense")


def decisions(action: ObjectAction, selected: Selected) -> Events:
    state, hides = object_actions._STATES[action], action is ObjectAction.RETRACT
    return Events((name, one.latest[0], hides, state) for name, one in selected.items())


@contextmanager
def locked_source(spark: Any, _: Any) -> Iterator[Any]:
    with locked(spark) as taken:
        yield taken


def simulate_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs and run-operations have Spark compute of objects, they have from here."""
    acts_after_commit = Pass.acts_after_commit
    simulate(monkeypatch)
    patch = monkeypatch.setattr
    patch(Pass, "acts_after_commit", acts_after_commit)
    patch(Pass, "record_failure", record_failure)
    patch(ingest, "new_objects", new_objects)
    patch(ingest, "EpochRows", ReadRows)
    patch(ingest, "object_frame", lambda _, found: [(one.key[-1], int(one.etag)) for one in found])
    patch(ingest, "require_conditional_delete", lambda _: None)
    patch(after_commit, "_act", delete_committed)
    patch(compaction, "snapshot_events", kept)
    patch(inbox, "look_up", look_up)
    patch(inbox, "_open_objects", open_objects)
    patch(Inbox, "note_gone", note_gone)
    patch(Ledger, "objects", lambda made: Selected(known_objects(made)))
    patch(object_actions, "locked_source", locked_source)
    patch(object_actions, "require_ledger", lambda *_: None)
    patch(object_actions, "existing_relations", lambda *_: RELATIONS)
    patch(object_actions, "select_objects", select_one)
    patch(object_actions, "_require_sense", require_sense)
    patch(object_actions, "_events", decisions)
    patch(object_actions, "_visible_rows", lambda *_: 0)
    patch(object_actions, "persisted", nullcontext)
    patch(object_actions, "F", Anything())


def lake(start: Catalog, *bucket: tuple[str, int], told: tuple[str, ...] = ()) -> Lake:
    """The source over these objects, with these messages in its queue."""
    rows = frozenset(start.visible())
    queue = frozenset((message, False) for message in told)
    shown = {"epochs_shown": start.committed()[0], "rows_shown": rows}
    return Lake(**vars(start), bucket=frozenset(bucket), queue=queue, **shown)
