"""The door from dbt's source nodes to S3 CSV sources: which are ours, and what they declare."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.mzs3.aws.location import SCHEME
from dbt.adapters.mzs3.credentials import require_session
from dbt.adapters.mzs3.csv_source.definition import TYPE, SourceDefinition, parse_definition
from dbt.adapters.mzs3.spark.session import isolated_session
from dbt.adapters.mzs3.text import did_you_mean, is_near_miss

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def is_csv_source(node: Any) -> bool:
    """Whether a source's node is an S3 CSV source, or declares what was meant to be one."""
    return is_or_resembles(node, TYPE)


def is_or_resembles(node: Any, kind: str) -> bool:
    """Whether the node's `external.type` is this one, or, for what is in S3, nearly.

    One that is nearly ours is taken as such, so that whoever reads it gets the error.
    """
    external = declared_external(node)
    given = str(external.get("type"))
    in_s3 = str(external.get("location")).startswith(SCHEME)
    return given == kind or (in_s3 and is_near_miss(given, kind))


def declared_external(node: Any) -> Mapping[str, Any]:
    """What stands under `external` of the node."""
    if node.external is None:
        return {}
    external: Mapping[str, Any] = node.external.to_dict(omit_none=True)
    return external


def needed_sources(
    manifest: Any, node: Any, is_wanted: Callable[[Any], bool] = is_csv_source
) -> list[Any]:
    """The wanted sources that a node's SQL reads, directly or by way of ephemeral models."""
    found: dict[str, Any] = {}
    seen: set[str] = set()
    waiting = list(node.depends_on.nodes)
    while waiting:
        unique_id = waiting.pop(0)
        if unique_id in seen:
            continue
        seen.add(unique_id)
        if unique_id in manifest.sources:
            if is_wanted(manifest.sources[unique_id]):
                found[unique_id] = manifest.sources[unique_id]
        elif getattr(manifest.nodes.get(unique_id), "is_ephemeral_model", False):
            waiting += manifest.nodes[unique_id].depends_on.nodes
    return list(found.values())


def selected_sources(manifest: Any, select: str | Iterable[str] | None) -> list[Any]:
    """The S3 CSV sources of these names: tables (`lake.orders`) or whole sources (`lake`).

    None is all of them. Raises DbtRuntimeError with all names that are neither.
    """
    by_name = {
        source_name(node): node for node in manifest.sources.values() if is_csv_source(node)
    }
    if select is None:
        return list(by_name.values())
    chosen: dict[str, Any] = {}
    unknown: list[str] = []
    for wanted in [select] if isinstance(select, str) else select:
        matching = {
            name: node for name, node in by_name.items() if wanted in (name, node.source_name)
        }
        if not matching:
            unknown.append(_unknown_text(wanted, by_name))
        chosen |= matching
    if unknown:
        raise DbtRuntimeError("\n".join(unknown))
    return list(chosen.values())


def source_of(
    manifest: Any, relation: Any, is_wanted: Callable[[Any], bool] = is_csv_source
) -> Any:
    """The node of the wanted source that is this relation; None if the relation is none."""
    place = (relation.schema, relation.identifier)
    nodes = (node for node in manifest.sources.values() if is_wanted(node))
    return next((node for node in nodes if (node.schema, node.identifier) == place), None)


def source_name(node: Any) -> str:
    """A source table's name as dbt shows it, such as `lake.orders`."""
    return f"{node.source_name}.{node.name}"


def source_definition(node: Any, connections: Collection[str]) -> SourceDefinition:
    """What the node declares. Raises ConfigError with all of its problems."""
    return parse_definition(
        name=source_name(node),
        schema=node.schema,
        identifier=node.identifier,
        external=declared_external(node),
        columns=[
            {"name": column.name, "data_type": column.data_type}
            for column in node.columns.values()
        ],
        connections=connections,
    )


def open_session(credentials: Any, source: str, kind: str = TYPE) -> SparkSession:
    """A session of its own for a source. Raises SparkJobError if the profile's method has none."""
    require_session(credentials.method, f"{source}: a source of type {kind}")
    return isolated_session(credentials.server_side_parameters, credentials.executor_timeout)


def _unknown_text(wanted: str, by_name: Mapping[str, Any]) -> str:
    known = ", ".join(sorted(by_name)) or "none"
    hint = did_you_mean(wanted, by_name)
    return f"{wanted} is not an S3 CSV source (type: {TYPE}); {hint}known are {known}"
