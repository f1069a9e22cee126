"""A model's query and its options, checked, and its rows in wire form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.names import folded, namesakes
from dbt.adapters.mzs3.rows.columns import canonical_columns, column_problems
from dbt.adapters.mzs3.shard.executor.batch.write import as_wire
from dbt.adapters.mzs3.shard.executor.codec.encode import datums
from dbt.adapters.mzs3.shard.rows import in_wire_type, wire_spark_type
from dbt.adapters.mzs3.shard.state.spark_types import ddl_of, fits
from dbt.adapters.mzs3.shard.types import Column as ShardColumn
from dbt.adapters.mzs3.shard.types import Type
from dbt.adapters.mzs3.spark.failure import explain


def model_rows(frame: DataFrame, columns: Sequence[ShardColumn]) -> DataFrame:
    """The model's rows as c0, c1, … of the shard's columns; NULL where the model lacks one."""
    rows = canonical_columns(frame)
    kinds = {field.name: field.dataType for field in rows.schema.fields}
    places = {folded(name): f"c{place}" for place, name in enumerate(frame.columns)}

    def value(column: ShardColumn) -> Column:
        place = places.get(folded(column.name))
        if place is None:
            return F.lit(None).cast(wire_spark_type(column.kind))
        return in_wire_type(F.col(place), kinds[place], column.kind, column.name)

    return rows.select(*[value(column).alias(f"c{i}") for i, column in enumerate(columns)])


def default_datums(
    spark: SparkSession, node: str, expressions: Mapping[str, str], given: Sequence[ShardColumn]
) -> dict[str, bytes]:
    """The values of SQL expressions as `Datum`s; raises ConfigError with all that fail."""
    columns = {folded(column.name): column for column in given}
    found: dict[str, bytes] = {}
    problems: list[str] = []
    for name, expression in expressions.items():
        column = columns.get(folded(name))
        if column is None:
            problems.append(
                f"column_defaults has {name}, which the model lacks; it has "
                f"{', '.join(one.name for one in given)}"
            )
            continue
        try:
            found[name] = _datum(spark, expression, column)
        except (PySparkException, ValueError) as exc:
            reason = str(explain(exc)).splitlines()[0]
            problems.append(f"column_defaults has {expression} for {name}, which fails: {reason}")
    if problems:
        raise ConfigError(node, problems)
    return found


def _datum(spark: SparkSession, expression: str, column: ShardColumn) -> bytes:
    one = canonical_columns(spark.sql(f"SELECT CAST(({expression}) AS {column.spark}) AS value"))
    field = one.schema.fields[0]
    value = in_wire_type(F.col(field.name), field.dataType, column.kind, column.name)
    values = one.select(value).toArrow().column(0).combine_chunks()
    message = datums(as_wire(values, column.kind), column.kind)[0].as_py()
    return message or b""


def checked_frame(spark: SparkSession, node: str, query: str) -> DataFrame:
    """The query's rows, in columns that a shard can have; raises ConfigError or SparkJobError."""
    try:
        frame = spark.sql(query)
        schema = frame.schema
    except PySparkException as exc:
        raise explain(exc) from exc
    problems = column_problems(schema)
    names = schema.fieldNames()
    problems += [
        f"the query has columns {names[first]} and {names[place]}, which are one name to Spark; "
        "rename one"
        for first, place in namesakes(names)
    ]
    if problems:
        raise ConfigError(node, problems)
    return frame


def type_problems(schema: T.StructType, types: Mapping[str, Type]) -> dict[str, str]:
    """What is wrong with names in `column_types`, by these names."""
    found = {folded(field.name): field.dataType for field in schema.fields}
    problems = {}
    for name, kind in types.items():
        if name not in found:
            problems[name] = (
                f"column_types has {name}, which the query lacks; it has {', '.join(found)}"
            )
        elif not fits(found[name], kind):
            problems[name] = (
                f"column_types has {kind} for {name}, whose values, {ddl_of(found[name])}, can't "
                "be taken for it; cast them, or correct the type"
            )
    return problems
