"""The view of the exports that are running.

Its rows are literals in the view's query, which each export replaces to change its own row. Unlike
a table, it has no files that may be deleted while others read them, and neither reading nor
writing it needs executors, which may all be busy with an export.
"""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.export.progress import Snapshot, background_thread
from dbt.adapters.mzs3.spark.sql import qualified_name, quote_identifier, text_sql
from dbt.adapters.mzs3.spark.tables import change_view
from dbt.adapters.mzs3.types.table import SPARK_TYPE_OF_PYTHON

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEW = "mzs3_copies_running"

WRITE_INTERVAL_S = 10.0
"""How often an export writes its row; the first time is WRITE_INTERVAL_S after its start."""
DEAD_AFTER_S = 60.0
"""The view shows an export as dead if its row was not updated for this long."""
_HIDDEN_S = 24 * 3600.0
"""The view does not show rows that were not updated for this long."""
_REMOVAL_ATTEMPTS = 3


@dataclass(frozen=True)
class RunningCopy:
    """A row of the view; times are ms since the epoch, by the clock of Spark's driver.

    In the view, each field of `progress` is a column.
    """

    run: str
    model: str
    location: str
    started: int
    updated: int
    progress: Snapshot
    invocation_id: str

    def is_superseded_by(self, later: RunningCopy) -> bool:
        """Whether this export is of the same model, and was dead when `later` was updated."""
        since_update_ms = later.updated - self.updated
        return self.model == later.model and since_update_ms > DEAD_AFTER_S * 1000


_MOMENTS = ("started", "updated")
_COLUMNS = {
    column.name: SPARK_TYPE_OF_PYTHON[str(column.type).removesuffix(" | None")]
    for field in fields(RunningCopy)
    for column in (fields(Snapshot) if field.name == "progress" else [field])
}


class RunningView:
    """The view in `schema`, or `catalog.schema`."""

    def __init__(self, spark: SparkSession, schema: str) -> None:
        self._spark = spark
        self.name = qualified_name(schema, VIEW)

    def read(self) -> list[RunningCopy] | None:
        """The rows that the view shows; None if there is no view. Raises what Spark raises, and
        SparkJobError if another relation has the name."""
        columns = ", ".join(
            f"unix_millis({name}) AS {name}" if name in _MOMENTS else quote_identifier(name)
            for name in _COLUMNS
        )
        try:
            found = self._spark.sql(f"SELECT {columns} FROM {self.name}").collect()
        except AnalysisException as exc:
            condition = exc.getCondition() or ""
            if condition == "TABLE_OR_VIEW_NOT_FOUND":
                return None
            if condition.startswith("UNRESOLVED_COLUMN"):
                raise SparkJobError(
                    f"{self.name} is not the view that dbt-mzs3 makes under this name; rename or "
                    "drop it, and the next run makes the view"
                ) from exc
            raise
        copies = []
        for row in found:
            values = row.asDict()
            progress = {column.name: values.pop(column.name) for column in fields(Snapshot)}
            copies.append(RunningCopy(progress=Snapshot(**progress), **values))
        return copies

    def write(self, copies: Iterable[RunningCopy]) -> None:
        """Replaces the view's rows with these, atomically; raises what Spark raises."""
        change_view(self._spark, self.name, view_text(copies), "", {})

    def make(self, copies: Iterable[RunningCopy]) -> None:
        """Creates the view with these rows, unless it exists; raises what Spark raises."""
        self._spark.sql(
            f"CREATE VIEW IF NOT EXISTS {self.name} "
            f"COMMENT 'Runs of copy_to_s3 that have not ended (dbt-mzs3)' AS {view_text(copies)}"
        )

    def now(self) -> float:
        """The time of the clock of Spark's driver, in s since the epoch."""
        # With a literal row, Spark's optimizer evaluates the query; no job runs.
        [row] = self._spark.sql("SELECT unix_millis(now()) FROM VALUES (0)").collect()
        return float(row[0] / 1000)


