"""Avro's object container files: whatever records are written, they are read."""

import builtins
import json
import re
from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.s3.stored_objects import MemoryClient, problem_of, read_all, stored
from support.source.avro_files import BAD_FILES, SYNC, blocks_of, file_of, number, record

from dbt.adapters.mzs3.formats.read import avro, compression
from dbt.adapters.mzs3.formats.read.avro import MAX_BLOCK_BYTES, avro_file
from dbt.adapters.mzs3.formats.read.columns import Column
from dbt.adapters.mzs3.formats.read.format import Reading
from dbt.adapters.mzs3.formats.read.object_error import HeaderProblem, ObjectError
from dbt.adapters.mzs3.formats.read.typed import FIX_FILE, TypedFormat

FORM = TypedFormat(Reading(), avro_file)
INSTANTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))
VALUES = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=5),
    "string": st.text(st.characters(codec="utf-8"), max_size=5),
}
MORE = [
    ({"type": "enum", "symbols": ["A", "B"]}, st.sampled_from("AB")),
    ({"type": "fixed", "size": 3}, st.binary(min_size=3, max_size=3)),
    ({"type": "int", "logicalType": "date"}, st.dates()),
    (
        {"type": "long", "logicalType": "timestamp-micros"},
        INSTANTS.map(lambda one: one.replace(tzinfo=timezone.utc)),
    ),
    (
        {"type": "long", "logicalType": "timestamp-millis"},
        INSTANTS.map(lambda one: one.replace(microsecond=7000, tzinfo=timezone.utc)),
    ),
    ({"type": "long", "logicalType": "local-timestamp-micros"}, INSTANTS),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3},
        st.integers(-(10**9) + 1, 10**9 - 1).map(lambda n: Decimal(n).scaleb(-3)),
    ),
    (
        {"type": "fixed", "size": 16, "logicalType": "decimal", "precision": 38, "scale": 0},
        st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(str(n))),
    ),
    ({"type": "string", "logicalType": "of my own"}, VALUES["string"]),
]
KINDS = [*VALUES.items(), *MORE]


def header_of(schema) -> bytes:
    """The header of a file with a schema that a library may refuse to write."""
    text = json.dumps(schema).encode()
    key = b"avro.schema"
    # In a part that says how many bytes it has, as a map may.
    part = number(len(key)) + key + number(len(text)) + text
    return b"Obj\x01" + number(-1) + number(len(part)) + part + number(0) + SYNC


@st.composite
def files(draw):
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=5))
    types, strategies = [], []
    for at, (kind, values) in enumerate(kinds):
        named = dict(kind, name=f"t{at}") if isinstance(kind, dict) else kind
        nullable = kind != "null" and draw(st.booleans())
        types.append(draw(st.permutations(["null", named])) if nullable else named)
        strategies.append(values | st.none() if nullable else values)
    rows = draw(st.lists(st.tuples(*strategies), max_size=20))
    return record(*types), rows


@examples(200)
@given(
    file=files(),
    codec=st.sampled_from(["null", "deflate", "bzip2", "xz"]),
    interval=st.sampled_from([1, 20, 16000]),
    batch=st.integers(1, 7),
    step=st.sampled_from([1, 7, 1000]),
)
def test_any_records_are_read_as_they_were_written(file, codec, interval, batch, step):
    schema, rows = file
    records = [{f"f{at}": value for at, value in enumerate(row)} for row in rows]
    data = file_of(schema, records, codec, sync_interval=interval)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(avro, "BATCH_RECORDS", batch)
        patch.setattr(compression, "RAW_READ_BYTES", step)
        assert read_all(FORM, data) == rows


def test_the_header_is_the_schema():
    schema = record(
        "long",
        ["null", "string"],
        {"type": "array", "items": "int"},
        ["null", "int", "string"],
        {"type": "int", "logicalType": "time-millis"},
        {"type": "map", "values": "int"},
        {"type": "record", "name": "inner", "fields": [{"name": "x", "type": "int"}]},
        {"type": "bytes", "logicalType": "decimal", "precision": 39},
    )
    fields = FORM.fields(stored(file_of(schema, [])))
    assert [(f.name, f.words, f.own) for f in fields] == [
        ("f0", "long", "bigint"),
        ("f1", "string", "string"),
        ("f2", "array", None),
        ("f3", "union", None),
        ("f4", "int (time-millis)", None),
        ("f5", "map", None),
        ("f6", "record", None),
        ("f7", "bytes (decimal(39,0))", None),
    ]
    assert FORM.fields(stored(b"")) is None


def test_the_header_alone_is_read():
    data = file_of(record("long"), [{"f0": n} for n in range(400_000)])
    assert len(data) > 2 * compression.RAW_READ_BYTES
    client = MemoryClient(data)
    reads = []
    FORM.fields(stored(data, client))
    body = client.get_object(IfMatch='"e1"')["Body"]
    avro.AvroContainer(lambda size: reads.append(size) or body.read(size))
    assert reads == [compression.RAW_READ_BYTES]


