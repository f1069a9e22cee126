"""Where each row goes, and in which order: a function of the row alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from dbt.adapters.mzs3.formats.spec import HASH_COLUMN, PART_COLUMN
from dbt.adapters.mzs3.rows.batches import only_if_narrow
from dbt.adapters.mzs3.rows.granted import NOTHING, Granted
from dbt.adapters.mzs3.rows.ordering import order_keys

MAX_PARTS = 10_000
_FIRST = "_mz_first"
_SPREAD = "_mz_spread"


def in_parts(
    rows: DataFrame, parts: int, partition_by: Sequence[int] = (), taken: Granted = NOTHING
) -> DataFrame:
    """`normalised` rows hashed into `parts` partitions, each totally ordered, duplicates adjacent.

    The part is the first column, the data columns follow. Neither the part nor the order depends
    on the cluster, on a task's attempt, or on how Spark cuts its input: both are computed from
    the rows. Sorting by the hash first keeps the sort on integers; the columns break its ties.

    With `partition_by`, indexes of columns, the rows of a folder are adjacent in each part. A
    folder takes as many neighbouring parts as its share of all rows asks for, so a small one is
    one file, and a large one is written in parallel.

    What is taken for granted of the rows makes it faster. Of narrow rows, a wide one fails the
    job before any row is in its part. Of distinct hashes, the hash is the only key, and the
    second column, for those to check who get the rows.
    """
    names = rows.columns
    folder = [names[i] for i in partition_by]
    keys = order_keys(rows.schema)
    # A hash passes over NULLs: without telling where they are, (1, NULL) is as (NULL, 1).
    nulls = [F.expr(f"isnull({name})") for name in names]
    hashed = rows.select(F.xxhash64(*keys, *nulls).alias(HASH_COLUMN), *names)
    part = f"pmod({HASH_COLUMN}, {parts})"
    if folder:
        hashed = _spread(hashed, folder, parts)
        part = f"pmod({_FIRST} + pmod({HASH_COLUMN}, {_SPREAD}), {parts})"
    part = f"cast({part} as int)"
    if taken.narrow_rows:
        part = only_if_narrow(part, rows.schema)
    spread = hashed.selectExpr(f"{part} as {PART_COLUMN}", HASH_COLUMN, *names)
    # A partition is one part, so it need not be a key of the sort.
    apart = spread.repartitionById(parts, F.col(PART_COLUMN))
    if taken.distinct_hashes:
        return apart.sortWithinPartitions(HASH_COLUMN)  # Spark sorts by one integer in linear time
    return apart.sortWithinPartitions(*folder, HASH_COLUMN, *keys).select(PART_COLUMN, *names)


def _spread(rows: DataFrame, folder: Sequence[str], parts: int) -> DataFrame:
    """The rows with the first part of their folder, and the number of parts it is spread over."""
    # With no other column: Spark groups no rows that have one of type TIME.
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
        F.pmod(F.xxhash64(*folder), F.lit(parts)).alias(_FIRST),
        # Without a count, as when a query gives other rows each time it is asked, one part.
        F.coalesce(F.col("_mz_share"), F.lit(1)).alias(_SPREAD),
    )


def is_ordered(spark: SparkSession, query: str) -> bool:
    """Whether the query sorts its whole result: an ORDER BY at its top, without a LIMIT."""
    if not re.search(r"\border\b", query, re.IGNORECASE):
        return False  # to explain a query takes a while
    plan = spark.sql(f"EXPLAIN EXTENDED {query}").first()
    if plan is None:
        return False
    parsed = str(plan[0]).split("== Analyzed Logical Plan ==")[0].splitlines()[1:]
    top = [line.lstrip("'") for line in parsed if not line.startswith((" ", ":", "+"))]
    if top and top[0].startswith(("CTE", "UnresolvedWith", "WithCTE")):
        body = [line[3:].lstrip("'") for line in parsed if line.startswith("+- ")]
        top = body or top
    return bool(top) and top[0].startswith("Sort ") and top[0].endswith("true")
