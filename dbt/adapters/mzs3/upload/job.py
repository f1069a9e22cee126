"""Uploads the rows of a DataFrame as files, with tasks on the cluster."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial

from pyspark import TaskContext
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.mzs3.errors import CopyError, SparkJobError
from dbt.adapters.mzs3.rows.batches import (
    MAX_BYTES,
    WIDE_ROW,
    Assumptions,
    RestartReason,
    assumptions_for,
    batches_for,
    sends_native_batches,
)
from dbt.adapters.mzs3.rows.columns import canonical_columns
from dbt.adapters.mzs3.rows.packing import packed_columns
from dbt.adapters.mzs3.rows.plan import in_parts
from dbt.adapters.mzs3.spark import engine
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, executor_error
from dbt.adapters.mzs3.spark.frames import observed
from dbt.adapters.mzs3.spark.interrupt import at_once
from dbt.adapters.mzs3.spark.job import shipped
from dbt.adapters.mzs3.spark.settings import settings
from dbt.adapters.mzs3.upload.pending import PendingFile
from dbt.adapters.mzs3.upload.spec import WriteSpec
from dbt.adapters.mzs3.upload.task import REPORT_DDL, write_empty_part, write_parts

# If Spark lost rows and computes them again, these settings make it compare the checksums of old
# and new rows, and fail the job if they differ. Up to Spark 4.1, they are off by default.
_CHECKSUMS = "spark.sql.shuffle.orderIndependentChecksum"
_COMPARED = {f"{_CHECKSUMS}.enabled": "true", f"{_CHECKSUMS}.enableFullRetryOnMismatch": "true"}
_OTHER_ROWS_ERRORS = (
    "shuffle map stage with indeterminate output was failed and retried",
    "indeterminate results from old attempt succeeded",
    "cannot rollback",
)
# Spark's status tracker may show a stage as completed only some time after its rows have arrived:
# it is polled at once, and then at growing intervals.
_LATE_S = 60.0
_FIRST_PAUSE_S, _MAX_PAUSE_S = 0.001, 0.02

_NO_RECORD = (
    "all files were written, but Spark does not tell whether their rows were computed once: "
    f"after {_LATE_S:.0f} s its scheduler knows nothing more of stage {{}}. It forgets stages "
    "beyond spark.ui.retainedStages (1000 unless set) and drops what it has no time for "
    "(spark.scheduler.listenerbus.eventqueue.capacity); raise them and run it again"
)
_COMPUTED_TWICE = (
    "Spark lost rows while files were written, and computed them anew, which need not give the "
    "same rows: so it was when all was begun again, too. Run it again when the cluster keeps its "
    "executors, or let shuffled rows outlive them (spark.shuffle.service.enabled, or "
    "spark.decommission.enabled and spark.storage.decommission.enabled)"
)


@dataclass(frozen=True)
class Uploads:
    """The open uploads of all files. If there is a `restart_reason`, they can't be used.

    `files` is empty if the job failed, even if its tasks have left uploads open. `counted_rows` is
    the number of rows that Spark counted on their way to the workers. `sums` are those of the
    positive and of the negative numbers in the column `summed` of the spec. `not_native` has what
    Comet did not run of the plan, and why; None without Comet.
    """

    files: list[PendingFile]
    restart_reason: RestartReason | None = None
    counted_rows: int = 0
    sums: tuple[int, int] = (0, 0)
    not_native: Mapping[str, str] | None = None

    def check(self) -> None:
        """Raises CopyError if rows may be missing or duplicated."""
        if self.restart_reason is not None:
            raise CopyError(_COMPUTED_TWICE)
        check_count(sum(file.rows for file in self.files), self.counted_rows)


class PlannedRows:
    """A query's rows, divided into parts and ordered. The query has not run yet.

    `rows` is the result of `canonical_columns`, `ordered` that of `in_parts`, which `order` calls;
    `row_count` observes the number of rows, but for those that are native: Comet can't observe
    them, and has a count of its own.
    """

    def __init__(
        self, rows: DataFrame, assumed: Assumptions, order: Callable[[Assumptions], DataFrame]
    ) -> None:
        self.rows, self.assumed, self._order = rows, assumed, order
        self.ordered = order(assumed)
        self.row_count = None if assumed.native else Observation()
        if self.row_count is not None:
            self.ordered = self.ordered.observe(self.row_count, F.expr("count(1) AS rows"))

    def again(self, reason: RestartReason) -> PlannedRows:
        """The same rows, planned without the assumption that `reason` refutes."""
        return PlannedRows(self.rows, self.assumed.without(reason), self._order)


def plan_rows(frame: DataFrame, parts: int, partition_by: tuple[int, ...] = ()) -> PlannedRows:
    """Plans the frame's rows, without running the query; raises what Spark raises.

    `partition_by` has the indexes of the columns that name folders.
    """
    rows = canonical_columns(frame)
    native = sends_native_batches(rows.sparkSession)
    assumed = assumptions_for(rows.schema, partition_by, native=native)
    return PlannedRows(rows, assumed, partial(in_parts, rows, parts, partition_by))


def upload_parts(
    planned: PlannedRows,
    spec: WriteSpec,
    *,
    before_again: Callable[[RestartReason, list[tuple[str, str]]], object],
    empty_file: bool = True,
) -> Uploads:
    """Uploads the rows as files, and returns the open uploads.

    A query without rows gives one file, or none if `empty_file` is false. The query runs once more
    if an assumption about its rows was wrong, or if Spark recomputed lost rows while others were
    written. Before that, `before_again` is called with the reason, and the key and id of each
    unused upload. Raises what Spark raises; tasks may then open uploads for some more seconds.
    """
    reasons: set[RestartReason] = set()
    while True:
        uploads = _attempt(planned, spec)
        reason = uploads.restart_reason
        if reason is None or reason in reasons:
            break
        reasons.add(reason)
        before_again(reason, [(file.key, file.upload_id) for file in uploads.files])
        planned = planned.again(reason)
        if reason != "wide rows":
            # `before_again` may have aborted the uploads of an interrupted run, too.
            spec = replace(spec, reusable={})
    if not uploads.files and empty_file and reason is None:
        reports = write_empty_part(spec, planned.rows.limit(0).toArrow().schema)
        return replace(uploads, files=list(map(PendingFile.from_dict, reports)))
    return uploads


def _attempt(planned: PlannedRows, spec: WriteSpec) -> Uploads:
    assumed, spark = planned.assumed, planned.rows.sparkSession
    packed = packed_columns(planned.rows.schema)[1] if assumed.distinct_hashes else ()
    limit = MAX_BYTES if assumed.native else None
    spec = replace(spec, packed=packed, max_batch_bytes=limit)
    try:
        with batches_for(spark, assumed):
            found = run_upload_job(planned.ordered, spec)
    except SPARK_FAILURES as exc:
        error = executor_error(exc)
        if assumed.narrow_rows and error is not None and error.cause == WIDE_ROW:
            return Uploads([], "wide rows")
        raise
    if found.restart_reason is not None or planned.row_count is None:
        return found
    return replace(found, counted_rows=int(observed(planned.row_count)["rows"]))


def check_count(written: int, counted: int) -> None:
    """Raises CopyError if the number of rows that workers wrote is not what Spark counted."""
    if written != counted:
        raise CopyError(
            f"workers wrote {written} rows, but Spark counted {counted}; "
            "this is a defect of the export, please report it"
        )


def run_upload_job(parts: DataFrame, spec: WriteSpec) -> Uploads:
    """Uploads the rows of `parts`, which `in_parts` made; raises what Spark raises.

    Spark fails the job if rows that it computes again differ from the ones it lost. With Comet,
    this process looks for rows that may have been lost.
    """
    spark = parts.sparkSession
    # TaskContext is an argument, as shipped code does not import pyspark.
    write = shipped(write_parts, spec, TaskContext.get)
    written = parts.mapInArrow(write, REPORT_DDL)
    is_native = spec.max_batch_bytes is not None
    # Comet's shuffle has no checksums of what it has lost, before the last shuffle neither.
    has_lost_rows = engine.losses(spark) if is_native else bool
    try:
        with settings(spark, _COMPARED):
            reports = [json.loads(row[0]) for row in written.collect()]
    except SPARK_FAILURES as exc:
        if has_computed_other_rows(exc):
            return Uploads([], "rows computed anew")
        raise
    except KeyboardInterrupt:
        at_once([spark.interruptAll])  # else the tasks would go on
        raise
    tasks = [report for report in reports if "stage" in report]
    files = [PendingFile.from_dict(report) for report in reports if "stage" not in report]
    if refuted := next((task["refuted"] for task in tasks if task["refuted"]), None):
        return Uploads(files, refuted)
    once = wrote_in_one_attempt(spark, {task["stage"] for task in tasks}, len(tasks))
    if not once or has_lost_rows():
        return Uploads(files, "rows computed anew")
    added, removed = (sum(task["sums"][sign] for task in tasks) for sign in (0, 1))
    rows = engine.rows_shuffled(written) if is_native else 0
    others = engine.not_native(written) if is_native else None
    return Uploads(files, None, rows, (added, removed), others)


def has_computed_other_rows(failure: Exception) -> bool:
    """Whether the job failed because recomputed rows differ from those that Spark lost."""
    return any(text in str(failure) for text in _OTHER_ROWS_ERRORS)


def wrote_in_one_attempt(spark: SparkSession, stages: Collection[int], tasks: int) -> bool:
    """Whether all `tasks` of the one stage in `stages` ran in the stage's first attempt.

    Spark starts another stage attempt when rows that the stage reads were lost: its tasks may then
    have read different rows. Returns True if the scheduler is in another process; then only the
    settings `_COMPARED` protect. Raises SparkJobError if the stage is not reported in time.
    """
    tracker = engine.status_tracker(spark)
    if tracker is None or not stages:
        return True
    [stage] = stages
    deadline, pause = time.monotonic() + _LATE_S, _FIRST_PAUSE_S
    while True:
        info = tracker.getStageInfo(stage)
        if info is not None and info.currentAttemptId > 0:
            return False
        if info is not None and info.numCompletedTasks >= tasks:
            return True
        if time.monotonic() > deadline:
            raise SparkJobError(_NO_RECORD.format(stage))
        time.sleep(pause)
        pause = min(2 * pause, _MAX_PAUSE_S)
