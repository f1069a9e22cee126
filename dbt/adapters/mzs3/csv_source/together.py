"""Ingesting several sources at a time, and stopping all of them when the user cancels."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
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
