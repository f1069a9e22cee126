"""Every error of the formats is in the docs in its own words, and every type in theirs."""

import re
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from support.docs.errors import entries
from support.s3.stored_objects import problem_of, stored
from support.source.avro_files import BAD_FILES, blocks_of, file_of, number, record
from support.source.fields import parse, text_of

from dbt.adapters.mzs3.formats.read.avro import avro_file
from dbt.adapters.mzs3.formats.read.columns import SUPPORTED_TYPES
from dbt.adapters.mzs3.formats.read.format import FORMAT_NAMES, Reading, RecordField
from dbt.adapters.mzs3.formats.read.jsonl import JsonLinesFormat
from dbt.adapters.mzs3.formats.read.parquet import parquet_file
from dbt.adapters.mzs3.formats.read.typed import TypedFormat, can_be_read_as, own_type
from dbt.adapters.mzs3.source.options import OPTIONS
from dbt.adapters.mzs3.source.purify import contradictions, purify

PAGE = Path(__file__).parents[3] / "docs" / "s3-csv-source" / "formats.md"
AVRO = TypedFormat(Reading(), avro_file)
ID = RecordField("id", "int64", "bigint")


def found(field, **external):
    return text_of(lambda: purify(parse(format="parquet", **external), [field]))


def jsonl(data, form="decoder"):
    lines = JsonLinesFormat("none", Reading())
    if form == "fields":
        return text_of(lambda: lines.fields(stored(data)))
    return problem_of(lines, data, {"f0": "bigint"}).problem


def avro(data, **columns):
    return problem_of(AVRO, data, columns or {"f0": "string"}).problem


PROBLEMS = {
    "format": lambda: text_of(lambda: parse(format="orc")),
    "key": lambda: text_of(lambda: parse(format="avro", quote="'")),
    "no header": lambda: text_of(lambda: parse(format="avro", header=False)),
    "no types": lambda: text_of(lambda: parse(format="avro", header=["id"])),
    "no column": lambda: found(RecordField("x", "struct<>", None)),
    "no type": lambda: found(ID, columns=[{"name": "a", "data_type": "date"}]),
    "pinned": lambda: contradictions(purify(parse(format="avro"), [ID]), parse(format="parquet"))[
        0
    ],
    "fields": lambda: avro(file_of(record("double"), []), f0="date"),
    "parquet": lambda: (
        problem_of(TypedFormat(Reading(), parquet_file), b"id\n", {"id": "int"}).problem
    ),
    "avro": lambda: avro(BAD_FILES["no file"]),
    "early": lambda: avro(file_of(record("string"), [{"f0": "a"}])[:-1]),
    "codec": lambda: avro(blocks_of(record("string"), codec=b"lz4")),
    "value": lambda: avro(file_of(record("string"), [{"f0": "x"}]), f0="bigint"),
    "record": lambda: avro(blocks_of(record("string"), (1, number(5)))),
    "skip": lambda: text_of(lambda: parse(format="jsonl", on_header_mismatch="skip_object")),
    "text key": lambda: text_of(lambda: parse(format="avro", compression="gzip")),
    "twice": lambda: text_of(
        lambda: parse(
            format="jsonl",
            header=["a", "a"],
            columns=[{"name": name, "data_type": "int"} for name in "ab"],
        )
    ),
    "keys": lambda: jsonl(b'{"f1":1}'),
    "no object in a line": lambda: jsonl(b"[]"),
    "JSON": lambda: jsonl(b'{"f0":1,}'),
    "early line": lambda: jsonl(b'{"f0":'),
    "UTF-8": lambda: jsonl(b'{"f0":"\xff"}'),
    "NaN": lambda: jsonl(b'{"f0":NaN}'),
    "surrogate": lambda: jsonl(b'{"f0":"\\ud800"}'),
    "deep": lambda: jsonl(b'{"f0":' + b"[" * 100_000),
    "JSON value": lambda: jsonl(b'{"f0":1.5}'),
    "no key": lambda: jsonl(b"{}", "fields").removeprefix("the header is malformed: "),
    "key twice": lambda: jsonl(b'{"a":1,"a":1}', "fields").removeprefix(
        "the header is malformed: "
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_an_error_is_documented(name):
    text = PROBLEMS[name]()
    assert [entry for entry in entries() if entry.matches(text)], text


def test_the_keys_and_the_formats_are_documented():
    page = PAGE.read_text()
    named = re.search(r"The keys (.+?) are for CSV alone.+?So are (.+?) beside", page, re.DOTALL)
    assert named is not None
    for place, formats in ((1, ("csv",)), (2, ("csv", "jsonl"))):
        keys = {key for key, one in OPTIONS.items() if one.formats == formats}
        assert set(re.findall(r"`(\w+)`", named[place])) == keys
    assert all(f"`{name}`" in page or f"`format: {name}`" in page for name in FORMAT_NAMES)


def test_the_example_of_json_lines_reads_its_lines():
    section = PAGE.read_text().partition("## JSON lines")[2]
    declared, lines = re.findall(r"```\w+\n(.+?)```", section, re.DOTALL)[:2]
    table = yaml.safe_load(declared)
    definition = parse(table["external"], table["columns"])
    pinned = purify(definition, None)
    decoder = JsonLinesFormat("none", definition.reading).decoder(pinned.header, pinned.columns)
    rows = [row for one in decoder(stored(lines.encode())) for row in one.batch.to_pylist()]
    assert [(row["id"], str(row["amount"]), row["items"]) for row in rows] == [
        (1, "12.30", '[{"sku": "a"}]'),
        (2, "None", "[]"),
    ]


ARROW = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "uint8": pa.uint8(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "halffloat": pa.float16(),
    "float": pa.float32(),
    "double": pa.float64(),
    "decimal128": pa.decimal128(9, 2),
    "decimal256": pa.decimal256(9, 2),
    "uint64": pa.uint64(),
    "date32": pa.date32(),
    "date64": pa.date64(),
    "timestamp": pa.timestamp("us"),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "string_view": pa.string_view(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "binary_view": pa.binary_view(),
    "fixed_size_binary": pa.binary(4),
    "null": pa.null(),
}


def test_what_can_be_read_as_what_is_documented():
    table = PAGE.read_text().partition("| a field of type |")[2].partition("\n\n")[0]
    rows = [row.split("|")[1:3] for row in table.splitlines()[2:]]
    every = [one.replace("p,s", "9,2") for one in SUPPORTED_TYPES.split(", ")]
    for fields, columns in rows:
        for own in re.findall(r"`([^`]+)`", fields):
            own = own.replace("p,s", "9,2")
            said = {own, *re.findall(r"`([^`]+)`", columns.replace("p,s", "9,2"))}
            if "each of these" in columns:
                said |= {"tinyint", "smallint", "int", "bigint"}
            if "each type" in columns:
                said |= set(every)
            assert said == {one for one in every if can_be_read_as(own, one)}
    assert len(rows) == 11


def test_the_types_of_parquet_are_documented():
    table = PAGE.read_text().partition("| the field's type |")[2].partition("\n\n")[0]
    rows = [row.split("|")[1:-1] for row in table.splitlines()[2:]]
    listed = {}
    for own, _, arrow in rows:
        words = set(re.findall(r"`([^`]+)`", own)) or {"void"}
        for name in re.findall(r"`(\w+)`", arrow):
            if name in ARROW:
                listed.setdefault(name, set()).update(words)
    assert set(listed) == set(ARROW)
    for name, kind in ARROW.items():
        assert (
            str(own_type(kind)).replace("(9,2)", "(p,s)").replace("(20,0)", "(p,s)")
            in (listed[name])
        )
