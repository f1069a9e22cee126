"""Reporting an export: events, progress, and its row in the history."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import TYPE_CHECKING

from dbt.adapters.mzs3.errors import CopyError
from dbt.adapters.mzs3.events import CopyEvent, copy_warning, ignore_event
from dbt.adapters.mzs3.export.commit.manifest import TakenOver
from dbt.adapters.mzs3.export.history_table import TABLE, History, RecordedRun
from dbt.adapters.mzs3.export.progress import Progress, Snapshot, background_thread
from dbt.adapters.mzs3.export.running_view import VIEW, RunningEntry, RunningView
from dbt.adapters.mzs3.rows.batches import WIDEST, RestartReason
from dbt.adapters.mzs3.spark.engine import engine_of
from dbt.adapters.mzs3.spark.failure import readable
from dbt.adapters.mzs3.text import grouped, shown_bytes, shown_duration

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt.adapters.mzs3.events import EventSink, FieldValue, Level
    from dbt.adapters.mzs3.export.export import CopyResult, Export

_NOTHING = TakenOver()
_BEGINS_AGAIN: Mapping[RestartReason, str] = {
    "wide rows": f"with batches for wide rows: one has more than {shown_bytes(WIDEST)}",
    "equal hashes": "sorted by all columns: different rows have the same hash",
    # They may differ from those that are in files already.
    "rows computed anew": "as Spark lost rows while files were written, and computed them anew",
}


@dataclass(frozen=True)
class RunContext:
    """Where an export is reported, and as which model.

    Its history is a table of `schema`, which also has the view of exports that run; without one
    there is neither. `tell` gets events, from more than one thread. `scrub` takes secrets out of
    the text of an error.
    """

    schema: str | None = None
    identifier: str | None = None
    invocation_id: str = ""
    tell: EventSink = ignore_event
    scrub: Callable[[str], str] = str


class RunMonitor:
    """Reports an export from its beginning to its end, however it ends.

    A failure to report never fails the export: an event that can't be delivered is lost; a history
    or a view of running exports that can't be written is a warning.
    """

    def __init__(
        self,
        spark: SparkSession,
        export: Export,
        context: RunContext,
        cancelled: threading.Event | None,
    ) -> None:
        self._spark = spark
        self._export = export
        self._context = context
        self._cancelled = cancelled
        self._parts = export.options.parts or 1
        self._result: CopyResult | None = None
        self._history: History | None = None
        self._opening: threading.Thread | None = None
        self._running: RunningEntry | None = None
        self._started = time.time()
        self._clock = time.monotonic()
        names = (context.schema, context.identifier)
        self._about = {
            "relation": ".".join(name for name in names if name) or export.node,
            "unique_id": export.node,
            "location": export.location.uri,
        }
        self._copy = f"COPY to {export.location.uri}"

    def __enter__(self) -> RunMonitor:
        text = f"{self._copy} in {grouped(self._parts, 'part')}"
        self._tell("started", text, {"parts": self._parts, "as_of": self._export.as_of}, "debug")
        if self._context.schema:
            # Beside the planning of the query.
            opening = background_thread(self._open_history, self._context.schema, name=TABLE)
            try:
                opening.start()
            except RuntimeError:  # the machine has no thread to give
                self._open_history(self._context.schema)
            else:
                self._opening = opening
            self._running = self._running_entry(self._context.schema)
            self._running.begin()
        return self

    def _open_history(self, schema: str) -> None:
        with self._warning("can't be recorded", TABLE):
            self._history = History(self._spark, schema)

    def _wait_for_history(self) -> None:
        if self._opening is not None:
            self._opening.join()

    def _running_entry(self, schema: str) -> RunningEntry:
        def warn(exc: Exception) -> None:
            if not self.is_cancelled:  # a cancellation also interrupts queries on the view
                self._warn("can't be seen", VIEW, exc)

        about = {
            "model": self._export.node,
            "location": self._export.location.uri,
            "parts": self._parts,
            "invocation_id": self._context.invocation_id,
        }
        return RunningEntry(RunningView(self._spark, schema), about, warn)

    def progress(self) -> Progress:
        """Reports progress every few seconds while its block runs.

        Waits until the history is open, as an interrupt in the block would stop that too.
        """
        self._wait_for_history()
        spark, engine = self._spark, engine_of(self._spark)
        address = engine.driver_address(spark)
        return Progress(self._tell_progress, self._parts, address, lambda: engine.tasks(spark))

    def stop_if_cancelled(self) -> None:
        """Raises CopyError if the user has stopped the run; called before each piece of work."""
        if self.is_cancelled:
            raise CopyError("the run was cancelled")

    def warn(self, warning: str) -> None:
        """Report something that the export does not depend on."""
        with contextlib.suppress(Exception):
            self._context.tell(copy_warning(**self._about, warning=warning))

    def begin_again(self, reason: RestartReason) -> None:
        """Report that the query runs once more; raises as `stop_if_cancelled`."""
        self.stop_if_cancelled()
        text = f"{self._copy} begins again, {_BEGINS_AGAIN[reason]}"
        self._tell("begins_again", text, {"reason": reason, "limit": WIDEST})

    def recovered(self, finished: str) -> None:
        """Report that this run has completed an earlier run's commit."""
        self._tell("recovered", finished, {"recovered": finished})

    def resumed(self, taken: TakenOver = _NOTHING, *, finished: bool = False) -> None:
        """Report the upload parts that an interrupted run had sent; `finished`: all of them."""
        found = f"{taken.parts:,} of {grouped(taken.of_parts, 'upload part')}"
        text = f"{found}, {shown_bytes(taken.bytes)}, taken over from an earlier run"
        if finished:
            uri = self._export.location.uri
            text = f"the export in {uri} is whole, and the same; nothing is sent"
        self._tell("resumed", f"resume: {text}", {**taken._asdict(), "finished": finished})

    def committed(self, result: CopyResult) -> CopyResult:
        """Keep the result: the export is visible, even if the run fails later."""
        self._result = result
        return result

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._record(failure)
        finally:
            if self._running is not None:
                self._running.end()

    def _record(self, failure: BaseException | None) -> None:
        """Report how the run ended, and add its row to the history."""
        elapsed, result = self._elapsed(), self._result
        error = self._context.scrub(str(failure)) if failure else ""
        made: dict[str, int | None] = dict.fromkeys(("rows", "bytes", "files"))
        fields: dict[str, FieldValue] = {"error": error, "elapsed": elapsed}
        if result is not None:
            status = "rows"
            text = (
                f"{grouped(result.rows, 'row')}, {grouped(result.files, 'file')}, "
                f"{shown_bytes(result.bytes)} in {self._export.location.uri}, "
                f"{shown_duration(elapsed)}"
            )
            made = {"rows": result.rows, "bytes": result.bytes, "files": result.files}
            fields = {"manifest": result.manifest, **made, "elapsed": elapsed}
            self._tell("committed", text, fields)
        elif self.is_cancelled or not isinstance(failure, Exception):
            status = "cancelled"
            self._tell("cancelled", f"{self._copy} was cancelled", fields, "debug")
        else:
            status = "error"
            # dbt shows the error of a model itself.
            self._tell("failed", f"{self._copy} failed: {error}", fields, "debug")
        self._wait_for_history()
        if self._history is None:
            return
        with self._warning("could not be recorded", TABLE):
            run = RecordedRun(
                model=self._export.node,
                location=self._export.location.uri,
                as_of=result.as_of if result else self._export.as_of,
                started=int(self._started * 1000),
                ended=int((self._started + elapsed) * 1000),
                status=status,
                **made,
                error=error,
                invocation_id=self._context.invocation_id,
                format=self._export.options.format.name,
                on_existing=self._export.options.on_existing,
            )
            self._history.append(run)

    @property
    def is_cancelled(self) -> bool:
        """Whether the user has stopped the run."""
        return self._cancelled is not None and self._cancelled.is_set()

    @contextlib.contextmanager
    def _warning(self, failed: str, relation: str) -> Iterator[None]:
        """Turns any failure to record the run into a warning."""
        try:
            yield
        except Exception as exc:  # noqa: BLE001 - the export does not depend on it
            self._warn(failed, relation, exc)

    def _warn(self, failed: str, relation: str, exc: Exception) -> None:
        warning = (
            f"this run {failed} in {self._context.schema}.{relation}, and is otherwise as the log "
            f"says: {readable(exc)}"
        )
        self.warn(warning)

    def _tell_progress(self, seen: Snapshot) -> None:
        if self._running is not None:
            self._running.note(seen)
        if not self.is_cancelled:
            elapsed = self._elapsed()
            text, bar = seen.text(self._parts, elapsed), seen.bar(self._parts)
            fields = {**asdict(seen), "parts": self._parts, "elapsed": elapsed}
            self._tell("progress", text, fields, bar=bar)

    def _tell(
        self,
        kind: str,
        text: str,
        fields: Mapping[str, FieldValue],
        level: Level = "info",
        bar: str = "",
    ) -> None:
        event = CopyEvent(f"mzs3.copy.{kind}", text, {**self._about, **fields}, level, bar)
        with contextlib.suppress(Exception):
            self._context.tell(event)

    def _elapsed(self) -> float:
        return time.monotonic() - self._clock
