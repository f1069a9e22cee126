"""Divides rows into sorted parts; a row's part and position depend only on the rows."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.mzs3.formats.write.format import HASH_COLUMN, PART_COLUMN
from dbt.adapters.mzs3.rows.batches import NO_ASSUMPTIONS, Assumptions, has_comet, only_if_narrow
from dbt.adapters.mzs3.rows.columns import ONE_ZERO, order_keys
from dbt.adapters.mzs3.rows.packing import packed_columns
from dbt.adapters.mzs3.types.table import type_named

MAX_PARTS = 10_000
_FIRST = "_mz_first"
_SPREAD = "_mz_spread"

# SQL of a 0 that Spark does not take for a constant. With it, rows of constants have a column to
# shuffle: Comet shuffles rows without any to the first partition, whatever their key.
ZERO = "(spark_partition_id() & 0)"
# Spark's hash of an `int` is Murmur3 with the seed 42, whose steps can be undone one by one, on
# numbers of 32 bits without a sign in a bigint. Factors are below 2 ** 31, so that no product
# overflows. The last step needs no undoing, as numbers of parts have no more than 16 bits.
_LOW = f"{2**32 - 1}L"
_STEPS = (
    f"(({{0}} * 2127672349L) & {_LOW})",
    f"((({{0}} ^ shiftright({{0}}, 13) ^ shiftright({{0}}, 26)) * -1513385405L) & {_LOW})",
    f"(((({{0}} ^ shiftright({{0}}, 16) ^ 4L) - 3864292196L) * -858993459L) & {_LOW})",
    f"((((shiftright({{0}}, 13) | shiftleft({{0}} & 8191L, 19)) ^ 42L) * 1458385051L) & {_LOW})",
    "cast(shiftright(shiftleft((shiftright({0}, 15) | shiftleft({0} & 32767L, 17))"
    " * -555664463L, 32), 32) as int)",
)
# Each is a column, as its value is used more than once. Spark analyses the plan with each.
_UNHASHED = (_STEPS[1].format(_STEPS[0]), _STEPS[3].format(_STEPS[2]), _STEPS[4])


def in_parts(
    rows: DataFrame,
    parts: int,
    partition_by: Sequence[int] = (),
    assumed: Assumptions = NO_ASSUMPTIONS,
    sort_by: Sequence[str] = (),
) -> DataFrame:
    """Hashes rows in `canonical_columns` into `parts` partitions, and sorts each partition.

    The part is the first column; the data columns follow. Part and order depend only on the rows,
    not on the cluster, a task attempt, or how Spark splits its input. Rows are sorted by hash
    first, which is fast as hashes are integers; the columns break ties. With `sort_by`, columns,
    they are sorted by these first, and not by hash.

    With `partition_by`, indexes of columns, the rows of a folder are adjacent in each part. A
    folder gets a number of consecutive parts in proportion to its rows, so that a small folder is
    one file, and a large one is written in parallel.

    Assumptions make this faster. If rows are assumed to be narrow, a wide row fails the job before
    the shuffle. If hashes are assumed to be distinct, rows are sorted only by hash. The hash is
    then the second column, so that workers can check this; `packed_columns` follow.
    """
    schema = rows.schema
    names = schema.fieldNames()
    folder = [names[i] for i in partition_by]
    hashed = rows.selectExpr(f"{row_hash(schema)} AS {HASH_COLUMN}", *names)
    part = modulus(HASH_COLUMN, parts)
    if folder:
        hashed = _spread(hashed, folder, parts)
        part = f"({_FIRST} + {modulus(HASH_COLUMN, _SPREAD)}) % {parts}"
    if assumed.narrow_rows:
        part = only_if_narrow(part, schema)
    sent = packed_columns(schema)[0] if assumed.distinct_hashes else names
    numbered = hashed.selectExpr(f"{part} as {PART_COLUMN}", HASH_COLUMN, *sent)
    if assumed.distinct_hashes:
        return sorted_parts(numbered, parts, [HASH_COLUMN])  # in linear time, by one integer
    keys = [*folder, *sort_keys(schema, sort_by or [HASH_COLUMN])]
    return sorted_parts(numbered, parts, keys).drop(HASH_COLUMN)


def modulus(number: str, divisor: int | str) -> str:
    """SQL of a number from 0 to below the divisor; Comet hands `pmod` to the JVM."""
    return f"(({number} % {divisor} + {divisor}) % {divisor})"


def sort_keys(schema: T.StructType, first: Sequence[str]) -> list[str]:
    """The columns `first`, and all others of `order_keys`, so that only equal rows are ties."""
    kinds = {field.name: field.dataType for field in schema.fields}
    others = (key for key in order_keys(schema) if key not in first)
    return [*(ONE_ZERO.of(name, kinds.get(name, T.LongType())) for name in first), *others]


def sorted_parts(numbered: DataFrame, parts: int, keys: Sequence[str]) -> DataFrame:
    """Rows whose column PART_COLUMN is the number of their part: in the partition of this number,
    of `parts`, and sorted there by the `keys`, which are SQL."""
    placed = with_keys(numbered).repartition(parts, PART_COLUMN)
    ordered = placed.sortWithinPartitions(*map(F.expr, keys))
    return ordered.withColumn(PART_COLUMN, F.spark_partition_id())


def with_keys(numbered: DataFrame) -> DataFrame:
    """The rows, with a key in place of the number of their part, which is Spark's hash of the key.

    With keys, `repartition` does what `repartitionById` does, which native engines do not know.
    """
    # Without Comet, the 0 would only make Spark keep an ORDER BY inside of the query.
    value = f"({PART_COLUMN} | {ZERO})" if has_comet(numbered.sparkSession) else PART_COLUMN
    for step in _UNHASHED:
        numbered = numbered.withColumn(PART_COLUMN, F.expr(step.format(value)))
        value = PART_COLUMN
    return numbered


def row_hash(schema: T.StructType) -> str:
    """SQL of the hash that determines a row's part; columns have names that need no quotes."""
    # Hashes skip NULLs: without `isnull`, (1, NULL) would have the same hash as (NULL, 1).
    nulls = (f"isnull({name})" for name in schema.fieldNames())
    return f"xxhash64({', '.join([*order_keys(schema), *nulls])})"


