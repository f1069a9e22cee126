"""Compares a shard's rows with a model's: by a diff, or only by a digest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from dbt.adapters.mzs3.arrow.packed import MAX_DOUBLE_DIGITS
from dbt.adapters.mzs3.rows.batches import sends_native_batches
from dbt.adapters.mzs3.rows.columns import FLOATS, ONE_ZERO
from dbt.adapters.mzs3.rows.packing import packed_columns, unpacked_columns
from dbt.adapters.mzs3.shard.rows import DIFF, column_types, consolidate
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

    `before` has `stored` bytes in files, and may have doubles for decimals (`as_compared`). Rows
    are first compared by hashes (docs/decisions/0033-a-diff-compares-hashes.md); rows whose hashes
    show a difference are compared by all columns.
    """
    names = rows.columns
    row_kinds, kinds = column_types(rows), column_types(before)
    doubles = [name for name in names if row_kinds[name] != kinds[name] == T.DoubleType()]
    now = rows.selectExpr(*_casts(names, dict.fromkeys(doubles, "double")), f"1L AS {DIFF}")
    gone = before.selectExpr(*names, f"-{DIFF} AS {DIFF}")
    if _has_nested(kinds):
        changes = consolidate(now.union(gone), names)
    else:
        # Packed rows are narrower, so they are hashed, moved and sorted faster.
        schema = T.StructType([field for field in now.schema.fields if field.name != DIFF])
        packed, _ = packed_columns(schema)
        sent = [column.rpartition(" as ")[2] for column in packed]
        nullable = [name for name in sent if name in names]
        missed = [*_nulls(nullable), *_signs(row_kinds, names)]
        # Comet shuffles only its own rows natively, and those that Python has read are Spark's.
        # Spark itself takes longer for two shuffles than for one.
        is_native = sends_native_batches(rows.sparkSession)
        sides = (now, gone) if is_native else (now.union(gone),)
        packed_sides = [side.selectExpr(*packed, DIFF) for side in sides]
        keys = [ONE_ZERO.of(name, row_kinds.get(name, T.LongType())) for name in sent]
        found = _without_equal(packed_sides, sent, (keys, [*keys, *missed]), stored)
        changes = consolidate(found, ["h1", *sent])
        changes = changes.selectExpr(*unpacked_columns(schema), DIFF)
    if not doubles:
        return changes
    exact = {name: row_kinds[name].simpleString() for name in doubles}
    return changes.selectExpr(*_casts(names, exact), DIFF)


HASHES = ("xxhash64(1, {}) AS h1", "xxhash64(2, {}) AS h2")
# Bytes in files per task, which sorts several times as much: decoded, with the model's rows.
BYTES_OF_A_SORT = 64 << 20


def _without_equal(
    sides: Sequence[DataFrame],
    names: Sequence[str],
    keys: tuple[Sequence[str], Sequence[str]],
    stored: int,
) -> DataFrame:
    """Removes unchanged rows: groups with equal hashes h1 and h2, in which the sum of `d` is 0.

    `keys` is SQL of what each hash is of; the second includes what a hash of the columns ignores:
    NULLs, and the sign of -0.0. Each row is computed once, as a query may return different rows
    each time. Rows with the same h1 are in one partition.
    """
    hashes = [sql.format(", ".join(of)) for sql, of in zip(HASHES, keys, strict=True)]
    # One partition per core: it need not fit into memory, as Spark sorts it. With Spark's default
    # of 200 partitions, writing shuffle blocks would take a third of the time. More partitions for
    # large files, as a cluster that scales up may have few cores yet. Always a multiple of the
    # cores, as two cores take as long for five equal tasks as for six.
    cores = default_parallelism(sides[0].sparkSession)
    rounds = max(1, -(-stored // (cores * BYTES_OF_A_SORT)))
    shuffled = [
        side.selectExpr(*names, DIFF, *hashes).repartition(cores * rounds, "h1") for side in sides
    ]
    same_hash = "OVER (PARTITION BY h1)"
    aggregates = (
        f"sum({DIFF}) {same_hash} AS _mz_sum",
        f"min(h2) {same_hash} AS _mz_least",
        f"max(h2) {same_hash} AS _mz_most",
    )
    # A union of two sides with the same partitions has these, too, and needs no other shuffle.
    both = reduce(DataFrame.union, shuffled)
    return both.selectExpr("*", *aggregates).where("_mz_sum <> 0 OR _mz_least <> _mz_most")


def _casts(names: Sequence[str], types: Mapping[str, str]) -> list[str]:
    """SQL of the columns, with casts to `types` for some; names need no quotes."""
    return [
        f"cast({name} AS {types[name]}) AS {name}" if name in types else name for name in names
    ]


def digest_of(changes: DataFrame, names: Sequence[str]) -> str:
    """A digest of the rows that the changes add up to, which does not depend on their order.

    Two sums of 64-bit hashes: see docs/decisions/0027-an-idle-shard-by-its-digest.md. Empty if a
    column has a nested type: the hash would ignore NULLs inside its values.
    """
    kinds = column_types(changes)
    if _has_nested(kinds):
        return ""
    # The keys include what a hash misses: it ignores NULLs, and treats -0.0 as 0.0.
    values = (ONE_ZERO.of(name, kinds[name]) for name in names)
    keys = [*values, *(f"isnull({name})" for name in names), *_signs(kinds, names)]
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


def _signs(kinds: Mapping[str, T.DataType], names: Sequence[str]) -> list[str]:
    """SQL conditions that a column is -0.0, one for each column of floats."""
    floats = [name for name in names if isinstance(kinds[name], FLOATS)]
    return [f"coalesce({name} = 0 AND string({name}) = '-0.0', false)" for name in floats]


def _nulls(names: Sequence[str]) -> list[str]:
    """SQL of numbers with one bit per column, which is 1 if the column is NULL."""
    bits = [f"if(isnull({name}), {1 << place % 63}L, 0L)" for place, name in enumerate(names)]
    return [" | ".join(bits[start : start + 63]) for start in range(0, len(bits), 63)]
