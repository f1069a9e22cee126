"""Options that the exports, shards and sources of a parsed project declare, and checks of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.mzs3.dbt_log import Warnings
from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.export.options import CopyOptions, parse_options
from dbt.adapters.mzs3.options.option import options_of
from dbt.adapters.mzs3.project.overlaps import node_and_file
from dbt.adapters.mzs3.project.sources import is_of_type, source_definition
from dbt.adapters.mzs3.project.staging import shard_source
from dbt.adapters.mzs3.shard.options import TYPE as SHARD
from dbt.adapters.mzs3.shard.options import ShardOptions, parse_shard_options
from dbt.adapters.mzs3.source.options import TYPE

# Options of dbt-athena and dbt-starrocks whose names are similar to ours.
_OTHER_ADAPTERS = ("partitioned_by", "mv_on_schema_change")


def check_declarations(
    command: str | None,
    manifest: Any,
    connections: Collection[str],
    overlaps: Mapping[str, Sequence[str]],
) -> None:
    """Reports every wrong option of the project's exports, shards and sources, and all overlaps.

    `dbt parse` and `dbt compile` fail with one CompilationError. `dbt run` and `dbt build` warn:
    nodes that don't depend on what is wrong still run, and the others fail by themselves. If dbt
    treats warnings as errors, these too are raised as one CompilationError.
    """
    if command not in ("parse", "compile", "run", "build"):
        return
    errors: list[str] = []
    for node in [*manifest.nodes.values(), *manifest.sources.values()]:
        problems = [*_problems_of(node, manifest, connections), *overlaps.get(node.unique_id, ())]
        if problems:
            errors.append(str(ConfigError(node_and_file(node), problems)))
    if errors and command in ("parse", "compile"):
        raise CompilationError("\n".join(errors))
    warnings = Warnings()
    for error in errors:
        warnings.warn(error)
    if warnings.errors:
        raise CompilationError("\n".join(warnings.errors))


def refuse_to_build_sources(args: Any) -> None:
    """Raises DbtRuntimeError for `dbt build --resource-type source`: dbt has no task for sources,
    and would only report an internal error."""
    selected = {*(getattr(args, "RESOURCE_TYPES", None) or ())}
    selected -= {*(getattr(args, "EXCLUDE_RESOURCE_TYPES", None) or ())}
    if getattr(args, "which", None) == "build" and selected == {"source"}:
        raise DbtRuntimeError(
            "dbt build does not run sources, which --resource-type source asks for: leave it out. "
            f"Sources of type {TYPE} are ingested before what reads them, or by themselves with "
            "dbt run-operation ingest_s3_sources"
        )


def _problems_of(node: Any, manifest: Any, connections: Collection[str]) -> Sequence[str]:
    """All that is wrong with the options of the node, if it is an export, a shard or a source."""
    try:
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
    except ConfigError as exc:
        return exc.problems
    return ()


def export_options(node: Any, manifest: Any) -> dict[str, Any]:
    """The options in the config of a `copy_to_s3` model.

    Without keys that a folder of dbt_project.yml sets for other adapters and tools, unless they
    look like a misspelled option.
    """
    return _own_options(node, manifest, CopyOptions)


def shard_options(node: Any, manifest: Any) -> dict[str, Any]:
    """The options in the config of a `persist_shard` model, without dbt's defaults."""
    options = _own_options(node, manifest, ShardOptions)
    if "on_schema_change" in node.unrendered_config:
        options["on_schema_change"] = node.config.on_schema_change
    if node.config.column_types:
        options["column_types"] = node.config.column_types
    return options


def _own_options(node: Any, manifest: Any, kind: type) -> dict[str, Any]:
    options, of_model = options_of(kind), _keys_of_model(node, manifest)
    return {
        key: value
        for key, value in node.config.extra.items()
        if key in options
        or key in of_model
        or (key not in _OTHER_ADAPTERS and any(_is_misspelled(key, own) for own in options))
    }


def _keys_of_model(node: Any, manifest: Any) -> set[str]:
    """The keys of the model's own call of `config`, and of its `config` in a properties file.

    A manifest that was read from an artifact has no files: its project was checked when it was
    parsed.
    """
    keys = set(node.config_call_dict)
    file = manifest.files.get(node.patch_path)
    models = file.dict_from_yaml.get("models", ()) if file is not None else ()
    for model in models:
        if model.get("name") == node.name:
            versions = [one for one in model.get("versions") or () if one.get("v") == node.version]
            for each in (model, *versions):
                keys |= {*(each.get("config") or ())}
    return keys


def _is_misspelled(given: str, meant: str) -> bool:
    """Whether two letters are swapped, or one is missing or extra (two if `meant` is long)."""
    left, right = (re.sub("[-_]", "", each).lower() for each in (given, meant))
    while left and right and left[0] == right[0]:
        left, right = left[1:], right[1:]
    while left and right and left[-1] == right[-1]:
        left, right = left[:-1], right[:-1]
    is_swap = len(left) == 2 and left == right[::-1]
    return given != meant and (is_swap or len(left + right) <= (2 if len(meant) > 8 else 1))
