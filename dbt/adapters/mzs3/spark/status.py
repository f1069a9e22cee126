"""What Spark reports of running and finished jobs: stages, tasks, and the rows it has seen."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping
from concurrent.futures import Future, TimeoutError
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, Observation, SparkSession

from dbt.adapters.mzs3.errors import SparkJobError

if TYPE_CHECKING:
    from pyspark import StatusTracker

try:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
except ModuleNotFoundError:  # with pyspark-client, which has no Java
    JAVA_ERRORS: tuple[type[Exception], ...] = ()
else:
    JAVA_ERRORS = (Py4JError,)


def status_tracker(session: SparkSession) -> StatusTracker:
    """What Spark's scheduler, in this process, tells of stages."""
    return session.sparkContext.statusTracker()


class LocalScheduler:
    """The tasks of the Spark of this process; raises one of JAVA_ERRORS once it has ended."""

    def __init__(self, session: SparkSession) -> None:
        self._context = session.sparkContext
        self.name = str(self._context.applicationId)

    @property
    def is_alone(self) -> bool:
        """Whether the executor is in this process too."""
        master = str(self._context.master)
        return master.startswith("local") and not master.startswith("local-cluster")

    def waiting(self) -> dict[Hashable, int]:
        """How many tasks of its last attempt have ended of each stage that is not finished."""
        tracker = self._context.statusTracker()
        found = map(tracker.getStageInfo, tracker.getActiveStageIds())
        return {
            (stage.stageId, stage.currentAttemptId): stage.numCompletedTasks + stage.numFailedTasks
            for stage in found
            if stage is not None
        }

    def running(self) -> int:
        """How many tasks run on live executors, also of earlier attempts at a stage."""
        tracker = self._context._jsc.sc().statusTracker()
        return sum(executor.numRunningTasks() for executor in tracker.getExecutorInfos())

    def end_all(self) -> None:
        """Cancel all that runs."""
        self._context.cancelAllJobs()


def rows_written(frame: DataFrame) -> int | None:
    """How many rows the command behind a frame of this process wrote to files, by its plan; runs
    nothing. None where that is not known."""
    try:
        command = frame._jdf.queryExecution().executedPlan().commandPhysicalPlan()
        counter = command.metrics().get("numOutputRows")
        return int(counter.get().value()) if counter.isDefined() else None
    except JAVA_ERRORS:
        return None  # not a command, or one that writes no files


def default_parallelism(session: SparkSession) -> int:
    """Into how many partitions the Spark of this process cuts a range; runs nothing."""
    given = session.conf.get("spark.sql.leafNodeDefaultParallelism", None)
    return int(given or session.sparkContext.defaultParallelism)


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
