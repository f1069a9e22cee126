"""Ingests or reads the sources in S3, each once per dbt run, before the nodes that read them."""

from __future__ import annotations

import contextlib
import re
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.events.contextvars import get_node_info
from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from dbt_common.exceptions import DbtRuntimeError
from dbt_common.invocation import get_invocation_id

from dbt.adapters.mzs3.dbt_log import Warnings, warnings_of
from dbt.adapters.mzs3.errors import Mzs3Error, ShardError
from dbt.adapters.mzs3.ledger.relations import SUFFIXES
from dbt.adapters.mzs3.project.overlaps import require_own
from dbt.adapters.mzs3.project.source_runs import SourcesOfNode, is_empty_run
from dbt.adapters.mzs3.project.sources import (
    declared_external,
    functions_of,
    named_sources,
    needed_sources,
    schema_of,
    selected_sources,
    source_definition,
    source_name,
    sources_read_as,
)
from dbt.adapters.mzs3.shard.options import TYPE as SHARD
from dbt.adapters.mzs3.shard.options import ShardSource, parse_shard_source
from dbt.adapters.mzs3.shard.read.table import SourceTable, refresh_source
from dbt.adapters.mzs3.source.ingest import ingest
from dbt.adapters.mzs3.source.options import TYPE
from dbt.adapters.mzs3.source.reset import ingested_after_reset
from dbt.adapters.mzs3.spark.job import Call
from dbt.adapters.mzs3.text import operation_command

logger = AdapterLogger("mzs3")

# Commands without staging; the last two are names of `dbt source freshness`, which runs hooks.
_WITHOUT_STAGING = ("clone", "freshness", "snapshot-freshness")
_REFRESH_VARIABLE = "mzs3_full_refresh_sources"
_LISTING_VARIABLE = "mzs3_full_listing"
_BESIDE = "|".join(filter(None, SUFFIXES))

_locks: defaultdict[tuple[str, str], threading.Lock] = defaultdict(threading.Lock)
_locks_guard = threading.Lock()


def stage_for_node(adapter: Any, node: Any) -> dict[str, dict[str, int]]:
    """Ingests every source, and reads every shard, that the node reads.

    Once per dbt run each, but shards again for each hook of the run, as models write to them. Does
    nothing for unit tests, which have rows of their own, for `dbt clone`, and for hooks of `dbt
    source freshness`. Returns the bytes that were fetched from shards, by source and column.
    Raises DbtRuntimeError with the errors of all sources of a type.
    """
    manifest = adapter.get_macro_resolver()
    command = getattr(adapter.config.args, "which", None)
    if manifest is None or node.resource_type == "unit_test" or command in _WITHOUT_STAGING:
        return {}
    credentials = adapter.config.credentials
    # A profile that runs only SQL reads what others have ingested, in sources without a type.
    how = {"catalog": credentials.default_catalog, "untyped": credentials.runs_jobs}
    ingest_sources(adapter, needed_sources(manifest, node, TYPE, **how))
    hook = node.unique_id if node.resource_type == "operation" else ""
    return read_shards(adapter, needed_sources(manifest, node, SHARD, **how), hook=hook)


def stage_for_run_hook(adapter: Any) -> None:
    """Calls `stage_for_node` for the on-run-start or on-run-end hook that runs now, or the
    function that is created now: for these, dbt calls no hook of the adapter."""
    running = str(get_node_info().get("unique_id", ""))
    if running.startswith(("operation.", "function.")):
        manifest = adapter.get_macro_resolver()
        nodes = {} if manifest is None else {**functions_of(manifest), **manifest.nodes}
        if running in nodes:
            stage_for_node(adapter, nodes[running])


def make_source_relation(adapter: Any, relation: Any) -> bool:
    """Creates the relation, without rows, if it is a source's in S3. Returns whether it is.

    For unit tests, and for macros that ask for columns while a model is compiled. Raises
    DbtRuntimeError with the source's error.
    """
    manifest, credentials = adapter.get_macro_resolver(), adapter.config.credentials
    how = {"catalog": credentials.default_catalog, "rejects": credentials.runs_jobs}
    stages: Mapping[str, Callable[..., object]] = {TYPE: ingest_sources, SHARD: read_shards}
    for kind, stage in stages.items():
        if sources := sources_read_as(manifest, [relation], kind, **how):
            stage(adapter, sources[:1], create_only=True)
            return True
    return False


