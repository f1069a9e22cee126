"""dbt's connections to Spark: opening and cancelling them, their responses and errors."""

from __future__ import annotations

import logging
import re
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt.adapters.contracts.connection import (
    AdapterRequiredConfig,
    AdapterResponse,
    Connection,
    ConnectionState,
)
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark.connections import SparkConnectionManager
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt.adapters.mzs3.credentials import Mzs3Credentials
from dbt.adapters.mzs3.dbt_log import Warnings
from dbt.adapters.mzs3.errors import Mzs3Error, SparkJobError
from dbt.adapters.mzs3.events import Committed
from dbt.adapters.mzs3.spark.cursor import COMMENTS, SessionConnection, SessionCursor
from dbt.adapters.mzs3.spark.engine import open_session
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, readable
from dbt.adapters.mzs3.spark.interrupt import at_once
from dbt.adapters.mzs3.spark.java import write_output_to

if TYPE_CHECKING:
    from multiprocessing.context import SpawnContext

    import agate
    from pyspark.sql import SparkSession

logger = AdapterLogger("mzs3")

INTERRUPTED = "interrupted by the user"
_SECOND_INVOCATION = (
    "another invocation of dbt runs in this process, in the thread {}. dbt keeps one adapter for "
    "all, so that the rows of the two could get mixed. Run one after the other, or each in a "
    "process of its own"
)
# Statements whose last value (of a setting, a file or a jar) extends to the statement's end.
_VALUE_TO_THE_END = re.compile(
    r"(?:set|reset|add|list|refresh(?!\s+(?:table|function)\b))\b", re.IGNORECASE
)


class _DebugLog(logging.Handler):
    """Writes the log of modules that do not import dbt to dbt's log."""

    def emit(self, record: logging.LogRecord) -> None:
        logger.debug(record.getMessage())


_ours = logging.getLogger("dbt.adapters.mzs3")
_ours.addHandler(_DebugLog())
_ours.setLevel(logging.DEBUG)
_ours.propagate = False  # not also to the root logger, which may write to the console


def as_dbt_error(error: Mzs3Error) -> DbtRuntimeError:
    """The dbt error: a database error for a SparkJobError, else a runtime error."""
    kind = DbtDatabaseError if isinstance(error, SparkJobError) else DbtRuntimeError
    return kind(str(error))


@contextmanager
def as_dbt_errors() -> Iterator[None]:
    """Raises any Mzs3Error of the block as dbt's error."""
    try:
        yield
    except Mzs3Error as exc:
        raise as_dbt_error(exc) from exc


def session_of(credentials: Mzs3Credentials) -> SparkSession:
    """Opens a session for the profile. Raises SparkJobError as `engine.open_session` does."""
    return open_session(
        credentials.connect_server,
        credentials.server_side_parameters,
        credentials.executor_timeout,
        credentials.folder,
    )


class Leftovers:
    """Texts about what cancelled jobs of an interrupted run have left; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[str] = []
        self._texts: list[str] = []

    @contextmanager
    def running(self, job: str) -> Iterator[None]:
        """Marks a job as running; `raise_if_interrupted` names those that still run."""
        with self._lock:
            self._running.append(job)
        try:
            yield
        finally:
            with self._lock:
                self._running.remove(job)

    def add(self, text: str) -> None:
        """Keeps a text about a cancelled job, as dbt does not show errors of cancelled nodes."""
        with self._lock:
            if text not in self._texts:
                self._texts.append(text)

    def raise_if_interrupted(self) -> None:
        """While a KeyboardInterrupt is handled, raises a DbtRuntimeError with all texts; dbt
        shows no stack trace for it."""
        with self._lock:
            cut_off = [f"{job} was cut off before it had ended" for job in self._running]
            texts, self._texts = [*self._texts, *cut_off], []
        interrupt = sys.exc_info()[1]
        if isinstance(interrupt, KeyboardInterrupt):
            raise DbtRuntimeError("\n".join([INTERRUPTED, *texts])) from interrupt


@dataclass
class ReadingResponse(AdapterResponse):
    """A response, in `adapter_response` of run_results.json.

    `bytes_read`: how many bytes of shards were fetched before the node, by source and column.
    """

    bytes_read: dict[str, dict[str, int]] | None = None


class NodeState(threading.local):
    """What the node that runs in this thread has done so far."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Resets everything, at the start of a node."""
        self.warnings = Warnings()
        self.fetched: dict[str, dict[str, int]] = {}
        """How many bytes of shards were fetched before the node, by source and column."""
        self.committed: Committed | None = None
        """What the node's job has committed."""


