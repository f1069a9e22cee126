"""The scheduler of a Spark in this process, and the size of its workers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import SparkSession

from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.spark.failure import JavaError

if TYPE_CHECKING:
    from pyspark import SparkContext

# What is raised by a Spark that has other classes.
_OTHER_SPARK = (JavaError, AttributeError, TypeError)


class LocalScheduler:
    """The tasks of the Spark of this process; raises JavaError once it has ended."""

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
    master = str(context.master)
    if not master.startswith("spark://") or "," in master:
        return
    try:
        workers = _workers(context)
        cores = context.getConf().get("spark.executor.cores", "1")
        asked = Size(context._jsc.sc().executorMemory(), int(cores))
    except _OTHER_SPARK:
        return
    if (problem := lack_of_capacity(asked, workers)) is not None:
        raise SparkJobError(f"no worker of {master} can take an executor: {problem}")


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
    jvm: Any = context._jvm
    spark = jvm.org.apache.spark
    address = spark.rpc.RpcAddress.fromSparkURL(context.master)
    rpc = context._jsc.sc().schedulerBackend().rpcEnv()
    request = getattr(getattr(spark.deploy, "DeployMessages$RequestMasterState$"), "MODULE$")
    any_class = getattr(getattr(jvm.scala.reflect, "ClassTag$"), "MODULE$").Any()
    answer = rpc.setupEndpointRef(address, "Master").askSync(request, any_class)
    return [Size(worker.memory(), worker.cores()) for worker in answer.workers()]
