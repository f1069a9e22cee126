"""Compares a shard's rows with a model's: by a diff, or only by a digest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from dbt.adapters.mzs3.arrow.packed import MAX_DOUBLE_DIGITS
from dbt.adapters.mzs3.rows.batches import sends_native_batches
from dbt.adapters.mzs3.rows.columns import ONE_ZERO, named
from dbt.adapters.mzs3.rows.packing import packed_columns, unpacked_columns
from dbt.adapters.mzs3.rows.plan import ZERO
from dbt.adapters.mzs3.shard.rows import DIFF, bits, column_types, consolidate, negative_zeros
from dbt.adapters.mzs3.shard.types import Column, Type
from dbt.adapters.mzs3.spark.frames import default_parallelism


def as_compared(column: Column) -> Column:
    """The column as a diff reads it: a numeric with few digits as its double in the file.

    This is faster: Spark would have to convert the exact digits of each value to a decimal.
    """
    kind = column.kind
    if kind.name != "numeric" or kind.precision > MAX_DOUBLE_DIGITS or column.default:
        return column
    return replace(column, kind=Type("double"))


def changes_between(rows: DataFrame, before: DataFrame, stored: int = 0) -> DataFrame:
    """The changes that turn the shard's rows, the sum of the changes `before`, into `rows`.

    `before` has `stored` bytes in files, and may have doubles for decimals (`as_compared`). Except
    with Comet or nested types, rows are first compared by hashes
    (docs/decisions/0033-a-diff-compares-hashes.md); those that may differ, by all columns.
    """
    names = rows.columns
    row_kinds, kinds = column_types(rows), column_types(before)
    doubles = [name for name in names if row_kinds[name] != kinds[name] == T.DoubleType()]
    now = rows.selectExpr(*_casts(names, dict.fromkeys(doubles, "double")), f"1L AS {DIFF}")
    gone = before.selectExpr(*names, f"-{DIFF} AS {DIFF}")
    if _has_nested(kinds):
        changes = consolidate(now.union(gone), names)
    elif sends_native_batches(rows.sparkSession):
        changes = _summed((now, gone), names, stored)
    else:
        # Packed rows are narrower, so they are hashed, moved and sorted faster.
        both = now.union(gone)
        schema = T.StructType([field for field in both.schema.fields if field.name != DIFF])
        packed, _ = packed_columns(schema)
        sent = [column.rpartition(" as ")[2] for column in packed]
        nullable = [f"isnull({name})" for name in sent if name in names]
        missed = [*bits(nullable), *negative_zeros(row_kinds)]
        packed_rows = both.selectExpr(*packed, DIFF)
        changes = consolidate(_without_equal(packed_rows, sent, missed, stored), ["h1", *sent])
        changes = changes.selectExpr(*unpacked_columns(schema), DIFF)
    if not doubles:
        return changes
    exact = {name: row_kinds[name].simpleString() for name in doubles}
    return changes.selectExpr(*_casts(names, exact), DIFF)


HASHES = ("xxhash64(1, {}) AS h1", "xxhash64(2, {}) AS h2")
# Bytes in files per task, which sorts several times as much: decoded, with the model's rows.
BYTES_OF_A_SORT = 64 << 20


def _without_equal(
    both: DataFrame, names: Sequence[str], missed: Sequence[str], stored: int
) -> DataFrame:
    """Removes unchanged rows: groups with equal hashes h1 and h2, in which the sum of `d` is 0.

    `missed` is SQL for what a hash of the columns ignores: NULLs, and the sign of -0.0. Each row
    is computed once, as a query may return different rows each time. Rows with the same h1 are in
    one partition.
    """
    keys, (first, second) = _hashed(both, names), HASHES
    hashed = both.selectExpr(
        *names, DIFF, first.format(", ".join(keys)), second.format(", ".join([*keys, *missed]))
    )
    same_hash = "OVER (PARTITION BY h1)"
    aggregates = (
        f"sum({DIFF}) {same_hash} AS _mz_sum",
        f"min(h2) {same_hash} AS _mz_least",
        f"max(h2) {same_hash} AS _mz_most",
    )
    partitioned = hashed.repartition(_partitions(both, stored), "h1")
    return partitioned.selectExpr("*", *aggregates).where("_mz_sum <> 0 OR _mz_least <> _mz_most")


def _summed(sides: Sequence[DataFrame], names: Sequence[str], stored: int) -> DataFrame:
    """What `consolidate` returns for a union of the sides, in the form that Comet runs fastest.

    It sums whole rows faster than it finds those whose hashes differ. It shuffles natively only
    rows of its own, and those that Python has read are Spark's, so that each side is shuffled by
    itself. A union of sides with the same partitions needs no other shuffle.
    """
    first = HASHES[0].format(", ".join(_hashed(sides[0], names)))
    parts = _partitions(sides[0], stored)
    sent = [*names, f"{DIFF} | {ZERO} AS {DIFF}", first]
    shuffled = [side.selectExpr(*sent).repartition(parts, "h1") for side in sides]
    return consolidate(reduce(DataFrame.union, shuffled), ["h1", *names]).drop("h1")


def _hashed(rows: DataFrame, names: Sequence[str]) -> list[str]:
    kinds = column_types(rows)
    return [ONE_ZERO.of(name, kinds[name]) for name in names]


def _partitions(rows: DataFrame, stored: int) -> int:
    # One partition per core: it need not fit into memory, as Spark spills what it sorts, and Comet
    # what it sums. With Spark's default of 200, writing shuffle blocks would take a third of the
    # time. More for large files, as a cluster that scales up may have few cores yet. Always a
    # multiple of the cores, as two cores take as long for five equal tasks as for six.
    cores = default_parallelism(rows.sparkSession)
    return cores * max(1, -(-stored // (cores * BYTES_OF_A_SORT)))


def _casts(names: Sequence[str], types: Mapping[str, str]) -> list[str]:
    """SQL of the columns, with casts to `types` for some; names need no quotes."""
    casts = {name: f"cast({name} AS {kind})" for name, kind in types.items()}
    return named({name: casts.get(name, name) for name in names})


def digest_of(changes: DataFrame, names: Sequence[str]) -> str:
    """A digest of the rows that the changes add up to, which does not depend on their order.

    Two sums of 64-bit hashes: see docs/decisions/0027-an-idle-shard-by-its-digest.md. Empty if a
    column has a nested type: the hash would ignore NULLs inside its values.
    """
    kinds = column_types(changes)
    if _has_nested(kinds):
        return ""
    # The keys include what a hash misses: it ignores NULLs, and treats -0.0 as 0.0.
    missed = [*(f"isnull({name})" for name in names), *negative_zeros(kinds)]
    keys = [*_hashed(changes, names), *missed]
    hashes = [f"xxhash64({seed}, {', '.join(keys)}) AS h{seed}" for seed in (1, 2)]
    # Halves of hashes, as sums of whole hashes would be too large for 64 bits.
    halves = ("(h1 & 4294967295)", "shiftright(h1, 32)", "(h2 & 4294967295)", "shiftright(h2, 32)")
    summands = (DIFF, *(f"{DIFF} * {half}" for half in halves))
    sums = ", ".join(f"coalesce(sum({each}), 0)" for each in summands)
    [row] = changes.selectExpr(DIFF, *hashes).selectExpr(f"concat_ws(' ', {sums})").collect()
    return str(row[0])


def _has_nested(kinds: Mapping[str, T.DataType]) -> bool:
    nested = (T.ArrayType, T.StructType, T.MapType)
    return any(isinstance(kind, nested) for kind in kinds.values())
