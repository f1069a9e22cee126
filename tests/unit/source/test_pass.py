"""In which order a pass writes to the ledger, and under which numbers; Spark has no part."""

from contextlib import contextmanager, nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
from pyspark.errors import PySparkException

from dbt.adapters.mzs3.errors import ExecutorError, SourceError
from dbt.adapters.mzs3.formats.read.object_error import GONE, NOT_READ, OF_RUN
from dbt.adapters.mzs3.ledger.epochs import next_epoch
from dbt.adapters.mzs3.source import ingest as ingest_module
from dbt.adapters.mzs3.source.fetch import EpochRows
from dbt.adapters.mzs3.source.ingest import Pass
from dbt.adapters.mzs3.source.listing.plan import Refusal
from dbt.adapters.mzs3.source.options import Intake
from dbt.adapters.mzs3.source.report import IngestReport
from dbt.adapters.mzs3.source.run import SourceRun


class FakeLedger:
    """Keeps the phases that are written of each epoch."""

    def __init__(self):
        self.written = {}
        self.require_lock = lambda outcome="": None

    def epochs(self):
        return self.written

    def plan(self, epoch):
        return "the plan"

    def write_note(self, events):
        self._add(next_epoch(self.written), "note")

    def write_plan(self, epoch, objects, *, fits_driver):
        self._add(epoch, "plan")

    def write_commit(self, epoch, objects, *, fits_driver):
        self._add(epoch, "commit")

    def write_failed(self, epoch, objects, error):
        self._add(epoch, "failed")

    def _add(self, epoch, phase):
        self.written.setdefault(epoch, set()).add(phase)


@pytest.fixture
def this(monkeypatch):
    monkeypatch.setattr(EpochRows, "write", lambda _: 1)
    monkeypatch.setattr(EpochRows, "counted", counted)
    monkeypatch.setattr(Pass, "acts_after_commit", False)
    return Pass(SourceRun(None, SimpleNamespace(name="lake.orders"), None), None, FakeLedger())


@contextmanager
def counted(*_):
    yield "counted", IngestReport("lake.orders", 1, 1)


def never_committed(this):
    return not any("commit" in phases for phases in this.ledger.written.values())


BATCH = SimpleNamespace(
    notes="notes",
    waiting_objects=0,
    waiting_bytes=0,
    objects=1,
    bytes=9,
    on_driver=False,
    frame="new",
    full_since=None,
)


def test_notes_have_an_epoch_of_their_own(this, monkeypatch):
    monkeypatch.setattr(Pass, "_commit", lambda *_: IngestReport("lake.orders", 1, 1))
    this._epoch(BATCH)
    first, second = sorted(this.ledger.written, key=int)
    assert this.ledger.written == {first: {"note"}, second: {"plan"}}
    assert (int(first) % 2, int(second) % 2) == (1, 0)


def test_what_waits_beside_what_is_refused_has_an_epoch_of_its_own(this, monkeypatch):
    monkeypatch.setattr(ingest_module, "F", SimpleNamespace(col=str))
    with pytest.raises(SourceError, match="overwritten"):
        this._refuse(Refusal("it was overwritten", "events", "notes", 0, 0))
    first, second = sorted(this.ledger.written, key=int)
    assert this.ledger.written == {first: {"note"}, second: {"failed"}}
    assert (int(first) % 2, int(second) % 2) == (1, 1)


def test_what_counting_finds_wrong_is_a_failure_in_the_ledger(this, monkeypatch):
    @contextmanager
    def too_many(*_):
        raise SourceError("lake.orders: more than 1 records were rejected", "s3://b/k")
        yield

    failed = []
    monkeypatch.setattr(EpochRows, "counted", too_many)
    monkeypatch.setattr(
        Pass, "record_failure", lambda _, rows, *what: failed.append((rows.plan, *what))
    )
    with pytest.raises(SourceError, match="more than 1 records"):
        this._epoch(BATCH)
    text = "lake.orders: more than 1 records were rejected"
    assert failed == [("the plan", text, "s3://b/k")]
    assert never_committed(this)