def _spread(rows: DataFrame, folder: Sequence[str], parts: int) -> DataFrame:
    """Adds the first part of each row's folder, and the folder's number of parts."""
    # Selects no other columns, as Spark can't group rows with a column of type TIME.
    counted = rows.select(*folder).groupBy(*folder).agg(F.count(F.lit(1)).alias("_mz_rows"))
    total = F.sum("_mz_rows").over(Window.partitionBy())
    share = F.ceil(F.col("_mz_rows") * F.lit(parts) / total).cast("int")
    names = {name: f"_mz_{name}" for name in folder}
    spreads = counted.select(
        share.alias("_mz_share"), *[F.col(n).alias(a) for n, a in names.items()]
    )
    match = [F.col(name).eqNullSafe(F.col(alias)) for name, alias in names.items()]
    return rows.join(spreads, match, "left").select(
        *rows.columns,
        F.expr(modulus(f"xxhash64({', '.join(folder)})", parts)).alias(_FIRST),
        # One part for a folder that was not counted: a query may return other rows each time.
        F.coalesce(F.col("_mz_share"), F.lit(1)).alias(_SPREAD),
    )


def is_ordered(spark: SparkSession, query: str) -> bool:
    """Whether the query has an ORDER BY at its top, without a LIMIT."""
    if not re.search(r"\border\b", query, re.IGNORECASE):
        return False  # saves the EXPLAIN, which is slow
    [plan] = spark.sql(f"EXPLAIN EXTENDED {query}").collect()
    parsed = str(plan[0]).split("== Analyzed Logical Plan ==")[0].splitlines()[1:]
    top = [line.lstrip("'") for line in parsed if not line.startswith((" ", ":", "+"))]
    if top and top[0].startswith(("CTE", "UnresolvedWith", "WithCTE")):
        body = [line[3:].lstrip("'") for line in parsed if line.startswith("+- ")]
        top = body or top
    return bool(top) and top[0].startswith("Sort ") and top[0].endswith("true")


def partition_indexes(schema: T.StructType, partition_by: Sequence[str]) -> tuple[int, ...]:
    """The indexes of the columns, in the order of the folders."""
    names = schema.fieldNames()
    return tuple(names.index(name) for name in partition_by)


def partition_problems(schema: T.StructType, partition_by: Sequence[str]) -> list[str]:
    """The problems of partition_by: unknown columns, and types that can't name a folder."""
    names = schema.fieldNames()
    problems = []
    unknown = [name for name in partition_by if name not in names]
    if unknown:
        problems.append(
            f"partition_by names {', '.join(unknown)}, but the columns are {', '.join(names)}"
        )
    for field in schema.fields:
        row = type_named(field.dataType.typeName())
        if field.name in partition_by and not (row and row.names_folders):
            problems.append(
                f"partition_by names {field.name}, whose type {field.dataType.simpleString()} has "
                "no one text for a folder; cast it, to string for example"
            )
    if partition_by and not unknown and len(set(partition_by)) == len(names):
        problems.append(
            "partition_by names every column; at least one has to be left for the files"
        )
    twice = [name for name in partition_by if names.count(name) > 1]
    if twice:
        problems.append(f"partition_by names {', '.join(twice)}, but two columns have that name")
    return problems