class Mzs3ConnectionManager(SparkConnectionManager):
    """Opens Spark sessions; opens connections of other methods as dbt-spark does."""

    TYPE = "mzs3"

    def __init__(self, config: AdapterRequiredConfig, mp_context: SpawnContext) -> None:
        super().__init__(config, mp_context)
        self.leftovers = Leftovers()
        self.node = NodeState()
        self._thread = threading.current_thread()
        self._is_new = self._is_busy = True
        dbt_log = logging.getLogger("file_log").handlers
        files = [each for each in dbt_log if isinstance(each, logging.FileHandler)]
        write_output_to(Path(files[0].baseFilename).parent if files else None)

    @contextmanager
    def exception_handler(self, sql: str) -> Generator[None, None, None]:
        """Raises dbt's errors, without the JVM's stack traces."""
        try:
            yield
        except DbtRuntimeError as exc:
            if "\n\tat " in str(exc.msg):  # a stack trace from a Thrift server
                logger.debug(str(exc.msg))
                exc.msg = str(readable(Exception(exc.msg)))
            raise
        except Mzs3Error as exc:
            logger.debug(f"Error while running:\n{sql}")
            raise as_dbt_error(exc) from exc
        except SPARK_FAILURES as exc:
            raise as_dbt_error(readable(exc)) from exc
        except Exception:
            with super().exception_handler(sql):
                raise

    @classmethod
    def open(cls, connection: Connection) -> Connection:
        """Opens a connection; the first one starts Spark if the method is `session`."""
        credentials = connection.credentials
        if not credentials.has_session:
            opened: Connection = super().open(connection)
            if not hasattr(opened.handle, "cancelled"):
                opened.handle.cancelled = threading.Event()
            return opened
        if connection.state == ConnectionState.OPEN:
            return connection
        try:
            connection.handle = SessionConnection(session_of(credentials))
        except Mzs3Error as exc:
            connection.handle, connection.state = None, ConnectionState.FAIL  # or `close` opens it
            raise as_dbt_error(exc) from exc
        connection.state = ConnectionState.OPEN
        return connection

    def cancel(self, connection: Connection) -> None:
        """Cancels the work of the connection, in Spark and in submitted jobs too."""
        try:
            connection.handle.cancelled.set()
            super().cancel(connection)
        except Exception as exc:  # noqa: BLE001 - the statement has not begun or has ended
            logger.debug(f"cancelling {connection.name}: {exc}")

    def cancel_open(self) -> list[str]:
        """Cancels the work of other threads. Returns the names of their connections.

        dbt's own method would open connections that are not open yet, and so might start Spark.
        """
        own = self.get_if_exists()
        with self.lock:
            others = [each for each in self.thread_connections.values() if each is not own]
        opened = [each for each in others if each.state == ConnectionState.OPEN]
        at_once(partial(self.cancel, connection) for connection in opened)
        return [connection.name for connection in others if connection.name is not None]

    def require_own_thread(self) -> None:
        """Raises DbtRuntimeError if the invocation that made this manager still runs, in another
        thread."""
        thread = self._thread
        if thread is not threading.current_thread() and self._is_busy and thread.is_alive():
            raise DbtRuntimeError(_SECOND_INVOCATION.format(thread.name))

    def set_connection_name(self, name: str | None = None) -> Connection:
        """Extends dbt's method: records that an invocation is running."""
        self._is_busy = True
        connection: Connection = super().set_connection_name(name)
        return connection

    def release(self) -> None:
        """Extends dbt's method: the invocation is over once no connection is open."""
        super().release()
        with self.lock:
            states = [each.state for each in self.thread_connections.values()]
        self._is_busy = self._is_new or ConnectionState.OPEN in states

    def cleanup_all(self) -> None:
        """Extends dbt's method: after Ctrl-C, raises an error about what cancelled jobs have left.

        dbt also calls this at the start of an invocation. Raises if another one is running.
        """
        self.require_own_thread()
        self._is_new = self._is_busy = False
        super().cleanup_all()
        self.leftovers.raise_if_interrupted()

    def _add_query_comment(self, sql: str) -> str:
        """Extends dbt's method: adds no comment after statements that would read it as a value."""
        is_appended = self.query_header is not None and self.query_header.comment.append
        if is_appended and _VALUE_TO_THE_END.match(COMMENTS.sub("", sql, count=1)):
            return sql
        commented: str = super()._add_query_comment(sql)
        return commented

    @classmethod
    def get_response(cls, cursor: Any) -> AdapterResponse:
        """A response such as `INSERT 12` if Spark has counted the rows, else `OK`."""
        if isinstance(cursor, SessionCursor) and (rows := cursor.rows_affected) is not None:
            return ReadingResponse(
                _message=f"{cursor.verb} {rows}", code=cursor.verb, rows_affected=rows
            )
        return ReadingResponse(_message="OK")

    def with_reads(self, response: AdapterResponse) -> AdapterResponse:
        """Adds `bytes_read` of this thread's node to the response. Returns the response."""
        if isinstance(response, ReadingResponse):
            response.bytes_read = self.node.fetched or None
        return response

    def execute(
        self, sql: str, auto_begin: bool = False, fetch: bool = False, limit: int | None = None
    ) -> tuple[AdapterResponse, agate.Table]:
        """Extends dbt's method: also handles errors while rows are fetched."""
        with self.exception_handler(sql):
            response, table = super().execute(sql, auto_begin, fetch, limit)
        return self.with_reads(response), table
