"""Sources of an invocation of dbt: several at a time, each tried once, all stopped by Ctrl-C."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait

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


class Attempts:
    """What was tried in the running invocation; earlier invocations are forgotten."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._invocation = ""
        self._of: dict[Hashable, Future[str | None]] = {}

    def once(self, invocation: str, key: Hashable, action: Callable[[], str | None]) -> str | None:
        """What the first call of this invocation with this key got from its action: an error or
        None. Calls that come while it runs wait for it."""
        with self._guard:
            if invocation != self._invocation:
                self._invocation, self._of = invocation, {}
            is_first = key not in self._of
            attempt = self._of.setdefault(key, Future())
        if is_first:
            try:
                attempt.set_result(action())
            except BaseException as exc:  # noqa: BLE001 - all who wait for it get it
                attempt.set_exception(exc)
        return attempt.result()
