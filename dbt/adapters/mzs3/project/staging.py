"""The door between dbt's runs and S3 CSV sources: each is ingested once, before it is read."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.mzs3.csv_source.definition import TYPE, SourceDefinition
from dbt.adapters.mzs3.csv_source.ingest import ingest
from dbt.adapters.mzs3.csv_source.operations.reset import ingested_after_reset
from dbt.adapters.mzs3.csv_source.report import SourceLog
from dbt.adapters.mzs3.project.source_runs import (
    SourcesOfNode,
    is_empty_run,
    source_of_relation,
    sources_read_by,
)
from dbt.adapters.mzs3.project.sources import (
    is_csv_source,
    selected_sources,
    source_definition,
    source_name,
)
from dbt.adapters.mzs3.project.variables import (
    LISTING_VARIABLE,
    REFRESH_VARIABLE,
    is_full_refresh,
    named_sources,
    sources_to_refresh,
)

logger = AdapterLogger("mzs3")
_NOTHING_READ = "{}: no object is read, as --empty says; a run without it ingests what waits"


def stage_for_node(adapter: Any, node: Any) -> None:
    """Ingests every S3 CSV source that the node reads, unless this run of dbt has done so.

    As many of them at a time as the profile has threads. Raises DbtRuntimeError with the errors
    of its sources, to every node that needs them.
    """
    _stage_all(adapter, sources_read_by(adapter, node, is_csv_source))


def make_source_relation(adapter: Any, relation: Any) -> bool:
    """Whether the relation is an S3 CSV source's; then it exists, with no object ingested for it.

    For what asks for a source's columns before anything is ingested: unit tests, and macros that
    run while a model is compiled. Raises DbtRuntimeError with the source's error.
    """
    found = source_of_relation(adapter, relation, is_csv_source)
    _stage_all(adapter, found, create_only=True)
    return bool(found)


def ingest_sources(adapter: Any, select: str | Iterable[str] | None) -> None:
    """Ingest the selected sources, as many at a time as the profile has threads.

    Raises DbtRuntimeError with the errors of all that failed, after all were tried.
    """
    _stage_all(adapter, selected_sources(adapter.get_macro_resolver(), select))


def _stage_all(adapter: Any, sources: Sequence[Any], *, create_only: bool = False) -> None:
    if not sources:
        return
    run = SourcesOfNode(adapter)
    is_empty = is_empty_run(adapter)
    create_only = create_only or is_empty
    to_refresh = sources_to_refresh(adapter)
    to_list = named_sources(adapter, LISTING_VARIABLE)

    def stage(source: Any) -> None:
        definition = source_definition(source, run.credentials.connections)
        if source.unique_id in to_list:
            definition = replace(definition, listing=replace(definition.listing, full_hours=0))
        session = run.session(definition.name, TYPE)
        afresh = not create_only and source.unique_id in to_refresh
        if is_full_refresh(adapter) and not afresh:
            fire_event(Note(msg=_kept_text(definition)))
        report = ingest(
            session,
            definition,
            run.credentials.connections[definition.aws_connection],
            create_only=create_only,
            afresh=afresh,
            cancelled=run.cancelled,
            log=SourceLog(warn=logger.warning, say=logger.info),
        )
        fire_event(Note(msg=_NOTHING_READ.format(report.source) if is_empty else report.line()))

    run.each(sources, create_only, stage)


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
