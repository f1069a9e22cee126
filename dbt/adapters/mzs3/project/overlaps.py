"""Finds what two nodes of a project would both write: relations of sources, locations in S3."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from dbt.adapters.mzs3.aws.connection import DEFAULT_NAME, AwsConnection
from dbt.adapters.mzs3.aws.location import SCHEME, S3Location, parse_location
from dbt.adapters.mzs3.csv_source.definition import TYPE
from dbt.adapters.mzs3.csv_source.relations import SUFFIXES
from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.names import folded
from dbt.adapters.mzs3.project.sources import is_of_type, source_name
from dbt.adapters.mzs3.shard.config import TYPE as SHARD
from dbt.adapters.mzs3.shard.write.batch import BATCHES

# What of an expression may be another text for each model that has it, or each run of one.
_VARIES = re.compile(r"\b(mz_now|now|uuid|randn?|random|unix_\w+|local\w+|current_\w+)\b", re.I)
_TEXT = re.compile(rf"'({SCHEME}[^'\\]*)'")
_MOST_NAMED = 3


def find_overlaps(
    manifest: Any, connections: Mapping[str, AwsConnection]
) -> Mapping[str, Sequence[str]]:
    """By the unique id of each node that shares what it writes with others: its problems.

    A location that is an expression is compared by its text alone.
    """
    problems: defaultdict[str, list[str]] = defaultdict(list)
    if not hasattr(manifest, "sources"):  # it has macros alone, before the project is parsed
        return problems
    for node, problem in (*_relations(manifest), *_locations(manifest, connections)):
        problems[node.unique_id].append(problem)
    return problems


def require_own(adapter: Any, node: Any) -> None:
    """Raises ConfigError if what the node writes is another node's too."""
    if problems := adapter.overlaps.get(node.unique_id):
        raise ConfigError(_name_of(node), problems)


def _relations(manifest: Any) -> Iterator[tuple[Any, str]]:
    """Each node with a relation that is one of a source in S3 and another node's too."""
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
            relation = f"{node.schema}.{node.identifier}{suffix}"
            named[folded(relation)].append(node)
            names.setdefault(folded(relation), relation)
    for node in manifest.nodes.values():
        if node.resource_type not in ("model", "seed", "snapshot"):
            continue
        relation = folded(f"{node.schema}.{node.alias}")
        if relation in names and node.config.materialized != "ephemeral":
            named[relation].append(node)
    told: set[tuple[str, ...]] = set()
    for relation, nodes in named.items():  # that of a source's rows comes before those beside it
        together = tuple(node.unique_id for node in nodes)
        if len(nodes) > 1 and together not in told:
            told.add(together)
            for node in nodes:
                yield (
                    node,
                    f"{names[relation]} is a relation of {_others(nodes, node)} too; give each "
                    "relations of its own, by its schema, identifier or alias, or remove one",
                )


@dataclass(frozen=True)
class _Writer:
    """A model that writes to a location, and what of that it claims for itself.

    `store` tells buckets of one name apart. Of an expression neither is known.
    """

    node: Any
    store: Hashable
    given: str
    location: S3Location | None
    claimed: S3Location | None = None

    @property
    def place(self) -> Hashable:
        """What is equal for writers to one location."""
        return (self.store, self.location or self.given)

    @property
    def shown(self) -> str:
        """The location as errors name it."""
        return self.location.uri if self.location else self.given


def _locations(
    manifest: Any, connections: Mapping[str, AwsConnection]
) -> Iterator[tuple[Any, str]]:
    """Each model with a location that is another's too, or inside what another claims."""
    writers = [
        writer
        for node in manifest.nodes.values()
        if node.resource_type == "model"
        and node.config.materialized in ("copy_to_s3", "persist_shard")
        and (writer := _writer(node, connections)) is not None
    ]
    at: defaultdict[Hashable, list[Any]] = defaultdict(list)
    claims: defaultdict[Hashable, list[_Writer]] = defaultdict(list)
    for writer in writers:
        at[writer.place].append(writer.node)
        claims[writer.store, writer.claimed].append(writer)
    inside: defaultdict[str, list[Any]] = defaultdict(list)
    for writer in writers:
        if len(nodes := at[writer.place]) > 1:
            yield (
                writer.node,
                f"location {writer.shown} is that of {_others(nodes, writer.node)} too; give each "
                "a location of its own",
            )
        for outer in (one for claim in _around(writer) for one in claims.get(claim, ())):
            if outer.claimed is not None and outer.place != writer.place:
                inside[outer.node.unique_id].append(writer.node)
                yield (
                    writer.node,
                    f"location {writer.shown} is inside {outer.claimed.uri}, which "
                    f"{shown(outer.node)} has for itself; choose another one",
                )
    for writer in writers:
        if inner := inside.get(writer.node.unique_id):
            yield (
                writer.node,
                f"location {writer.shown} has inside it that of {_others(inner, writer.node)}; "
                "choose another one",
            )


def _writer(node: Any, connections: Mapping[str, AwsConnection]) -> _Writer | None:
    """None if the options are wrong, or may be another location each time."""
    given = node.config.extra.get("location")
    name = node.config.extra.get("aws_connection") or DEFAULT_NAME
    connection = connections.get(name) if isinstance(name, str) else None
    if not isinstance(given, str) or not given.strip() or connection is None:
        return None
    store = _store_of(connection)
    if text := _TEXT.fullmatch(given.strip()):  # of SQL, and no expression of it
        given = text[1]
    if not given.startswith(SCHEME):
        return None if _VARIES.search(given) else _Writer(node, store, given.strip(), None)
    try:
        location = parse_location(given)
    except ValueError:
        return None
    # A compaction of a shard removes what it does not know, of batches alone.
    own = BATCHES if node.config.materialized == "persist_shard" else ""
    return _Writer(node, store, given, location, S3Location(location.bucket, location.key(own)))


def _around(writer: _Writer) -> Iterator[Hashable]:
    """The claims that the writer's location would be inside of."""
    if writer.location is not None:
        prefix = writer.location.prefix
        for end in [0, *(match.end() for match in re.finditer("/", prefix))]:
            yield (writer.store, S3Location(writer.location.bucket, prefix[:end]))


def _store_of(connection: AwsConnection) -> Hashable:
    """What buckets of one name are the same bucket in: an address, or AWS without China and such.

    The keys of a connection make no other bucket of it.
    """
    endpoint = urlsplit(connection.endpoint or "")
    host = endpoint.hostname or ""
    if host and not host.endswith(".amazonaws.com"):
        return (host, endpoint.port)
    partition = re.match(r"cn|us-gov|us-iso\w*", connection.region or "")
    return partition[0] if partition else "aws"


def _others(nodes: Sequence[Any], node: Any) -> str:
    others = [shown(one) for one in nodes if one.unique_id != node.unique_id]
    more = len(others) - _MOST_NAMED
    return ", ".join(others[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def shown(node: Any) -> str:
    """The node and its file, as errors name it."""
    return f"{_name_of(node)} ({node.original_file_path})"


def _name_of(node: Any) -> str:
    return f"source {source_name(node)}" if node.resource_type == "source" else node.unique_id
