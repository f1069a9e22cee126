"""Whatever the types, values and batches: what is read back is what was written."""

import datetime
from itertools import pairwise

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from support.examples import examples
from support.export.parquet_files import cut, files_of, read

from dbt.adapters.mzs3.errors import ExecutorError
from dbt.adapters.mzs3.formats.write.csv.scalars import interval_text
from dbt.adapters.mzs3.formats.write.format import PLAIN, LogicalType
from dbt.adapters.mzs3.formats.write.parquet import row_ends

INTERVAL = pa.struct([("months", pa.int32()), ("days", pa.int32()), ("micros", pa.int64())])
SMALL = st.integers(-100, 100)
TIMES = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31))

SCALARS = [
    (pa.bool_(), PLAIN, st.booleans()),
    (pa.int8(), PLAIN, st.integers(-128, 127)),
    (pa.int16(), PLAIN, st.integers(-(2**15), 2**15 - 1)),
    (pa.int32(), PLAIN, st.integers(-(2**31), 2**31 - 1)),
    (pa.int64(), PLAIN, st.integers(-(2**63), 2**63 - 1)),
    (pa.float32(), PLAIN, st.floats(width=32, allow_nan=False)),
    (pa.float64(), PLAIN, st.floats(allow_nan=False)),
    (pa.decimal128(12, 2), PLAIN, st.decimals(-9999999999, 9999999999, places=2)),
    (pa.string(), PLAIN, st.text(max_size=6)),
    (pa.large_string(), PLAIN, st.text(max_size=6)),
    (pa.binary(), PLAIN, st.binary(max_size=6)),
    (pa.date32(), PLAIN, st.dates()),
    (pa.time64("ns"), PLAIN, st.times()),
    (pa.timestamp("us"), PLAIN, TIMES),
    (pa.null(), PLAIN, st.none()),
    (pa.string(), LogicalType("variant"), st.sampled_from(['{"a":1}', "[]", "null"])),
    (
        INTERVAL,
        LogicalType("interval"),
        st.fixed_dictionaries({"months": SMALL, "days": SMALL, "micros": SMALL}),
    ),
]  # fmt: skip


def listed(column):
    kind, logical_type, values = column
    return (
        pa.list_(kind),
        LogicalType("list", (logical_type,)),
        st.lists(st.none() | values, max_size=4),
    )


def grouped(columns):
    kinds = pa.struct([(f"f{i}", kind) for i, (kind, *_) in enumerate(columns)])
    values = {f"f{i}": st.none() | values for i, (_, _, values) in enumerate(columns)}
    logical_type = LogicalType("struct", tuple(logical_type for _, logical_type, _ in columns))
    return kinds, logical_type, st.fixed_dictionaries(values)


def mapped(column):
    """On the wire a list of its entries; here the keys are texts."""
    kind, logical_type, values = column
    entry = pa.struct([pa.field("key", pa.string(), nullable=False), ("value", kind)])
    entries = st.dictionaries(st.text(max_size=3), st.none() | values, max_size=4).map(
        lambda found: [{"key": key, "value": found[key]} for key in sorted(found)]
    )
    return pa.list_(entry), LogicalType("map", (PLAIN, logical_type)), entries


COLUMNS = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: (
        inner.map(listed)
        | inner.map(mapped)
        | st.lists(inner, min_size=1, max_size=3).map(grouped)
    ),
    max_leaves=4,
)


@st.composite
def tables(draw):
    """Types, their meanings, and rows that are part of a longer batch."""
    columns = draw(st.lists(COLUMNS, min_size=1, max_size=4))
    row = st.tuples(*(st.none() | values for *_, values in columns))
    rows = draw(st.lists(row, max_size=12))
    before, after = draw(st.tuples(st.lists(row, max_size=3), st.lists(row, max_size=3)))
    arrays = [
        pa.array([r[i] for r in (*before, *rows, *after)], kind)
        for i, (kind, *_) in enumerate(columns)
    ]
    batch = pa.record_batch(arrays, names=[f"c{i}" for i in range(len(columns))])
    return [logical_type for _, logical_type, _ in columns], batch.slice(len(before), len(rows))


def as_read(value, logical_type):
    """What pyarrow gives for a wire value that was written with a shape."""
    if value is None:
        return None
    if logical_type.kind == "interval":
        return interval_text(pa.array([value], INTERVAL)).to_pylist()[0]
    if logical_type.kind == "list":
        return [as_read(element, logical_type.children[0]) for element in value]
    if logical_type.kind == "map":
        return [
            (entry["key"], as_read(entry["value"], logical_type.children[1])) for entry in value
        ]
    if logical_type.kind == "struct":
        named = zip(value.items(), logical_type.children, strict=True)
        return {name: as_read(field, child) for (name, field), child in named}
    return value


