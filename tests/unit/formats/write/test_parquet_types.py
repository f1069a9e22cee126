"""The file's types and names: Materialize's, with what Spark has beside them."""

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.export.parquet_files import files_of, opened, writer_of

from dbt.adapters.mzs3.errors import ExecutorError
from dbt.adapters.mzs3.formats.write.format import PLAIN, LogicalType
from dbt.adapters.mzs3.formats.write.parquet import file_columns, file_schema

INTERVAL = pa.struct([("months", pa.int32()), ("days", pa.int32()), ("micros", pa.int64())])
PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.int8())]))
TEXT = pa.large_string()
# Before that it wrote all times as UTC's, and could not be told otherwise.

TYPES = [
    (pa.bool_(), PLAIN, "boolean", pa.bool_()),
    (pa.int8(), PLAIN, "smallint", pa.int16()),
    (pa.int16(), PLAIN, "smallint", pa.int16()),
    (pa.int32(), PLAIN, "integer", pa.int32()),
    (pa.int64(), PLAIN, "bigint", pa.int64()),
    (pa.float32(), PLAIN, "real", pa.float32()),
    (pa.float64(), PLAIN, "double", pa.float64()),
    (pa.decimal128(12, 2), PLAIN, "numeric", pa.decimal128(38, 2)),
    (pa.decimal128(38, 38), PLAIN, "numeric", pa.decimal128(38, 38)),
    (pa.string(), PLAIN, "text", TEXT),
    (pa.large_string(), PLAIN, "text", TEXT),
    (pa.binary(), PLAIN, "bytea", pa.large_binary()),
    (pa.date32(), PLAIN, "date", pa.date32()),
    (pa.time64("ns"), PLAIN, "time", pa.time64("us")),
    (pa.timestamp("us"), PLAIN, "timestamp", pa.timestamp("us")),
    (pa.timestamp("us", "UTC"), PLAIN, "timestamptz", pa.timestamp("us", "+00:00")),
    (pa.timestamp("us", "Asia/Tokyo"), PLAIN, "timestamptz", pa.timestamp("us", "+00:00")),
    (pa.null(), PLAIN, "text", TEXT),
    (pa.string(), LogicalType("variant"), "jsonb", TEXT),
    (INTERVAL, LogicalType("interval"), "interval", TEXT),
]


def extension(field):
    return field.metadata[b"ARROW:extension:name"].decode()


def only_field(wire, logical_type=PLAIN):
    (field,) = file_schema(pa.schema([("x", wire)]), (logical_type,))
    return field


@pytest.mark.parametrize(("wire", "logical_type", "name", "file_type"), TYPES)
def test_scalar(wire, logical_type, name, file_type):
    field = only_field(wire, logical_type)
    assert (extension(field), field.type, field.nullable) == (
        f"materialize.v1.{name}",
        file_type,
        True,
    )


def test_nested_types_carry_the_names_of_what_is_in_them():
    wire = pa.struct([("a", pa.list_(INTERVAL)), ("b", PAIRS)])
    logical_type = LogicalType(
        "struct",
        (LogicalType("list", (LogicalType("interval"),)), LogicalType("map", (PLAIN, PLAIN))),
    )
    field = only_field(wire, logical_type)
    listed, mapped = field.type.field("a"), field.type.field("b")
    assert [extension(f) for f in (field, listed, mapped)] == [
        "materialize.v1.record",
        "materialize.v1.list",
        "materialize.v1.map",
    ]
    assert listed.type.value_field.name == "item"
    assert extension(listed.type.value_field) == "materialize.v1.interval"
    key, value = mapped.type.key_field, mapped.type.item_field
    assert (extension(key), key.nullable) == ("materialize.v1.text", False)
    assert (extension(value), value.type, value.nullable) == (
        "materialize.v1.smallint",
        pa.int16(),
        True,
    )


def test_nested_values_are_plain_where_no_shape_says_more():
    field = only_field(pa.list_(pa.struct([("n", pa.list_(pa.int8()))])))
    assert field.type.value_type.field("n").type.value_type == pa.int16()


def test_schema_is_in_the_file():
    wire = pa.schema([(f"c{i}", kind) for i, (kind, *_) in enumerate(TYPES)])
    logical_types = [logical_type for _, logical_type, *_ in TYPES]
    [data] = files_of(wire, [], logical_types)
    assert opened(data).schema_arrow.equals(
        file_schema(wire, tuple(logical_types)), check_metadata=True
    )


