"""Rows of any frame, as the tasks of a source hand them to a table of Parquet files."""

from pyspark.sql import DataFrame

from dbt.adapters.mzs3.ledger.table_files import FILES_DDL, table_files
from dbt.adapters.mzs3.spark.job import ship_executor_code


def as_files(rows: DataFrame) -> DataFrame:
    """What `RowsTable.write` takes; each task of the rows makes its own files."""
    ship_executor_code()
    schema = rows.limit(0).toArrow().schema
    files = table_files(schema, "snappy", lambda: lambda batches: batches, ())
    return rows.mapInArrow(files, FILES_DDL)
