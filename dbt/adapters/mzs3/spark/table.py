"""What a Python model returns, as a table."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.spark.sql import quote_identifier

_ACCEPTED = "a Spark, pandas-on-Spark or pandas DataFrame, or an Arrow table"


def create_table(spark: SparkSession, rows: Any, *, view: str, statements: list[str]) -> None:
    """Run the statements, which read the model's rows from the temporary view `view`.

    `rows` is what the model returned. The view is gone afterwards, whatever happens.
    """
    frame = as_spark_frame(spark, rows)
    # pandas-on-Spark works in a session of its own choice; views are seen in their own session.
    session = frame.sparkSession
    frame.createOrReplaceTempView(quote_identifier(view))
    try:
        for statement in statements:
            session.sql(statement)
    finally:
        session.catalog.dropTempView(view)


def as_spark_frame(spark: SparkSession, rows: Any) -> DataFrame:
    """The rows as a Spark DataFrame; raises SparkJobError for what can't be one."""
    if isinstance(rows, DataFrame):
        return rows
    kind = f"{type(rows).__module__}.{type(rows).__qualname__}"
    if kind.startswith("pyspark.pandas."):
        frame: DataFrame = rows.to_spark()
        return frame
    if kind.startswith(("pandas.", "pyarrow.")):
        return spark.createDataFrame(rows)
    raise SparkJobError(f"the model returned {kind}; return {_ACCEPTED}")
