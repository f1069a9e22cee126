"""Files that Spark's driver writes itself, where a job would take longer than what it writes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession


def write_parquet(session: SparkSession, folder: str, rows: pa.Table) -> None:
    """Writes few rows as a Parquet file in a folder, which is made if there is none.

    By the Hadoop file systems of the Spark in this process, with the session's settings: so the
    folder may be wherever Spark's tables are. Raises one of JAVA_ERRORS.
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
