"""A Spark session as a DB-API connection with cursors, for dbt."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.spark import engine
from dbt.adapters.mzs3.spark.failure import readable
from dbt.adapters.mzs3.spark.sql import bind

COMMENTS = re.compile(r"\A(\s+|/\*.*?\*/|--[^\n]*(\n|\Z))*", re.DOTALL)
"""White space and comments before a statement."""

_VERB = re.compile(r"(?:insert|merge|update|delete)\b", re.IGNORECASE)
_DML_COUNTS = ("num_affected_rows", "num_inserted_rows")
CANCELLED = "cancelled"


class SessionConnection:
    """A connection with a Spark session of its own."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self.cancelled = threading.Event()

    def cursor(self) -> SessionCursor:
        """A new cursor; older ones keep their rows."""
        return SessionCursor(self)

    def cancel(self) -> None:
        """Interrupts this connection's statements, and refuses later ones; thread-safe."""
        self.cancelled.set()
        self.session.interruptAll()

    def check_cancelled(self) -> None:
        """Raises SparkJobError once the connection is cancelled."""
        if self.cancelled.is_set():
            raise SparkJobError(CANCELLED)

    def close(self) -> None:
        """Closes the session; safe to repeat."""
        engine.close(self.session)

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
        """Runs a command, or plans a query, which runs when its rows are fetched.

        Each `%s` stands for a binding, which Spark receives as a value, not as SQL.
        """
        with self._readable_failures():
            self._rows = None
            text = sql.strip().removesuffix(";")
            verb = _VERB.match(COMMENTS.sub("", text, count=1))
            self.verb = verb.group().upper() if verb else None
            bound, values = (text, None) if bindings is None else bind(text, bindings)
            self._frame = self._connection.session.sql(bound, args=values)

    def fetchall(self) -> list[Row]:
        """All remaining rows."""
        rows, self._rows = self._fetched(None), []
        return rows

    def fetchmany(self, size: int) -> list[Row]:
        """The next rows, at most `size`. In the first call, Spark computes only these rows."""
        rows = self._fetched(size)
        self._rows = rows[size:]
        return rows[:size]

    @property
    def description(self) -> list[tuple[str, Any, None, None, None, None, bool]]:
        """The columns as in DB-API: name, type and nullability; empty before a statement."""
        return [
            (column.name, column.dataType.simpleString(), None, None, None, None, column.nullable)
            for column in (self._frame.schema.fields if self._frame is not None else [])
        ]

    @property
    def rows_affected(self) -> int | None:
        """How many rows the statement wrote; None if that is unknown. Runs no Spark job."""
        if self._frame is None or self.verb is None:
            return None
        for name in _DML_COUNTS:
            if name in self._frame.columns:
                self._rows = self._fetched(None)
                return int(self._rows[0][name]) if self._rows else None
        return engine.rows_written(self._frame)

    def _fetched(self, limit: int | None) -> list[Row]:
        if self._rows is not None or self._frame is None:
            return self._rows or []
        with self._readable_failures():
            return list(self._frame.collect() if limit is None else self._frame.take(limit))

    @contextmanager
    def _readable_failures(self) -> Iterator[None]:
        self._connection.check_cancelled()
        try:
            yield
        except Exception as exc:
            self._connection.check_cancelled()
            raise readable(exc) from exc
