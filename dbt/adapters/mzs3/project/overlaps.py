"""Finds what two nodes of a project would both write: relations of sources, locations in S3."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from dbt.adapters.mzs3.credentials import SPARK_CATALOG
from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.ledger.relations import SUFFIXES
from dbt.adapters.mzs3.project.sources import is_of_type, relation_key, schema_of, source_name
from dbt.adapters.mzs3.shard.options import TYPE as SHARD
from dbt.adapters.mzs3.shard.write.batch import BATCHES
from dbt.adapters.mzs3.source.options import TYPE
from dbt.adapters.mzs3.store.connection import DEFAULT_NAME, AwsConnection
from dbt.adapters.mzs3.store.location import SCHEMES, S3Location, parse_location

# A location in SQL: one text, or an expression that begins with one. The texts have no escapes.
_SCHEME = f"(?:{'|'.join(SCHEMES)})"
_TEXT = re.compile(rf"(?s)(?P<quote>['\"])({_SCHEME}[^'\"\\]*)(?P=quote)")
_BEGIN = re.compile(rf"(?is)(?:concat\s*\(\s*)?['\"]({_SCHEME}[^'\"\\]*/)")
# Tokens of an expression; names in `_CONSTANT` have the same value for all models of a run.
_TOKEN = re.compile(
    r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|[0-9]+|\|\||[(),]|\w+|\s+""", re.S
)
_CONSTANT = {"as", "cast", "date", "string", "timestamp"}
_CONSTANT |= {"concat", "concat_ws", "current_date", "date_format", "mz_now", "timestamp_millis"}
_MOST_NAMED = 3


def find_overlaps(
    manifest: Any, connections: Mapping[str, AwsConnection], catalog: str = SPARK_CATALOG
) -> Mapping[str, Sequence[str]]:
    """The problems of each node that shares what it writes with others, by its unique id.

    `catalog` is Spark's default. Two expressions are the same location if their texts are equal,
    and have one value for all models of a run. An expression that begins with a text is inside the
    folder of that text.
    """
    problems: defaultdict[str, list[str]] = defaultdict(list)
    if not hasattr(manifest, "sources"):  # before parsing, it only has macros
        return problems
    for node, problem in (*_relations(manifest, catalog), *_locations(manifest, connections)):
        problems[node.unique_id].append(problem)
    return problems


def require_own(adapter: Any, node: Any) -> None:
    """Raises ConfigError if another node writes what this node writes or drops."""
    if problems := adapter.overlaps.get(node.unique_id):
        raise ConfigError(_name_of(node), problems)


def _relations(manifest: Any, catalog: str) -> Iterator[tuple[Any, str]]:
    """Each node that shares a relation with a source in S3, and the problem."""
    in_s3 = [
        (node, SUFFIXES if is_of_type(node, TYPE) else ("",))
        for node in manifest.sources.values()
        if is_of_type(node, TYPE) or is_of_type(node, SHARD)
    ]
    if not in_s3:
        return
    named: defaultdict[str, list[Any]] = defaultdict(list)
    names: dict[str, str] = {}
    for node, suffixes in in_s3:
        for suffix in suffixes:
            key = relation_key(schema_of(node), node.identifier, catalog, suffix)
            named[key].append(node)
            names.setdefault(key, f"{schema_of(node)}.{node.identifier}{suffix}")
    for node in manifest.nodes.values():
        if node.resource_type not in ("model", "seed", "snapshot"):
            continue
        key = relation_key(schema_of(node), node.alias, catalog)
        if key in names and node.config.materialized != "ephemeral":
            named[key].append(node)
    reported: set[tuple[str, ...]] = set()
    for key, nodes in named.items():  # a source's rows come before its other relations
        together = tuple(node.unique_id for node in nodes)
        if len(nodes) > 1 and together not in reported:
            reported.add(together)
            for node in nodes:
                yield (
                    node,
                    f"{names[key]} is a relation of {_others(nodes, node)} too; give each "
                    "relations of its own, by its schema, identifier or alias, or remove one",
                )


@dataclass(frozen=True)
class _Writer:
    """A model that writes to a location, and may own a prefix of it.

    `store` distinguishes buckets of the same name; `location` is shown in errors; `place` is equal
    for all writers to one location; `within` is a prefix that is, or contains, the location.
    """

    node: Any
    store: Hashable
    location: str
    place: Hashable
    within: S3Location | None
    owned: S3Location | None = None


