"""Ends Spark jobs: those that the user has cancelled, and those that no executor takes."""

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
# Once work was ended, what comes after it waits no longer than this until a task has run.
_SHORT_S = 60.0
_LOOKS_IN_VAIN = 30
# For how long what fails as cancelled is what was ended.
_TOLD_S = 60.0
_ENDED = ("cancelled as part of cancellation of all jobs", "[OPERATION_CANCELED]")

_lock = threading.Lock()
# By the name of each scheduler that is watched: when its work was last ended, and why.
_verdicts: dict[str, tuple[float, str] | None] = {}


class Scheduler(Protocol):
    """Whoever hands tasks to executors."""

    def waiting(self) -> Mapping[Hashable, int]:
        """How many tasks have ended of each stage that is not finished now."""

    def running(self) -> int:
        """How many tasks run at all."""

    def end_all(self) -> None:
        """Cancel all that runs."""


def at_once(actions: Iterable[Callable[[], object]]) -> None:
    """Does all at the same time, and waits some seconds at most, as a server may never answer.

    What fails is logged for debugging only.
    """

    def attempt(action: Callable[[], object]) -> None:
        try:
            action()
        except Exception as exc:  # noqa: BLE001 - of a Spark that is gone
            _log.debug("Spark did not do what it was asked: %s", exc)

    threads = [threading.Thread(target=attempt, args=(one,), daemon=True) for one in actions]
    for thread in threads:
        thread.start()
    until = time.monotonic() + _ANSWER_S
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))


@contextmanager
def interruptible(spark: SparkSession, cancelled: threading.Event | None) -> Iterator[None]:
    """Interrupts every job that the session runs inside the block once `cancelled` is set."""
    if cancelled is None:
        yield
        return
    ended = threading.Event()

    def interrupt() -> None:
        # Not only once: a query that is still being planned would run afterwards.
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
    """From now on, jobs fail once they have waited `patience` seconds for an executor.

    The first call with the name of a scheduler decides; 0 is no limit.
    """
    over = threading.Event()
    thread = threading.Thread(
        target=_keep_looking,
        args=(scheduler, name, patience, over),
        name="executors watchdog",
        daemon=True,
    )
    with _lock:
        if patience <= 0 or name in _verdicts:
            return
        thread.start()
        _verdicts.setdefault(name, None)

    def stop() -> None:
        over.set()
        thread.join(_LOOK_S)

    atexit.register(stop)  # before Spark goes, which the thread would ask in vain


def _keep_looking(scheduler: Scheduler, name: str, patience: int, over: threading.Event) -> None:
    """Looks every second, until this process or its Spark ends."""
    waiting, in_vain = Waiting(patience), 0
    while not over.wait(_LOOK_S) and in_vain < _LOOKS_IN_VAIN:
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
            in_vain = 0
        except Exception:  # noqa: BLE001 - once, or because Spark has ended
            in_vain += 1


def why_ended(failure: str) -> str | None:
    """The reason, if it was a watchdog that ended the work whose failure this is; else None."""
    if not any(sign in failure for sign in _ENDED):
        return None
    since = time.monotonic() - _TOLD_S
    with _lock:
        told = [verdict for verdict in _verdicts.values() if verdict and verdict[0] > since]
    return max(told)[1] if told else None


class Waiting:
    """Measures for how long there have been tasks to run, of which none ran."""

    def __init__(self, patience: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._patience = patience
        self._clock = clock
        self._since = clock()
        self._ran: Mapping[Hashable, int] = {}
        self._limit = patience

    def too_long(self, ended: Mapping[Hashable, int], running: int) -> float | None:
        """The seconds, once they are more than the patience, which then begins anew; else None.

        `ended` and `running` are a Scheduler's `waiting()` and `running()`. A slow task is one
        that runs.
        """
        lives = running > 0 or any(count > self._ran.get(one, 0) for one, count in ended.items())
        self._ran = ended
        now = self._clock()
        if lives or not ended:
            self._since = now
            self._limit = self._patience if lives else self._limit
            return None
        waited = now - self._since
        if waited < self._limit:
            return None
        self._since, self._limit = now, min(self._patience, _SHORT_S)
        return waited
