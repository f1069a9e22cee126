import time
from itertools import pairwise
from types import SimpleNamespace
from unittest import mock
from unittest.mock import MagicMock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.ledger import compaction
from dbt.adapters.mzs3.ledger import ledger as ledger_module
from dbt.adapters.mzs3.ledger.compaction import (
    COMPACT_AFTER,
    compaction_is_due,
    replaced_partitions,
)
from dbt.adapters.mzs3.ledger.epochs import (
    current_epochs,
    epochs_awaiting_after_commit,
    latest,
    next_epoch,
    next_plan,
    unfinished_epochs,
)
from dbt.adapters.mzs3.ledger.events import states_sql, visible_rows_sql
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.ledger.ledger_table import LedgerTable
from dbt.adapters.mzs3.ledger.relations import SourceRelations


def test_a_ledger_asks_the_metastore_once_and_reads_what_counts():
    on_record = ["9/plan", "9/commit", "10/snapshot", "11/plan", "11/void", "12/plan", "12/commit"]
    asked = []

    def sql(text):
        asked.append(text)
        parts = (one.split("/") for one in on_record)
        rows = [{"partition": f"epoch={epoch}/phase={phase}"} for epoch, phase in parts]
        return SimpleNamespace(collect=lambda: rows)

    ledger = Ledger(SimpleNamespace(sql=sql), SourceRelations("raw", "orders"))
    assert ledger.epochs()["11"] == {"plan", "void"}
    ledger.objects()
    ledger.events()
    shown, *read = asked
    assert shown == "SHOW PARTITIONS `raw`.`orders__ledger`"
    assert len(read) == 2
    for text in read:
        assert "WHERE epoch IN ('12') OR epoch = '10' AND phase = 'snapshot'" in text
        assert "'void'" not in text


def test_the_views_leave_out_epochs_that_are_void():
    assert "= 'void'" in states_sql("ledger", "0")
    assert "= 'void'" in visible_rows_sql("rows", "ledger", "id", "true", "0")


class TableOfAnotherRun(LedgerTable):
    """A ledger's partitions, where another run has closed every commit."""

    def __init__(self):
        pass

    def epochs(self):
        return {"9": {"plan", "commit"}}

    def stage(self, epoch, events, *, fits_driver):
        return "events-of-this-run"

    def add(self, epoch, phase, folder):
        raise PySparkException("PARTITIONS_ALREADY_EXIST")

    def folder(self, epoch, phase):
        return "nothing-of-another"


def test_an_epoch_that_another_run_has_closed_is_not_committed(monkeypatch):
    monkeypatch.setattr(ledger_module, "ledger_table", lambda *_: TableOfAnotherRun())
    monkeypatch.setattr(ledger_module, "with_all_columns", lambda *_: None)
    monkeypatch.setattr(ledger_module, "F", MagicMock())
    ledger = Ledger(None, SourceRelations("raw", "orders"))
    with pytest.raises(SourceError, match="another run took the source over while this one was"):
        ledger.write_commit("9", None)
    table = TableOfAnotherRun()
    assert table.publish("9", "commit", "nothing-of-another")  # the answer was lost
    assert table.close("9", "commit")


def test_the_first_epoch_is_now():
    before = time.time_ns() // 1_000_000
    for made in (next_epoch, next_plan):
        assert before <= int(made({})) <= time.time_ns() // 1_000_000 + 1


