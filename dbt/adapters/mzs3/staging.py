"""The door between dbt's runs and S3 CSV sources: each is ingested once, before it is read."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from dbt_common.exceptions import DbtRuntimeError
from dbt_common.invocation import get_invocation_id

from dbt.adapters.mzs3.csv_source.attempts import Attempts
from dbt.adapters.mzs3.csv_source.definition import SourceDefinition
from dbt.adapters.mzs3.csv_source.ingest import ingest
from dbt.adapters.mzs3.csv_source.reset import ingested_after_reset
from dbt.adapters.mzs3.csv_source.together import run_together
from dbt.adapters.mzs3.csv_source.voice import Voice
from dbt.adapters.mzs3.errors import Mzs3Error
from dbt.adapters.mzs3.full_listing import listed_in_full, sources_to_list
from dbt.adapters.mzs3.full_refresh import VARIABLE, is_full_refresh, sources_to_refresh
from dbt.adapters.mzs3.source_nodes import (
    needed_sources,
    selected_sources,
    source_definition,
    source_name,
    source_of,
)
from dbt.adapters.mzs3.source_operations import require_session
from dbt.adapters.mzs3.spark.session import isolated_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = AdapterLogger("mzs3")

_attempts = Attempts()


def stage_for_node(adapter: Any, node: Any) -> None:
    """Every S3 CSV source that the node reads is ingested: now, or earlier in this run.

    As many of them at a time as the profile has threads. Raises DbtRuntimeError with the errors
    of its sources, to every node that needs them.
    """
    manifest = adapter.get_macro_resolver()
    # A unit test reads its own rows in place of a source, a clone what another target made.
    if manifest is None or node.resource_type == "unit_test" or _command(adapter) == "clone":
        return
    _stage_all(adapter, needed_sources(manifest, node))


def make_source_relation(adapter: Any, relation: Any) -> bool:
    """Whether the relation is an S3 CSV source's; then it exists, with no object ingested for it.

    For what asks for a source's columns before anything is ingested: unit tests, and macros that
    run while a model is compiled. Raises DbtRuntimeError with the source's error.
    """
    manifest = adapter.get_macro_resolver()
    source = None if manifest is None else source_of(manifest, relation)
    if source is None:
        return False
    _stage_all(adapter, [source], create_only=True)
    return True


def ingest_sources(adapter: Any, select: str | Iterable[str] | None) -> None:
    """Ingest the selected sources, as many at a time as the profile has threads.

    Raises DbtRuntimeError with the errors of all that failed, after all were tried.
    """
    _stage_all(adapter, selected_sources(adapter.get_macro_resolver(), select))


def _stage_all(adapter: Any, sources: Sequence[Any], *, create_only: bool = False) -> None:
    if not sources:
        return
    staging = _Staging(adapter, create_only or bool(getattr(adapter.config.args, "EMPTY", False)))
    run_together(
        [partial(staging.stage, source) for source in sources],
        threads=adapter.config.threads,
        cancelled=staging.cancelled,
        interrupt=staging.interrupt,
    )
    if staging.errors:
        raise DbtRuntimeError("\n".join(sorted(staging.errors)))


class _Staging:
    """The sources of one node, each in a session of its own; they stop as its connection does."""

    def __init__(self, adapter: Any, create_only: bool) -> None:
        self._credentials = adapter.config.credentials
        self._create_only = create_only
        self._told_to_refresh = is_full_refresh(adapter)
        self._afresh = sources_to_refresh(adapter)
        self._in_full = sources_to_list(adapter)
        self._sessions: list[SparkSession] = []
        self.errors: list[str] = []
        self.cancelled = threading.Event()
        if self._credentials.method == "session":
            self.cancelled = adapter.connections.get_thread_connection().handle.cancelled

    def interrupt(self) -> None:
        """Stop what Spark runs for these sources."""
        for session in list(self._sessions):
            session.interruptAll()

    def stage(self, source: Any) -> None:
        """One attempt at the source in this run of dbt; its error is kept for everybody."""
        key = (source.unique_id, self._create_only)
        error = _attempts.once(get_invocation_id(), key, partial(self._error_of, source))
        if error is not None:
            self.errors.append(error)

    def _error_of(self, source: Any) -> str | None:
        try:
            self._ingest(source)
        except Mzs3Error as exc:
            return str(exc)
        except Exception as exc:  # noqa: BLE001 - nothing may be tried again for every node
            logger.debug(traceback.format_exc())
            return (
                f"{source_name(source)}: {type(exc).__name__}: {exc}. This is a defect, please "
                "report it with the log of dbt"
            )
        return None

    def _ingest(self, source: Any) -> None:
        definition = source_definition(source, self._credentials.connections)
        if source.unique_id in self._in_full:
            definition = listed_in_full(definition)
        require_session(self._credentials.method, definition.name)
        session = isolated_session(self._credentials.server_side_parameters)
        self._sessions.append(session)
        afresh = not self._create_only and source.unique_id in self._afresh
        if self._told_to_refresh and not afresh:
            fire_event(Note(msg=_kept_text(definition)))
        report = ingest(
            session,
            definition,
            self._credentials.connections[definition.aws_connection],
            create_only=self._create_only,
            afresh=afresh,
            cancelled=self.cancelled,
            voice=Voice(warn=logger.warning, say=logger.info),
        )
        fire_event(Note(msg=report.line()))


def _kept_text(definition: SourceDefinition) -> str:
    source, then = definition.name, ingested_after_reset(definition.discovery)
    return (
        f"{source}: --full-refresh leaves what is ingested as it is; to drop it and ingest "
        f"{then}, set the variable too: --vars '{{{VARIABLE}: [{source}]}}'"
    )


def _command(adapter: Any) -> str | None:
    """What dbt was told to do, such as `run`."""
    command: str | None = getattr(adapter.config.args, "which", None)
    return command
