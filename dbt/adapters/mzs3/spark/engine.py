"""Where Spark runs: in this process, or behind a Spark Connect server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.mzs3.spark import remote
from dbt.adapters.mzs3.spark.local import LocalEngine
from dbt.adapters.mzs3.spark.session import isolated_session

if TYPE_CHECKING:
    from pyspark import StatusTracker


class Engine(Protocol):
    """What differs between the two; all else of Spark is asked of the session."""

    writes_files: bool
    """Whether `write_parquet` takes no job."""

    def close(self, session: SparkSession) -> None:
        """Give back what the session holds; safe to repeat."""

    def keep_plans_secret(self, session: SparkSession) -> None:
        """Have no log tell of the functions in the session's plans from now on: those of our tasks
        have what they need of a connection, keys included. Raises SparkJobError."""

    def driver_address(self, session: SparkSession) -> tuple[str, str] | None:
        """The host under which workers reach this process, and the one to which it binds; None if
        this process is not Spark's driver."""

    def tasks(self, session: SparkSession) -> tuple[int, int] | None:
        """How many tasks of what the session runs have ended, and how many there are so far; None
        where that is not known."""

    def status_tracker(self, session: SparkSession) -> StatusTracker | None:
        """What Spark's scheduler tells of stages; None where that is in another process."""

    def rows_written(self, frame: DataFrame) -> int | None:
        """How many rows the command behind the frame wrote to files; None if that is not known.
        Runs nothing."""

    def default_parallelism(self, session: SparkSession) -> int:
        """In how many tasks the cluster runs what does not say in how many."""

    def write_parquet(self, session: SparkSession, folder: str, rows: pa.Table) -> None:
        """Writes few rows as Parquet, in a new folder where Spark keeps its tables."""


def open_session(
    server: str | None,
    parameters: Mapping[str, str],
    executor_timeout: int,
    folder: Path | None = None,
) -> SparkSession:
    """A session of its own, with those parameters that can be set at run time.

    `server` is the `sc://` URL of a Spark Connect server; without one, Spark is in this process,
    and keeps its tables below `folder`, or where the process is, unless the parameters say where.
    Jobs that no executor takes for `executor_timeout` seconds fail; 0 is no limit. Raises
    SparkJobError when Spark can't start or runs with other settings, or the server does not
    answer.
    """
    if server is None:
        remote.allow_local_spark()
        return isolated_session(parameters, executor_timeout, folder)
    return remote.open_session(server, parameters, executor_timeout)


def engine_of(session: SparkSession) -> Engine:
    """The engine that the session is of."""
    is_remote = type(session).__module__.startswith("pyspark.sql.connect")
    return remote.RemoteEngine() if is_remote else LocalEngine()
