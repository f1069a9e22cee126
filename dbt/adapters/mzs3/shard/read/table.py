"""A shard's rows as the table that a source's name stands for."""

from __future__ import annotations

from pyspark.sql import SparkSession

from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.shard.config.source import ShardSource
from dbt.adapters.mzs3.shard.read.job import read_shard
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, explain
from dbt.adapters.mzs3.spark.sql import quote_identifier


def write_source_table(
    spark: SparkSession,
    source: ShardSource,
    connection: AwsConnection,
    schema: str,
    identifier: str,
    *,
    empty: bool = False,
) -> None:
    """Replace the table `schema.identifier` by the shard's rows, or by none of them if `empty`.

    Raises ShardError or S3Error; the table is then what it was.
    """
    try:
        frame = read_shard(
            spark,
            connection,
            source.location,
            as_of=source.as_of,
            names=source.columns or None,
            validate=source.validate,
        )
        rows = frame.limit(0) if empty else frame
        spark.sql(f"create schema if not exists {quote_identifier(schema)}")
        table = f"{quote_identifier(schema)}.{quote_identifier(identifier)}"
        rows.write.mode("overwrite").format("parquet").saveAsTable(table)
    except SPARK_FAILURES as exc:
        raise explain(exc) from exc
