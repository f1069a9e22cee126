"""The `where` of a source as a filter of rows, and as bounds to skip row groups by statistics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.mzs3.errors import ShardError
from dbt.adapters.mzs3.names import folded
from dbt.adapters.mzs3.shard.batch.footer import Bounds, Value
from dbt.adapters.mzs3.shard.condition import Conjunct, columns_in, conjuncts
from dbt.adapters.mzs3.shard.rows import in_users_types
from dbt.adapters.mzs3.shard.types import SCALARS, Column
from dbt.adapters.mzs3.spark.failure import readable
from dbt.adapters.mzs3.spark.sql import quote_identifier
from dbt.adapters.mzs3.types.table import MAX_DIGITS

# The precision of the decimal to which Spark casts an integer that it compares with a decimal.
_WHOLE = {"tinyint": 3, "smallint": 5, "integer": 10, "bigint": 20}
# The words ('' for none) before a quoted literal that Spark casts to the column's type.
_MOMENTS: Mapping[str, frozenset[str]] = {
    "date": frozenset({"", "date"}),
    "timestamp": frozenset({"", "date", "timestamp_ntz"}),
    "timestamptz": frozenset({"", "date", "timestamp", "timestamp_ltz", "timestamp_ntz"}),
}

_NUMBER = "number"

_Part = tuple[Column, Conjunct]


@dataclass(frozen=True)
class Filter:
    """A condition, `sql`, that Spark accepts for these columns.

    Rows for which it is true are within all `bounds`. Its `simple` parts never raise errors.
    """

    sql: str
    columns: tuple[Column, ...]
    bounds: tuple[Bounds, ...]
    simple: tuple[str, ...]

    def changes(self, changes: DataFrame, names: Mapping[int, str]) -> DataFrame:
        """The changes of rows for which the simple parts of the condition are true."""
        return self._select(changes, names, self.simple) if self.simple else changes

    def rows(self, rows: DataFrame, names: Mapping[int, str]) -> DataFrame:
        """The rows for which the condition is true; `names` are the wire form's columns, by tag.

        Pass only rows that exist as of the time: the condition may fail for values of other rows.
        """
        return self._select(rows, names, [self.sql])

    def _select(
        self, rows: DataFrame, names: Mapping[int, str], conditions: Sequence[str]
    ) -> DataFrame:
        row = "row"
        while folded(row) in {folded(column.name) for column in self.columns}:
            row += "_"
        # As the number is not deterministic, Spark can't apply conditions before it is computed.
        number = F.monotonically_increasing_id().alias(_NUMBER)
        original = F.struct(*rows.columns, number).alias(row)
        values = in_users_types(self.columns, [names[column.tag] for column in self.columns])
        selected = rows.select(original, *values).where(F.col(f"{row}.{_NUMBER}") >= 0)
        for condition in conditions:
            selected = selected.where(condition)
        return selected.select(*(f"{row}.{name}" for name in rows.columns))


def filter_of(spark: SparkSession, sql: str, columns: Sequence[Column]) -> Filter:
    """The filter for a condition. Raises ShardError if Spark rejects it for these columns."""
    # Spark has no function that converts the wire form of a time to its own type.
    usable = [column for column in columns if not column.kind.holds(("time",))]
    named = columns_in(sql, usable)
    allowed = f"it may name {', '.join(column.name for column in usable)}"
    if not named:
        raise ShardError(
            f"where names no column that the shard has at that time: {sql!r}; {allowed}"
        )
    nulls = [f"cast(null as {c.spark_sql}) as {quote_identifier(c.name)}" for c in named]
    try:
        # Without FROM, as Spark would also resolve names to columns of a table there.
        _ = spark.sql(f"select {', '.join(nulls)}").where(sql).schema
    except AnalysisException as exc:
        reason = str(readable(exc)).splitlines()[0].rstrip(".;")
        raise ShardError(
            f"where is no condition on the columns that the shard has at that time: {reason}. In "
            f"{sql!r} {allowed}"
        ) from exc
    by_name = {folded(column.name): column for column in named}
    pairs = [(by_name.get(folded(part.column)), part) for part in conjuncts(sql)]
    parts = [(column, part) for column, part in pairs if column and _is_usable(column, part)]
    return Filter(sql, named, tuple(_bounds(spark, parts)), tuple(part.sql for _, part in parts))


def _bounds(spark: SparkSession, parts: Sequence[_Part]) -> Iterator[Bounds]:
    moments = _moments(spark, parts)

    def value(column: Column, literal: str | None) -> Value | None:
        if literal is None or column.kind.name in _MOMENTS:
            return moments.get((column, literal))
        return _plain(literal)

    for column, part in parts:
        ranges = [(value(column, low), value(column, high)) for low, high in part.ranges]
        yield Bounds(column.tag, tuple(ranges), part.is_null)


def _is_usable(column: Column, part: Conjunct) -> bool:
    """Whether the column's statistics have the order in which Spark compares its values."""
    if not _literals(part):
        return column.kind.name == "numeric" or column.kind.name in SCALARS
    is_point = any(low == high for low, high in part.ranges)
    return all(_is_comparable(column, literal, is_point) for literal in _literals(part))


def _literals(part: Conjunct) -> list[str]:
    return [end for ends in part.ranges for end in ends if end is not None]


def _is_comparable(column: Column, literal: str, is_point: bool) -> bool:
    kind = column.kind
    word, quote, _ = literal.partition("'")
    if quote and kind.name == "text":
        return not word
    if quote:
        # Without ANSI mode, Spark compares a time as a text with the texts in an `IN` list.
        is_sure = bool(word) or not is_point or kind.name == "date"
        return is_sure and word.strip().lower() in _MOMENTS.get(kind.name, ())
    if kind.name != "numeric" and kind.name not in _WHOLE:
        return False
    # If the common type would need more digits than a decimal can have, Spark rounds both values.
    whole, _, fraction = literal.removeprefix("- ").partition(".")
    before = max(len(whole), _WHOLE["integer"], _WHOLE.get(kind.name, kind.precision - kind.scale))
    return before + max(len(fraction), kind.scale) <= MAX_DIGITS


def _plain(literal: str) -> Value:
    if literal.startswith("'"):
        return literal[1:-1]
    number = literal.replace(" ", "")
    return Decimal(number) if "." in number else int(number)


def _moments(
    spark: SparkSession, parts: Sequence[_Part]
) -> Mapping[tuple[Column, str | None], int | None]:
    """The literals, cast by Spark in the session's time zone, in days or microseconds since 1970.

    A literal that is not a valid time is None, which sets no limit.
    """
    timed = [(column, part) for column, part in parts if column.kind.name in _MOMENTS]
    literals = [(column, literal) for column, part in timed for literal in _literals(part)]
    if not literals:
        return {}
    casts = [f"try_cast({literal} as {column.spark_sql})" for column, literal in literals]
    named = ", ".join(f"{cast} as v{number}" for number, cast in enumerate(casts))
    values: dict[tuple[Column, str | None], int | None] = {}
    for key, found in zip(literals, spark.sql(f"select {named}").toArrow().columns, strict=True):
        stored = pa.int32() if key[0].kind.name == "date" else pa.int64()
        values[key] = found.cast(stored)[0].as_py()
    return values
