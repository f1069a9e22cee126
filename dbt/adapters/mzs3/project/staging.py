"""Ingests S3 CSV sources, each once in a run, before the nodes that read them."""

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

from dbt.adapters.mzs3.csv_source.definition import TYPE
from dbt.adapters.mzs3.csv_source.ingest import ingest
from dbt.adapters.mzs3.csv_source.operations.reset import ingested_after_reset
from dbt.adapters.mzs3.csv_source.report import SourceLog
from dbt.adapters.mzs3.project.source_runs import SourcesOfNode, is_empty_run, sources_of_node
from dbt.adapters.mzs3.project.sources import (
    is_csv_source,
    named_sources,
    selected_sources,
    source_definition,
    source_name,
    source_of,
)

logger = AdapterLogger("mzs3")

_REFRESH_VARIABLE = "mzs3_full_refresh_sources"
_LISTING_VARIABLE = "mzs3_full_listing"


def stage_for_node(adapter: Any, node: Any) -> None:
    """Ingests every S3 CSV source that the node reads, unless this run has done so already.

    Raises DbtRuntimeError with the errors of all of its sources.
    """
    _stage_all(adapter, sources_of_node(adapter, node, is_csv_source))


def make_source_relation(adapter: Any, relation: Any) -> bool:
    """Creates the relation, without rows, if it is that of an S3 CSV source; whether it is.

    For unit tests, and for macros that ask for columns while a model is compiled. Raises
    DbtRuntimeError with the source's error.
    """
    source = source_of(adapter.get_macro_resolver(), relation, is_csv_source)
    if source is None:
        return False
    _stage_all(adapter, [source], create_only=True)
    return True


def ingest_sources(adapter: Any, select: Iterable[str] | None) -> None:
    """Ingests the selected sources, or all. Raises DbtRuntimeError with the errors of all."""
    _stage_all(adapter, selected_sources(adapter.get_macro_resolver(), select))


def _stage_all(adapter: Any, sources: Sequence[Any], *, create_only: bool = False) -> None:
    if not sources:
        return
    run = SourcesOfNode(adapter)
    connections = run.credentials.connections
    is_empty = is_empty_run(adapter)
    create_only = create_only or is_empty
    full_refresh = bool(getattr(adapter.config.args, "FULL_REFRESH", False))
    to_refresh = named_sources(adapter, _REFRESH_VARIABLE) if full_refresh else frozenset()
    to_list = named_sources(adapter, _LISTING_VARIABLE)

    def stage(source: Any) -> None:
        definition = source_definition(source, connections)
        if source.unique_id in to_list:
            listing = replace(definition.listing, full_hours=0)
            definition = replace(definition, listing=listing)
        session = run.session(definition.name, TYPE)
        afresh = not create_only and source.unique_id in to_refresh
        if full_refresh and not afresh:
            then = ingested_after_reset(definition.discovery)
            kept = (
                f"{definition.name}: --full-refresh leaves what is ingested as it is; to drop it "
                f"and ingest {then}, set the variable too: --vars "
                f"'{{{_REFRESH_VARIABLE}: [{definition.name}]}}'"
            )
            fire_event(Note(msg=kept))
        report = ingest(
            session,
            definition,
            connections[definition.aws_connection],
            create_only=create_only,
            afresh=afresh,
            cancelled=run.cancelled,
            log=SourceLog(warn=logger.warning, say=logger.info),
        )
        done = report.line()
        if is_empty:
            done = (
                f"{report.source}: no object is read, as --empty says; a run without it ingests "
                "what waits"
            )
        fire_event(Note(msg=done))

    run.each(sources, create_only, stage)


def who_ingests(adapter: Any, sql: str) -> str:
    """How to ingest the sources that a query reads and that never were; else an empty text.

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
    if not missing:
        return ""
    listed = ", ".join(missing)
    return (
        f"\nnever ingested: {listed}. To do so: dbt run-operation ingest_s3_sources --args "
        f"'{{select: [{listed}]}}'"
    )
