"""Tables of what a Python model returns, and of a seed's rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.spark.sql import quote_identifier

_ACCEPTED = "a Spark, pandas-on-Spark or pandas DataFrame, or an Arrow table"


def create_table(spark: SparkSession, rows: Any, *, view: str, statements: list[str]) -> None:
    """Runs the statements, which read what the model returned from the temporary view `view`."""
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
    """The rows as a Spark DataFrame. Raises SparkJobError for other types."""
    if isinstance(rows, DataFrame):
        return rows
    kind = f"{type(rows).__module__}.{type(rows).__qualname__}"
    if kind.startswith("pyspark.pandas."):
        frame: DataFrame = rows.to_spark()
        return frame
    if kind.startswith(("pandas.", "pyarrow.")):
        return spark.createDataFrame(rows)
    raise SparkJobError(f"the model returned {kind}; return {_ACCEPTED}")


def load_seed(
    spark: SparkSession,
    table: str,
    names: Sequence[str],
    columns: Sequence[Iterable[Any]],
    types: Sequence[str],
) -> None:
    """Appends rows, given by column, to `table`, a name in SQL, cast to the Spark `types`.

    In ANSI mode a value that doesn't fit its type fails the whole load.
    """
    texts = pa.table(
        [pa.array(map(_text, values), pa.string()) for values in columns], list(names)
    )
    frame = spark.createDataFrame(texts).coalesce(1)
    cast = {
        name.lower(): F.col(quote_identifier(name)).cast(type_).alias(name)
        for name, type_ in zip(names, types, strict=True)
    }
    # By name: a table has its partition columns last, wherever the file has them.
    order = [cast[column.lower()] for column in spark.table(table).columns]
    frame.select(*order).write.insertInto(table)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, dt.datetime):
        return value.isoformat(" ")
    return str(value)
