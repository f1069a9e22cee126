"""Functions that differ between Spark in this process and Spark on a Spark Connect server."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.mzs3.spark import java, remote
from dbt.adapters.mzs3.spark.failure import JavaError, readable
from dbt.adapters.mzs3.spark.session import isolated_session
from dbt.adapters.mzs3.spark.tables import arrow_frame

if TYPE_CHECKING:
    from pyspark import StatusTracker

# While this cache is on, a server logs the cached plans, with Python functions, at DEBUG.
_PLAN_CACHE = "spark.connect.session.planCache.enabled"

# Comet's own way to tell why it did not run an operator.
_REASON = re.compile(r"^[ :+-]*([^\n\[]*?) +\[COMET: ([^\n]*)\]$", re.MULTILINE)
# They pass on what others have made.
_NO_WORK = ("AQEShuffleRead", "InputAdapter", "WholeStageCodegen", "ReusedExchange")


def open_session(
    server: str | None,
    parameters: Mapping[str, str],
    executor_timeout: int,
    folder: Path | None = None,
) -> SparkSession:
    """Opens a new session, and sets those parameters that can be set at run time.

    `server` is the `sc://` URL of a Spark Connect server; without it, Spark runs in this process,
    and keeps its tables below `folder` (by default the current directory), unless the parameters
    set another place. Jobs that wait for an executor for `executor_timeout` seconds fail; 0 is no
    limit. Raises SparkJobError if Spark can't start or runs with other settings, or the server
    does not respond.
    """
    if server is None:
        remote.allow_local_spark()
        return isolated_session(parameters, executor_timeout, folder)
    return remote.open_session(server, parameters, executor_timeout)


def is_remote(spark: SparkSession | DataFrame) -> bool:
    """Whether Spark runs on a Spark Connect server."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def close(session: SparkSession) -> None:
    """Closes the session; safe to repeat. A Spark in this process may then be restarted with other
    settings; a server drops the session."""
    (remote.close if is_remote(session) else java.release)(session)


def keep_plans_secret(session: SparkSession) -> None:
    """Keeps Python functions in the session's plans out of all logs from now on: the functions of
    our tasks contain the keys of a connection. Raises SparkJobError."""
    if not is_remote(session):
        return  # Spark in this process does not log these functions
    try:
        if session.conf.isModifiable(_PLAN_CACHE):
            session.conf.set(_PLAN_CACHE, "false")
    except PySparkException as exc:  # the server is gone
        raise readable(exc) from exc


def driver_address(session: SparkSession) -> tuple[str, str] | None:
    """The host at which workers can reach this process, and the host to which it binds; None if
    workers may be unable to reach it."""
    host = None if is_remote(session) else session.conf.get("spark.driver.host", None)
    return (host, session.conf.get("spark.driver.bindAddress", host) or host) if host else None


def tasks(session: SparkSession) -> tuple[int, int] | None:
    """How many tasks of the session's running jobs have ended, and how many there are so far; None
    if Spark does not report that."""
    return remote.tasks_of(session) if is_remote(session) else None


def status_tracker(session: SparkSession) -> StatusTracker | None:
    """Spark's StatusTracker, with the progress of stages; None if Spark is in another process."""
    return None if is_remote(session) else session.sparkContext.statusTracker()


def has_running_tasks(session: SparkSession) -> bool | None:
    """Whether tasks of the session's jobs run, also of jobs that have failed or were cancelled;
    None if Spark does not report that."""
    if is_remote(session):
        return None
    try:
        status = session.sparkContext.statusTracker()
        jobs = [job for job in map(status.getJobInfo, _jobs(session)) if job is not None]
        stages = (status.getStageInfo(stage) for job in jobs for stage in job.stageIds)
        return any(job.status == "RUNNING" for job in jobs) or any(
            stage is not None and stage.numActiveTasks > 0 for stage in stages
        )
    except (JavaError, AttributeError):  # Spark has ended
        return None