def test_types_that_are_given_by_name():
    enum = {"type": "enum", "name": "side", "symbols": ["A", "B"]}
    inner = {
        "type": "record",
        "name": "n.in",
        "fields": [{"name": "x", "type": dict(enum, name="e")}],
    }
    schema = record(
        enum, "side", ["null", "acme.side"], inner, "n.e",
        namespace="acme",
    )  # fmt: skip
    fields = FORM.fields(stored(file_of(schema, [])))
    own = [field.own for field in fields]
    assert own == ["string", "string", "string", None, "string"]
    rows = [{"f0": "A", "f1": "B", "f2": None, "f3": {"x": "A"}, "f4": "B"}]
    subset = TypedFormat(Reading(header_match="subset"), avro_file)
    columns = {"f2": "string", "f1": "string", "f4": "string"}
    assert read_all(subset, file_of(schema, rows), columns) == [(None, "B", "B")]


def test_logical_types_that_do_not_apply_are_ignored():
    schema = record(
        {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 3},
        {"type": "string", "logicalType": "date"},
        {"type": "string", "logicalType": "uuid"},
        {"type": "bytes", "logicalType": "decimal", "precision": 0},
        ["null", {"type": "null"}],
    )
    rows = [{"f0": b"\x01", "f1": "x", "f2": "no uuid", "f3": b"", "f4": None}]
    plain = record("bytes", "string", "string", "bytes", ["null", "int"])
    body = file_of(plain, rows).partition(SYNC)[2]
    data = header_of(schema) + body
    assert read_all(FORM, data) == [(b"\x01", "x", "no uuid", b"", None)]


