"""Checks what the exports, shards and sources of a parsed project declare."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.export.options import parse_options
from dbt.adapters.mzs3.logged import Warnings
from dbt.adapters.mzs3.project.model_options import export_options, shard_options
from dbt.adapters.mzs3.project.overlaps import shown
from dbt.adapters.mzs3.project.sources import is_of_type, source_definition
from dbt.adapters.mzs3.project.staging import shard_source
from dbt.adapters.mzs3.shard.options import TYPE as SHARD
from dbt.adapters.mzs3.shard.options import parse_shard_options
from dbt.adapters.mzs3.source.options import TYPE


def check_declarations(
    command: str | None,
    manifest: Any,
    connections: Collection[str],
    overlaps: Mapping[str, Sequence[str]],
) -> None:
    """Reports every wrong option of the project's exports, shards and sources, and all overlaps.

    `dbt parse` and `dbt compile` fail with one CompilationError. `dbt run` and `dbt build` warn:
    nodes that don't need what is wrong still run, and the others fail by themselves. Where dbt
    takes warnings for errors, these too are raised as one.
    """
    if command not in ("parse", "compile", "run", "build"):
        return
    errors: list[str] = []
    for node in [*manifest.nodes.values(), *manifest.sources.values()]:
        problems = [*_problems_of(node, manifest, connections), *overlaps.get(node.unique_id, ())]
        if problems:
            errors.append(str(ConfigError(shown(node), problems)))
    if errors and command in ("parse", "compile"):
        raise CompilationError("\n".join(errors))
    warnings = Warnings()
    for error in errors:
        warnings.warn(error)
    if warnings.errors:
        raise CompilationError("\n".join(warnings.errors))


def refuse_to_build_sources(args: Any) -> None:
    """Raises DbtRuntimeError for `dbt build --resource-type source`, where dbt has nothing to run
    sources with, and says no more than that it is an internal error."""
    selected = {*(getattr(args, "RESOURCE_TYPES", None) or ())}
    selected -= {*(getattr(args, "EXCLUDE_RESOURCE_TYPES", None) or ())}
    if getattr(args, "which", None) == "build" and selected == {"source"}:
        raise DbtRuntimeError(
            "dbt build does not run sources, which --resource-type source asks for: leave it out. "
            f"Sources of type {TYPE} are ingested before what reads them, or by themselves with "
            "dbt run-operation ingest_s3_sources"
        )


def _problems_of(node: Any, manifest: Any, connections: Collection[str]) -> Sequence[str]:
    """All that is wrong with the options of the node, if it is one of ours."""
    try:
        _check(node, manifest, connections)
    except ConfigError as exc:
        return exc.problems
    return ()


def _check(node: Any, manifest: Any, connections: Collection[str]) -> None:
    if node.resource_type == "source":
        if is_of_type(node, TYPE):
            source_definition(node, connections)
        elif is_of_type(node, SHARD):
            shard_source(node, connections)
    elif node.resource_type == "model":
        if node.config.materialized == "copy_to_s3":
            parse_options(node.unique_id, export_options(node, manifest), connections)
        elif node.config.materialized == "persist_shard":
            options = shard_options(node, manifest)
            parse_shard_options(node.unique_id, options, connections)
