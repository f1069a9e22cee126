"""Lists, drops and locates a table's partitions, whose values must need no escapes in paths."""

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
    clauses = ", ".join(partition_sql(partition) for partition in partitions)
    spark.sql(f"ALTER TABLE {table} DROP IF EXISTS {clauses}")


def partition_sql(partition: Mapping[str, str]) -> str:
    """The PARTITION clause that names the partition in SQL statements."""
    pairs = (f"{quote_identifier(key)} = {quote_literal(text)}" for key, text in partition.items())
    return f"PARTITION ({', '.join(pairs)})"


def location_of(
    spark: SparkSession, table: str, partition: Mapping[str, str] | None = None
) -> str:
    """The folder of a table, or of a partition that the metastore lists."""
    clause = partition_sql(partition) if partition else ""
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {table} {clause}").collect()
    lines = [(row["col_name"], row["data_type"]) for row in rows]
    # The details follow the columns, which may have the same names, but have a type. The location
    # of a partition comes before that of its table.
    start = max(n for n, (name, kind) in enumerate(lines) if not kind and "# Detailed" in name)
    folders = [value for name, value in lines[start:] if name == "Location"]
    return str(folders[0]).rstrip("/")
