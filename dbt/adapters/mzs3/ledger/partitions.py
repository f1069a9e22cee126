"""Partitions of tables that several runs may write at once, each into a folder of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.mzs3.ledger.table_files import END
from dbt.adapters.mzs3.spark.frames import observed
from dbt.adapters.mzs3.spark.sql import quote_identifier, quote_literal


def write_partition(
    frame: DataFrame,
    table: str,
    partition: Mapping[str, str],
    *,
    require_lock: Callable[[], None],
) -> int:
    """Writes files as a partition that only this run writes; how many rows they have.

    The frame has the files as FILES_DDL says. Columns that they lack are NULL. Readers see the
    partition once the metastore lists it, in one step after all of its files are in place.

    It is no INSERT: those stage what they write in one folder of the table, which the first one
    to end removes, with what the others have in it. So a run that has lost the source's lock would
    take rows from another, which Spark does not notice.

    No partition is added if `require_lock` raises, as the table may have been made anew, nor if
    Spark does not report how many rows it has written, for which SparkJobError is raised.
    """
    spark = frame.sparkSession
    counted = Observation()
    files = frame.observe(counted, F.sum("rows").alias("rows"))
    folder = partition_folder(spark, table, partition)
    texts = files.select(F.col("file").cast("string")).write.mode("overwrite")
    texts.options(lineSep=END.decode(), maxRecordsPerFile=1, compression="none").text(folder)
    written = int(observed(counted)["rows"] or 0)
    require_lock()
    add_partition(spark, table, partition, folder)
    return written


def add_partition(
    spark: SparkSession, table: str, partition: Mapping[str, str], folder: str | None = None
) -> None:
    """Adds the partition with whatever is in its folder; safe to repeat."""
    # One that an earlier version added stays where it is.
    folder = folder or partition_folder(spark, table, partition)
    located = f"{partition_sql(partition)} LOCATION {quote_literal(folder)}"
    spark.sql(f"ALTER TABLE {table} ADD IF NOT EXISTS {located}")


def list_partitions(spark: SparkSession, table: str) -> list[tuple[str, ...]]:
    """The values of each partition that the metastore lists; they need no escapes in a path."""
    rows = spark.sql(f"SHOW PARTITIONS {table}").collect()
    return [tuple(part.partition("=")[2] for part in row["partition"].split("/")) for row in rows]


def drop_partitions(
    spark: SparkSession, table: str, partitions: Sequence[Mapping[str, str]]
) -> None:
    """Drops the partitions, files and all; safe to repeat."""
    named = ", ".join(partition_sql(partition) for partition in partitions)
    spark.sql(f"ALTER TABLE {table} DROP IF EXISTS {named}")


def partition_sql(partition: Mapping[str, str]) -> str:
    """The partition as statements of Spark's name it."""
    equal = (f"{quote_identifier(name)} = {quote_literal(to)}" for name, to in partition.items())
    return f"PARTITION ({', '.join(equal)})"


def partition_folder(spark: SparkSession, table: str, partition: Mapping[str, str]) -> str:
    """Where the partition's files are: the same folder each time, until it is dropped.

    Its name is no partition's, as `mz_epoch=7` would be: else `MSCK REPAIR TABLE` would list a
    partition that is still being written, and a session that found it empty would keep it so.
    Its values are of letters, digits and `-`: no others go into a path as they are.
    """
    name = "-".join(f"{name}-{value}" for name, value in partition.items())
    return f"{location_of(spark, table)}/{name}"


def location_of(
    spark: SparkSession, table: str, partition: Mapping[str, str] | None = None
) -> str:
    """The folder of a table, or of a partition that the metastore lists."""
    named = partition_sql(partition) if partition else ""
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {table} {named}").collect()
    described = [(row["col_name"], row["data_type"]) for row in rows]
    # Columns may have these names too; they come first, and have a type. Of a partition, the
    # table's folder follows its own.
    start = max(n for n, (name, kind) in enumerate(described) if not kind and "# Detailed" in name)
    folders = [value for name, value in described[start:] if name == "Location"]
    return str(folders[0]).rstrip("/")
