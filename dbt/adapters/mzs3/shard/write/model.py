"""A model's columns and rows in the form of its shard, and its changes to the shard."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.mzs3.events import EventSink
from dbt.adapters.mzs3.names import folded, namesakes, namesakes_text
from dbt.adapters.mzs3.options.values import Problems
from dbt.adapters.mzs3.rows.columns import canonical_columns, column_problems, queried_rows
from dbt.adapters.mzs3.rows.plan import in_parts
from dbt.adapters.mzs3.shard.batch.write import as_wire
from dbt.adapters.mzs3.shard.codec.encode import datums
from dbt.adapters.mzs3.shard.options import ShardOptions, sort_problems
from dbt.adapters.mzs3.shard.read.rows import ShardLocation, changes_in
from dbt.adapters.mzs3.shard.rows import additions, in_wire_type, parts_of_changes, wire_spark_type
from dbt.adapters.mzs3.shard.state.columns import ddl_of, evolved_columns, fits, given_columns
from dbt.adapters.mzs3.shard.state.state import ShardState, new_shard
from dbt.adapters.mzs3.shard.types import Column as ShardColumn
from dbt.adapters.mzs3.shard.types import Type
from dbt.adapters.mzs3.shard.write.diff import as_compared, changes_between
from dbt.adapters.mzs3.spark.failure import explain
from dbt.adapters.mzs3.spark.frames import default_parallelism


@dataclass(frozen=True)
class ShardRun:
    """A run of a model: its rows, its checked options, and the shard that it writes."""

    spark: SparkSession
    node: str
    frame: DataFrame
    options: ShardOptions
    shard: ShardLocation
    as_of: int
    cancelled: threading.Event | None
    tell: EventSink


def evolve_shard(run: ShardRun, before: ShardState | None) -> ShardState:
    """The state with the columns from this run on. Raises ConfigError with all problems."""
    options, schema = run.options, run.frame.schema
    given = given_columns(schema, options.column_types)
    wrong = type_problems(schema, options.column_types)
    problems = Problems(run.node, wrong.values())
    usable = {n: sql for n, sql in options.column_defaults.items() if folded(n) not in wrong}
    defaults: dict[str, bytes] = {}
    with problems.gathered():
        defaults = default_datums(run.spark, run.node, usable, given)
    state = new_shard(given) if before is None else before
    columns = state.schema.columns
    names = [*(column.name for column in columns), *(column.name for column in given)]
    if before is not None:
        with problems.gathered():
            # After a reset the shard has no columns, so all of the model's columns are new.
            is_new = state.is_unwritten
            columns = evolved_columns(
                run.node,
                columns,
                given,
                state.next_tag,
                policy="append_new_columns" if is_new else options.on_schema_change,
                renames={} if is_new else options.column_renames,
                defaults=defaults,
            )
            names = [column.name for column in columns]
    problems.found += sort_problems(options.sort_by, list(dict.fromkeys(names)))
    problems.raise_if_any()
    return state.with_columns(columns, run.as_of)


def changes_of(run: ShardRun, state: ShardState, moment: int) -> DataFrame:
    """The changes of this run, with one Spark partition per part."""
    columns, parts = state.schema.columns, run.options.parts
    sorted_by, _ = state.schema.named(run.options.sort_by)
    keys = [f"c{columns.index(column)}" for column in sorted_by]
    rows = model_rows(run.frame, columns)
    selected: list[Column | str] = [F.lit(moment).cast("bigint").alias("t"), "d", *rows.columns]
    if run.options.mode == "diff" and any(batch.files for batch in state.batches):
        compared = list(map(as_compared, columns))
        before = changes_in(run.spark, run.shard, state.batches, compared)
        stored = sum(batch.bytes for batch in state.batches)
        changes = changes_between(rows, before, stored).select(selected)
        return parts_of_changes(changes, keys, parts, state.batches)
    new = additions(rows).select(selected)
    return in_parts(new, parts or default_parallelism(run.spark), sort_by=keys)


def model_rows(frame: DataFrame, columns: Sequence[ShardColumn]) -> DataFrame:
    """The model's rows with the shard's columns as c0, c1, …; NULL if the model lacks one."""
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
    """The values of SQL expressions as messages `Datum`. Raises ConfigError with all failures."""
    columns = {folded(column.name): column for column in given}
    datums_by_name: dict[str, bytes] = {}
    problems: list[str] = []
    for name, expression in expressions.items():
        column = columns.get(folded(name))
        if column is None:
            problems.append(
                f"column_defaults has {name}, which the model lacks; it has "
                f"{', '.join(each.name for each in given)}"
            )
            continue
        value = f"SELECT CAST(({expression}) AS {column.spark_sql}) AS value"
        try:
            row = canonical_columns(spark.sql(value))
            [field], kind = row.schema.fields, column.kind
            values = in_wire_type(F.col(field.name), field.dataType, kind, column.name)
            wire = as_wire(row.select(values).toArrow().column(0).combine_chunks(), kind)
            datums_by_name[name] = datums(wire, kind)[0].as_py() or b""
        except (PySparkException, ValueError) as exc:
            reason = str(explain(exc)).splitlines()[0]
            problems.append(f"column_defaults has {expression} for {name}, which fails: {reason}")
    Problems(node, problems).raise_if_any()
    return datums_by_name


def checked_frame(spark: SparkSession, node: str, query: str) -> DataFrame:
    """The query's rows. Raises SparkJobError, and ConfigError for unsupported columns."""
    frame = queried_rows(spark, node, query)
    problems = column_problems(frame.schema)
    names = frame.schema.fieldNames()
    problems += [
        f"the query has {namesakes_text(names[first], names[place])}; rename one"
        for first, place in namesakes(names)
    ]
    Problems(node, problems).raise_if_any()
    return frame


def type_problems(schema: T.StructType, types: Mapping[str, Type]) -> dict[str, str]:
    """The problems of the option `column_types`, by column name."""
    kinds = {folded(field.name): field.dataType for field in schema.fields}
    problems = {}
    for name, kind in types.items():
        if name not in kinds:
            problems[name] = (
                f"column_types has {name}, which the query lacks; it has {', '.join(kinds)}"
            )
        elif not fits(kinds[name], kind):
            problems[name] = (
                f"column_types has {kind} for {name}, whose values, {ddl_of(kinds[name])}, can't "
                "be taken for it; cast them, or correct the type"
            )
    return problems
