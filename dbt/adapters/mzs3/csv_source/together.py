"""Several sources at a time: each tried once in an invocation, all stopped by Ctrl-C."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from dbt.adapters.mzs3.errors import SourceError

POLL_S = 0.2


def run_together(
    tasks: Sequence[Callable[[], None]],
    *,
    threads: int,
    cancelled: threading.Event,
    interrupt: Callable[[], None],
) -> None:
    """Every task has run when this returns, at most `threads` of them at a time.

    Once `cancelled` is set, by whomever, or by an interrupt of this thread such as Ctrl-C,
    `interrupt` is called again and again until no task runs: one may just be on its way from one
    Spark job to the next. Raises what a task raises, or the interrupt, after all have ended.
    """
    if not tasks:
        return
    with ThreadPoolExecutor(max_workers=max(1, min(threads, len(tasks)))) as pool:
        runs = [pool.submit(task) for task in tasks]
        try:
            _wait(runs, cancelled, interrupt)
        except BaseException:
            cancelled.set()
            _wait(runs, cancelled, interrupt)
            raise
    for run in runs:
        run.result()


def _wait(
    runs: Sequence[Future[None]], cancelled: threading.Event, interrupt: Callable[[], None]
) -> None:
    running = set(runs)
    while running:
        if cancelled.is_set():
            interrupt()
        _, running = wait(running, timeout=POLL_S, return_when=FIRST_EXCEPTION)


@dataclass
class _Attempt:
    lock: threading.Lock = field(default_factory=threading.Lock)
    done: bool = False
    error: str | None = None


class Attempts:
    """Every attempt of the running invocation; those of earlier ones are forgotten."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._invocation = ""
        self._of: dict[Hashable, _Attempt] = {}

    def once(self, invocation: str, key: Hashable, action: Callable[[], str | None]) -> str | None:
        """What the first call of this invocation with this key got from its action: an error or
        None. Calls that come while it runs wait for it."""
        attempt = self._get(invocation, key)
        with attempt.lock:
            if not attempt.done:
                attempt.error = action()
                attempt.done = True
        return attempt.error

    def _get(self, invocation: str, key: Hashable) -> _Attempt:
        with self._guard:
            if invocation != self._invocation:
                self._invocation, self._of = invocation, {}
            return self._of.setdefault(key, _Attempt())


@dataclass
class Cancellation:
    """Whether the run was cancelled, and what that means for one source.

    `event` may be set from any thread. `committing` says that the commit has begun: whether it
    took effect is then for the metastore to say.
    """

    source: str
    event: threading.Event = field(default_factory=threading.Event)
    committing: bool = False

    @property
    def requested(self) -> bool:
        """Whether the user has cancelled."""
        return self.event.is_set()

    def check(self) -> None:
        """Raises SourceError once the user has cancelled."""
        if self.requested:
            raise self.error()

    def wait(self, seconds: float) -> None:
        """Waits so long, less if the user cancels: then it raises SourceError."""
        self.event.wait(seconds)
        self.check()

    def error(self) -> SourceError:
        """What a cancelled ingestion ends in."""
        if self.committing:
            return SourceError(
                f"{self.source}: cancelled while it was committing; either all of this run is "
                "committed or nothing is, and the next run takes what is missing"
            )
        return SourceError(f"{self.source}: cancelled; nothing of this run is committed")
