"""Spark in this process: its start, sessions and scheduler, and the size of its workers."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark import SparkConf
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote
from pyspark.util import is_remote_only

from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.spark import java
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, JavaError, readable
from dbt.adapters.mzs3.spark.interrupt import EXECUTOR_TIMEOUT_S, watch
from dbt.adapters.mzs3.spark.job import ship_executor_code
from dbt.adapters.mzs3.spark.settings import (
    WAREHOUSE,
    local_path,
    make_warehouse,
    place_warehouse,
    try_set,
    with_defaults,
)

if TYPE_CHECKING:
    from pyspark import SparkContext

# Raised if a version of Spark has other internal classes.
_OTHER_SPARK = (JavaError, AttributeError, TypeError)


def get_or_create(parameters: Mapping[str, str], folder: Path | None = None) -> SparkSession:
    """This process's Spark session with these parameters; thread-safe. Relative paths start at
    `folder`, by default the current directory.

    See `java.reuse_or_end` for a Spark that already runs. Raises SparkJobError if Spark can't
    start, or runs with other settings.
    """
    if is_remote_only():
        raise SparkJobError(
            "method: session needs Spark itself, and what is installed is pyspark-client, which "
            "can only reach a Spark Connect server (method: connect): run pip uninstall "
            "pyspark-client, then pip install 'dbt-mzs3[session]'"
        )
    if is_remote():
        raise SparkJobError(
            "PySpark has no Spark in this process (method: session) while a session of Spark "
            "Connect is open in it, or the environment has SPARK_CONNECT_MODE_ENABLED: close the "
            "session, or run dbt in a process of its own"
        )
    base = folder or Path.cwd()
    warehouse = local_path(parameters.get(WAREHOUSE), base)  # absolute, as in Spark's settings
    given = {**parameters, **({} if warehouse is None else {WAREHOUSE: str(warehouse)})}
    with java.lock:
        quieten_pyspark()
        wanted = place_warehouse(with_defaults(parameters), base)
        return java.reuse_or_end(given, wanted) or _start(wanted)


def isolated_session(
    parameters: Mapping[str, str],
    executor_timeout: int = EXECUTOR_TIMEOUT_S,
    folder: Path | None = None,
) -> SparkSession:
    """A new session on the Spark of `get_or_create`, with the parameters that can be set at run
    time. Spark does not end until the session is closed or garbage-collected.

    Jobs that wait for an executor for `executor_timeout` seconds fail; 0 is no limit. Raises
    SparkJobError like `get_or_create`, and if no worker has room for an executor.
    """
    with java.lock:
        session = java.mark_in_use(get_or_create(parameters, folder).newSession())
    try:
        return configure(session, parameters, executor_timeout)
    except BaseException:
        java.release(session)
        raise


def configure(
    session: SparkSession, parameters: Mapping[str, str], executor_timeout: int
) -> SparkSession:
    """Sets parameters that can be set at run time in the new session. Returns the session."""
    scheduler, master = LocalScheduler(session), str(session.sparkContext.master)
    has_executor = master.startswith("local") and not master.startswith("local-cluster")
    if executor_timeout > 0 and not has_executor:  # in local mode, this process is the executor
        require_capacity(session)
        watch(scheduler.name, scheduler, executor_timeout)
    wanted = with_defaults(parameters)
    for key, value in wanted.items():
        if session.conf.get(key, None) != value:
            try_set(session.conf, key, value)
    java.unset_others(session, wanted)
    return session


def quieten_pyspark() -> None:
    """Turns off PySpark's log of failed queries, which dbt reports, and its warning about
    pandas 3, with which our tests run."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    message = "PySpark does not yet fully support pandas >= 3"
    warnings.filterwarnings("ignore", message=message, category=FutureWarning)


