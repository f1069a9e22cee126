"""What is asked of a Spark in this process: the engine, its scheduler, the size of workers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.spark import java
from dbt.adapters.mzs3.spark.failure import JAVA_ERRORS

if TYPE_CHECKING:
    from pyspark import SparkContext, StatusTracker

# What is raised by a Spark that has other classes.
_OTHER_SPARK: tuple[type[Exception], ...] = (*JAVA_ERRORS, AttributeError, TypeError)


class LocalEngine:
    """Spark in this process, which starts with the first session and ends with the process, or
    with the first session that asks for another."""

    writes_files = True

    def close(self, session: SparkSession) -> None:
        """Spark goes on, until a session asks for other settings."""
        java.release(session)

    def keep_plans_secret(self, session: SparkSession) -> None:
        """Does nothing: Spark logs no functions."""

    def driver_address(self, session: SparkSession) -> tuple[str, str] | None:
        """By Spark's settings."""
        host = session.conf.get("spark.driver.host", None)
        if not host:
            return None
        return host, session.conf.get("spark.driver.bindAddress", host) or host

    def tasks(self, session: SparkSession) -> None:
        """None: Spark's scheduler does not say which session a task belongs to."""

    def status_tracker(self, session: SparkSession) -> StatusTracker:
        """That of the application."""
        return session.sparkContext.statusTracker()

    def rows_written(self, frame: DataFrame) -> int | None:
        """By the plan of the command."""
        try:
            command = frame._jdf.queryExecution().executedPlan().commandPhysicalPlan()
            counter = command.metrics().get("numOutputRows")
            return int(counter.get().value()) if counter.isDefined() else None
        except JAVA_ERRORS:
            return None  # not a command, or one that writes no files

    def default_parallelism(self, session: SparkSession) -> int:
        """The session's setting, else the scheduler's, without a job."""
        given = session.conf.get("spark.sql.leafNodeDefaultParallelism", None)
        return int(given or session.sparkContext.defaultParallelism)

    def write_parquet(self, session: SparkSession, folder: str, rows: pa.Table) -> None:
        """By this process, through Hadoop's file systems with the session's settings: a job takes
        longer. Raises one of JAVA_ERRORS."""
        content = pa.BufferOutputStream()
        pq.write_table(rows, content)
        path_of = getattr(session.sparkContext._jvm, "org.apache.hadoop.fs.Path")
        path = path_of(f"{folder}/part-00000.snappy.parquet")
        settings = session._jsparkSession.sessionState().newHadoopConf()
        file = path.getFileSystem(settings).create(path, False)
        try:
            file.write(content.getvalue().to_pybytes())
        finally:
            file.close()


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


class Size(NamedTuple):
    """MB of memory and cores that an executor needs, or that a worker has in all."""

    memory: int
    cores: int


def require_capacity(spark: SparkSession) -> None:
    """Raises SparkJobError where no worker of a standalone cluster can ever take an executor, as
    Spark would wait for a larger worker for ever.

    Checks no other clusters: YARN refuses such executors itself, and on Kubernetes a node for them
    may be on its way; nor one with a second master, or one that has no worker yet.
    """
    context = spark.sparkContext
    if not context.master.startswith("spark://") or "," in context.master:
        return
    try:
        workers = _workers(context)
        cores = context.getConf().get("spark.executor.cores", "1")
        asked = Size(context._jsc.sc().executorMemory(), int(cores))
    except _OTHER_SPARK:
        return
    if (problem := lack_of_capacity(asked, workers)) is not None:
        raise SparkJobError(f"no worker of {context.master} can take an executor: {problem}")


def lack_of_capacity(asked: Size, workers: Sequence[Size]) -> str | None:
    """The request and what workers have, in words; None where one fits, or there is no worker."""
    if not workers or any(w.memory >= asked.memory and w.cores >= asked.cores for w in workers):
        return None
    there = ", ".join(f"{w.memory} MB and {w.cores} core(s)" for w in sorted(set(workers))[-3:])
    return (
        f"spark.executor.memory and spark.executor.cores ask for {asked.memory} MB and "
        f"{asked.cores} core(s), and a worker has {there}. Ask for less in "
        "server_side_parameters, or start larger workers; with executor_timeout: 0 dbt waits for "
        "them"
    )


def _workers(context: SparkContext) -> list[Size]:
    """The workers that the master lists on its web page, dead ones too: it sends no state."""
    jvm = context._jvm
    spark = jvm.org.apache.spark
    address = spark.rpc.RpcAddress.fromSparkURL(context.master)
    rpc = context._jsc.sc().schedulerBackend().rpcEnv()
    request = getattr(getattr(spark.deploy, "DeployMessages$RequestMasterState$"), "MODULE$")
    any_class = getattr(getattr(jvm.scala.reflect, "ClassTag$"), "MODULE$").Any()
    answer = rpc.setupEndpointRef(address, "Master").askSync(request, any_class)
    return [Size(worker.memory(), worker.cores()) for worker in answer.workers()]
