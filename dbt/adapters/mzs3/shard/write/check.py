"""What can be wrong with a model's query, and with options that name its columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.names import folded, namesakes
from dbt.adapters.mzs3.rows.shapes import column_problems
from dbt.adapters.mzs3.shard.rows.given_types import fits
from dbt.adapters.mzs3.shard.rows.kinds import ddl_of
from dbt.adapters.mzs3.shard.types.kind import Type
from dbt.adapters.mzs3.spark.failure import explain


def checked_frame(spark: SparkSession, node: str, query: str) -> DataFrame:
    """The query's rows, in columns that a shard can have; else ConfigError, or Spark's failure."""
    try:
        frame = spark.sql(query)
        schema = frame.schema
    except PySparkException as exc:
        raise explain(exc) from exc
    problems = column_problems(schema, ())
    names = schema.fieldNames()
    problems += [
        f"the query has columns {names[first]} and {names[place]}, which are one name to Spark; "
        "rename one"
        for first, place in namesakes(names)
    ]
    if problems:
        raise ConfigError(node, problems)
    return frame


def type_problems(schema: T.StructType, types: Mapping[str, Type]) -> Iterator[tuple[str, str]]:
    """Names in `column_types` and what is wrong with them."""
    found = {folded(field.name): field.dataType for field in schema.fields}
    for name, kind in types.items():
        if name not in found:
            yield (
                name,
                f"column_types has {name}, which the query lacks; it has {', '.join(found)}",
            )
        elif not fits(found[name], kind):
            yield (
                name,
                f"column_types has {kind} for {name}, whose values, {ddl_of(found[name])}, can't "
                "be taken for it; cast them, or correct the type",
            )


def sort_problems(sort_by: Sequence[str], known: Collection[str]) -> Iterator[str]:
    """What is wrong with `sort_by` where a shard has the columns `known`."""
    found = {folded(name) for name in known}
    for name in sort_by:
        if folded(name) not in found:
            yield f"sort_by has {name}, which the shard lacks; it has {', '.join(known)}"