def test_parquet_types():
    wire = pa.schema([(f"c{i}", kind) for i, (kind, *_) in enumerate(TYPES)])
    [data] = files_of(wire, [], [logical_type for _, logical_type, *_ in TYPES])
    columns = [opened(data).schema.column(i) for i in range(len(TYPES))]
    found = {(c.physical_type, str(c.logical_type)) for c in columns}
    adjusted = "false"
    assert found == {
        ("BOOLEAN", "None"),
        ("INT32", "Int(bitWidth=16, isSigned=true)"),
        ("INT32", "None"),
        ("INT64", "None"),
        ("FLOAT", "None"),
        ("DOUBLE", "None"),
        ("FIXED_LEN_BYTE_ARRAY", "Decimal(precision=38, scale=2)"),
        ("FIXED_LEN_BYTE_ARRAY", "Decimal(precision=38, scale=38)"),
        ("BYTE_ARRAY", "String"),
        ("BYTE_ARRAY", "None"),
        ("INT32", "Date"),
        ("INT64", f"Time(isAdjustedToUTC={adjusted}, timeUnit=microseconds)"),
        ("INT64", timestamp_type("false")),
        ("INT64", timestamp_type("true")),
    }


def timestamp_type(adjusted):
    return (
        f"Timestamp(isAdjustedToUTC={adjusted}, timeUnit=microseconds, "
        "is_from_converted_type=false, force_set_converted_type=false)"
    )


def test_every_column_without_a_type_is_named():
    schema = pa.schema([("u", pa.uint8()), ("ok", pa.int8()), ("e", pa.list_(pa.uint16()))])
    with pytest.raises(ExecutorError) as caught:
        writer_of(schema)
    assert "column u: Parquet has no type for values of type uint8" in caught.value.message
    assert "column e: Parquet has no type for values of type uint16" in caught.value.message
    assert "ok" not in caught.value.message


def test_duckdb_reads_the_types(tmp_path):
    wire = pa.schema([(f"c{i}", kind) for i, (kind, *_) in enumerate(TYPES)])
    [data] = files_of(wire, [], [logical_type for _, logical_type, *_ in TYPES])
    path = tmp_path / "types.parquet"
    path.write_bytes(data)
    found = duckdb.sql(f"describe select * from read_parquet('{path}')").fetchall()
    assert [row[1] for row in found] == [
        *("BOOLEAN", "SMALLINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE"),
        *("DECIMAL(38,2)", "DECIMAL(38,38)", "VARCHAR", "VARCHAR", "BLOB", "DATE"),
        *("TIME", "TIMESTAMP"),
        *("TIMESTAMP WITH TIME ZONE", "TIMESTAMP WITH TIME ZONE"),
        *("VARCHAR", "VARCHAR", "VARCHAR"),
    ]


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd", "lz4"])
def test_compression(compression):
    batch = pa.record_batch({"a": pa.array(["text"] * 1000)})
    [data] = files_of(batch.schema, [batch], compression=compression)
    codec = opened(data).metadata.row_group(0).column(0).compression
    assert codec == {"none": "UNCOMPRESSED"}.get(compression, compression.upper())
    assert pq.read_table(pa.BufferReader(data)).num_rows == 1000


def test_all_nans_have_the_same_bits():
    """Spark orders them alike, so rows with either may come in any order."""
    bits = pa.array([0x7FF8000000000000, 0xFFF8000000000000 - (1 << 64)], pa.int64())
    doubles = pa.Array.from_buffers(pa.float64(), 2, bits.buffers())
    lists = pa.ListArray.from_arrays([0, 1, 2], doubles)
    columns = file_columns(
        pa.RecordBatch.from_arrays([doubles, lists], names=["d", "l"]),
        file_schema(pa.schema([("d", pa.float64()), ("l", lists.type)]), (PLAIN, PLAIN)),
        (PLAIN, PLAIN),
    )
    for values in (columns[0], columns[1].flatten()):
        written = pa.Array.from_buffers(pa.int64(), 2, values.buffers(), offset=values.offset)
        assert len(set(written.to_pylist())) == 1
