"""Interrupts Spark jobs that the user has cancelled, or that wait too long for an executor."""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)

_POLL_S = 0.2
_ANSWER_S = 10.0

EXECUTOR_TIMEOUT_S = 600

_LOOK_S = 1.0
# The most seconds to wait after the watchdog has cancelled jobs, until a task runs again.
_SHORT_S = 60.0
# After this many consecutive failed requests, Spark is taken to be gone.
_MOST_FAILURES = 30
# If a job fails this soon after the watchdog has cancelled jobs, the watchdog is the cause.
_RECENT_S = 60.0
_ENDED = ("cancelled as part of cancellation of all jobs", "[OPERATION_CANCELED]")

_lock = threading.Lock()
# By the name of each watched scheduler: when its jobs were last cancelled, and why.
_verdicts: dict[str, tuple[float, str] | None] = {}


class Scheduler(Protocol):
    """A scheduler of Spark, which assigns tasks to executors."""

    def waiting(self) -> Mapping[Hashable, int]:
        """How many tasks of each unfinished stage have ended."""

    def running(self) -> int:
        """How many tasks run."""

    def end_all(self) -> None:
        """Cancels all jobs."""


def at_once(actions: Iterable[Callable[[], object]]) -> None:
    """Runs all actions in parallel. Waits at most `_ANSWER_S`, as a server may never respond; logs
    failures at the level debug."""

    def attempt(action: Callable[[], object]) -> None:
        try:
            action()
        except Exception as exc:  # noqa: BLE001 - of a Spark that is gone
            _log.debug("a request to Spark failed: %s", exc)

    threads = [threading.Thread(target=attempt, args=(each,), daemon=True) for each in actions]
    for thread in threads:
        thread.start()
    until = time.monotonic() + _ANSWER_S
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))


@contextmanager
def interruptible(spark: SparkSession, cancelled: threading.Event | None) -> Iterator[None]:
    """Inside the block, interrupts every job of the session once `cancelled` is set."""
    if cancelled is None:
        yield
        return
    ended = threading.Event()

    def interrupt() -> None:
        # Repeatedly, as an interrupt does not stop a query that is still being planned.
        while not ended.wait(_POLL_S):
            if cancelled.is_set():
                at_once([spark.interruptAll])

    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def watch(name: str, scheduler: Scheduler, patience: int) -> None:
    """Starts a watchdog: jobs fail once they have waited `patience` seconds for an executor.

    Does nothing if the scheduler with this name already has a watchdog, or if `patience` is 0.
    """
    ended = threading.Event()
    thread = threading.Thread(
        target=_watch,
        args=(scheduler, name, patience, ended),
        name="executors watchdog",
        daemon=True,
    )
    with _lock:
        if patience <= 0 or name in _verdicts:
            return
        thread.start()
        _verdicts.setdefault(name, None)

    def stop() -> None:
        ended.set()
        thread.join(_LOOK_S)

    atexit.register(stop)  # runs before Spark ends, as later requests of the thread would fail


def _watch(scheduler: Scheduler, name: str, patience: int, ended: threading.Event) -> None:
    """Checks the scheduler every second, until this process or its Spark ends."""
    waiting, failures = Waiting(patience), 0
    while not ended.wait(_LOOK_S) and failures < _MOST_FAILURES:
        try:
            waited = waiting.too_long(scheduler.waiting(), scheduler.running())
            if waited is not None:
                why = (
                    f"for {waited:.0f} s there was work for executors, and none ran any of "
                    "it: the cluster's workers may be gone, have no room for executors of "
                    "spark.executor.memory and spark.executor.cores, or be busy with others' "
                    "work. Look at the cluster, and run again; executor_timeout in the profile "
                    "says how long to wait"
                )
                _verdicts[name] = (time.monotonic(), why)
                scheduler.end_all()
            failures = 0
        except Exception:  # noqa: BLE001 - of a request, or because Spark has ended
            failures += 1


def why_ended(failure: str) -> str | None:
    """Why a watchdog cancelled the job that has failed with this text; None if none did."""
    if not any(sign in failure for sign in _ENDED):
        return None
    since = time.monotonic() - _RECENT_S
    with _lock:
        recent = [verdict for verdict in _verdicts.values() if verdict and verdict[0] > since]
    return max(recent)[1] if recent else None


class Waiting:
    """Measures how long tasks have waited while no task ran."""

    def __init__(self, patience: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._patience = patience
        self._clock = clock
        self._since = clock()
        self._ended: Mapping[Hashable, int] = {}
        self._limit = patience

    def too_long(self, ended: Mapping[Hashable, int], running: int) -> float | None:
        """Returns the seconds waited once the patience is over, and restarts the wait; else None.

        `ended` and `running` are a Scheduler's `waiting()` and `running()`.
        """
        works = running > 0 or any(n > self._ended.get(stage, 0) for stage, n in ended.items())
        self._ended = ended
        now = self._clock()
        if works or not ended:
            self._since = now
            self._limit = self._patience if works else self._limit
            return None
        waited = now - self._since
        if waited < self._limit:
            return None
        self._since, self._limit = now, min(self._patience, _SHORT_S)
        return waited