def _locations(
    manifest: Any, connections: Mapping[str, AwsConnection]
) -> Iterator[tuple[Any, str]]:
    """Each model whose location overlaps with that of another model, and the problem."""
    writers = [
        writer
        for node in manifest.nodes.values()
        if node.resource_type == "model"
        and node.config.materialized in ("copy_to_s3", "persist_shard")
        and (writer := _writer(node, connections)) is not None
    ]
    by_place: defaultdict[Hashable, list[Any]] = defaultdict(list)
    owners: defaultdict[Hashable, list[_Writer]] = defaultdict(list)
    for writer in writers:
        by_place[writer.store, writer.place].append(writer.node)
        if writer.owned is not None:
            owners[writer.store, writer.owned].append(writer)
    inside: defaultdict[str, list[Any]] = defaultdict(list)
    for writer in writers:
        if len(nodes := by_place[writer.store, writer.place]) > 1:
            yield (
                writer.node,
                f"location {writer.location} is that of {_others(nodes, writer.node)} too; give "
                "each a location of its own",
            )
        for outer in (one for place in _prefixes_around(writer) for one in owners.get(place, ())):
            if outer.owned is not None and outer.place != writer.place:
                inside[outer.node.unique_id].append(writer.node)
                yield (
                    writer.node,
                    f"location {writer.location} is inside {outer.owned.uri}, which "
                    f"{node_and_file(outer.node)} owns; choose one outside of it",
                )
    for writer in writers:
        if inner := inside.get(writer.node.unique_id):
            yield (
                writer.node,
                f"location {writer.location} has inside it that of {_others(inner, writer.node)}; "
                "choose one that has nobody else's inside it",
            )


def _writer(node: Any, connections: Mapping[str, AwsConnection]) -> _Writer | None:
    """The model as a writer; None if its options are wrong."""
    location = node.config.extra.get("location")
    name = node.config.extra.get("aws_connection") or DEFAULT_NAME
    connection = connections.get(name) if isinstance(name, str) else None
    if not isinstance(location, str) or connection is None:
        return None
    store = _store_of(connection)
    if text := _TEXT.fullmatch(location.strip()):
        location = text[2]
    is_text, begin = location.startswith(SCHEMES), _BEGIN.match(location.strip())
    prefix = location if is_text else begin[1] if begin else None
    try:
        within = None if prefix is None else parse_location(prefix)
    except ValueError:
        return None
    if within is None or not is_text:
        # An expression whose value may differ between models is a place of its own.
        return _Writer(
            node, store, location.strip(), _fixed_expression(location) or node.unique_id, within
        )
    # A shard owns the prefix of its batches, where a compaction removes all other files.
    owned_part = BATCHES if node.config.materialized == "persist_shard" else ""
    owned = replace(within, prefix=within.key(owned_part))
    return _Writer(node, store, within.uri, within, within, owned)


def _fixed_expression(expression: str) -> str | None:
    """The normalized expression, if it has one value in all models of a run."""
    tokens = [token[0] for token in _TOKEN.finditer(expression)]
    if "".join(tokens) != expression:
        return None
    words = [
        f"'{token[1:-1]}'" if token[0] in "'\"" else token.lower()
        for token in tokens
        if not token.isspace()
    ]
    names = {word for word in words if re.match(r"[^\W\d]", word)}
    return " ".join(words) if names <= _CONSTANT else None


def _prefixes_around(writer: _Writer) -> Iterator[Hashable]:
    """The prefixes that contain the writer's location."""
    if writer.within is not None:
        prefix = writer.within.prefix
        for end in [0, *(match.end() for match in re.finditer("/", prefix))]:
            yield (writer.store, replace(writer.within, prefix=prefix[:end]))


def _store_of(connection: AwsConnection) -> Hashable:
    """What a bucket's name is unique in: the host and port of the endpoint, or the partition of
    AWS. It does not depend on the keys of the connection."""
    endpoint = urlsplit(connection.endpoint or "")
    host = endpoint.hostname or ""
    if host and not host.endswith((".amazonaws.com", ".amazonaws.com.cn")):
        return (host, endpoint.port or {"http": 80, "https": 443}.get(endpoint.scheme))
    partition = re.search(r"(?:^|[.-])(cn|us-gov|us-iso\w*)-", host or connection.region or "")
    return partition[1] if partition else "aws"


def _others(nodes: Sequence[Any], node: Any) -> str:
    others = [node_and_file(each) for each in nodes if each.unique_id != node.unique_id]
    more = len(others) - _MOST_NAMED
    return ", ".join(others[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def node_and_file(node: Any) -> str:
    """The node and its file, as errors name it."""
    return f"{_name_of(node)} ({node.original_file_path})"


def _name_of(node: Any) -> str:
    return f"source {source_name(node)}" if node.resource_type == "source" else node.unique_id
