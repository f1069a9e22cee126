"""A shard's rows in Spark: sums and parts of changes, and conversion from and to wire form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type

from dbt.adapters.mzs3.formats.write.format import HASH_COLUMN, PART_COLUMN
from dbt.adapters.mzs3.rows.columns import (
    FLOATS,
    INTERVALS,
    ONE_ZERO,
    SIGNED,
    NestedTransform,
    is_negative_zero,
    named,
)
from dbt.adapters.mzs3.rows.plan import in_parts, modulus, row_hash, sort_keys, sorted_parts
from dbt.adapters.mzs3.shard.batch.write import with_times
from dbt.adapters.mzs3.shard.state.state import ShardBatch
from dbt.adapters.mzs3.shard.types import LARGEST, TIMES, Type, wire_type
from dbt.adapters.mzs3.shard.types import Column as ShardColumn
from dbt.adapters.mzs3.spark.frames import default_parallelism
from dbt.adapters.mzs3.spark.job import shipped
from dbt.adapters.mzs3.spark.sql import quote_identifier
from dbt.adapters.mzs3.types.calendar import DAY, HOUR, SECOND

DIFF = "d"
BITS = 63  # of a bigint, without its sign
# `repeat_rows` works in three steps; each makes at most this many copies of a row.
STEP = 1 << 10
_MOST_PARTITIONS = 1 << 30

# The inverse of SIGNED.
_WITHOUT_SIGN = NestedTransform(
    SIGNED.concerns,
    lambda value, _: f"if({value}['is_negative_zero'], -{value}['value'], {value}['value'])",
)


def additions(rows: DataFrame) -> DataFrame:
    """The rows as changes, each of which adds a row once."""
    return rows.withColumn(DIFF, F.lit(1).cast("bigint"))


def column_types(rows: DataFrame) -> Mapping[str, T.DataType]:
    """The types of the columns, by their names."""
    return {field.name: field.dataType for field in rows.schema.fields}


def consolidate(changes: DataFrame, names: Sequence[str]) -> DataFrame:
    """The distinct rows with the sum of their `d`, unless it is 0; -0.0 and 0.0 are different."""
    types = column_types(changes)
    kinds = {name: types[name] for name in names}
    # Signs of floats are bits beside them: grouping by structs of both would take longer.
    floats = floats_in(kinds)
    keys = {name: (ONE_ZERO if name in floats else SIGNED).of(name, kinds[name]) for name in names}
    keys |= {f"s{place}": sql for place, sql in enumerate(bits(negative_zeros(kinds)))}
    keyed = changes.selectExpr(*named(keys), DIFF)
    summed = keyed.groupBy(*keys).agg(F.sum(DIFF).alias(DIFF)).where(F.col(DIFF) != 0)
    values = {name: _WITHOUT_SIGN.of(name, kinds[name]) for name in names}
    for place, name in enumerate(floats):
        values[name] = f"if(s{place // BITS} & {1 << place % BITS}L = 0, {name}, -{name})"
    return summed.selectExpr(*named(values), DIFF)


def floats_in(kinds: Mapping[str, T.DataType]) -> list[str]:
    """The names of the columns of floats."""
    return [name for name, kind in kinds.items() if isinstance(kind, FLOATS)]


def negative_zeros(kinds: Mapping[str, T.DataType]) -> list[str]:
    """SQL conditions that a column is -0.0, one for each column of floats."""
    return [f"coalesce({is_negative_zero(name)}, false)" for name in floats_in(kinds)]


def bits(conditions: Sequence[str]) -> list[str]:
    """SQL of numbers with one bit per condition, BITS in each."""
    flags = [f"if({sql}, {1 << place % BITS}L, 0L)" for place, sql in enumerate(conditions)]
    return [" | ".join(flags[start : start + BITS]) for start in range(0, len(flags), BITS)]


def repeat_rows(rows: DataFrame) -> DataFrame:
    """Each row `d` times, without `d`. At most a few thousand copies are in memory at a time.

    The query fails for a negative `d`: the row was retracted more often than added.
    """
    error = F.concat(
        F.lit("a row of the shard went more often than it came: its changes come to "),
        F.col(DIFF).cast("string"),
        F.lit(
            "; a file of it was removed or written by something other than dbt-mzs3. Restore it, "
            "or read the shard as of an earlier time"
        ),
    )
    count = F.when(F.col(DIFF) < 0, F.raise_error(error)).otherwise(F.col(DIFF))
    rows = rows.withColumn(DIFF, count)
    for size in (STEP * STEP, STEP):
        # A stage's generated code keeps all output of one row in memory before it takes the next
        # row. `coalesce` ends the stage; it does not change the number of partitions.
        rows = _exploded(rows, _slices(size)).coalesce(_MOST_PARTITIONS)
    return _exploded(rows, F.array_repeat(F.lit(0), F.col(DIFF).cast("int"))).drop(DIFF)


def _slices(size: int) -> Column:
    """An array of numbers that add up to `d`, each at most `size`; `[0]` if `d` is 0."""
    last = F.greatest(F.col(DIFF) - 1, F.lit(0))
    starts = F.sequence(F.lit(0).cast("bigint"), last, F.lit(size).cast("bigint"))
    return F.transform(starts, lambda start: F.least(F.col(DIFF) - start, F.lit(size)))


def _exploded(rows: DataFrame, numbers: Column) -> DataFrame:
    """A copy of each row for each of its `numbers`, which becomes the copy's `d`."""
    others = [F.col(quote_identifier(name)) for name in rows.columns if name != DIFF]
    return rows.select(*others, F.explode(numbers).alias(DIFF))


