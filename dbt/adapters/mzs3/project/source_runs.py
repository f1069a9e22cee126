"""The sources of one node of dbt: each tried once in a run, several at a time."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError
from dbt_common.invocation import get_invocation_id

from dbt.adapters.mzs3.project.sources import source_name
from dbt.adapters.mzs3.project.together import Attempts, run_together
from dbt.adapters.mzs3.response import INTERRUPTED
from dbt.adapters.mzs3.spark.session import isolated_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = AdapterLogger("mzs3")

_attempts = Attempts()


def reads_sources(adapter: Any, node: Any) -> bool:
    """Whether the node needs sources' rows: a unit test has its own, a clone another target's."""
    is_clone = getattr(adapter.config.args, "which", None) == "clone"
    has_manifest = adapter.get_macro_resolver() is not None
    return has_manifest and node.resource_type != "unit_test" and not is_clone


def is_empty_run(adapter: Any) -> bool:
    """Whether dbt was told to read no rows, with `--empty`."""
    return bool(getattr(adapter.config.args, "EMPTY", False))


class SourcesOfNode:
    """Sources, each of them in a session of its own; they stop as the node's connection does."""

    def __init__(self, adapter: Any) -> None:
        self.credentials = adapter.config.credentials
        self._threads = adapter.config.threads
        self._connections = adapter.connections
        self._sessions: list[SparkSession] = []
        self._errors: list[str] = []
        self.cancelled = threading.Event()
        if self.credentials.method == "session":
            self.cancelled = adapter.connections.get_thread_connection().handle.cancelled

    def each(
        self, sources: Sequence[Any], how: Hashable, action: Callable[[Any], str | None]
    ) -> None:
        """The action is tried with every source, once in a run of dbt for each `how`.

        It returns the source's error, which is kept for every node. Raises DbtRuntimeError with
        all errors, after all were tried; what the action raises is an error of ours.
        """
        try:
            run_together(
                [partial(self._once, source, how, action) for source in sources],
                threads=self._threads,
                cancelled=self.cancelled,
                interrupt=self._interrupt,
            )
        except KeyboardInterrupt as exc:  # a run-operation's, which dbt runs in its main thread
            raise DbtRuntimeError("\n".join(sorted(self._errors)) or INTERRUPTED) from exc
        if self._errors:
            errors = "\n".join(sorted(self._errors))
            if self.cancelled.is_set():
                self._connections.remains.say(errors)
            raise DbtRuntimeError(errors)

    def session(self) -> SparkSession:
        """A new session, which stops with the others."""
        session = isolated_session(
            self.credentials.server_side_parameters, self.credentials.executor_timeout
        )
        self._sessions.append(session)
        return session

    def _interrupt(self) -> None:
        for session in list(self._sessions):
            session.interruptAll()

    def _once(self, source: Any, how: Hashable, action: Callable[[Any], str | None]) -> None:
        work = partial(_error_of, source, action)
        error = _attempts.once(get_invocation_id(), (source.unique_id, how), work)
        if error is not None:
            self._errors.append(error)


def _error_of(source: Any, action: Callable[[Any], str | None]) -> str | None:
    try:
        return action(source)
    except Exception as exc:  # noqa: BLE001 - nothing may be tried again for every node
        logger.debug(traceback.format_exc())
        return (
            f"{source_name(source)}: {type(exc).__name__}: {exc}. This is a defect, please report "
            "it with the log of dbt"
        )
