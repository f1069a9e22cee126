"""Progress: what workers tell arrives, and nothing of it outlives the export."""

from __future__ import annotations

import contextvars
import socket
import threading
from collections.abc import Callable

import pytest

from dbt.adapters.mzs3.export import progress as export_progress
from dbt.adapters.mzs3.export.progress import Progress, Snapshot
from dbt.adapters.mzs3.upload.progress import ProgressReporter, ProgressTarget

TOKEN = "5f" * 16
LOOPBACK = ("127.0.0.1", "127.0.0.1")
WAIT_S = 30


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_progress, "EVERY_S", 0.001)


class Told:
    """Collects snapshots; `until` waits for one that is as a test wants it."""

    def __init__(self) -> None:
        self.seen: list[Snapshot] = []
        self._heard = threading.Condition()

    def __call__(self, snapshot: Snapshot) -> None:
        with self._heard:
            self.seen.append(snapshot)
            self._heard.notify_all()

    def until(self, wanted: Callable[[Snapshot], bool]) -> Snapshot:
        with self._heard:
            assert self._heard.wait_for(lambda: any(map(wanted, self.seen)), WAIT_S)
            return next(filter(wanted, self.seen))


def test_a_meter_is_heard() -> None:
    told = Told()
    with Progress(told, 2, LOOPBACK) as progress:
        told.until(lambda seen: seen.phase == "computing")
        meter = ProgressReporter(progress.target, 1)
        meter.add(7, 70)
        assert told.until(lambda seen: seen.phase == "writing").parts_done == 0
        meter.add(1, 2)
        meter.finish()
        last = told.until(lambda seen: seen.parts_done == 1)
        assert (last.rows, last.bytes) == (8, 72)
        progress.note_committing()
        assert told.until(lambda seen: seen.phase == "committing").rows == 8


def test_an_export_that_begins_again_is_at_its_beginning() -> None:
    told = Told()
    with Progress(told, 1, LOOPBACK) as progress:
        ProgressReporter(progress.target, 0).finish()
        told.until(lambda seen: seen.parts_done == 1)
        progress.begin_again()
        seen = len(told.seen) + 1  # one may be under way
        told.until(lambda _: len(told.seen) > seen)
        assert told.seen[-1].phase == "computing"


@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_ipv6_with_and_without_brackets(host: str) -> None:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("no IPv6 here")
    told = Told()
    with Progress(told, 1, (host, host)) as progress:
        ProgressReporter(progress.target, 0).finish()
        told.until(lambda seen: seen.parts_done == 1)


def test_a_name_reaches_whichever_address_the_driver_listens_on() -> None:
    told = Told()
    with Progress(told, 1, ("localhost", "127.0.0.1")) as progress:
        ProgressReporter(progress.target, 0).finish()
        told.until(lambda seen: seen.parts_done == 1)


def test_an_export_that_ends_earlier_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_progress, "EVERY_S", 3600.0)
    told = Told()
    with Progress(told, 1, LOOPBACK):
        pass
    assert told.seen == []


@pytest.mark.parametrize("address", [None, ("h", "192.0.2.1"), ("h", "no.invalid")])
def test_without_an_address_of_ours_only_the_time_is_told(address: tuple[str, str] | None) -> None:
    told = Told()
    with Progress(told, 1, address) as progress:
        assert progress.target is None
        assert told.until(lambda _: True) == Snapshot("running")


def test_nothing_is_left_behind() -> None:
    progress = Progress(Told(), 1, LOOPBACK)
    with pytest.raises(KeyError), progress:
        target = progress.target
        assert target is not None
        raise KeyError
    assert not any("(progress)" in thread.name for thread in threading.enumerate())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as again:
        again.bind(("127.0.0.1", target.port))


def test_a_listener_that_fails_does_not_end_the_thread() -> None:
    calls: list[Snapshot] = []
    enough = threading.Event()

    def fail(snapshot: Snapshot) -> None:
        calls.append(snapshot)
        if len(calls) == 3:
            enough.set()
        raise RuntimeError("the log is full")

    with Progress(fail, 1, None):
        assert enough.wait(WAIT_S)


def test_without_a_thread_to_be_had_the_export_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with Progress(Told(), 1, LOOPBACK):
        pass


def test_the_thread_knows_what_its_maker_knew() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("node")
    variable.set("model.p.m")
    known: list[str] = []
    heard = threading.Event()

    def tell(_: Snapshot) -> None:
        known.append(variable.get())
        heard.set()

    with Progress(tell, 1, None):
        assert heard.wait(WAIT_S)
    assert known[0] == "model.p.m"


@pytest.mark.parametrize("host", ["no.invalid", "a" * 300, "\udcff", ""])
def test_a_meter_without_a_driver_to_reach_never_raises(host: str) -> None:
    meter = ProgressReporter(ProgressTarget(host, 9, TOKEN), 0)
    meter.add(1, 1)
    meter.finish()
    assert (meter.rows, meter.bytes) == (1, 1)


def test_a_token_is_not_shown() -> None:
    assert TOKEN not in repr(ProgressTarget("h", 1, TOKEN))
