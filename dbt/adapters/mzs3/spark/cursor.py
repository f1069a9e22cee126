"""A Spark session as the connection and the cursor of a database driver (DB-API), for dbt."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from dbt.adapters.mzs3.errors import Mzs3Error, SparkJobError
from dbt.adapters.mzs3.spark.failure import readable
from dbt.adapters.mzs3.spark.interrupt import EXECUTOR_TIMEOUT_S
from dbt.adapters.mzs3.spark.session import isolated_session
from dbt.adapters.mzs3.spark.sql import bind
from dbt.adapters.mzs3.spark.status import rows_written

_COMMENTS = re.compile(r"\A(\s+|/\*.*?\*/|--[^\n]*(\n|\Z))*", re.DOTALL)
_VERB = re.compile(r"(?:insert|merge|update|delete)\b", re.IGNORECASE)
_DML_COUNTS = ("num_affected_rows", "num_inserted_rows")
CANCELLED = "cancelled"


class SessionConnection:
    """A connection with a Spark session of its own, on the Spark that all connections share."""

    def __init__(
        self, parameters: Mapping[str, str], executor_timeout: int = EXECUTOR_TIMEOUT_S
    ) -> None:
        self.session: SparkSession = isolated_session(parameters, executor_timeout)
        self.cancelled = threading.Event()

    def cursor(self) -> SessionCursor:
        """A new cursor; older ones keep their rows."""
        return SessionCursor(self)

    def cancel(self) -> None:
        """Stop what Spark runs for this connection, and refuse what starts later; thread-safe."""
        self.cancelled.set()
        self.session.interruptAll()

    def check_cancelled(self) -> None:
        """Raises SparkJobError once the connection is cancelled."""
        if self.cancelled.is_set():
            raise SparkJobError(CANCELLED)

    def close(self) -> None:
        """Does nothing: the session goes with the connection, and Spark stays."""

    def rollback(self) -> None:
        """Does nothing, as Spark has no transactions."""


class SessionCursor:
    """Runs one statement at a time; raises Mzs3Errors without the JVM's stack trace."""

    def __init__(self, connection: SessionConnection) -> None:
        self._connection = connection
        self._frame: DataFrame | None = None
        self._rows: list[Row] | None = None
        self.verb: str | None = None
        """The statement's verb if it writes rows, such as `INSERT`, else None."""

    def execute(self, sql: str, bindings: Sequence[Any] | None = None) -> None:
        """Run a command, or plan a query, which runs when its rows are fetched.

        Each `%s` stands for a binding, which reaches Spark as a value and never as SQL.
        """
        self._connection.check_cancelled()
        self._rows = None
        text = sql.strip().removesuffix(";")
        comments = _COMMENTS.match(text)
        found = _VERB.match(text, comments.end() if comments else 0)
        self.verb = found.group().upper() if found else None
        try:
            if bindings is None:
                self._frame = self._connection.session.sql(text)
            else:
                bound, values = bind(text, bindings)
                self._frame = self._connection.session.sql(bound, args=values)
        except Exception as exc:
            raise self._failure(exc) from exc

    def fetchall(self) -> list[Row]:
        """All remaining rows."""
        rows = self._fetched(None)
        self._rows = []
        return rows

    def fetchmany(self, size: int) -> list[Row]:
        """The next rows, `size` at most; Spark computes no more than these for the first call."""
        rows = self._fetched(size)
        self._rows = rows[size:]
        return rows[:size]

    def fetchone(self) -> Row | None:
        """The next row, or None."""
        rows = self._fetched(None)
        self._rows = rows[1:]
        return rows[0] if rows else None

    def close(self) -> None:
        """Forget the statement and its rows."""
        self._frame = None
        self._rows = None

    @property
    def description(self) -> list[tuple[str, Any, None, None, None, None, bool]]:
        """DB-API's description of the columns: name, type and nullability; empty at first."""
        if self._frame is None:
            return []
        return [
            (column.name, column.dataType.simpleString(), None, None, None, None, column.nullable)
            for column in self._frame.schema.fields
        ]

    @property
    def rows_affected(self) -> int | None:
        """How many rows the statement wrote, or None if Spark does not know. Runs nothing."""
        if self._frame is None or self.verb is None:
            return None
        for name in _DML_COUNTS:
            if name in self._frame.columns:
                rows = self._fetched(None)
                self._rows = rows
                return int(rows[0][name]) if rows else None
        return rows_written(self._frame)

    def _fetched(self, limit: int | None) -> list[Row]:
        if self._rows is not None or self._frame is None:
            return self._rows or []
        self._connection.check_cancelled()
        try:
            return list(self._frame.collect() if limit is None else self._frame.take(limit))
        except Exception as exc:
            raise self._failure(exc) from exc

    def _failure(self, exc: Exception) -> Mzs3Error:
        if self._connection.cancelled.is_set():
            return SparkJobError(CANCELLED)
        return readable(exc)