# A task writes this many rows within seconds. Smaller files would slow readers down.
ROWS_OF_A_PART = 100_000
BYTES_OF_A_PART = 32 << 20  # in files

# Per part, `sort_across_parts` has a comparison in Spark's plan, and SAMPLES_OF_A_PART keys in a
# row.
MAX_SORTED_PARTS = 256
SAMPLES_OF_A_PART = 100
_BOUNDS, _PARTS = "_mz_bounds", "_mz_parts"


def part_count(rows: int, batches: Sequence[ShardBatch], most: int) -> int:
    """How many parts to cut rows into, at most `most`, for rows of the batches' average size."""
    return max(1, min(most, rows // _rows_of_a_part(batches)))


def _rows_of_a_part(batches: Sequence[ShardBatch]) -> int:
    size = sum(batch.bytes for batch in batches)
    fit = BYTES_OF_A_PART * sum(batch.rows for batch in batches) // max(1, size)
    return max(1, min(ROWS_OF_A_PART, fit)) if size else ROWS_OF_A_PART


def parts_of_changes(
    changes: DataFrame,
    keys: Sequence[str],
    requested_parts: int | None,
    batches: Sequence[ShardBatch],
) -> DataFrame:
    """Changes `t`, `d`, c0, c1, … in parts, like `in_parts`, sorted by the keys and all columns.

    In this order, a retracted row is mostly next to the row that replaces it, and the values that
    both share compress well. Without `requested_parts`, Spark counts the changes first.
    """
    _, _, *columns = changes.columns
    if requested_parts:
        return in_parts(changes, requested_parts, sort_by=[*keys, *columns])
    # One query counts and writes the changes: both read the same shuffle, so they are computed
    # once (twice with spark.sql.exchange.reuse off). They are not cached: if an executor were
    # lost, Spark would recompute its part, and the model could give other rows then.
    most = default_parallelism(changes.sparkSession)
    schema = changes.schema
    # The hash is of all columns: else Spark would prune columns for the count, and shuffle twice.
    shuffled = changes.repartition(most, F.expr(row_hash(schema)))
    count = f"least({most}, greatest(1, count(1) div {_rows_of_a_part(batches)}))"
    parts = shuffled.agg(F.expr(count)).scalar()
    # The same hash as in `in_parts`: with the same number of parts, the files are the same.
    hashed = shuffled.select(F.expr(row_hash(schema)).alias(HASH_COLUMN), parts.alias(_PARTS), "*")
    part = f"{modulus(HASH_COLUMN, _PARTS)} AS {PART_COLUMN}"
    numbered = hashed.selectExpr(part, *changes.columns)
    return sorted_parts(numbered, most, sort_keys(schema, [*keys, *columns]))


def sort_across_parts(
    rows: DataFrame, keys: Sequence[str], sample: DataFrame, parts: int
) -> DataFrame:
    """The rows in at most `parts` partitions, like `in_parts`, in a total order across partitions.

    Rows with equal keys are in one part. The keys in `sample` determine where parts begin.
    """
    kinds = column_types(rows)
    key = F.struct(*[F.expr(ONE_ZERO.of(name, kinds[name])).alias(name) for name in keys])
    part = _part_of(key, 0, parts - 1)
    bounds = F.broadcast(_bounds(sample, key, parts))
    spread_rows = rows.crossJoin(bounds).select(part.alias(PART_COLUMN), *rows.columns)
    return sorted_parts(spread_rows, parts, sort_keys(rows.schema, keys))


def _bounds(sample: DataFrame, key: Column, parts: int) -> DataFrame:
    """One row with at most `parts - 1` sorted keys, at which the second and later parts begin."""
    ordered = sample.agg(F.sort_array(F.collect_list(key)).alias(_BOUNDS))
    size = F.size(_BOUNDS).cast("bigint")
    if parts == 1:
        return ordered.select(F.slice(_BOUNDS, 1, 0).alias(_BOUNDS))
    cuts = F.transform(
        F.sequence(F.lit(1), F.lit(parts - 1)),
        lambda i: F.get(_BOUNDS, F.call_function("div", i * size, F.lit(parts)).cast("int")),
    )
    return ordered.select(F.array_distinct(F.filter(cuts, lambda k: k.isNotNull())).alias(_BOUNDS))


def _part_of(key: Column, low: int, high: int) -> Column:
    """How many bounds are not above the key, from `low` to `high`: a binary search, as SQL."""
    if low == high:
        return F.lit(low)
    middle = (low + high) // 2
    # There may be fewer bounds: a missing one counts as above every key.
    is_below = F.coalesce(key < F.get(_BOUNDS, F.lit(middle)), F.lit(True))
    return F.when(is_below, _part_of(key, low, middle)).otherwise(_part_of(key, middle + 1, high))


_UUID = "^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$"
_SECONDS = "decimal(18, 6)"
_NANOS = 1_000_000_000  # in a second


def wire_spark_type(kind: Type) -> T.DataType:
    """The Spark type in which values of the shard's type are sent to Python and back."""
    return from_arrow_type(wire_type(kind), prefer_timestamp_ntz=True)


def in_wire_type(column: Column, data_type: T.DataType, kind: Type, name: str) -> Column:
    """Converts canonical values from `data_type` to wire form; `name` is for error messages.

    The query fails for a text that is not a UUID, and a number out of an unsigned type's range.
    """
    if not kind.holds(("time", "uuid", *LARGEST)):
        wire = wire_spark_type(kind)
        # A cast that is not needed would take some calls to Spark's driver.
        return column if data_type == wire else column.cast(wire)
    if isinstance(data_type, T.TimeType):
        return (column.cast("decimal(20, 9)") * _NANOS).cast("bigint")
    if kind.name in LARGEST:
        return _in_range(column, kind, name)
    if kind.name == "uuid":
        return _uuid_bytes(column, name) if isinstance(data_type, T.StringType) else column
    if isinstance(data_type, T.ArrayType):
        element = data_type.elementType
        return F.transform(column, lambda item: in_wire_type(item, element, kind.element, name))
    if not isinstance(data_type, T.StructType):
        return column.cast(wire_spark_type(kind))
    parts = [
        in_wire_type(column.getField(field.name), field.dataType, child, name).alias(str(place))
        for place, (field, child) in enumerate(zip(data_type.fields, kind.children, strict=True))
    ]
    return F.when(column.isNotNull(), F.struct(*parts))


def _in_range(number: Column, kind: Type, name: str) -> Column:
    largest = LARGEST[kind.name]
    text = f" is no {kind.name}, which is from 0 to {largest}"
    error = F.raise_error(F.concat(F.lit(f"column {name}: "), number.cast("string"), F.lit(text)))
    is_valid = number.isNull() | number.between(F.lit(Decimal(0)), F.lit(Decimal(largest)))
    return F.when(is_valid, number.cast(wire_spark_type(kind))).otherwise(error)


def _uuid_bytes(text: Column, name: str) -> Column:
    error = F.raise_error(F.concat(F.lit(f"column {name}: '"), text, F.lit("' is no UUID")))
    binary = F.unhex(F.replace(text, F.lit("-"), F.lit("")))
    return F.when(text.isNull() | text.rlike(_UUID), binary).otherwise(error)


def from_wire(rows: DataFrame, columns: Sequence[ShardColumn], names: Sequence[str]) -> DataFrame:
    """Converts columns in wire form, called `names` in `rows`, to users' types and names."""
    kinds = [column.kind for column in columns]
    if any(kind.holds(("time",)) for kind in kinds):
        # Spark itself can only convert to times if `spark.sql.timeType.enabled` is set.
        types = [wire_type(kind, TIMES) for kind in kinds]
        timed = pa.schema(list(zip(names, types, strict=True)))
        schema = from_arrow_schema(timed, prefer_timestamp_ntz=True)
        rows = rows.select(*names).mapInArrow(shipped(with_times, kinds), schema)
    return rows.select(*in_users_types(columns, names))


def in_users_types(columns: Sequence[ShardColumn], names: Sequence[str]) -> list[Column]:
    """Expressions for the result of `from_wire`. Times must already have Spark's own type."""
    return [
        _restored(F.col(name), T.DataType.fromDDL(column.spark_sql), column.kind).alias(
            column.name
        )
        for name, column in zip(names, columns, strict=True)
    ]


def _restored(column: Column, data_type: T.DataType, kind: Type) -> Column:
    if isinstance(data_type, T.MapType):
        entry = T.StructType().add("key", data_type.keyType).add("value", data_type.valueType)
        entries = F.transform(column, lambda item: _restored(item, entry, kind.element))
        return F.map_from_entries(entries)
    if isinstance(data_type, T.ArrayType):
        element = data_type.elementType
        return F.transform(column, lambda item: _restored(item, element, kind.element))
    if isinstance(data_type, T.StructType):
        fields = [
            _restored(column.getField(str(place)), field.dataType, child).alias(field.name)
            for place, (field, child) in enumerate(zip(data_type, kind.children, strict=True))
        ]
        return F.when(column.isNotNull(), F.struct(*fields))
    if isinstance(data_type, T.VariantType):
        return F.parse_json(column)
    if kind.name == "uuid" and isinstance(data_type, T.StringType):
        digits = F.lower(F.hex(column))
        return F.regexp_replace(digits, "^(.{8})(.{4})(.{4})(.{4})(.{12})$", "$1-$2-$3-$4-$5")
    if isinstance(data_type, INTERVALS):
        return _interval(column, data_type)
    return column if isinstance(data_type, T.TimeType) else column.cast(data_type)


def _interval(parts: Column, data_type: T.DataType) -> Column:
    months, days, micros = (parts.getField(name) for name in ("months", "days", "micros"))
    if isinstance(data_type, T.YearMonthIntervalType):
        return F.make_ym_interval(F.lit(0), months).cast(data_type)
    whole_days = F.call_function("div", micros, F.lit(DAY))
    remainder = micros - whole_days * DAY
    hours = F.call_function("div", remainder, F.lit(HOUR)).cast("int")
    seconds = ((remainder - hours * HOUR).cast("decimal(20, 0)") / SECOND).cast(_SECONDS)
    if isinstance(data_type, T.DayTimeIntervalType):
        days = (days + whole_days).cast("int")
        return F.make_dt_interval(days, hours, F.lit(0), seconds).cast(data_type)
    zero, half = F.lit(0), (whole_days * 12).cast("int")
    # The hours in a bigint of microseconds may not fit into an int, so they are added in halves.
    first = F.make_interval(zero, months, zero, days, hours + half, zero, seconds)
    return first + F.make_interval(zero, zero, zero, zero, half)
