"""Reports an export: its events, its progress, and its row in the history."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, NamedTuple

from dbt.adapters.mzs3.errors import CopyError
from dbt.adapters.mzs3.events import CopyEvent, copy_warning, ignore_event
from dbt.adapters.mzs3.export.history_table import TABLE, History, RecordedRun
from dbt.adapters.mzs3.export.progress import Progress, Snapshot, background_thread
from dbt.adapters.mzs3.export.running_view import VIEW, RunningEntry, RunningView
from dbt.adapters.mzs3.rows.batches import MAX_BYTES, WIDEST, RestartReason
from dbt.adapters.mzs3.spark import engine
from dbt.adapters.mzs3.spark.failure import readable
from dbt.adapters.mzs3.text import bytes_text, count_with_commas, duration_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt.adapters.mzs3.events import EventSink, FieldValue, Level
    from dbt.adapters.mzs3.export.export import CopyResult, Export
    from dbt.adapters.mzs3.upload.pending import PendingFile
    from dbt.adapters.mzs3.upload.spec import OpenUpload

_RESTART_TEXTS: Mapping[RestartReason, str] = {
    "wide rows": f"with batches for wide rows: one has more than {bytes_text(WIDEST)}",
    "doubtful batches": (
        f"without Comet: a batch has more than {bytes_text(MAX_BYTES)}, or a value that Spark may "
        "read as another (a date before 1582-10-15, a timestamp before 1900, U+FFFD in a text)"
    ),
    "equal hashes": "sorted by all columns: different rows have the same hash",
    # Recomputed rows may differ from those that are in files already.
    "rows computed anew": "as Spark lost rows while files were written, and computed them anew",
}


class ResumedParts(NamedTuple):
    """The upload parts of an earlier run that were reused, among `of_parts`, and their bytes."""

    parts: int
    of_parts: int
    bytes: int


def count_resumed_parts(
    reusable: Mapping[str, Sequence[OpenUpload]], files: Sequence[PendingFile]
) -> ResumedParts:
    """Counts the parts of the files that were in `reusable` uploads when the run began."""
    sizes = [
        upload.parts[number][1]
        for file in files
        for upload in reusable.get(file.key, ())
        if upload.upload_id == file.upload_id
        for number, etag in enumerate(file.etags, 1)
        if upload.parts.get(number, ("", 0))[0] == etag
    ]
    return ResumedParts(len(sizes), sum(len(file.etags) for file in files), sum(sizes))


@dataclass(frozen=True)
class RunContext:
    """Where an export is reported, and under which name.

    `schema` has the history and the view of running exports; neither is written if it is None.
    `tell` is called with each event, by several threads. `scrub` removes secrets from the text of
    an error.
    """

    schema: str | None = None
    identifier: str | None = None
    invocation_id: str = ""
    tell: EventSink = ignore_event
    scrub: Callable[[str], str] = str


class RunMonitor:
    """Reports an export from its beginning to its end, also if it fails.

    If reporting fails, the export continues: an event that can't be delivered is lost; if the
    history or the view of running exports can't be written, a warning is reported.
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
        self._native: bool | None = None
        self._history: History | None = None
        self._opening: threading.Thread | None = None
        self._running: RunningEntry | None = None
        self._started = datetime.now(timezone.utc)
        self._clock = time.monotonic()
        self._uri = export.location.uri
        names = (context.schema, context.identifier)
        self._about = {
            "relation": ".".join(name for name in names if name) or export.node,
            "unique_id": export.node,
            "location": self._uri,
        }
        self._title = f"COPY to {self._uri}"

    def __enter__(self) -> RunMonitor:
        text = f"{self._title} in {count_with_commas(self._parts, 'part')}"
        self._tell("started", text, {"parts": self._parts, "as_of": self._export.as_of}, "debug")
        if schema := self._context.schema:
            # The history is opened while the query is planned.
            thread = background_thread(self._open_history, schema, name=TABLE)
            try:
                thread.start()
            except RuntimeError:  # no thread can be started
                self._open_history(schema)
            else:
                self._opening = thread
            self._running = RunningEntry(
                RunningView(self._spark, schema),
                Snapshot("running", parts=self._parts),
                self._warn_of_view,
                model=self._export.node,
                location=self._uri,
                invocation_id=self._context.invocation_id,
            )
            self._running.begin()
        return self

    def _open_history(self, schema: str) -> None:
        with self._warning("can't be recorded"):
            self._history = History(self._spark, schema)

    def _wait_for_history(self) -> None:
        if self._opening is not None:
            self._opening.join()

    def _warn_of_view(self, exc: Exception) -> None:
        if not self.is_cancelled:  # a cancellation also interrupts the view's queries
            self._warn("can't be seen", VIEW, exc)

    def progress(self) -> Progress:
        """Returns a context manager that reports progress every few seconds.

        First waits until the history is open: an interrupt in the block would stop opening it.
        """
        self._wait_for_history()
        spark = self._spark
        address = engine.driver_address(spark)
        return Progress(self._tell_progress, self._parts, address, lambda: engine.tasks(spark))

    def stop_if_cancelled(self) -> None:
        """Raises CopyError if the user has cancelled the run; called before each step."""
        if self.is_cancelled:
            raise CopyError("the run was cancelled")

    def warn(self, warning: str) -> None:
        """Reports a problem that does not fail the export."""
        with contextlib.suppress(Exception):
            self._context.tell(copy_warning(**self._about, warning=warning))

    def begin_again(self, reason: RestartReason) -> None:
        """Reports that the query runs once more. Raises CopyError if the run was cancelled."""
        self.stop_if_cancelled()
        self._native = False if reason == "doubtful batches" else self._native
        text = f"{self._title} begins again, {_RESTART_TEXTS[reason]}"
        self._tell("begins_again", text, {"reason": reason, "limit": WIDEST})

    def note_recovered(self, finished: str) -> None:
        """Reports that this run has completed an earlier run's commit."""
        self._tell("recovered", finished, {"recovered": finished})

    def note_resumed(self, reused: ResumedParts) -> None:
        """Reports the upload parts that an interrupted run had sent."""
        parts = f"{reused.parts:,} of {count_with_commas(reused.of_parts, 'upload part')}"
        text = f"resume: {parts}, {bytes_text(reused.bytes)}, taken over from an earlier run"
        self._tell("resumed", text, {**reused._asdict(), "finished": False})

    def note_native(self, others: Mapping[str, str]) -> None:
        """Reports whether Comet ran all of the plan, but for `others`, each with the reason."""
        self._native = not others
        text = f"{self._title} was native: Comet has sent its rows"
        if others:
            listed = [f"{name} ({why})" if why else name for name, why in others.items()]
            text = f"{self._title} was not native, as Comet did not run {', '.join(listed)}"
        operators = ", ".join(others)
        self._tell("native", text, {"native": not others, "operators": operators}, "debug")

    def note_already_whole(self) -> None:
        """Reports that an earlier run had finished this export."""
        text = f"resume: the export in {self._uri} is whole, and the same; nothing is sent"
        self._tell("resumed", text, {**ResumedParts(0, 0, 0)._asdict(), "finished": True})

    def note_committed(self, result: CopyResult) -> CopyResult:
        """Records and returns the result, which is reported even if the run fails later."""
        self._result = result
        return result

    def __exit__(self, _: object, failure: BaseException | None, __: object) -> None:
        try:
            self._record(failure)
        finally:
            if self._running is not None:
                self._running.end()

    def _record(self, failure: BaseException | None) -> None:
        """Reports how the run ended, and adds its row to the history."""
        elapsed, result, export = self._elapsed(), self._result, self._export
        error = self._context.scrub(str(failure)) if failure else ""
        totals: dict[str, int | None] = dict.fromkeys(("rows", "bytes", "files"))
        fields: dict[str, FieldValue] = {"error": error, "elapsed": elapsed}
        if result is not None:
            status = "rows"
            text = (
                f"{count_with_commas(result.rows, 'row')}, "
                f"{count_with_commas(result.files, 'file')}, "
                f"{bytes_text(result.bytes)} in {self._uri}, {duration_text(elapsed)}"
            )
            totals = {"rows": result.rows, "bytes": result.bytes, "files": result.files}
            fields = {"manifest": result.manifest, **totals, "elapsed": elapsed}
            self._tell("committed", text, fields)
        elif self.is_cancelled or not isinstance(failure, Exception):
            status = "cancelled"
            self._tell("cancelled", f"{self._title} was cancelled", fields, "debug")
        else:
            status = "error"
            # The event is for debugging only, as dbt shows the error of a model.
            self._tell("failed", f"{self._title} failed: {error}", fields, "debug")
        self._wait_for_history()
        if self._history is None:
            return
        with self._warning("could not be recorded"):
            self._history.append(
                RecordedRun(
                    model=export.node,
                    location=self._uri,
                    as_of=result.as_of if result else export.as_of,
                    started=self._started,
                    ended=self._started + timedelta(seconds=elapsed),
                    status=status,
                    **totals,
                    error=error,
                    invocation_id=self._context.invocation_id,
                    format=export.options.format.name,
                    on_existing=export.options.on_existing,
                    native=self._native,
                )
            )

    @property
    def is_cancelled(self) -> bool:
        """Whether the user has cancelled the run."""
        return self._cancelled is not None and self._cancelled.is_set()

    @contextlib.contextmanager
    def _warning(self, failed: str) -> Iterator[None]:
        """Reports any failure of the block as a warning; the block records the run."""
        try:
            yield
        except Exception as exc:  # noqa: BLE001 - the export does not depend on it
            self._warn(failed, TABLE, exc)

    def _warn(self, failed: str, relation: str, exc: Exception) -> None:
        self.warn(
            f"this run {failed} in {self._context.schema}.{relation}, and is otherwise as the log "
            f"says: {readable(exc)}"
        )

    def _tell_progress(self, seen: Snapshot) -> None:
        if self._running is not None:
            self._running.set_progress(seen)
        if not self.is_cancelled:
            elapsed = self._elapsed()
            fields = {**asdict(seen), "elapsed": elapsed}
            self._tell("progress", seen.text(elapsed), fields, bar=seen.bar)

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
