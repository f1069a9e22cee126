"""What Spark says of what it runs and has run: its stages, and the rows that it has seen."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future, TimeoutError
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, Observation

from dbt.adapters.mzs3.errors import SparkJobError

if TYPE_CHECKING:
    from pyspark import SparkContext, SparkStageInfo, StatusTracker
    from pyspark.sql import SparkSession


def status_tracker(spark: SparkSession) -> StatusTracker | None:
    """The scheduler's own; None where it runs in another process than this one."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return None
    return spark.sparkContext.statusTracker()


@dataclass(frozen=True)
class Scheduler:
    """The scheduler of this process, for all of its sessions."""

    context: SparkContext

    @property
    def application(self) -> str:
        """Its id, which no other one has."""
        return str(self.context.applicationId)

    def stages(self) -> list[SparkStageInfo]:
        """Those that have tasks to run, or that run."""
        tracker = self.context.statusTracker()
        found = (tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds())
        return [stage for stage in found if stage is not None]

    def running_tasks(self) -> int:
        """How many run on executors that live, those of earlier attempts at a stage too."""
        tracker = self.context._jsc.sc().statusTracker()
        return sum(executor.numRunningTasks() for executor in tracker.getExecutorInfos())

    def end_all(self) -> None:
        """Every job of the process fails, as cancelled."""
        self.context.cancelAllJobs()


def scheduler_of(spark: SparkSession) -> Scheduler | None:
    """The one of a cluster's executors; None where they are this process, or it is elsewhere."""
    if status_tracker(spark) is None:
        return None
    context = spark.sparkContext
    alone = context.master.startswith("local") and not context.master.startswith("local-cluster")
    return None if alone else Scheduler(context)


def rows_written(frame: DataFrame) -> int | None:
    """The rows that the command behind `frame` wrote to files, or None where it is not known.

    Reads a counter of the command's own plan; runs nothing. Only a session in this process shows
    its plans.
    """
    plan = getattr(frame, "_jdf", None)
    if plan is None:
        return None
    try:
        command = plan.queryExecution().executedPlan().commandPhysicalPlan()
        counter = command.metrics().get("numOutputRows")
        return int(counter.get().value()) if counter.isDefined() else None
    except Py4JError:
        return None  # not a command, or one that writes no files


REPORT_S = 60.0
"""So long Spark may take to report what it has observed, once the rows were read."""


def observed(counted: Observation, wait_s: float = REPORT_S) -> Mapping[str, Any]:
    """What was observed of rows that were read, by name.

    Spark tells it by an event, which it drops where its listeners lag behind, and `get` waits for
    ever then. Raises SparkJobError after `wait_s` seconds, and what Spark raises.
    """
    answer: Future[Mapping[str, Any]] = Future()

    def ask() -> None:
        try:
            answer.set_result(counted.get)
        except Exception as exc:  # noqa: BLE001 - it is raised again where it is waited for
            answer.set_exception(exc)

    threading.Thread(target=ask, daemon=True).start()
    try:
        return answer.result(wait_s)
    except TimeoutError:
        raise SparkJobError(
            "Spark did not report how many rows it has read, as it drops what it has no time for; "
            "run again with a larger spark.scheduler.listenerbus.eventqueue.capacity"
        ) from None
