"""Tables and views in Spark: writing rows from Python, formats, and properties."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.spark.sql import PARQUET, TABLE_FORMATS, quote_identifier, quote_literal

_OF_ICEBERG = "create_engine_version"  # a property of Iceberg's views, and of no others
_NOT_FOUND = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")


def create_table(spark: SparkSession, rows: Any, *, view: str, statements: list[str]) -> None:
    """Runs the statements, which select a Python model's rows from the temporary view `view`."""
    frame = as_spark_frame(spark, rows)
    # pandas-on-Spark chooses a session itself, and a temporary view belongs to a session.
    session = frame.sparkSession
    frame.createOrReplaceTempView(quote_identifier(view))
    try:
        for statement in statements:
            session.sql(statement)
    finally:
        session.catalog.dropTempView(view)


def arrow_frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The rows of an Arrow table as a Spark DataFrame."""
    # Spark Connect does not read the types of a table without rows.
    schema = None if table.num_rows else from_arrow_schema(table.schema, False)
    return spark.createDataFrame(table, schema)


def as_spark_frame(spark: SparkSession, rows: Any) -> DataFrame:
    """The rows of a Python model as a Spark DataFrame. Raises SparkJobError for other types."""
    if isinstance(rows, DataFrame):
        return rows
    kind = f"{type(rows).__module__}.{type(rows).__qualname__}"
    if kind.startswith("pyspark.pandas."):
        frame: DataFrame = rows.to_spark()
        return frame
    if kind.startswith("pyarrow."):
        return arrow_frame(spark, rows)
    if kind.startswith("pandas.") and hasattr(rows, "columns"):
        return spark.createDataFrame(rows) if len(rows) else _empty_frame(spark, rows)
    raise SparkJobError(
        f"the model returned {kind}; return a Spark, pandas-on-Spark or pandas DataFrame, or an "
        "Arrow table"
    )


def _empty_frame(spark: SparkSession, rows: Any) -> DataFrame:
    """A frame with the columns of a pandas DataFrame without rows, as Spark can't infer their
    types. Columns of objects become strings, which such columns mostly hold."""
    if not len(rows.columns):
        raise SparkJobError(
            "the model returned a pandas DataFrame without rows and columns; give it columns, "
            "of which a table can be made: pandas.DataFrame({'id': pandas.Series(dtype='int64')})"
        )
    schema = pa.Schema.from_pandas(rows, preserve_index=False)
    typed = [
        pa.field(field.name, pa.string()) if pa.types.is_null(field.type) else field
        for field in schema
    ]
    return spark.createDataFrame([], from_arrow_schema(pa.schema(typed), False))


def load_seed(
    spark: SparkSession,
    table: str,
    names: list[str],
    columns: Sequence[Iterable[Any]],
    types: Sequence[str],
) -> None:
    """Appends rows, given as columns, to `table`, a SQL name; casts values to the Spark `types`.

    In ANSI mode, a value that can't be cast fails the whole load.
    """
    texts = pa.table([pa.array(map(_text, values), pa.string()) for values in columns], names)
    frame = arrow_frame(spark, texts).coalesce(1)
    cast = {
        name.lower(): F.col(quote_identifier(name)).cast(type_).alias(name)
        for name, type_ in zip(names, types, strict=True)
    }
    # By name, as a table has its partition columns last, but a seed's file may not.
    order = [cast[column.lower()] for column in spark.table(table).columns]
    frame.select(*order).write.insertInto(table)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def schema_names(spark: SparkSession) -> list[str]:
    """The schemas of the current catalog."""
    return [str(row[0]) for row in spark.sql("SHOW SCHEMAS").collect()]


def table_format(spark: SparkSession, declared: str | None) -> str:
    """The format of new tables: the declared one, else Spark's default if we support it."""
    default = str(spark.conf.get("spark.sql.sources.default", PARQUET)).lower()
    return declared or (default if default in TABLE_FORMATS else PARQUET)


def change_view(
    spark: SparkSession, view: str, text: str, prefix: str, properties: Mapping[str, str]
) -> None:
    """Replaces a view's text atomically. Pass all its `properties`: Iceberg would lose others."""
    if _OF_ICEBERG in (read_properties(spark, view, "") or {}):
        # Iceberg's views have no ALTER; REPLACE is atomic for them, but drops other views first.
        clause = f"TBLPROPERTIES {properties_sql(prefix, properties)}" if properties else ""
        spark.sql(f"CREATE OR REPLACE VIEW {view} {clause} AS {text}")
    else:
        spark.sql(f"ALTER VIEW {view} AS {text}")


def encode_property(text: str) -> str:
    """The text in hexadecimal digits: Spark redacts properties with words such as `token`."""
    return text.encode().hex()


def decode_property(value: str) -> str:
    """The inverse of `encode_property`. Raises ValueError for invalid values."""
    return bytes.fromhex(value).decode()


def properties_sql(prefix: str, values: Mapping[str, str]) -> str:
    """SQL of the properties, in parentheses, with the prefix before each name."""
    pairs = ", ".join(
        f"{quote_literal(prefix + key)} = {quote_literal(value)}" for key, value in values.items()
    )
    return f"({pairs})"


def read_properties(spark: SparkSession, relation: str, prefix: str) -> dict[str, str] | None:
    """The properties whose names start with the prefix, without it; None if the relation does not
    exist."""
    try:
        rows = spark.sql(f"SHOW TBLPROPERTIES {relation}").collect()
    except AnalysisException as exc:
        if exc.getCondition() in _NOT_FOUND:
            return None
        raise
    return {key.removeprefix(prefix): value for key, value in rows if key.startswith(prefix)}
