"""The door between dbt's runs and S3 CSV sources: each is ingested once, before it is read."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.mzs3.credentials import require_session
from dbt.adapters.mzs3.csv_source.definition import TYPE, SourceDefinition
from dbt.adapters.mzs3.csv_source.ingest import ingest
from dbt.adapters.mzs3.csv_source.operations.reset import ingested_after_reset
from dbt.adapters.mzs3.csv_source.report import SourceLog
from dbt.adapters.mzs3.errors import Mzs3Error
from dbt.adapters.mzs3.project.source_runs import SourcesOfNode, is_empty_run, reads_sources
from dbt.adapters.mzs3.project.sources import (
    needed_sources,
    selected_sources,
    source_definition,
    source_name,
    source_of,
)
from dbt.adapters.mzs3.project.variables import (
    REFRESH_VARIABLE,
    is_full_refresh,
    listed_in_full,
    sources_to_list,
    sources_to_refresh,
)

logger = AdapterLogger("mzs3")
_NOTHING_READ = "{}: no object is read, as --empty says; a run without it ingests what waits"


def stage_for_node(adapter: Any, node: Any) -> None:
    """Every S3 CSV source that the node reads is ingested: now, or earlier in this run.

    As many of them at a time as the profile has threads. Raises DbtRuntimeError with the errors
    of its sources, to every node that needs them.
    """
    if reads_sources(adapter, node):
        _stage_all(adapter, needed_sources(adapter.get_macro_resolver(), node))


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
    create_only = create_only or is_empty_run(adapter)
    staging = _Staging(adapter, create_only)
    staging.run.each(sources, create_only, staging.error_of)


class _Staging:
    """The S3 CSV sources of one node."""

    def __init__(self, adapter: Any, create_only: bool) -> None:
        self.run = SourcesOfNode(adapter)
        self._create_only = create_only
        self._empty = is_empty_run(adapter)
        self._told_to_refresh = is_full_refresh(adapter)
        self._afresh = sources_to_refresh(adapter)
        self._in_full = sources_to_list(adapter)

    def error_of(self, source: Any) -> str | None:
        """Ingest it."""
        try:
            self._ingest(source)
        except Mzs3Error as exc:
            return str(exc)
        return None

    def _ingest(self, source: Any) -> None:
        credentials = self.run.credentials
        definition = source_definition(source, credentials.connections)
        if source.unique_id in self._in_full:
            definition = listed_in_full(definition)
        require_session(credentials.method, f"{definition.name}: a source of type {TYPE}")
        session = self.run.session()
        afresh = not self._create_only and source.unique_id in self._afresh
        if self._told_to_refresh and not afresh:
            fire_event(Note(msg=_kept_text(definition)))
        report = ingest(
            session,
            definition,
            credentials.connections[definition.aws_connection],
            create_only=self._create_only,
            afresh=afresh,
            cancelled=self.run.cancelled,
            log=SourceLog(warn=logger.warning, say=logger.info),
        )
        fire_event(Note(msg=_NOTHING_READ.format(report.source) if self._empty else report.line()))


def who_ingests(adapter: Any, sql: str) -> str:
    """How to ingest the sources that a query reads and that never were; nothing if none is.

    For queries that fail: `dbt show` ingests nothing, and Spark only says what is not there.
    """
    manifest = adapter.get_macro_resolver()
    sources = selected_sources(manifest, None) if manifest is not None else []
    missing: list[str] = []
    with contextlib.suppress(DbtRuntimeError):  # the query's own failure is what counts
        missing = [
            source_name(source)
            for source in sources
            if re.search(rf"(?<![\w`.]){re.escape(source.relation_name)}(?![\w`.])", sql)
            and adapter.get_relation(source.database, source.schema, source.identifier) is None
        ]
    listed = ", ".join(missing)
    return (
        f"\nnever ingested: {listed}. To do so: dbt run-operation ingest_s3_sources --args "
        f"'{{select: [{listed}]}}'"
        if missing
        else ""
    )


def _kept_text(definition: SourceDefinition) -> str:
    source, then = definition.name, ingested_after_reset(definition.discovery)
    return (
        f"{source}: --full-refresh leaves what is ingested as it is; to drop it and ingest "
        f"{then}, set the variable too: --vars '{{{REFRESH_VARIABLE}: [{source}]}}'"
    )
