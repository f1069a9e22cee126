"""Seeds: rows of a CSV file that dbt has read, loaded exactly and as one write."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from dbt.adapters.mzs3.spark.sql import quote_identifier


def load_seed(
    spark: SparkSession,
    table: str,
    names: Sequence[str],
    columns: Sequence[Iterable[Any]],
    types: Sequence[str],
) -> None:
    """Append the rows to `table`, a name in SQL; every value and every NULL arrives exactly.

    `columns` holds each column's values, `types` the Spark types they are cast to. A value that
    doesn't fit its type fails the whole load, as long as ANSI mode is on.
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