def test_numbers_are_not_rounded_to_the_precision_that_a_file_says():
    schema = record({"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 1})
    raw = (123456).to_bytes(3, "big")
    data = blocks_of(schema, (1, number(3) + raw))
    assert read_all(FORM, data, {"f0": "decimal(9,1)"}) == [(Decimal("12345.6"),)]
    problem = problem_of(FORM, data)
    assert (problem.record, problem.problem) == (1, "column f0: 12345.6 is not a decimal(3,1)")


def test_days_that_python_does_not_have_are_days():
    data = blocks_of(record({"type": "int", "logicalType": "date"}), (1, number(2932897)))
    decoder = FORM.decoder(("f0",), (Column("f0", "date"),))
    (records,) = decoder(stored(data))
    assert records.batch.column(0).cast(pa.int32()).to_pylist() == [2932897]
    assert date.max.toordinal() - date(1970, 1, 1).toordinal() == 2932896


def test_a_bad_value_is_named_by_its_record_and_column():
    rows = [{"f0": n} for n in (*range(5000), 70_000, 80_000)]
    problem = problem_of(FORM, file_of(record("int"), rows), {"n": "smallint"}, ("f0",))
    assert (problem.record, problem.problem) == (5001, "column n: 70000 is not a smallint")
    texts = [{"f0": "1"}, {"f0": "x"}]
    problem = problem_of(FORM, file_of(record("string"), texts), {"n": "int"}, ("f0",))
    assert (problem.record, problem.problem) == (2, "column n: 'x' is not an int")


def test_batches_of_wide_records_are_short(monkeypatch):
    monkeypatch.setattr(avro, "BATCH_BYTES", 100)
    data = file_of(record("string"), [{"f0": "x" * 40}] * 5)
    decoder = FORM.decoder(("f0",), (Column("f0", "string"),))
    assert [records.count for records in decoder(stored(data))] == [3, 2]


def test_fields_that_are_not_the_pinned_ones():
    data = file_of(record("int", "string"), [])
    problem = problem_of(FORM, data, {"a": "int"}, ("f0",))
    assert isinstance(problem, HeaderProblem)
    assert problem.problem.startswith("header is f0,f1 but the source's header is f0: ")
    problem = problem_of(FORM, data, {"a": "int", "b": "int"}, ("f1", "f0"))
    assert isinstance(problem, HeaderProblem)


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_wherever_a_file_is_cut_it_is_an_error_but_between_blocks(codec):
    rows = [{"f0": n, "f1": "x" * (n % 3)} for n in range(150)]
    data = file_of(record("long", "string"), rows, codec, sync_interval=100)
    ends = {at + len(SYNC) for at in range(len(data)) if data.startswith(SYNC, at)}
    assert len(ends) > 3
    for end in range(1, len(data)):
        cut = data[:end]
        if end in ends:
            whole = read_all(FORM, cut, {"f0": "bigint", "f1": "string"})
            assert [row[0] for row in whole] == list(range(len(whole)))
        else:
            problem = problem_of(FORM, cut, {"f0": "bigint", "f1": "string"})
            assert problem.problem == "its Avro file ends early"


@pytest.mark.parametrize("data", BAD_FILES.values(), ids=list(BAD_FILES))
def test_what_is_no_avro(data):
    problem = problem_of(FORM, data, {"f0": "string"})
    assert re.fullmatch(r"it is not valid Avro \(.+\)", problem.problem)
    assert problem.advice == FIX_FILE
    assert not isinstance(problem, HeaderProblem)


def enclosing(name):
    """The schema of a record that has itself inside it, in a field that may be NULL."""
    fields = [{"name": "a", "type": "int"}, {"name": "b", "type": ["null", "r"]}]
    return {"type": "record", "name": name, "fields": fields}


@pytest.mark.parametrize(
    ("schema", "what"),
    [
        ("long", "its schema is of type long, not record"),
        ({"type": "string"}, "its schema is of type string, not record"),
        ({"type": "array", "items": record("int")}, "its schema is of type array, not record"),
        ({"type": "map", "values": "int"}, "its schema is of type map, not record"),
        (["null", record("int")], "its schema is of type union, not record"),
        (enclosing("r"), "a type that contains itself"),
    ],
)
def test_what_is_avro_and_has_no_columns(schema, what):
    problem = problem_of(FORM, file_of(schema, []), {"f0": "string"})
    assert problem.problem == f"it is Avro that a source can't read ({what})"
    assert "`pattern`" in problem.advice


@pytest.mark.parametrize("size", [MAX_BLOCK_BYTES + 1, 2**40])
def test_a_block_may_be_too_large_and_valid(size):
    data = file_of(record("string"), []) + number(1) + number(size) + b"a"
    assert problem_of(FORM, data, {"f0": "string"}).problem == (
        f"it is Avro that a source can't read (a length of {size} bytes, where 134217728 is the "
        "most)"
    )


def test_so_may_what_it_decompresses_to(monkeypatch):
    monkeypatch.setattr(avro, "MAX_BLOCK_BYTES", 500)
    data = file_of(record("bytes"), [{"f0": bytes(501)}], "deflate")
    assert problem_of(FORM, data, {"f0": "binary"}).problem == (
        "it is Avro that a source can't read (a block that decompresses to more than 500 bytes)"
    )


BAD_SCHEMAS = [
    1,
    "record",
    {"type": "record"},
    {"type": "record", "name": "r", "fields": 1},
    {"type": "record", "name": "r", "fields": [{"name": "a"}]},
    {"type": "record", "name": "r", "fields": [{"name": "a", "type": "unknown"}]},
    {"type": "record", "name": "r", "fields": [{"name": "a", "type": 5}]},
    {"type": "record", "name": "r", "fields": [{"name": "a", "type": {"type": {"type": "int"}}}]},
    {"type": "record", "name": "r", "fields": [{"name": "a", "type": {"type": "array"}}]},
    {"type": "record", "name": "r", "fields": [{"name": "a", "type": {"type": "fixed"}}]},
    {"type": "recod", "name": "r", "fields": []},
    {"type": {"type": "record", "name": "r", "fields": []}},
    record("int", "int", fields=[{"name": "a", "type": "int"}] * 2),
    {**enclosing("r"), "namespace": "n"},
]


@pytest.mark.parametrize("schema", BAD_SCHEMAS, ids=str)
def test_what_is_no_schema(schema):
    data = header_of(schema) + number(1) + number(1) + b"\0" + SYNC
    problem = problem_of(FORM, data, {"a": "string"})
    assert isinstance(problem, ObjectError)


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        ("string", number(1) + b"\xff"),
        ("string", number(50)),
        (["null", "string"], number(7)),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, number(3)),
        ("double", b"\0"),
    ],
)
def test_a_record_that_is_no_avro(kind, raw):
    good = number(2) + b"ab"
    data = blocks_of(record("string", kind), (1, good + GOOD[str(kind)]), (1, good + raw))
    problem = problem_of(FORM, data, {"f0": "string", "f1": OWN.get(str(kind), "string")})
    assert problem.record == 2
    assert problem.problem.startswith("the record is not valid Avro (")


GOOD = {
    "string": number(0),
    "['null', 'string']": number(0),
    "{'type': 'enum', 'name': 'e', 'symbols': ['A']}": number(0),
    "double": bytes(8),
}
OWN = {"double": "double"}


def test_a_worker_without_fastavro_says_how_to_get_it(monkeypatch):
    data = file_of(record("long"), [{"f0": 1}])
    really = builtins.__import__

    def without(name, *more):
        if name.startswith("fastavro"):
            raise ImportError(name)
        return really(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    problem = problem_of(FORM, data)
    assert "without the package fastavro" in problem.problem
    assert "pip install 'dbt-mzs3[avro]'" in problem.advice
    assert [field.name for field in FORM.fields(stored(data))] == ["f0"]
