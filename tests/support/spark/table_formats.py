"""Sessions whose tables are of Delta Lake or Iceberg, for `make test-formats`.

MZS3_TABLES in the environment says which: `delta` or `iceberg`, which then is Spark's default in
its session catalog, or `hadoop`, a catalog of Iceberg's own, without views, as the default one.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

TABLES = os.environ.get("MZS3_TABLES")
SESSION_TABLES = TABLES if TABLES in ("delta", "iceberg") else "parquet"
"""Of which format tables are in the session catalog, unless it is said."""
DELTA_JAR = "io.delta:delta-spark_4.1_2.13:4.4.0"
ICEBERG_JAR = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"

FILE_FORMAT = "delta" if TABLES == "delta" else "iceberg"

in_session_catalog = pytest.mark.skipif(
    SESSION_TABLES == "parquet", reason="needs MZS3_TABLES=delta or iceberg"
)
not_in_own_catalog = pytest.mark.skipif(TABLES == "hadoop", reason="needs views")
in_own_catalog = pytest.mark.skipif(TABLES != "hadoop", reason="needs MZS3_TABLES=hadoop")


def table_parameters(home: Path) -> dict[str, str]:
    """Spark's parameters for the tables that are asked for; none without such a wish."""
    session, ice = "spark.sql.catalog.spark_catalog", "spark.sql.catalog.ice"
    if TABLES == "delta":
        return {
            "spark.jars.packages": DELTA_JAR,
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            session: "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.sql.sources.default": "delta",
            # Of its log, which is small here.
            "spark.databricks.delta.snapshotPartitions": "2",
        }
    if TABLES == "iceberg":
        return {
            "spark.jars.packages": ICEBERG_JAR,
            "spark.sql.extensions": (
                "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
            ),
            session: "org.apache.iceberg.spark.SparkSessionCatalog",
            f"{session}.type": "hive",
            "spark.sql.sources.default": "iceberg",
            # Of a metastore on Derby: no pool of connections, and no locks in its tables.
            "spark.hadoop.datanucleus.connectionPoolingType": "DBCP",
            "spark.hadoop.iceberg.engine.hive.lock-enabled": "false",
        }
    if TABLES == "hadoop":
        (home / "ice").mkdir()
        return {
            "spark.jars.packages": ICEBERG_JAR,
            ice: "org.apache.iceberg.spark.SparkCatalog",
            f"{ice}.type": "hadoop",
            f"{ice}.warehouse": str(home / "ice"),
            "spark.sql.defaultCatalog": "ice",
        }
    return {}