@given(st.sets(st.integers(min_value=1, max_value=10**15), min_size=1))
def test_an_epoch_is_later_than_all_on_record_whatever_the_clock_says(known):
    epochs = {str(epoch): {"plan"} for epoch in known}
    assert max(known) < int(next_epoch(epochs)) <= max({*known, time.time_ns() // 10**6}) + 2
    assert max(known) < int(next_plan(epochs)) <= max({*known, time.time_ns() // 10**6}) + 2


@given(st.sets(st.integers(min_value=1, max_value=10**15)))
def test_no_note_has_the_number_of_a_plan_that_is_not_on_record_yet(known):
    epochs = {str(epoch): {"note"} for epoch in known}
    assert int(next_plan(epochs)) % 2 == 0
    assert int(next_epoch(epochs)) % 2 == 1


@pytest.mark.parametrize(
    ("epochs", "unfinished"),
    [
        ({}, []),
        ({"5": {"plan"}}, ["5"]),
        ({"5": {"plan", "commit"}}, []),
        ({"5": {"plan", "failed"}}, []),
        ({"5": {"plan", "void"}}, []),
        ({"5": {"plan", "closing"}}, ["5"]),
        ({"5": {"plan", "closing", "commit"}}, ["5"]),
        ({"5": {"plan", "closing", "commit", "void"}}, []),
        ({"5": {"plan", "closing", "failed"}}, ["5"]),
        ({"5": {"plan", "closing", "commit", "failed"}}, ["5"]),
        ({"5": {"plan", "closing", "commit", "failed", "void"}}, []),
        ({"5": {"note"}}, []),
        ({"5": {"note", "plan"}}, ["5"]),
        ({"5": {"plan"}, "6": {"note"}}, ["5"]),
        ({"10": {"plan"}, "9": {"plan"}}, ["9", "10"]),
        ({"5": {"plan"}, "6": {"snapshot"}, "7": {"plan"}}, ["7"]),
    ],
)
def test_an_epoch_that_planned_and_came_to_no_end_is_unfinished(epochs, unfinished):
    assert unfinished_epochs(epochs) == unfinished


PHASES = st.sets(
    st.sampled_from(["plan", "note", "commit", "failed", "void", "snapshot"]), min_size=1
)
EPOCHS = st.dictionaries(st.integers(1, 10**14).map(str), PHASES)


def replaced_at_once(epochs):
    with mock.patch.object(compaction, "KEEP_MS", -(10**15)):
        return replaced_partitions(epochs)


def test_the_first_snapshot_that_is_not_a_day_old_stays():
    hours = {h: str(time.time_ns() // 10**6 - h * 3_600_000) for h in (60, 30, 20, 10, 1)}
    dropped = replaced_partitions({epoch: {"commit", "snapshot"} for epoch in hours.values()})
    whole = [(hours[h], phase) for h in (60, 30, 10) for phase in ("commit", "snapshot")]
    assert sorted(dropped) == sorted([*whole, (hours[20], "commit")])


@given(EPOCHS)
def test_what_a_snapshot_has_taken_the_place_of_is_all_that_is_not_read(epochs):
    current = set(current_epochs(epochs))
    dropped = {epoch for epoch, _ in replaced_at_once(epochs)}
    assert current | dropped == set(epochs)
    assert not current & dropped
    snapshot = latest("snapshot", epochs)
    assert snapshot is None or current_epochs(epochs)[0] == snapshot


@given(EPOCHS)
def test_what_is_dropped_is_dropped_with_all_its_phases_and_only_once(epochs):
    partitions = replaced_at_once(epochs)
    assert len(partitions) == len(set(partitions))
    for epoch in {epoch for epoch, _ in partitions}:
        assert {phase for of, phase in partitions if of == epoch} == epochs[epoch]


def test_a_ledger_is_compacted_once_in_so_many_epochs():
    epochs, snapshots = {}, []
    for number in range(1, 10 * COMPACT_AFTER):
        if compaction_is_due(epochs):
            snapshots.append(number)
            epochs[str(1000 + number)] = {"snapshot"}
        else:
            epochs[str(1000 + number)] = {"plan", "commit"}
    assert {b - a for a, b in pairwise(snapshots)} == {COMPACT_AFTER + 1}
    assert len(snapshots) == 9


def test_what_is_due_is_committed_and_not_done_and_in_order():
    epochs = {
        "10": {"plan", "due", "commit"},
        "9": {"plan", "due", "commit"},
        "8": {"plan", "due", "commit", "done"},
        "7": {"plan", "commit"},
        "6": {"plan", "due", "void"},
        "5": {"plan", "due", "commit", "void"},
        "4": {"note"},
    }
    assert epochs_awaiting_after_commit(epochs) == ["9", "10"]
    # It outlasts the snapshots.
    dropped = replaced_partitions({**epochs, "11": {"snapshot"}})
    assert {epoch for epoch, _ in dropped} == {"4", "5", "6", "7", "8"}


def test_an_epoch_that_died_between_due_and_commit_is_unfinished():
    assert unfinished_epochs({"5": {"plan", "due"}}) == ["5"]
