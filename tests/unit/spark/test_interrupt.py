"""A session is interrupted for as long as a cancelled run works with it."""

import threading
from types import SimpleNamespace

from dbt.adapters.mzs3.spark import interrupt
from dbt.adapters.mzs3.spark.interrupt import interruptible


def test_what_begins_after_the_first_interrupt_is_interrupted_too(monkeypatch):
    monkeypatch.setattr(interrupt, "_POLL_S", 0.001)
    cancelled, calls = threading.Event(), threading.Semaphore(0)
    with interruptible(SimpleNamespace(interruptAll=calls.release), cancelled):
        assert not calls.acquire(blocking=False)
        cancelled.set()
        for _ in range(3):
            assert calls.acquire(timeout=60)
    threads = threading.active_count()
    with interruptible(SimpleNamespace(interruptAll=None), threading.Event()):
        assert threading.active_count() == threads + 1
    assert threading.active_count() == threads