def losses(session: SparkSession) -> Callable[[], bool]:
    """A function that tells, after a job of the session, whether Spark may have computed some of
    its rows twice since this call: executors were lost, or a stage was attempted again. Only for
    Spark in this process."""
    store = session.sparkContext._jsc.sc().statusStore()
    status = session.sparkContext.statusTracker()

    def lost() -> set[str]:
        executors = store.executorList(False)
        found = (executors.apply(place) for place in range(executors.size()))
        inactive = {one.id(): str(one.removeReason()) for one in found if not one.isActive()}
        # Executors that Spark itself has ended have no rows that are needed.
        return {name for name, reason in inactive.items() if "killed by driver" not in reason}

    before, jobs_before = lost(), set(_jobs(session))

    def are_there() -> bool:
        jobs = [status.getJobInfo(job) for job in set(_jobs(session)) - jobs_before]
        stages = (status.getStageInfo(stage) for job in jobs if job for stage in job.stageIds)
        return bool(lost() - before) or any(stage and stage.currentAttemptId for stage in stages)

    return are_there


def _jobs(session: SparkSession) -> list[int]:
    tracker = session.sparkContext._jsc.sc().statusTracker()
    return list(tracker.getJobIdsForTag(session._jsparkSession.sessionJobTag()))


def rows_written(command: DataFrame) -> int | None:
    """How many rows a command has written to files; None if Spark does not report that. Runs no
    Spark job."""
    if is_remote(command):
        return None
    try:
        plan = command._jdf.queryExecution().executedPlan().commandPhysicalPlan()
        counter = plan.metrics().get("numOutputRows")
        return int(counter.get().value()) if counter.isDefined() else None
    except JavaError:
        return None  # not a command, or one that writes no files


def rows_shuffled(frame: DataFrame) -> int:
    """How many rows the tasks that made the frame's result have read from the last shuffle, each
    task counted once; 0 if there was none. Only for Spark in this process, after an action."""
    operators = _operators(frame._jdf.queryExecution().executedPlan())
    metrics = (operator.metrics().get("recordsRead") for operator in operators)
    return next((int(each.get().value()) for each in metrics if each.isDefined()), 0)


def not_native(frame: DataFrame) -> dict[str, str]:
    """The operators of Spark's own in the plan by which the frame was run, each with why Comet did
    not run it, as far as it says so. Only for Spark in this process, after an action."""
    plan = frame._jdf.queryExecution().executedPlan()
    names = [operator.nodeName().strip() for operator in _operators(plan)]
    others = [name for name in names if not name.startswith(("Comet", *_NO_WORK))]
    if not others:
        return {}
    java: Any = frame.sparkSession._jvm
    reasons: dict[str, str] = {}
    with suppress(JavaError, TypeError):  # of another version of Comet
        explained = java.org.apache.comet.ExtendedExplainInfo().generateExtendedInfo(plan)
        reasons = dict(_REASON.findall(explained))
    return {name: reasons.get(name, "") for name in others}


def _operators(plan: Any) -> Iterator[Any]:
    """The operators of a plan in this process, each before those that it reads from."""
    kind = plan.getClass().getSimpleName()
    if kind == "AdaptiveSparkPlanExec":
        yield from _operators(plan.executedPlan())
    elif kind.endswith("QueryStageExec"):
        yield from _operators(plan.plan())
    else:
        yield plan
        children = plan.children()
        for place in range(children.size()):
            yield from _operators(children.apply(place))


def default_parallelism(session: SparkSession) -> int:
    """How many tasks the cluster runs at once, as far as Spark knows."""
    if is_remote(session):  # `range` has this many partitions, and its only row is in the last one
        [row] = session.range(1).select(F.spark_partition_id()).collect()
        return int(row[0]) + 1
    configured = session.conf.get("spark.sql.leafNodeDefaultParallelism", None)
    return int(configured or session.sparkContext.defaultParallelism)


def write_parquet(session: SparkSession, folder: str, rows: pa.Table) -> None:
    """Writes a few rows as Parquet to a new folder in the file system of Spark's tables. Raises
    SPARK_FAILURES."""
    if is_remote(session):
        arrow_frame(session, rows).coalesce(1).write.parquet(folder)
        return
    # This process writes the file with Hadoop's classes, as a Spark job takes longer.
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