def view_text(copies: Iterable[RunningCopy]) -> str:
    """The query of a view with these rows; it computes their `state` when the view is read."""
    columns = {
        name: f"CAST({quote_identifier(name)} AS {kind})" for name, kind in _COLUMNS.items()
    }
    since_update_ms = f"unix_millis(now()) - {columns['updated']}"
    state = f"IF({since_update_ms} > {int(DEAD_AFTER_S * 1000)}, 'dead', 'running')"
    columns |= {name: f"timestamp_millis({columns[name]})" for name in _MOMENTS}
    selected = ", ".join(
        f"{value} AS {quote_identifier(name)}"
        for name, value in {**columns, "state": state}.items()
    )
    # VALUES needs at least one row. If there is none, `visible` filters out a row of NULLs.
    rows = [
        {**vars(copy), **vars(copy.progress)}
        for copy in sorted(copies, key=attrgetter("started", "run"))
    ] or [dict.fromkeys(_COLUMNS)]
    values = ", ".join(f"({', '.join(_literal(row[name]) for name in _COLUMNS)})" for row in rows)
    names = ", ".join(map(quote_identifier, _COLUMNS))
    visible = f"`run` IS NOT NULL AND {since_update_ms} <= {int(_HIDDEN_S * 1000)}"
    return f"SELECT {selected} FROM VALUES {values} AS copies({names}) WHERE {visible}"


def _literal(value: str | float | None) -> str:
    if value is None:
        return "NULL"
    return text_sql(value) if isinstance(value, str) else repr(value)


# A lock per view, as a change reads the view, then replaces it. Processes don't share it: if two
# change the view at once, the later write undoes the earlier one, until the process of the earlier
# one writes its row again, or sees in `_remove` that its row is back.
_locks: dict[str, threading.Lock] = {}


class RunningEntry:
    """Keeps the row of one export in the view up to date, from `begin` to `end`.

    `fixed_columns` are `model`, `location` and `invocation_id`. An export that ends within
    WRITE_INTERVAL_S does not use the view. No method raises: the first failure is given to `warn`.
    """

    def __init__(
        self,
        view: RunningView,
        progress: Snapshot,
        warn: Callable[[Exception], None],
        **fixed_columns: str,
    ) -> None:
        self._view = view
        self._progress = progress
        self._warn: Callable[[Exception], None] | None = warn
        self._fixed_columns = fixed_columns
        self._run = uuid.uuid4().hex
        self._began = time.monotonic()
        self._clock_offset: float | None = None
        self._has_written = False
        self._lock = _locks.setdefault(view.name, threading.Lock())
        self._ended = threading.Event()
        self._thread = background_thread(self._keep_writing, name=VIEW)

    def begin(self) -> None:
        """Starts a thread that writes the row every WRITE_INTERVAL_S."""
        with contextlib.suppress(RuntimeError):  # no thread can be started
            self._thread.start()

    def set_progress(self, progress: Snapshot) -> None:
        """Sets the progress for the next write; thread-safe."""
        self._progress = progress

    def end(self) -> None:
        """Removes the row, if it was written."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self._has_written:
            with self._warning():
                self._remove()

    def _keep_writing(self) -> None:
        while not self._ended.wait(WRITE_INTERVAL_S):
            with self._warning():
                self._write()

    def _write(self) -> None:
        if self._clock_offset is None:
            self._clock_offset = self._view.now() - time.monotonic()
        me = RunningCopy(
            run=self._run,
            started=int((self._clock_offset + self._began) * 1000),
            updated=int((self._clock_offset + time.monotonic()) * 1000),
            progress=self._progress,
            **self._fixed_columns,
        )
        with self._lock:
            rows = self._view.read()
            self._has_written = True  # set first: a statement that fails may have an effect
            if rows is None:
                self._view.make([me])
                return
            others = [row for row in rows if row.run != me.run and not row.is_superseded_by(me)]
            self._view.write([*others, me])

    def _remove(self) -> None:
        """Removes the row, then reads the view again: another process may have put it back."""
        for _ in range(_REMOVAL_ATTEMPTS):
            with self._lock:
                rows = self._view.read() or []
                others = [row for row in rows if row.run != self._run]
                if len(others) == len(rows):
                    return
                self._view.write(others)

    @contextlib.contextmanager
    def _warning(self) -> Iterator[None]:
        try:
            yield
        except Exception as exc:  # noqa: BLE001 - the export goes on
            warn, self._warn = self._warn, None
            if warn is not None:
                warn(exc)
