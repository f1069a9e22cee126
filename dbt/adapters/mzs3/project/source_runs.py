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

from dbt.adapters.mzs3.errors import Mzs3Error
from dbt.adapters.mzs3.project.sources import (
    needed_sources,
    open_session,
    source_name,
    source_of,
)
from dbt.adapters.mzs3.project.together import Attempts, run_together
from dbt.adapters.mzs3.response import INTERRUPTED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = AdapterLogger("mzs3")

_attempts = Attempts()


def sources_read_by(adapter: Any, node: Any, is_wanted: Callable[[Any], bool]) -> list[Any]:
    """The wanted sources whose rows the node needs.

    None of a unit test, which has rows of its own, nor of a clone, which has another target's.
    """
    manifest = adapter.get_macro_resolver()
    is_clone = getattr(adapter.config.args, "which", None) == "clone"
    if manifest is None or node.resource_type == "unit_test" or is_clone:
        return []
    return needed_sources(manifest, node, is_wanted)


def source_of_relation(adapter: Any, relation: Any, is_wanted: Callable[[Any], bool]) -> list[Any]:
    """The wanted source that is this relation, if there is one."""
    manifest = adapter.get_macro_resolver()
    source = None if manifest is None else source_of(manifest, relation, is_wanted)
    return [] if source is None else [source]


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

    def each(self, sources: Sequence[Any], how: Hashable, action: Callable[[Any], None]) -> None:
        """Tries the action with every source, once in a run of dbt for each `how`.

        A source's error is kept for every node. Raises DbtRuntimeError with all errors, after all
        were tried; what the action raises that is no Mzs3Error is a defect.
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

    def session(self, source: str, kind: str) -> SparkSession:
        """A new session for the source, which stops with the others."""
        session = open_session(self.credentials, source, kind)
        self._sessions.append(session)
        return session

    def _interrupt(self) -> None:
        for session in list(self._sessions):
            session.interruptAll()

    def _once(self, source: Any, how: Hashable, action: Callable[[Any], None]) -> None:
        work = partial(_error_of, source, action)
        error = _attempts.once(get_invocation_id(), (source.unique_id, how), work)
        if error is not None:
            self._errors.append(error)


def _error_of(source: Any, action: Callable[[Any], None]) -> str | None:
    try:
        action(source)
    except Mzs3Error as exc:
        return str(exc)
    except Exception as exc:  # noqa: BLE001 - nothing may be tried again for every node
        logger.debug(traceback.format_exc())
        return (
            f"{source_name(source)}: {type(exc).__name__}: {exc}. This is a defect, please report "
            "it with the log of dbt"
        )
    return None