@examples(150, suppress_health_check=[HealthCheck.too_slow])
@given(tables(), st.integers(1, 5), st.sampled_from([1, 300, 2000, 256 << 20]))
def test_round_trip_whatever_the_batches(table, size, limit):
    logical_types, batch = table
    files = files_of(batch.schema, [batch], logical_types, limit)
    assert files_of(batch.schema, cut(batch, size), logical_types, limit) == files
    owned = pa.RecordBatch.from_pylist(batch.to_pylist(), batch.schema)
    assert files_of(batch.schema, [owned], logical_types, limit) == files
    expected = [
        [as_read(value, logical_type) for value in column.to_pylist()]
        for column, logical_type in zip(batch.columns, logical_types, strict=True)
    ]
    assert [column.to_pylist() for column in read(files).columns] == expected


@examples(80, suppress_health_check=[HealthCheck.too_slow])
@given(tables())
def test_size_of_a_row_is_its_own(table):
    _, batch = table
    ends = row_ends(batch).tolist()
    alone = [
        row_ends(pa.RecordBatch.from_pylist([row], batch.schema)).tolist()
        for row in batch.to_pylist()
    ]
    sizes = [end - start for start, end in pairwise(ends)]
    assert (ends[0], sizes) == (0, [end for _, end in alone])


def test_sizes_are_those_of_arrow():
    record = pa.struct([("x", pa.int16()), ("y", pa.binary())])
    batch = pa.record_batch(
        {
            "a": pa.array([1, None], pa.int32()),
            "b": pa.array(["abc", None]),
            "c": pa.array([[1.0, 2.0], None]),
            "d": pa.array([["ab", None, "c"], []]),
            "e": pa.array([{"x": 1, "y": b"ab"}, None], record),
        }
    )
    first = 1 + 4 + (8 + 3) + (8 + 16) + (8 + 3 * 8 + 3) + (2 + 8 + 2)
    second = 1 + 4 + 8 + 8 + 8 + (2 + 8)
    assert row_ends(batch).tolist() == [0, first, first + second]


def test_what_is_under_a_null_makes_no_difference():
    null = pa.array([False, True])
    texts = pa.array(["a", "hidden"])
    offsets = pa.array([0, 1, 2], pa.int32())
    hidden = [
        pa.StructArray.from_arrays([texts], names=["t"], mask=null),
        pa.ListArray.from_arrays(offsets, texts, mask=null),
    ]
    clean = [pa.array(column.to_pylist(), column.type) for column in hidden]
    hidden, clean = (pa.record_batch(c, names=["s", "l"]) for c in (hidden, clean))
    assert row_ends(hidden).tolist() == row_ends(clean).tolist()
    assert files_of(hidden.schema, [hidden]) == files_of(clean.schema, [clean])


def test_timestamps_keep_their_instant():
    instants = pa.array([0, 1_700_000_000_000_000, None, -1])
    zones = ["UTC", "America/New_York", "+05:30"]
    columns = [instants.view(pa.timestamp("us", zone)) for zone in zones]
    batch = pa.record_batch(columns, names=zones)
    for column in read(files_of(batch.schema, [batch])).columns:
        assert column.type == pa.timestamp("us", "+00:00")
        assert column.cast(pa.int64()).to_pylist() == instants.to_pylist()


def invalid_text():
    offsets = pa.array([0, 1, 3], pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"a\xc3\x28")])


@pytest.mark.parametrize("nested", [False, True])
def test_text_that_is_not_utf8_is_an_error_that_names_the_column(nested):
    text = invalid_text()
    column = pa.StructArray.from_arrays([text], names=["t"]) if nested else text
    batch = pa.record_batch([column], names=["note"])
    with pytest.raises(ExecutorError, match=r"column note holds text that is not valid UTF-8"):
        files_of(batch.schema, [batch])


def test_duckdb_reads_nested_values(tmp_path):
    entry = pa.struct([("key", pa.string()), ("value", pa.int32())])
    kinds = {
        "l": (pa.list_(pa.int32()), LogicalType("list", (PLAIN,))),
        "m": (pa.list_(entry), LogicalType("map", (PLAIN, PLAIN))),
        "s": (
            pa.struct([("n", pa.int8()), ("t", pa.string())]),
            LogicalType("struct", (PLAIN, PLAIN)),
        ),
    }
    rows = [
        {"l": [1, None], "m": [{"key": "a", "value": 1}], "s": {"n": 1, "t": "x"}},
        {"l": None, "m": None, "s": None},
        {"l": [], "m": [], "s": {"n": None, "t": None}},
    ]
    schema = pa.schema([(name, kind) for name, (kind, _) in kinds.items()])
    batch = pa.RecordBatch.from_pylist(rows, schema)
    path = tmp_path / "nested.parquet"
    [data] = files_of(schema, [batch], [logical_type for _, logical_type in kinds.values()])
    path.write_bytes(data)
    found = duckdb.sql(f"select l, m, s from read_parquet('{path}')").fetchall()
    assert found == [
        ([1, None], {"a": 1}, {"n": 1, "t": "x"}),
        (None, None, None),
        ([], {}, {"n": None, "t": None}),
    ]
