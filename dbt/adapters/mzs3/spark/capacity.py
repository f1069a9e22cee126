"""Whether the workers of a standalone cluster can take executors as large as a session asks for.

YARN refuses larger ones itself; where Kubernetes has no node for them, one may be on its way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.spark.status import JAVA_ERRORS

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession


# What is raised by a Spark that has other classes.
_OTHER_SPARK: tuple[type[Exception], ...] = (*JAVA_ERRORS, AttributeError, TypeError)


class Size(NamedTuple):
    """What an executor needs, or what a worker has in all: MB of memory, and cores."""

    memory: int
    cores: int


def require_capacity(spark: SparkSession) -> None:
    """Raises SparkJobError where the cluster has workers, and none can ever take an executor.

    Spark would wait for a larger worker, for ever. Says nothing of other clusters, and of those
    with a second master.
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
    """What is asked for and what there is; None where a worker has room, or where there is none
    yet."""
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
    """What the master tells its web page, which the driver asks as it has asked for executors.

    Those that have died are among them while the master lists them: it does not send their state.
    """
    jvm = context._jvm
    spark = jvm.org.apache.spark
    address = spark.rpc.RpcAddress.fromSparkURL(context.master)
    rpc = context._jsc.sc().schedulerBackend().rpcEnv()
    request = getattr(getattr(spark.deploy, "DeployMessages$RequestMasterState$"), "MODULE$")
    any_class = getattr(getattr(jvm.scala.reflect, "ClassTag$"), "MODULE$").Any()
    answer = rpc.setupEndpointRef(address, "Master").askSync(request, any_class)
    return [Size(worker.memory(), worker.cores()) for worker in answer.workers()]
