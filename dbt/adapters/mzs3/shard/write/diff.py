"""Comparing a shard's rows with a model's: what has changed, or whether anything has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from dbt.adapters.mzs3.arrow.packed import MAX_DOUBLE_DIGITS
from dbt.adapters.mzs3.rows.packing import packed_columns, unpacked_columns
from dbt.adapters.mzs3.shard.rows import DIFF, column_types, consolidate
from dbt.adapters.mzs3.shard.types import Column, Type
from dbt.adapters.mzs3.spark.frames import default_parallelism


def as_compared(column: Column) -> Column:
    """The column as a diff reads it: numbers of few digits as the doubles that files have too.

    To read the exact digits, Spark would have to make a decimal of each value.
    """
    kind = column.kind
    if kind.name != "numeric" or kind.precision > MAX_DOUBLE_DIGITS or column.default:
        return column
    return replace(column, kind=Type("double"))


def changes_between(rows: DataFrame, before: DataFrame, stored: int = 0) -> DataFrame:
    """The changes from the rows that `before` adds up to, to `rows`: a multiset difference.

    `before` takes `stored` bytes in files, and may have decimals as doubles (`as_compared`). Rows
    whose hashes cancel out count as equal (docs/decisions/0033-a-diff-compares-hashes.md); all
    others are compared by all columns.
    """
    names = rows.columns
    decimals, kinds = column_types(rows), column_types(before)
    doubles = [name for name in names if decimals[name] != kinds[name] == T.DoubleType()]
    now = rows.selectExpr(*_casts(names, dict.fromkeys(doubles, "double")), f"1L AS {DIFF}")
    both = now.union(before.selectExpr(*names, f"-{DIFF} AS {DIFF}"))
    if _has_nested(kinds):
        changes = consolidate(both, names)
    else:
        # Narrower rows are hashed, moved and sorted faster.
        schema = T.StructType([field for field in both.schema.fields if field.name != DIFF])
        packed, _ = packed_columns(schema)
        sent = [column.rpartition(" as ")[2] for column in packed]
        nullable = [name for name in sent if name in names]
        missed = [*_nulls(nullable), *_signs(decimals, names)]
        packed_rows = both.selectExpr(*packed, DIFF)
        changes = consolidate(_without_equal(packed_rows, sent, missed, stored), ["h1", *sent])
        changes = changes.selectExpr(*unpacked_columns(schema), DIFF)
    if not doubles:
        return changes
    exact = {name: decimals[name].simpleString() for name in doubles}
    return changes.selectExpr(*_casts(names, exact), DIFF)


HASHES = ("xxhash64(1, {}) AS h1", "xxhash64(2, {}) AS h2")
# In files; a task sorts several times as much, as the model's rows are there too.
BYTES_OF_A_SORT = 64 << 20


def _without_equal(
    both: DataFrame, names: Sequence[str], missed: Sequence[str], stored: int
) -> DataFrame:
    """The rows without those whose hashes h1 and h2 say that there are as many as before.

    `missed` is SQL of what a hash of the columns ignores: NULLs, and the sign of -0.0. Each row is
    computed once: a query that gives other rows each time can't be compared in one step and
    written in the next. Rows with one h1 are in one partition.
    """
    first, second = HASHES
    hashed = both.selectExpr(
        *names, DIFF, first.format(", ".join(names)), second.format(", ".join([*names, *missed]))
    )
    # As many partitions as cores: they are sorted, so that none has to fit into memory. With
    # Spark's 200, writing a block for each would take a third of all the time. More where files
    # are large, as a cluster that grows with its work may have few cores yet; then the same number
    # for each core, as five equal tasks take two cores as long as six.
    cores = default_parallelism(both.sparkSession)
    rounds = max(1, -(-stored // (cores * BYTES_OF_A_SORT)))
    partitioned = hashed.repartition(cores * rounds, "h1")
    same_hash = "OVER (PARTITION BY h1)"
    of_all = (
        f"sum({DIFF}) {same_hash} AS _mz_sum",
        f"min(h2) {same_hash} AS _mz_least",
        f"max(h2) {same_hash} AS _mz_most",
    )
    return partitioned.selectExpr("*", *of_all).where("_mz_sum <> 0 OR _mz_least <> _mz_most")


def _casts(names: Sequence[str], types: Mapping[str, str]) -> list[str]:
    """SQL of the columns, some in other types; names need no quotes."""
    return [
        f"cast({name} AS {types[name]}) AS {name}" if name in types else name for name in names
    ]


def digest_of(changes: DataFrame, names: Sequence[str]) -> str:
    """A digest of the rows that the changes add up to; the same for the same rows, in any order.

    Two sums of 64-bit hashes: see docs/decisions/0027-an-idle-shard-by-its-digest.md. Empty where
    a column has values inside values, of which the hash passes over NULLs.
    """
    kinds = column_types(changes)
    if _has_nested(kinds):
        return ""
    # A hash passes over NULLs, and takes -0.0 for 0.0.
    keys = [*names, *(f"isnull({name})" for name in names), *_signs(kinds, names)]
    hashes = [f"xxhash64({seed}, {', '.join(keys)}) AS h{seed}" for seed in (1, 2)]
    # Halves of hashes, as sums of whole ones would be too large for 64 bits.
    halves = ("(h1 & 4294967295)", "shiftright(h1, 32)", "(h2 & 4294967295)", "shiftright(h2, 32)")
    counted = (DIFF, *(f"{DIFF} * {half}" for half in halves))
    sums = ", ".join(f"coalesce(sum({each}), 0)" for each in counted)
    [row] = changes.selectExpr(DIFF, *hashes).selectExpr(f"concat_ws(' ', {sums})").collect()
    return str(row[0])


def _has_nested(kinds: Mapping[str, T.DataType]) -> bool:
    nested = (T.ArrayType, T.StructType, T.MapType)
    return any(isinstance(kind, nested) for kind in kinds.values())


def _signs(kinds: Mapping[str, T.DataType], names: Sequence[str]) -> list[str]:
    """SQL of whether a column is -0.0, for each that can be."""
    floats = [name for name in names if isinstance(kinds[name], (T.FloatType, T.DoubleType))]
    return [f"coalesce({name} = 0 AND string({name}) = '-0.0', false)" for name in floats]


def _nulls(names: Sequence[str]) -> list[str]:
    """SQL of numbers whose bits are which of the columns are NULL."""
    bits = [f"if(isnull({name}), {1 << place % 63}L, 0L)" for place, name in enumerate(names)]
    return [" | ".join(bits[start : start + 63]) for start in range(0, len(bits), 63)]