def _start(parameters: Mapping[str, str]) -> SparkSession:
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    make_warehouse(parameters)
    if parameters.get("spark.master", "local").startswith("local"):
        # The first `python3` on PATH may not be the Python that runs dbt.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    interrupted = signal.getsignal(signal.SIGINT)
    is_ours = SparkContext._gateway is None
    try:
        if is_ours:
            # Like SparkSession.builder, but with our choice of Java's output.
            with java.java_output() as out:
                conf = SparkConf().setAll([*parameters.items()])
                gateway = launch_gateway(conf, {"stdout": out, "stderr": out})
            java.record_launch(gateway)
            SparkContext._ensure_initialized(gateway=gateway)
        session = SparkSession.builder.config(map=dict(parameters)).getOrCreate()
    except BaseException as exc:
        # Before Java ends, as `readable` may request the cause from Java.
        failure = readable(exc) if isinstance(exc, SPARK_FAILURES) else None
        if is_ours:
            java.end()
        if isinstance(exc, PySparkRuntimeError) and exc.getCondition() == "JAVA_GATEWAY_EXITED":
            raise SparkJobError(
                "Spark could not start its Java process. Spark 4 needs Java 17 or later: check "
                f"`java -version` and JAVA_HOME, and {java.output_hint()}."
            ) from exc
        if failure is not None:
            raise failure from exc
        raise
    if threading.current_thread() is threading.main_thread():
        # Spark's handler of Ctrl-C would cancel all jobs before our code learns of the Ctrl-C.
        signal.signal(signal.SIGINT, interrupted or signal.default_int_handler)
    if is_ours:
        java.record_session(session, parameters)
    ship_executor_code()
    return session


class LocalScheduler:
    """The Scheduler of the Spark in this process; raises JavaError once Spark has ended."""

    def __init__(self, session: SparkSession) -> None:
        self._context = session.sparkContext
        self.name = str(self._context.applicationId)

    def waiting(self) -> dict[Hashable, int]:
        """How many tasks of each unfinished stage's last attempt have ended."""
        tracker = self._context.statusTracker()
        stages = map(tracker.getStageInfo, tracker.getActiveStageIds())
        return {
            (stage.stageId, stage.currentAttemptId): stage.numCompletedTasks + stage.numFailedTasks
            for stage in stages
            if stage is not None
        }

    def running(self) -> int:
        """How many tasks run on live executors, including those of earlier stage attempts."""
        tracker = self._context._jsc.sc().statusTracker()
        return sum(executor.numRunningTasks() for executor in tracker.getExecutorInfos())

    def end_all(self) -> None:
        """Cancels all jobs."""
        self._context.cancelAllJobs()


class Size(NamedTuple):
    """The memory in MB and the cores that an executor needs, or that a worker has in total."""

    memory: int
    cores: int


def require_capacity(spark: SparkSession) -> None:
    """Raises SparkJobError if no worker of a standalone cluster is large enough for an executor:
    Spark would wait for a larger worker forever.

    Does not check clusters with a second master, without workers, or of other kinds: YARN refuses
    such executors itself, and Kubernetes may be starting a node for them.
    """
    context = spark.sparkContext
    master = str(context.master)
    if not master.startswith("spark://") or "," in master:
        return
    try:
        workers = _workers(context)
        cores = context.getConf().get("spark.executor.cores", "1")
        needed = Size(context._jsc.sc().executorMemory(), int(cores))
    except _OTHER_SPARK:
        return
    if (problem := lack_of_capacity(needed, workers)) is not None:
        raise SparkJobError(f"no worker of {master} can take an executor: {problem}")


def lack_of_capacity(needed: Size, workers: Sequence[Size]) -> str | None:
    """Why no worker is large enough for an executor; None if one is, or without workers."""
    if not workers or any(w.memory >= needed.memory and w.cores >= needed.cores for w in workers):
        return None
    offered = ", ".join(f"{w.memory} MB and {w.cores} core(s)" for w in sorted(set(workers))[-3:])
    return (
        f"spark.executor.memory and spark.executor.cores ask for {needed.memory} MB and "
        f"{needed.cores} core(s), and a worker has {offered}. Ask for less in "
        "server_side_parameters, or start larger workers; with executor_timeout: 0 dbt waits for "
        "them"
    )


def _workers(context: SparkContext) -> list[Size]:
    """The workers that the master reports, including dead ones: their state is not available."""
    jvm: Any = context._jvm
    spark = jvm.org.apache.spark
    address = spark.rpc.RpcAddress.fromSparkURL(context.master)
    rpc = context._jsc.sc().schedulerBackend().rpcEnv()
    request = getattr(getattr(spark.deploy, "DeployMessages$RequestMasterState$"), "MODULE$")
    any_class = getattr(getattr(jvm.scala.reflect, "ClassTag$"), "MODULE$").Any()
    answer = rpc.setupEndpointRef(address, "Master").askSync(request, any_class)
    return [Size(worker.memory(), worker.cores()) for worker in answer.workers()]
