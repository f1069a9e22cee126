"""The door between dbt's runs and sources that read shards: each is read once in a run."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.mzs3.errors import Mzs3Error
from dbt.adapters.mzs3.project.source_runs import (
    SourcesOfNode,
    is_empty_run,
    source_of_relation,
    sources_read_by,
)
from dbt.adapters.mzs3.project.sources import declared_external, is_or_resembles, source_name
from dbt.adapters.mzs3.shard.config.source import TYPE, ShardSource, parse_shard_source
from dbt.adapters.mzs3.shard.read.table import source_exists, write_empty_table, write_source_table
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, explain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt.adapters.mzs3.aws.connection import AwsConnection

logger = AdapterLogger("mzs3")

_locks: dict[tuple[str, str], threading.Lock] = {}
_locks_guard = threading.Lock()


def read_shards_for_node(adapter: Any, node: Any) -> None:
    """Every shard that the node reads as a source is a view: as of this run, or as declared.

    As many of them are read at a time as the profile has threads. Raises DbtRuntimeError with the
    errors of its sources, to every node that needs them.
    """
    how = _How.EMPTY if is_empty_run(adapter) else _How.WHOLE
    _read_all(adapter, sources_read_by(adapter, node, is_shard), how)


def make_shard_relation(adapter: Any, relation: Any) -> bool:
    """Whether the relation is a source's that reads a shard; then it exists, maybe without rows.

    For what asks for a source's columns before it is read: unit tests, and macros that run while a
    model is compiled. Raises DbtRuntimeError with the source's error.
    """
    found = source_of_relation(adapter, relation, is_shard)
    _read_all(adapter, found, _How.IF_MISSING)
    return bool(found)


def is_shard(node: Any) -> bool:
    """Whether a source's node reads a shard, or declares what was meant to."""
    return is_or_resembles(node, TYPE)


def shard_source(node: Any, connections: Collection[str]) -> ShardSource:
    """What the node declares. Raises ConfigError with all of its problems."""
    names = [column.name for column in node.columns.values()]
    return parse_shard_source(source_name(node), declared_external(node), names, connections)


class _How(Enum):
    """What a source is to have: the shard's rows, none, or none if it does not exist yet."""

    WHOLE = "whole"
    EMPTY = "empty"
    IF_MISSING = "if missing"


def _read_all(adapter: Any, sources: Sequence[Any], how: _How) -> None:
    if sources:
        run = SourcesOfNode(adapter)
        run.each(sources, how, lambda node: _read_source(run, node, how))


def _read_source(run: SourcesOfNode, node: Any, how: _How) -> None:
    source = shard_source(node, run.credentials.connections)
    connection = run.credentials.connections[source.aws_connection]
    session = run.session(source.name, TYPE)
    try:
        _read(session, node, source, connection, how)
    except (Mzs3Error, *SPARK_FAILURES) as exc:
        raise Mzs3Error(f"{source.name}: {explain(exc)}") from exc


def _read(
    session: SparkSession,
    node: Any,
    source: ShardSource,
    connection: AwsConnection,
    how: _How,
) -> None:
    place = (node.schema, node.identifier)
    # One at a time: no rows must not come in the place of those that another has just read.
    with _locks_guard:
        lock = _locks.setdefault(place, threading.Lock())
    with lock:
        if how is _How.IF_MISSING and source_exists(session, *place):
            return
        if how is _How.WHOLE:
            compared = write_source_table(session, source, connection, *place)
            if compared is not None:
                logger.info(f"{source.name}: {_compared_text(compared)}")
        else:
            columns = [(column.name, column.data_type) for column in node.columns.values()]
            if_missing = how is _How.IF_MISSING  # another process may have read it since
            write_empty_table(session, source, connection, columns, *place, if_missing=if_missing)


def _compared_text(values: int) -> str:
    if not values:
        return "no values were compared, as no file that was read has them in both encodings"
    return f"{values:,} values were compared, and are the same in both encodings"
