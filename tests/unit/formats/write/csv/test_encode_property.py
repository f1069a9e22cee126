"""Whatever the types, values, slices and dialect: the encoder equals the plain one."""

import string
from decimal import Decimal

import pyarrow as pa
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from support.examples import examples
from support.golden.plain_encoder import plain_line

from dbt.adapters.mzs3.formats.dialect import CsvDialect
from dbt.adapters.mzs3.formats.write.csv.format import CsvEncoder
from dbt.adapters.mzs3.formats.write.format import PLAIN, LogicalType

LONG = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(
    st.one_of(st.sampled_from(",\"\\\n\r\t {}|;'.NULnult01é日🙂"), st.characters(codec="utf-8")),
    max_size=8,
)


def decimals(precision, scale):
    top = 10**precision - 1
    return st.integers(-top, top).map(lambda digits: Decimal(f"{digits}e-{scale}"))


SCALARS = [
    (pa.bool_(), st.booleans()),
    (pa.int8(), st.integers(-128, 127)),
    (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.int64(), LONG),
    (pa.float64(), st.floats() | LONG.map(float) | decimals(18, 6).map(float)),
    (pa.float32(), st.floats(width=32) | st.integers(-(2**24), 2**24).map(float)),
    (pa.decimal128(12, 2), decimals(12, 2)),
    (pa.decimal128(38, 18), decimals(38, 18) | decimals(4, 18)),
    (pa.string(), TEXT),
    (pa.large_string(), TEXT),
    (pa.binary(), st.binary(max_size=9)),
    (pa.date32(), st.integers(-(2**31), 2**31 - 1) | st.integers(-800_000, 3_000_000)),
    (pa.timestamp("us"), LONG | st.integers(0, 10**9).map(lambda s: s * 1_000_000)),
    (pa.timestamp("us", "America/New_York"), LONG),
    (pa.time64("ns"), st.integers(0, 86_399_999_999).map(lambda micros: micros * 1000)),
]


INTERVAL = pa.struct([("months", pa.int32()), ("days", pa.int32()), ("micros", pa.int64())])
INTERVALS = st.fixed_dictionaries(
    {
        "months": st.integers(-30, 30) | st.integers(-(2**31), 2**31 - 1),
        "days": st.integers(-2, 2) | st.integers(-(2**31), 2**31 - 1),
        "micros": st.sampled_from([0, 1, -1, 10**6, -(10**10)]) | LONG,
    }
)
# An Arrow type, what its values mean, and the values.
LEAVES = st.sampled_from(
    [
        *((kind, PLAIN, values) for kind, values in SCALARS),
        (INTERVAL, LogicalType("interval"), INTERVALS),
        (pa.string(), LogicalType("variant"), TEXT),
    ]
)


def listed(element):
    kind, logical_type, values = element
    return (
        pa.list_(kind),
        LogicalType("list", (logical_type,)),
        st.lists(st.none() | values, max_size=4),
    )


def recorded(fields):
    names = [f"f{i}" for i in range(len(fields))]
    kind = pa.struct([(name, kind) for name, (kind, _, _) in zip(names, fields, strict=True)])
    logical_type = LogicalType("struct", tuple(logical_type for _, logical_type, _ in fields))
    values = [st.none() | values for _, _, values in fields]
    return kind, logical_type, st.fixed_dictionaries(dict(zip(names, values, strict=True)))


def mapped(entry):
    (key_kind, key_type, keys), (value_kind, value_type, values) = entry
    kind = pa.list_(pa.struct([("key", key_kind), ("value", value_kind)]))
    entries = st.fixed_dictionaries({"key": keys, "value": st.none() | values})
    return kind, LogicalType("map", (key_type, value_type)), st.lists(entries, max_size=3)


def nested(columns):
    return st.one_of(
        columns.map(listed),
        st.lists(columns, max_size=3).map(recorded),
        st.tuples(columns, columns).map(mapped),
    )


# Not deeper: Arrow's casts, which make the tables here, lose such values inside of structs.
VOID = (pa.null(), PLAIN, st.none())
COLUMNS = st.recursive(LEAVES, nested, max_leaves=4) | st.sampled_from([VOID, listed(VOID)])
CHARACTERS = st.sampled_from(",;|\t\"'\\ae1t-:.+{} ")
DIALECTS = st.builds(
    CsvDialect,
    delimiter=CHARACTERS,
    quote=CHARACTERS,
    escape=CHARACTERS,
    null=st.sampled_from(["", "NULL", "\\N", "\\.", "t", "1", "-", "日本", "{}", "0001-01-01"]),
).filter(lambda dialect: not dialect.problems())


@st.composite
def tables(draw):
    """Types, shapes, rows, and the rows as part of a longer batch."""
    columns = draw(st.lists(COLUMNS, min_size=1, max_size=4))
    row = st.tuples(*(st.none() | values for _, _, values in columns))
    rows = draw(st.lists(row, max_size=12))
    before, after = draw(st.tuples(st.lists(row, max_size=3), st.lists(row, max_size=3)))
    kinds = [kind for kind, _, _ in columns]
    arrays = [
        arrow_array([r[i] for r in (*before, *rows, *after)], kind) for i, kind in enumerate(kinds)
    ]
    batch = pa.record_batch(arrays, names=list(string.ascii_lowercase[: len(kinds)]))
    logical_types = tuple(logical_type for _, logical_type, _ in columns)
    return kinds, logical_types, rows, batch.slice(len(before), len(rows))


def arrow_array(values, kind):
    array = pa.array(values, stored(kind))
    return array if array.type == kind else array.cast(kind)


def stored(kind):
    """The type whose Python values are the numbers that the plain encoder takes."""
    if pa.types.is_list(kind):
        return pa.list_(stored(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(stored(field.type)) for field in kind])
    if pa.types.is_date32(kind):
        return pa.int32()
    return pa.int64() if pa.types.is_temporal(kind) else kind


@examples(300, suppress_health_check=[HealthCheck.too_slow])
@given(tables(), DIALECTS, st.sets(st.sampled_from("abcd")) | st.just("*"))
def test_lines_equal_the_plain_encoder(table, dialect, force):
    kinds, logical_types, rows, batch = table
    forced = [force == "*" or name in force for name in batch.schema.names]
    force_quote = force if force == "*" else frozenset(force)
    lines = CsvEncoder(batch.schema, dialect, force_quote, logical_types).encode(batch)
    assert lines.to_pylist() == [
        plain_line(kinds, row, dialect, forced, logical_types) for row in rows
    ]


@examples(200)
@given(st.lists(st.floats() | LONG.map(float), min_size=1))
def test_doubles_equal_the_plain_encoder(values):
    check_floats(pa.float64(), values)


@examples(200)
@given(st.lists(st.floats(width=32), min_size=1))
def test_floats_equal_the_plain_encoder(values):
    check_floats(pa.float32(), values)


def check_floats(kind, values):
    batch = pa.record_batch([pa.array(values, kind)], names=["a"])
    lines = CsvEncoder(batch.schema, CsvDialect()).encode(batch)
    plain = [plain_line([kind], [value], CsvDialect(), [False]) for value in values]
    assert lines.to_pylist() == plain
