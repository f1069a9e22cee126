"""Sessions are interrupted for as long as a cancelled run works with them, and all of them."""

import logging
import threading
from types import SimpleNamespace

from dbt.adapters.mzs3 import connections
from dbt.adapters.mzs3.connections import Mzs3ConnectionManager
from dbt.adapters.mzs3.spark import interrupt
from dbt.adapters.mzs3.spark.cursor import SessionConnection
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


def test_a_server_that_is_gone_or_silent_keeps_no_other_connection_from_being_cancelled(
    monkeypatch,
):
    monkeypatch.setattr(interrupt, "_ANSWER_S", 0.1)
    answered, interrupted = threading.Event(), threading.Event()

    def gone():
        raise ConnectionError

    actions = [gone, lambda: answered.wait(60), interrupted.set]
    handles = [SessionConnection(SimpleNamespace(interruptAll=action)) for action in actions]
    opened = {
        number: SimpleNamespace(state="open", handle=handle, name=f"model.{number}")
        for number, handle in enumerate(handles)
    }
    manager = SimpleNamespace(
        get_if_exists=lambda: None,
        lock=threading.Lock(),
        thread_connections=opened,
        cancel=lambda connection: connection.handle.cancel(),
    )
    cancelled = Mzs3ConnectionManager.cancel_open(manager)
    assert cancelled == ["model.0", "model.1", "model.2"]
    assert all(handle.cancelled.is_set() for handle in handles)
    assert interrupted.wait(60)
    answered.set()


def test_what_fails_is_in_dbts_log_and_not_on_the_console(monkeypatch):
    def gone():
        raise ConnectionError("the server is gone")

    told = []
    monkeypatch.setattr(connections, "logger", SimpleNamespace(debug=told.append))
    shown = []
    console = logging.Handler()
    console.emit = shown.append
    logging.getLogger().addHandler(console)
    try:
        interrupt.at_once([gone])
    finally:
        logging.getLogger().removeHandler(console)
    assert told == ["a request to Spark failed: the server is gone"]
    assert shown == []
