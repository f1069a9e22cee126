"""In which order a pass writes to the ledger, and under which numbers; Spark has no part."""

from types import SimpleNamespace

import pytest

from dbt.adapters.mzs3.csv_source.cancel import Cancellation
from dbt.adapters.mzs3.csv_source.epoch import Pass


class FakeLedger:
    """Keeps the phases that are written of each epoch."""

    def __init__(self):
        self.written = {}

    def epochs(self):
        return self.written

    def plan(self, epoch):
        return "the plan"

    def totals(self, epoch):
        return 1, 1, 0, 0

    def write_note(self, epoch, events):
        self._add(epoch, "note")

    def write_plan(self, epoch, objects):
        self._add(epoch, "plan")

    def write_commit(self, epoch, objects):
        self._add(epoch, "commit")

    def _add(self, epoch, phase):
        self.written.setdefault(epoch, set()).add(phase)


@pytest.fixture
def this(monkeypatch):
    monkeypatch.setattr(Pass, "_fetch", lambda *_: None)
    monkeypatch.setattr(Pass, "_acts_after_commit", False)
    return Pass(
        spark=None,
        definition=SimpleNamespace(name="lake.orders"),
        connection=None,
        relations=None,
        spec=SimpleNamespace(reading=SimpleNamespace(max_rejects=1)),
        lock=SimpleNamespace(require=lambda: None),
        cancellation=Cancellation("lake.orders"),
        on_step=lambda step: None,
    )


BATCH = SimpleNamespace(notes="notes", waiting_objects=0, waiting_bytes=0, objects=1, frame="new")


def test_notes_have_an_epoch_of_their_own(this, monkeypatch):
    monkeypatch.setattr(Pass, "_commit", lambda self, ledger, epoch, plan: None)
    ledger = FakeLedger()
    this._epoch(ledger, BATCH)
    first, second = sorted(ledger.written, key=int)
    assert ledger.written == {first: {"note"}, second: {"plan"}}
