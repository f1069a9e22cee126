"""Runs actions on the sources of a node: several in parallel, each once per source and dbt run."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from functools import lru_cache, partial
from typing import Any, TypeVar

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError
from dbt_common.invocation import get_invocation_id

from dbt.adapters.mzs3.errors import Mzs3Error
from dbt.adapters.mzs3.project.sources import source_name
from dbt.adapters.mzs3.runner import runner_for
from dbt.adapters.mzs3.spark.job import Call, Tell

T = TypeVar("T")

logger = AdapterLogger("mzs3")

_POLL_S = 0.2

_attempts_lock = threading.Lock()


def is_empty_run(adapter: Any) -> bool:
    """Whether dbt runs with `--empty`, and so reads no rows."""
    return bool(getattr(adapter.config.args, "EMPTY", False))


@lru_cache(maxsize=1)
def _attempts(invocation: str) -> dict[Hashable, Future[str | None]]:
    """The attempts of this invocation, by key; those of earlier invocations are dropped."""
    return {}


def run_once(invocation: str, key: Hashable, action: Callable[[], str | None]) -> str | None:
    """Runs the action in the first call of this invocation with this key. Returns its result, an
    error or None, from every such call; calls during the action wait for it."""
    with _attempts_lock:
        attempts = _attempts(invocation)
        is_first = key not in attempts
        attempt = attempts.setdefault(key, Future())
    if is_first:
        try:
            attempt.set_result(action())
        except BaseException as exc:  # noqa: BLE001 - raised in each call
            attempt.set_exception(exc)
    return attempt.result()


class SourcesOfNode:
    """Works on sources, each in a session of its own, until the node's connection is cancelled."""

    def __init__(self, adapter: Any) -> None:
        self._adapter = adapter
        self.credentials = adapter.config.credentials
        self._runner = runner_for(self.credentials)
        self.cancelled = threading.Event()
        if self.credentials.runs_jobs:
            self.cancelled = adapter.connections.get_thread_connection().handle.cancelled

    def for_each(
        self, sources: Sequence[Any], how: Hashable, action: Callable[[Any], None]
    ) -> None:
        """Runs the action for every source, unless this dbt run has done so with the same `how`.

        Runs as many in parallel as the profile has threads. Raises DbtRuntimeError with the errors
        of all sources, those of earlier nodes included; errors other than Mzs3Error are reported
        as defects. After Ctrl-C in dbt's main thread, which runs hooks and run-operations, raises
        the interrupt, and keeps the errors for the end of the run.
        """
        errors: list[str] = []

        def attempt(source: Any) -> None:
            work = partial(_error_of, source, action)
            error = run_once(get_invocation_id(), (source.unique_id, how), work)
            if error is not None:
                errors.append(error)

        try:
            with self._runner:
                run_together(
                    [partial(attempt, source) for source in sources],
                    threads=self._adapter.config.threads,
                    cancelled=self.cancelled,
                    interrupt=self._runner.interrupt,
                )
        finally:
            text = "\n".join(sorted(errors))
            if errors and self.cancelled.is_set():
                self._adapter.connections.leftovers.add(text)
        if errors:
            raise DbtRuntimeError(text)

    def call(self, call: Call[T], source: str, tell: Tell = lambda what: None) -> T:
        """Runs a call for a source in an action of `for_each`, with `Runner.run`."""
        return self._runner.run(call, source, cancelled=self.cancelled, tell=tell)


def _error_of(source: Any, action: Callable[[Any], None]) -> str | None:
    try:
        action(source)
    except Mzs3Error as exc:
        return str(exc)
    except Exception as exc:  # noqa: BLE001 - reported as the source's error
        logger.debug(traceback.format_exc())
        return (
            f"{source_name(source)}: {type(exc).__name__}: {exc}. This is a defect, please report "
            "it with the log of dbt"
        )
    return None


def run_together(
    tasks: Sequence[Callable[[], None]],
    *,
    threads: int,
    cancelled: threading.Event,
    interrupt: Callable[[], None],
) -> None:
    """Runs every task, at most `threads` of them at a time.

    Once `cancelled` is set, or this thread is interrupted, as by Ctrl-C, `interrupt` is called
    repeatedly until no task runs: a task may be between two Spark jobs. After all have ended,
    raises what a task has raised, or the interrupt.
    """
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
        _, running = wait(running, timeout=_POLL_S, return_when=FIRST_EXCEPTION)