def ingest_sources(adapter: Any, sources: Sequence[Any], *, create_only: bool = False) -> None:
    """Ingests these sources, unless this dbt run has done so already.

    With `create_only`, only creates their relations. Raises DbtRuntimeError with all errors.
    """
    if not sources:
        return
    run = SourcesOfNode(adapter)
    connections = run.credentials.connections
    is_empty = is_empty_run(adapter)
    create_only |= is_empty
    full_refresh = bool(getattr(adapter.config.args, "FULL_REFRESH", False))
    to_refresh = named_sources(adapter, _REFRESH_VARIABLE) if full_refresh else frozenset()
    to_list = named_sources(adapter, _LISTING_VARIABLE)

    def stage(source: Any) -> None:
        require_own(adapter, source)
        definition = source_definition(source, connections)
        if source.unique_id in to_list and definition.keys_ascend:
            definition = replace(definition, full_listing_hours=0)
        afresh = not create_only and source.unique_id in to_refresh
        if full_refresh and not afresh:
            then = ingested_after_reset(definition)
            note = (
                f"{definition.name}: --full-refresh leaves what is ingested as it is; to drop it "
                f"and ingest {then}, set the variable too: --vars "
                f"'{{{_REFRESH_VARIABLE}: [{definition.name}]}}'"
            )
            fire_event(Note(msg=note))
        how = {
            "definition": definition,
            "connection": connections[definition.aws_connection],
            "create_only": create_only,
            "afresh": afresh,
        }
        call = Call(ingest, how, takes=("cancelled", "tell"))
        with warnings_of(definition.name) as warnings:
            report = run.call(call, definition.name, tell=partial(_log, warnings))
            line = report.line()
            if is_empty:
                line = (
                    f"{report.source}: no object is read, as --empty says; a run without it "
                    "ingests what waits"
                )
            fire_event(Note(msg=line))

    run.for_each(sources, create_only, stage)


def _log(warnings: Warnings, level_and_text: tuple[str, str]) -> None:
    level, text = level_and_text
    if level == "warn":
        warnings.warn(text)
    else:
        (logger.debug if level == "debug" else logger.info)(text)


def who_ingests(adapter: Any, sql: str) -> str:
    """A hint how to ingest the sources that a failed query reads and that were never ingested.

    Empty if there are none. `dbt show` ingests nothing, and Spark only reports a missing table.
    """
    manifest = adapter.get_macro_resolver()
    sources = selected_sources(manifest, None) if manifest is not None else []
    missing: list[str] = []
    with contextlib.suppress(DbtRuntimeError):  # which must not replace the query's failure
        missing = [
            source_name(source)
            for source in sources
            if re.search(
                rf"(?<![\w`.]){re.escape(source.relation_name)}({_BESIDE})?(?![\w`.])", sql
            )
            and adapter.get_relation(source.database, source.schema, source.identifier) is None
        ]
    if not missing:
        return ""
    listed = ", ".join(missing)
    command = operation_command("ingest_s3_sources", f"select: [{listed}]")
    return f"\nnever ingested: {listed}. To do so: {command}"


def read_shards(
    adapter: Any, sources: Sequence[Any], *, create_only: bool = False, hook: str = ""
) -> dict[str, dict[str, int]]:
    """Reads the shards of these sources, unless this dbt run has done so for the same `hook`.

    With `create_only`, only creates missing tables, without rows. Returns the bytes that were
    fetched, by source and column. Raises DbtRuntimeError with all errors.
    """
    fetched: dict[str, dict[str, int]] = {}
    if not sources:
        return fetched
    run, is_empty = SourcesOfNode(adapter), is_empty_run(adapter)

    def read(node: Any) -> None:
        require_own(adapter, node)
        name, place = source_name(node), (schema_of(node), node.identifier)
        source = shard_source(node, run.credentials.connections)
        table = SourceTable(
            source,
            run.credentials.connections[source.aws_connection],
            *place,
            [(column.name, column.data_type) for column in node.columns.values()],
            get_invocation_id(),
        )
        how = {"table": table, "is_empty": is_empty, "if_missing": create_only}

        def say(warnings: Warnings, line: tuple[str, str]) -> None:
            _log(warnings, (line[0], f"{name}: {line[1]}"))

        # One at a time: an empty table must not replace the rows that another thread has read.
        with _locks_guard:
            lock = _locks[place]
        with warnings_of(name) as warnings:
            try:
                with lock:
                    call = Call(refresh_source, how, takes=("tell",))
                    result = run.call(call, name, tell=partial(say, warnings))
            except Mzs3Error as exc:
                raise ShardError(f"{name}: {exc}") from exc
            if result is not None:
                fetched[name] = dict(result.bytes)
                logger.info(f"{name}: {result.text}")

    run.for_each(sources, (create_only, hook), read)
    return fetched


def shard_source(node: Any, connections: Collection[str]) -> ShardSource:
    """The shard that the source node declares. Raises ConfigError with all problems."""
    names = [column.name for column in node.columns.values()]
    return parse_shard_source(source_name(node), declared_external(node), names, connections)
