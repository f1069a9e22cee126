"""dbt's source nodes: which are of this adapter, what they declare, and which a variable names."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.mzs3.credentials import SPARK_CATALOG
from dbt.adapters.mzs3.names import folded
from dbt.adapters.mzs3.source.options import TYPE, SourceDefinition, parse_definition
from dbt.adapters.mzs3.store.location import SCHEMES
from dbt.adapters.mzs3.text import did_you_mean, is_near_miss

_READ_AS = {TYPE: ("", "__rejects")}


def relation_key(
    schema: str | None, name: str | None, catalog: str = SPARK_CATALOG, suffix: str = ""
) -> str:
    """A text that is equal for all names that mean the same relation to Spark.

    `catalog` is Spark's default, for schemas that are named without a catalog.
    """
    return folded(f"{schema}.{name}{suffix}").removeprefix(folded(f"{catalog}."))


def schema_of(named: Any) -> str:
    """The schema of a node or a relation, with its catalog if it has one, which dbt calls a
    database. For some relations, dbt-spark sets the database to the schema."""
    database, schema = getattr(named, "database", None), str(named.schema)
    if not database or database == schema or schema.startswith(f"{database}."):
        return schema
    return f"{database}.{schema}"


def needed_sources(
    manifest: Any, node: Any, kind: str, *, catalog: str = SPARK_CATALOG, untyped: bool = True
) -> list[Any]:
    """The sources of this type that a node reads, directly, through ephemeral models or functions.

    With `untyped`, also those whose rows or rejects it reads through a source without a type.
    """
    inputs: dict[str, None] = {}  # unique ids, in order
    functions = functions_of(manifest)
    new = _inputs_of(manifest, node)
    while new:
        inputs |= dict.fromkeys(new)
        read = [x for x in map(manifest.nodes.get, new) if getattr(x, "is_ephemeral_model", False)]
        through = [*read, *(functions[key] for key in new if key in functions)]
        new = [key for x in through for key in _inputs_of(manifest, x) if key not in inputs]
    sources = [manifest.sources[key] for key in inputs if key in manifest.sources]
    needed = {source.unique_id: source for source in sources if is_of_type(source, kind)}
    others = [source for source in sources if source.unique_id not in needed]
    if untyped and others:
        aliased = sources_read_as(manifest, others, kind, catalog=catalog)
        needed |= {source.unique_id: source for source in aliased}
    return list(needed.values())


def _inputs_of(manifest: Any, node: Any) -> list[str]:
    """The unique ids of what a node reads; for functions, dbt does not resolve the sources."""
    names = {tuple(each) for each in node.sources} if node.resource_type == "function" else set()
    sources = manifest.sources.items() if names else ()
    of_function = [key for key, source in sources if (source.source_name, source.name) in names]
    return [*node.depends_on.nodes, *of_function]


def functions_of(manifest: Any) -> Mapping[str, Any]:
    """The project's functions by unique id."""
    return getattr(manifest, "functions", {})  # dbt 1.10 has none


def sources_read_as(
    manifest: Any,
    relations: Iterable[Any],
    kind: str,
    *,
    catalog: str = SPARK_CATALOG,
    rejects: bool = True,
) -> list[Any]:
    """The sources of this type whose rows or rejects one of these relations has."""
    if manifest is None:
        return []
    keys = {relation_key(schema_of(each), each.identifier, catalog) for each in relations}
    suffixes = _READ_AS.get(kind, ("",)) if rejects else ("",)
    return [
        node
        for node in manifest.sources.values()
        if is_of_type(node, kind)
        and not keys.isdisjoint(
            relation_key(schema_of(node), node.identifier, catalog, suffix) for suffix in suffixes
        )
    ]


def selected_sources(manifest: Any, select: Iterable[str] | None) -> list[Any]:
    """The sources of these names: tables (`lake.orders`) or whole sources (`lake`).

    All sources if `select` is None. Raises DbtRuntimeError with all names that are neither.
    """
    ours = (node for node in manifest.sources.values() if is_of_type(node, TYPE))
    by_name = {source_name(node): node for node in ours}
    if select is None:
        return list(by_name.values())
    chosen: dict[str, Any] = {}
    unknown: list[str] = []
    for name in select:
        matches = {key: node for key, node in by_name.items() if name in (key, node.source_name)}
        if not matches:
            unknown.append(
                f"{name} is not a source of type {TYPE}; {did_you_mean(name, by_name)}"
                f"known are {', '.join(sorted(by_name)) or 'none'}"
            )
        chosen |= matches
    if unknown:
        raise DbtRuntimeError("\n".join(unknown))
    return list(chosen.values())


def source_name(node: Any) -> str:
    """A source table's name as dbt shows it, such as `lake.orders`."""
    return f"{node.source_name}.{node.name}"


def source_definition(node: Any, connections: Collection[str]) -> SourceDefinition:
    """The source that the node declares. Raises ConfigError with all of its problems."""
    return parse_definition(
        name=source_name(node),
        schema=schema_of(node),
        identifier=node.identifier,
        external=declared_external(node),
        columns=[vars(column) for column in node.columns.values()],
        connections=connections,
    )


def variable(config: Any, name: str) -> Any:
    """The variable's value, or None; dbt's precedence applies."""
    declared = config.vars.to_dict()
    of_project = declared.get(config.project_name) or {}
    return ChainMap(config.cli_vars, of_project, declared).get(name)


def is_set(config: Any, name: str) -> bool:
    """Whether the variable is true. Raises DbtRuntimeError if its value is no boolean."""
    value = variable(config, name)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise DbtRuntimeError(f"the variable {name} must be true or false, not {value!r}")


def named_sources(adapter: Any, name: str) -> frozenset[str]:
    """The unique ids of the sources that a variable names; of all sources if it is true.

    Raises DbtRuntimeError if a name is not that of a source.
    """
    value = variable(adapter.config, name)
    if value is None or value is False:
        return frozenset()
    names = None if value is True else [value] if isinstance(value, str) else value
    if names is not None and not (
        isinstance(names, (list, tuple)) and all(isinstance(each, str) for each in names)
    ):
        raise DbtRuntimeError(
            f"the variable {name} must be true, false, or a list of sources such as "
            f"[lake.orders], not {value!r}"
        )
    nodes = selected_sources(adapter.get_macro_resolver(), names)
    return frozenset(node.unique_id for node in nodes)


def is_of_type(node: Any, kind: str) -> bool:
    """Whether the source's `external.type` is `kind`; or a misspelling of it, if the location is
    in S3, so that whoever reads the source gets the error."""
    external = declared_external(node)
    given = str(external.get("type"))
    in_s3 = str(external.get("location")).startswith(SCHEMES)
    return given == kind or (in_s3 and is_near_miss(given, kind))


def declared_external(node: Any) -> Mapping[str, Any]:
    """The mapping under `external` of the node."""
    return {} if node.external is None else dict(node.external.to_dict(omit_none=True))
