"""The door between dbt's runs and sources that read shards: each is read once in a run."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Sequence
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError
from dbt_common.invocation import get_invocation_id

from dbt.adapters.mzs3.aws.client import s3_client
from dbt.adapters.mzs3.csv_source.attempts import Attempts
from dbt.adapters.mzs3.csv_source.together import run_together
from dbt.adapters.mzs3.errors import Mzs3Error
from dbt.adapters.mzs3.shard.config.source import TYPE, ShardSource, parse_shard_source
from dbt.adapters.mzs3.shard.empty_table import write_empty_table
from dbt.adapters.mzs3.shard.read.table import source_exists, write_source_table
from dbt.adapters.mzs3.shard.state.store import StateStore
from dbt.adapters.mzs3.source_nodes import (
    declared_external,
    needed_sources,
    source_name,
    source_of,
)
from dbt.adapters.mzs3.source_operations import require_session
from dbt.adapters.mzs3.spark.session import isolated_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt.adapters.mzs3.aws.connection import AwsConnection

logger = AdapterLogger("mzs3")

_attempts = Attempts()
_locks: dict[tuple[str, str], threading.Lock] = {}
_locks_guard = threading.Lock()


def read_shards_for_node(adapter: Any, node: Any) -> None:
    """Every shard that the node reads as a source is a view: as of this run, or as declared.

    As many of them are read at a time as the profile has threads. Raises DbtRuntimeError with the
    errors of its sources, to every node that needs them.
    """
    manifest = adapter.get_macro_resolver()
    args = adapter.config.args
    # A unit test reads its own rows in place of a source, a clone what another target made.
    if manifest is None or node.resource_type == "unit_test":
        return
    if getattr(args, "which", None) == "clone":
        return
    empty = bool(getattr(args, "EMPTY", False))
    how = _How.EMPTY if empty else _How.WHOLE
    _read_all(adapter, needed_sources(manifest, node, is_shard), how)


def make_shard_relation(adapter: Any, relation: Any) -> bool:
    """Whether the relation is a source's that reads a shard; then it exists, maybe without rows.

    For what asks for a source's columns before it is read: unit tests, and macros that run while a
    model is compiled. Raises DbtRuntimeError with the source's error.
    """
    manifest = adapter.get_macro_resolver()
    source = None if manifest is None else source_of(manifest, relation, is_shard)
    if source is None:
        return False
    _read_all(adapter, [source], _How.IF_MISSING)
    return True


def is_shard(node: Any) -> bool:
    """Whether a source's node reads a shard."""
    return declared_external(node).get("type") == TYPE


class _How(Enum):
    """What a source is to have: the shard's rows, none, or none if it does not exist yet."""

    WHOLE = "whole"
    EMPTY = "empty"
    IF_MISSING = "if missing"


def _read_all(adapter: Any, sources: Sequence[Any], how: _How) -> None:
    if not sources:
        return
    reading = _Reading(adapter, how)
    run_together(
        [partial(reading.read, source) for source in sources],
        threads=adapter.config.threads,
        cancelled=reading.cancelled,
        interrupt=reading.interrupt,
    )
    if reading.errors:
        raise DbtRuntimeError("\n".join(sorted(reading.errors)))


class _Reading:
    """The shards of one node, each in a session of its own; they stop as its connection does."""

    def __init__(self, adapter: Any, how: _How) -> None:
        self._credentials = adapter.config.credentials
        self._how = how
        self._sessions: list[SparkSession] = []
        self.errors: list[str] = []
        self.cancelled = threading.Event()
        if self._credentials.method == "session":
            self.cancelled = adapter.connections.get_thread_connection().handle.cancelled

    def interrupt(self) -> None:
        """Stop what Spark runs for these sources."""
        for session in list(self._sessions):
            session.interruptAll()

    def read(self, source: Any) -> None:
        """One attempt at the source in this run of dbt; its error is kept for everybody."""
        key = (source.unique_id, self._how)
        error = _attempts.once(get_invocation_id(), key, partial(self._error_of, source))
        if error is not None:
            self.errors.append(error)

    def _error_of(self, node: Any) -> str | None:
        name = source_name(node)
        try:
            self._read(node, name)
        except Mzs3Error as exc:
            return f"{name}: {exc}"
        except DbtRuntimeError as exc:
            return str(exc.msg)
        except Exception as exc:  # noqa: BLE001 - nothing may be tried again for every node
            logger.debug(traceback.format_exc())
            return (
                f"{name}: {type(exc).__name__}: {exc}. This is a defect, please report it with "
                "the log of dbt"
            )
        return None

    def _read(self, node: Any, name: str) -> None:
        credentials = self._credentials
        require_session(credentials.method, name)
        names = [column.name for column in node.columns.values()]
        source = parse_shard_source(name, declared_external(node), names, credentials.connections)
        connection = credentials.connections[source.aws_connection]
        session = isolated_session(credentials.server_side_parameters)
        self._sessions.append(session)
        place = (node.schema, node.identifier)
        # One at a time: no rows must not come in the place of those that another has just read.
        with _locks_guard:
            lock = _locks.setdefault(place, threading.Lock())
        with lock:
            if self._how is _How.IF_MISSING and source_exists(session, *place):
                return
            self._write(session, node, source, connection)

    def _write(
        self, session: SparkSession, node: Any, source: ShardSource, connection: AwsConnection
    ) -> None:
        place = (node.schema, node.identifier)
        empty = self._how is not _How.WHOLE
        if empty and StateStore(s3_client(connection), source.location).read() is None:
            # As in a new project, of which `--empty` has not written the shard either.
            columns = [(column.name, column.data_type) for column in node.columns.values()]
            write_empty_table(session, source, columns, *place)
        else:
            write_source_table(session, source, connection, *place, empty=empty)
