"""Where Spark runs: in this process, or behind a Spark Connect server; and all that differs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

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

# A server logs a plan whose analysis it finds in its cache, at DEBUG, with the functions in it.
_PLAN_CACHE = "spark.connect.session.planCache.enabled"


def open_session(
    server: str | None,
    parameters: Mapping[str, str],
    executor_timeout: int,
    folder: Path | None = None,
) -> SparkSession:
    """A session of its own, with those parameters that can be set at run time.

    `server` is the `sc://` URL of a Spark Connect server; without one, Spark is in this process,
    and keeps its tables below `folder`, or the current directory, unless the parameters say where.
    Jobs that no executor takes for `executor_timeout` seconds fail; 0 is no limit. Raises
    SparkJobError when Spark can't start or runs with other settings, or the server does not
    answer.
    """
    if server is None:
        remote.allow_local_spark()
        return isolated_session(parameters, executor_timeout, folder)
    return remote.open_session(server, parameters, executor_timeout)


def is_remote(spark: SparkSession | DataFrame) -> bool:
    """Whether Spark is behind a Spark Connect server."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def close(session: SparkSession) -> None:
    """Gives back what the session holds; safe to repeat. Spark in this process may then end for
    other settings, and a server drops the session."""
    (remote.close if is_remote(session) else java.release)(session)


def keep_plans_secret(session: SparkSession) -> None:
    """Keeps the functions in the session's plans out of all logs from now on: those of our tasks
    have the keys of a connection in them. Raises SparkJobError."""
    if not is_remote(session):
        return  # whose logs have none
    try:
        if session.conf.isModifiable(_PLAN_CACHE):
            session.conf.set(_PLAN_CACHE, "false")
    except PySparkException as exc:  # the server is gone
        raise readable(exc) from exc


def driver_address(session: SparkSession) -> tuple[str, str] | None:
    """The host under which workers reach this process, and the one to which it binds; None where
    they may not reach it."""
    host = None if is_remote(session) else session.conf.get("spark.driver.host", None)
    return (host, session.conf.get("spark.driver.bindAddress", host) or host) if host else None


def tasks(session: SparkSession) -> tuple[int, int] | None:
    """How many tasks of the session's work have ended, and how many there are so far; None where
    Spark does not report that."""
    return remote.tasks_of(session) if is_remote(session) else None


def status_tracker(session: SparkSession) -> StatusTracker | None:
    """What Spark's scheduler reports of stages; None where it is in another process."""
    return None if is_remote(session) else session.sparkContext.statusTracker()


def rows_written(command: DataFrame) -> int | None:
    """How many rows a command has written to files; None if Spark does not report that. Runs
    nothing."""
    if is_remote(command):
        return None
    try:
        plan = command._jdf.queryExecution().executedPlan().commandPhysicalPlan()
        counter = plan.metrics().get("numOutputRows")
        return int(counter.get().value()) if counter.isDefined() else None
    except JavaError:
        return None  # not a command, or one that writes no files


def default_parallelism(session: SparkSession) -> int:
    """How many tasks the cluster runs at once, as far as Spark knows."""
    if is_remote(session):  # the one row of a range is in its last partition
        [row] = session.range(1).select(F.spark_partition_id()).collect()
        return int(row[0]) + 1
    given = session.conf.get("spark.sql.leafNodeDefaultParallelism", None)
    return int(given or session.sparkContext.defaultParallelism)


def write_parquet(session: SparkSession, folder: str, rows: pa.Table) -> None:
    """Writes few rows as Parquet, in a new folder where Spark keeps its tables. Raises Spark's
    failures."""
    if is_remote(session):
        arrow_frame(session, rows).coalesce(1).write.parquet(folder)
        return
    # By this process, through Hadoop's file systems, as a job takes longer.
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
