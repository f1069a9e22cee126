"""What Spark reports of running and finished jobs: stages, tasks, and the rows it has seen."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future, TimeoutError
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkContext, SparkStageInfo, StatusTracker
from pyspark.sql import DataFrame, Observation, SparkSession

from dbt.adapters.mzs3.errors import SparkJobError


def status_tracker(spark: SparkSession) -> StatusTracker | None:
    """The status tracker of Spark's scheduler; None where that runs in another process."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return None
    return spark.sparkContext.statusTracker()


def scheduler_of(spark: SparkSession) -> SparkContext | None:
    """The context that all sessions share, if its scheduler runs here and no executor does."""
    if status_tracker(spark) is None:
        return None
    context = spark.sparkContext
    alone = context.master.startswith("local") and not context.master.startswith("local-cluster")
    return None if alone else context


def unfinished_stages(context: SparkContext) -> list[SparkStageInfo]:
    """The stages that are not finished."""
    tracker = context.statusTracker()
    found = map(tracker.getStageInfo, tracker.getActiveStageIds())
    return [stage for stage in found if stage is not None]


def running_tasks(context: SparkContext) -> int:
    """How many tasks run on live executors, also of earlier attempts at a stage."""
    tracker = context._jsc.sc().statusTracker()
    return sum(executor.numRunningTasks() for executor in tracker.getExecutorInfos())


def rows_written(frame: DataFrame) -> int | None:
    """How many rows the command behind `frame` wrote to files, by its plan; runs nothing. None
    where that is not known, as with Spark Connect."""
    plan = getattr(frame, "_jdf", None)
    if plan is None:
        return None
    try:
        command = plan.queryExecution().executedPlan().commandPhysicalPlan()
        counter = command.metrics().get("numOutputRows")
        return int(counter.get().value()) if counter.isDefined() else None
    except Py4JError:
        return None  # not a command, or one that writes no files


def observed(counted: Observation, wait_s: float = 60.0) -> Mapping[str, Any]:
    """The metrics of an Observation whose rows were read, by name.

    Raises SparkJobError after `wait_s` seconds, where `Observation.get` would wait for ever:
    Spark sends them as an event, and drops events when its listeners lag behind.
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
