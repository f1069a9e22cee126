"""The door between dbt's runs and sources that read shards: each is read once in a run."""

from __future__ import annotations

from functools import partial
from typing import Any

from dbt_common.exceptions import DbtRuntimeError
from dbt_common.invocation import get_invocation_id

from dbt.adapters.mzs3.csv_source.attempts import Attempts
from dbt.adapters.mzs3.errors import Mzs3Error
from dbt.adapters.mzs3.shard.config.source import TYPE, parse_shard_source
from dbt.adapters.mzs3.shard.read.table import write_source_table
from dbt.adapters.mzs3.source_nodes import declared_external, needed_sources, source_name
from dbt.adapters.mzs3.source_operations import require_session
from dbt.adapters.mzs3.spark.session import isolated_session

_attempts = Attempts()


def read_shards_for_node(adapter: Any, node: Any) -> None:
    """Every shard that the node reads as a source is a table: as of this run, or as declared.

    Raises DbtRuntimeError with the errors of its sources, to every node that needs them.
    """
    manifest = adapter.get_macro_resolver()
    if manifest is None or node.resource_type == "unit_test":
        return
    empty = bool(getattr(adapter.config.args, "EMPTY", False))
    errors = []
    for source in needed_sources(manifest, node, is_shard):
        key = (source.unique_id, empty)
        work = partial(_error_of, adapter, source, empty=empty)
        error = _attempts.once(get_invocation_id(), key, work)
        if error is not None:
            errors.append(error)
    if errors:
        raise DbtRuntimeError("\n".join(sorted(errors)))


def is_shard(node: Any) -> bool:
    """Whether a source's node reads a shard."""
    return declared_external(node).get("type") == TYPE


def _error_of(adapter: Any, node: Any, *, empty: bool) -> str | None:
    credentials = adapter.config.credentials
    name = source_name(node)
    try:
        require_session(credentials.method, name)
        columns = [column.name for column in node.columns.values()]
        source = parse_shard_source(
            name, declared_external(node), columns, credentials.connections
        )
        session = isolated_session(credentials.server_side_parameters)
        connection = credentials.connections[source.aws_connection]
        write_source_table(session, source, connection, node.schema, node.identifier, empty=empty)
    except Mzs3Error as exc:
        return f"{name}: {exc}"
    return None