@pytest.mark.parametrize(
    ("cause", "offered"), [("", True), (NOT_READ, False), (OF_RUN, False), (GONE, False)]
)
def test_skipping_is_offered_where_it_helps(this, monkeypatch, cause, offered):
    def fail(*_):
        raise PySparkException(str(ExecutorError("object s3://b/k: wrong", cause, "s3://b/k")))

    monkeypatch.setattr(EpochRows, "write", fail)
    monkeypatch.setattr(Pass, "record_failure", lambda *_: None)
    with pytest.raises(SourceError) as raised:
        this._epoch(BATCH)
    text, _, way_out = str(raised.value).partition("; or go on without it after: ")
    assert text == "object s3://b/k: wrong"
    assert ("skip_s3_objects" in way_out) is offered


def test_what_is_not_known_of_later_runs_fails_no_run(this, monkeypatch):
    def fail(*_):
        raise PySparkException("the cluster is gone")

    monkeypatch.setattr(ingest_module, "run_limits", fail)
    this.run.definition.intake = Intake(max_bytes="auto")
    report = this._epoch(SimpleNamespace(**{**vars(BATCH), "waiting_objects": 3}))
    assert (report.rows, report.waiting_objects, report.waiting_runs) == (1, 3, 1)
    assert not never_committed(this)


def test_a_full_listing_is_not_on_record_without_the_lock(this, monkeypatch):
    def lost(outcome):
        raise SourceError(outcome)

    @contextmanager
    def listed_in_full(*_, **__):
        yield SimpleNamespace(**{**vars(BATCH), "notes": None, "objects": 0, "full_since": 1})

    this.ledger.require_lock = lost
    monkeypatch.setattr(ingest_module, "new_objects", listed_in_full)
    with pytest.raises(SourceError, match="stays, and its full listing is not on record"):
        this.ingest()


class FakeInbox:
    """Notes whether its messages were deleted."""

    acknowledged = False
    present_objects = ()

    def receive(self, ledger):
        pass

    def note_gone(self, ledger):
        pass

    def acknowledge(self):
        self.acknowledged = True


@pytest.mark.parametrize("lost", [False, True])
def test_messages_are_not_acknowledged_without_the_lock(this, monkeypatch, lost):
    """What they announced was known before; who has the lock now may have dropped it."""

    def require(outcome):
        if lost:
            raise SourceError(outcome)

    @contextmanager
    def nothing_new(*_, **__):
        yield SimpleNamespace(**{**vars(BATCH), "notes": None, "objects": 0})

    this.ledger.require_lock = require
    monkeypatch.setattr(ingest_module, "new_objects", nothing_new)
    monkeypatch.setattr(ingest_module, "object_frame", lambda *_: None)
    inbox = FakeInbox()
    with pytest.raises(SourceError, match="go back to the queue") if lost else nullcontext():
        replace(this, inbox=inbox).ingest()
    assert inbox.acknowledged is not lost


def test_a_commit_that_came_late_is_not_told_as_one(this):
    def lost(outcome="nothing of it is committed"):
        if not never_committed(this):
            raise SourceError(f"the lock was taken away; {outcome}")

    this.ledger.require_lock = lost
    with pytest.raises(SourceError, match="its commit may not count, as s3_source_status shows"):
        this._epoch(BATCH)


def test_a_lock_that_was_lost_is_no_failure_of_an_object(this, monkeypatch):
    def lost():
        raise SourceError("the lock was taken away")

    monkeypatch.setattr(Pass, "record_failure", lambda *_: pytest.fail("recorded"))
    this.ledger.require_lock = lost
    with pytest.raises(SourceError, match="the lock was taken away"):
        this._epoch(BATCH)
