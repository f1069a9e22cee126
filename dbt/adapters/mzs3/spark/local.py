"""Spark in this process: `LocalEngine` is what `engine.py` says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.mzs3.spark import holders, status

if TYPE_CHECKING:
    from pyspark import StatusTracker


class LocalEngine:
    """Spark in this process, which starts with the first session and ends with the process, or
    with the first session that asks for another."""

    writes_files = True

    def close(self, session: SparkSession) -> None:
        """The session holds Spark no more, which stays as long as nobody asks for another."""
        holders.release(session)

    def keep_plans_secret(self, session: SparkSession) -> None:
        """Does nothing: Spark logs no functions."""

    def driver_address(self, session: SparkSession) -> tuple[str, str] | None:
        """As Spark's settings have them."""
        host = session.conf.get("spark.driver.host", None)
        if not host:
            return None
        return host, session.conf.get("spark.driver.bindAddress", host) or host

    def tasks(self, session: SparkSession) -> None:
        """Not known: Spark's scheduler does not tell which session a task is of."""

    def status_tracker(self, session: SparkSession) -> StatusTracker:
        """That of the application."""
        return status.status_tracker(session)

    def rows_written(self, frame: DataFrame) -> int | None:
        """By the plan of the command."""
        return status.rows_written(frame)

    def default_parallelism(self, session: SparkSession) -> int:
        """As the scheduler says, which takes no job, or the session's setting."""
        return status.default_parallelism(session)

    def write_parquet(self, session: SparkSession, folder: str, rows: pa.Table) -> None:
        """By this process, as a job would take longer than what it writes.

        By the Hadoop file systems of its Spark, with the session's settings: so the folder may be
        wherever Spark's tables are. Raises one of JAVA_ERRORS.
        """
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
