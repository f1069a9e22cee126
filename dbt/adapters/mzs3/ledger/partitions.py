"""Spark SQL statements on a table's partitions, whose values must need no escapes in a path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from dbt.adapters.mzs3.spark.sql import quote_identifier, quote_literal


def list_partitions(spark: SparkSession, table: str) -> list[tuple[str, ...]]:
    """The values of each partition that the metastore lists."""
    rows = spark.sql(f"SHOW PARTITIONS {table}").collect()
    return [tuple(part.partition("=")[2] for part in row["partition"].split("/")) for row in rows]


def drop_partitions(
    spark: SparkSession, table: str, partitions: Sequence[Mapping[str, str]]
) -> None:
    """Drops the partitions with their files. Safe to repeat."""
    named = ", ".join(partition_sql(partition) for partition in partitions)
    spark.sql(f"ALTER TABLE {table} DROP IF EXISTS {named}")


def partition_sql(partition: Mapping[str, str]) -> str:
    """The PARTITION clause that names the partition in SQL statements."""
    equal = (f"{quote_identifier(name)} = {quote_literal(to)}" for name, to in partition.items())
    return f"PARTITION ({', '.join(equal)})"


def location_of(
    spark: SparkSession, table: str, partition: Mapping[str, str] | None = None
) -> str:
    """The folder of a table, or of a partition that the metastore lists."""
    named = partition_sql(partition) if partition else ""
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {table} {named}").collect()
    described = [(row["col_name"], row["data_type"]) for row in rows]
    # Columns may have these names too, but they come first and have a type. For a partition, its
    # own location comes before the table's.
    start = max(n for n, (name, kind) in enumerate(described) if not kind and "# Detailed" in name)
    folders = [value for name, value in described[start:] if name == "Location"]
    return str(folders[0]).rstrip("/")
