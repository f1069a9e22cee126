"""Reads the shards that are sources, each once in a run, before the nodes that need them."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.mzs3.credentials import require_session
from dbt.adapters.mzs3.errors import Mzs3Error, ShardError
from dbt.adapters.mzs3.project.source_runs import SourcesOfNode, is_empty_run, sources_of_node
from dbt.adapters.mzs3.project.sources import (
    declared_external,
    is_or_resembles,
    source_name,
    source_of,
)
from dbt.adapters.mzs3.shard.config import TYPE, ShardSource, parse_shard_source
from dbt.adapters.mzs3.shard.read.table import source_exists, write_empty_table, write_source_table
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, explain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt.adapters.mzs3.aws.connection import AwsConnection

logger = AdapterLogger("mzs3")

_locks: dict[tuple[str, str], threading.Lock] = {}
_locks_guard = threading.Lock()


def read_shards_for_node(adapter: Any, node: Any) -> None:
    """Reads the shards that are sources of the node, unless this run has done so already.

    Raises DbtRuntimeError with the errors of all of its sources.
    """
    how = _How.EMPTY if is_empty_run(adapter) else _How.WHOLE
    _read_all(adapter, sources_of_node(adapter, node, is_shard), how)


def make_shard_relation(adapter: Any, relation: Any) -> bool:
    """Creates the relation, without rows, if it is that of a shard's source; whether it is.

    For unit tests, and for macros that ask for columns while a model is compiled. Raises
    DbtRuntimeError with the source's error.
    """
    source = source_of(adapter.get_macro_resolver(), relation, is_shard)
    if source is None:
        return False
    _read_all(adapter, [source], _How.IF_MISSING)
    return True


def is_shard(node: Any) -> bool:
    """Whether a source is a shard, or has a type that is nearly spelled so."""
    return is_or_resembles(node, TYPE)


def shard_source(node: Any, connections: Collection[str]) -> ShardSource:
    """The source that the node declares. Raises ConfigError with all of its problems."""
    names = [column.name for column in node.columns.values()]
    return parse_shard_source(source_name(node), declared_external(node), names, connections)


class _How(Enum):
    """How to make the source's table."""

    WHOLE = "whole"
    EMPTY = "empty"
    IF_MISSING = "if missing"


def _read_all(adapter: Any, sources: Sequence[Any], how: _How) -> None:
    if not sources:
        return
    run = SourcesOfNode(adapter)

    def read(node: Any) -> None:
        name = source_name(node)
        require_session(run.credentials, f"{name}: a source of type {TYPE}")
        source = shard_source(node, run.credentials.connections)
        connection = run.credentials.connections[source.aws_connection]
        try:
            _read(run.session(name, TYPE), node, source, connection, how)
        except (Mzs3Error, *SPARK_FAILURES) as exc:
            raise ShardError(f"{name}: {explain(exc)}") from exc

    run.each(sources, how, read)


def _read(
    session: SparkSession, node: Any, source: ShardSource, connection: AwsConnection, how: _How
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
