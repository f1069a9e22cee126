"""Reporting an export: events, progress, and its row in the history."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from dbt.adapters.mzs3.errors import CopyError
from dbt.adapters.mzs3.events import (
    CopyBeginsAgain,
    CopyCancelled,
    CopyCommitted,
    CopyEvent,
    CopyFailed,
    CopyProgress,
    CopyRecovered,
    CopyResumed,
    CopyStarted,
    CopyWarning,
    EventSink,
    ignore_event,
)
from dbt.adapters.mzs3.export.commit.manifest import TakenOver
from dbt.adapters.mzs3.export.history_table import TABLE, History, HistoryRow, Status
from dbt.adapters.mzs3.export.progress import Progress, Snapshot, driver_address
from dbt.adapters.mzs3.rows.batches import WIDEST, RestartReason
from dbt.adapters.mzs3.spark.failure import explain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt.adapters.mzs3.export.export import CopyResult, Export


@dataclass(frozen=True)
class RunContext:
    """Where an export is reported, and as which model.

    Its history is a table of `schema`; without one there is none. `tell` gets events, from more
    than one thread. `scrub` takes secrets out of the text of an error.
    """

    schema: str | None = None
    identifier: str | None = None
    invocation_id: str = ""
    tell: EventSink = ignore_event
    scrub: Callable[[str], str] = str


class RunMonitor:
    """Reports a run of an export from its beginning to its end, however it ends.

    Nothing that fails in here reaches the export: an event that can't be delivered is lost, a
    history that can't be written is a warning.
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
        self._started = time.time()
        self._clock = time.monotonic()
        names = (context.schema, context.identifier)
        self._about: dict[str, Any] = {
            "relation": ".".join(name for name in names if name) or export.node,
            "unique_id": export.node,
            "location": export.location.uri,
        }

    def __enter__(self) -> RunMonitor:
        self._tell(CopyStarted(**self._about, parts=self._parts, as_of=self._export.as_of))
        if self._context.schema:
            with self._warning("can't"):
                self._history = History(self._spark, self._context.schema)
        return self

    def progress(self) -> Progress:
        """Reports progress every few seconds while its block runs."""
        return Progress(self._tell_progress, self._parts, driver_address(self._spark))

    def stop_if_cancelled(self) -> None:
        """Raises CopyError once the user has stopped the run; to call before work begins."""
        if self.is_cancelled:
            raise CopyError("the run was cancelled")

    def begin_again(self, reason: RestartReason) -> None:
        """Tell that the query runs once more; as `stop_if_cancelled`."""
        self.stop_if_cancelled()
        self._tell(CopyBeginsAgain(**self._about, reason=reason, limit=WIDEST))

    def recovered(self, finished: str) -> None:
        """Tell that this run has completed an earlier run's commit."""
        self._tell(CopyRecovered(**self._about, recovered=finished))

    def resumed(self, taken: TakenOver) -> None:
        """Tell what a run that resumes has taken over."""
        self._tell(CopyResumed(**self._about, **asdict(taken)))

    def committed(self, result: CopyResult) -> CopyResult:
        """Note the result, which is visible from now on, whatever the run still fails with."""
        self._result = result
        return result

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        elapsed = self._elapsed()
        error = self._context.scrub(str(failure)) if failure else ""
        made: dict[str, int] = {}
        if (result := self._result) is not None:
            made = {"rows": result.rows, "bytes": result.bytes, "files": result.files}
            status: Status = "rows"
            about = {**self._about, **made}
            self._tell(CopyCommitted(**about, manifest=result.manifest, elapsed=elapsed))
        elif self.is_cancelled or not isinstance(failure, Exception):
            status = "cancelled"
            self._tell(CopyCancelled(**self._about, error=error, elapsed=elapsed))
        else:
            status = "error"
            self._tell(CopyFailed(**self._about, error=error, elapsed=elapsed))
        if self._history is None:
            return
        row = HistoryRow(
            model=self._export.node,
            location=self._export.location.uri,
            as_of=result.as_of if result else self._export.as_of,
            started=int(self._started * 1000),
            ended=int((self._started + elapsed) * 1000),
            status=status,
            **made,
            error=error or None,
            invocation_id=self._context.invocation_id,
            format=self._export.options.format.name,
            on_existing=self._export.options.on_existing,
        )
        with self._warning("could not"):
            self._history.append(row)

    @property
    def is_cancelled(self) -> bool:
        """Whether the user has stopped the run."""
        return self._cancelled is not None and self._cancelled.is_set()

    @contextlib.contextmanager
    def _warning(self, failed: str) -> Iterator[None]:
        """Turns any failure of the history into a warning: the export goes on, or has ended."""
        try:
            yield
        except Exception as exc:  # noqa: BLE001 - see above
            warning = (
                f"this run {failed} be recorded in {self._context.schema}.{TABLE}, and is "
                f"otherwise as the log says: {explain(exc)}"
            )
            self._tell(CopyWarning(**self._about, warning=warning))

    def _tell_progress(self, seen: Snapshot) -> None:
        if not self.is_cancelled:
            about = {**self._about, **asdict(seen)}
            self._tell(CopyProgress(**about, parts=self._parts, elapsed=self._elapsed()))

    def _tell(self, event: CopyEvent) -> None:
        with contextlib.suppress(Exception):
            self._context.tell(event)

    def _elapsed(self) -> float:
        return time.monotonic() - self._clock
