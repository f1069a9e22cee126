"""Every order in which runs can widen a source's definition, with faults.

Each run meets a column of its own. What is pinned has exactly the columns that commits have
brought, and the view gets them, whatever a run that has lost the lock still does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException
from support.interleavings import Ask, Exploration, run_alone
from support.source.catalog import RELATIONS, Catalog, Events, Metastore, ingested
from support.source.simulated import (
    CLOCK,
    Named,
    SimulatedRows,
    locked,
    simulate,
    unlocking,
)
from support.source.simulated import new_objects as simulated_objects

from dbt.adapters.mzs3.formats.read.columns import Column
from dbt.adapters.mzs3.source import ingest, new_columns, pinning
from dbt.adapters.mzs3.source.ingest import Pass
from dbt.adapters.mzs3.source.purify import PinnedDefinition
from dbt.adapters.mzs3.source.run import SourceRun
from dbt.adapters.mzs3.source.tables import (
    PINNED_PROPERTY,
    WIDENED_PROPERTY,
    SourceTables,
    definition_properties,
    pinned_definitions,
)

FIRST = PinnedDefinition(("id",), (Column("id"),), {"format": "csv"})


@dataclass(frozen=True)
class Widened(Catalog):
    """Also the properties of the table of rows; columns of the table, and of the view; and the
    columns by which each epoch was fetched."""

    properties: frozenset[tuple[str, str]] = frozenset()
    table: frozenset[str] = frozenset({"id"})
    view: frozenset[str] = frozenset({"id"})
    fetched: frozenset[tuple[str, frozenset[str]]] = frozenset()

    def brought(self) -> frozenset[str]:
        """The columns that commits have brought."""
        committed = {str(number) for number in self.committed()[0]}
        return frozenset({"id"}).union(*(by for epoch, by in self.fetched if epoch in committed))

    def pinned(self) -> frozenset[str]:
        """The columns of what is pinned, also by commits whose definition is not adopted yet."""
        pinned, waiting = pinned_definitions(dict(self.properties))
        committed = {str(number) for number in self.committed()[0]}
        all_pinned = [pinned, *(wider for epoch, wider in waiting.items() if epoch in committed)]
        return frozenset().union(*(names(one) for one in all_pinned))


def names(definition: PinnedDefinition) -> frozenset[str]:
    return frozenset(column.name for column in definition.columns)


class Properties(Metastore):
    """What each request makes of it."""

    def _properties(self, state: Widened) -> tuple[Widened, Any]:
        return state, state.properties

    def _set(self, state: Widened, given: Any) -> tuple[Widened, Any]:
        return replace(
            state, properties=frozenset({**dict(state.properties), **dict(given)}.items())
        ), True

    def _unset(self, state: Widened, keys: Any) -> tuple[Widened, Any]:
        left = frozenset(one for one in state.properties if one[0] not in keys)
        return replace(state, properties=left), True

    def _add_columns(self, state: Widened, added: frozenset[str]) -> tuple[Widened, Any]:
        return replace(state, table=state.table | added), True

    def _show(self, state: Widened) -> tuple[Widened, Any]:
        return replace(state, view=state.table), True

    def _fetch(self, state: Any, number: str, events: Any, by: Any) -> tuple[Any, Any]:
        after, answer = super()._fetch(state, number, events, "")
        return replace(after, fetched=after.fetched | {(number, by)}), answer


class WidenedRows(SimulatedRows):
    """Can't be fetched by a definition without the run's own column."""

    def write(self) -> int:
        if self.ledger.spark.name not in self.spec:
            raise PySparkException("another header")
        self.ledger.spark("fetch", self.epoch, tuple(self.plan), self.spec)
        return len(self.plan)


def widening_run_of(name: str) -> Any:
    def program(ask: Ask) -> Any:
        CLOCK.now = 0
        named = Named(ask, name)
        with locked(named) as taken:
            run = SourceRun(named, SimpleNamespace(name="lake.orders", relations=RELATIONS), None)
            pinned = pinning.pin(run, None, taken)
            spec = names(pinned.definition)
            return Pass(run, spec, pinned.ledger, pin=pinned).ingest()

    return program


@contextmanager
def new_objects(run: Any, made: Any, *given: Any, least: int) -> Iterator[Any]:
    """A takes one object, and leaves another one to those that come later."""
    with simulated_objects(run, made, *given, least=least) as plan:
        if made.spark.name == "A":
            plan.frame = Events(plan.frame[:1])
            plan.objects = len(plan.frame)
        yield plan


def read_tables(ask: Named, _: Any) -> SourceTables:
    pinned, waiting = pinned_definitions(dict(ask("properties")))
    return SourceTables(pinned, RELATIONS, True, True, waiting)


def wider(run: Any, pinned: PinnedDefinition, *_: Any) -> PinnedDefinition:
    column = Column(run.spark.name, is_added=True)
    return replace(pinned, header=(*pinned.header, column.name), columns=(*pinned.columns, column))


@pytest.fixture
def simulated(monkeypatch):
    simulate(monkeypatch)
    patch = monkeypatch.setattr
    patch(pinning, "read_tables", read_tables)
    patch(pinning, "require_agreement", lambda *_: None)
    patch(pinning, "make_relations", lambda *_: RELATIONS)
    patch(ingest, "new_objects", new_objects)
    patch(ingest, "EpochRows", WidenedRows)
    patch(ingest, "executor_error", lambda _: SimpleNamespace(s3_object="x", message="", cause=""))
    patch(ingest, "wider_definition", wider)
    patch(ingest, "fetch_spec", lambda _, pin: names(pin.definition))
    patch(new_columns, "show_since", lambda spark, *_: spark("show"))
    patch(new_columns, "add_columns", lambda run, _, one: run.spark("add_columns", names(one)))
    patch(new_columns, "_set", lambda run, _, given: run.spark("set", tuple(given.items())))
    patch(new_columns, "_unset", lambda run, _, given: run.spark("unset", tuple(given)))
    return monkeypatch


def check_state(state: Widened) -> None:
    assert state.pinned() == state.brought(), "what is pinned is not what commits have brought"
    assert state.view <= state.brought(), "the view has a column that no commit has brought"


def check_end(state: Widened, outcomes: tuple[Any, ...]) -> None:
    for outcome in outcomes:
        assert not isinstance(outcome, (AssertionError, TypeError, AttributeError)), outcome
    after = alone(state)
    _, waiting = pinned_definitions(dict(after.properties))
    assert not waiting, "something is neither adopted nor removed"
    assert after.view == after.table == after.brought() == after.pinned()


def alone(state: Widened) -> Widened:
    after, outcome = run_alone(widening_run_of("next"), Properties(), state)
    assert not isinstance(outcome, Exception), outcome
    check_state(after)
    return after


def start(epochs: int = 1) -> Widened:
    properties = definition_properties(FIRST, PINNED_PROPERTY)
    return Widened(**vars(ingested(epochs)), properties=frozenset(properties.items()))


def explored(*programs: Any, faults: int, switches: int | None = None, epochs: int = 1) -> int:
    exploration = Exploration(programs, Properties(), start(epochs), check_state, check_end)
    found = exploration.exhaustively(faults, switches)
    print(found)
    return found.orders


A, B = widening_run_of("A"), widening_run_of("B")


def test_what_is_pinned_is_what_was_committed_in_every_order(simulated):
    assert explored(A, B, faults=0) > 1_000


def test_a_run_that_loses_its_lock_takes_no_column_back(simulated):
    assert explored(A, B, unlocking, faults=0, switches=2) > 1_000


def test_a_run_that_dies_anywhere_leaves_what_the_next_one_settles(simulated):
    assert explored(A, faults=1) > 20
    assert explored(A, faults=1, epochs=3) > 20


def one_property_for_all(monkeypatch):
    write = new_columns.write_widened
    patch = monkeypatch.setattr
    patch(ingest, "write_widened", lambda run, made, epoch, one: write(run, made, "1", one))


def write_over_what_is_pinned(monkeypatch):
    def adopt(run, made, epoch, one):
        made.require_lock()
        new_columns.add_columns(run, made, one)
        run.spark("show")
        run.spark("set", tuple(definition_properties(one, PINNED_PROPERTY).items()))
        run.spark("unset", tuple(definition_properties(one, f"{WIDENED_PROPERTY}{epoch}.")))

    monkeypatch.setattr(ingest, "adopt", adopt)
    monkeypatch.setattr(new_columns, "adopt", adopt)


def adopt_before_the_commit(monkeypatch):
    def write(run, made, epoch, one):
        new_columns.write_widened(run, made, epoch, one)
        new_columns.adopt(run, made, epoch, one)

    monkeypatch.setattr(ingest, "write_widened", write)


def close_nothing(monkeypatch):
    monkeypatch.setattr(new_columns, "void_unfinished", lambda *_: None)


DEFECTS = [one_property_for_all, write_over_what_is_pinned, adopt_before_the_commit, close_nothing]


@pytest.mark.parametrize("defect", DEFECTS)
def test_what_would_break_the_pin_is_found(simulated, defect):
    defect(simulated)
    with pytest.raises(AssertionError):
        explored(A, B, faults=0)


@pytest.mark.long
def test_two_runs_of_which_one_dies_anywhere(simulated):
    assert explored(A, B, faults=1, switches=2) > 1_000
