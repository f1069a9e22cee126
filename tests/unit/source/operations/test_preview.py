"""What a preview shows of a source's objects, whatever is wrong with them or the definition."""

import gzip
import io
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support.queue.messages import message, record
from support.queue.post_office import post_office
from support.source.avro_files import file_of
from support.source.avro_files import record as avro_record
from support.source.fetched_objects import CONNECTION, put
from support.source.fields import parse, purify_names

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.formats.read import text
from dbt.adapters.mzs3.formats.read.convert import convert
from dbt.adapters.mzs3.source.operations import preview as module
from dbt.adapters.mzs3.source.operations.preview import (
    PreviewRequest,
    narrowest_type,
    parse_preview,
    preview_lines,
)
from dbt.adapters.mzs3.source.pinning import readable_objects
from dbt.adapters.mzs3.source.queue import inbox as queue_inbox
from dbt.adapters.mzs3.source.queue.inbox import open_inbox
from dbt.adapters.mzs3.source.run import SourceRun

ID = {"name": "id", "data_type": "bigint"}
AMOUNT = {"name": "amount", "data_type": "decimal(12,2)"}


def preview(columns=(), pinned=None, infer=False, rows=10, objects=3, **external):
    """The lines, without the first two: its title and the options."""
    run = SourceRun(SimpleNamespace(conf={}), parse(columns=columns, **external), CONNECTION)
    request = PreviewRequest(rows=rows, objects=objects, infer=infer)
    objects = readable_objects(run, None, None)
    title, options, *lines = preview_lines(run.definition, objects, pinned, request)
    assert title == "lake.orders: a preview; nothing is pinned or ingested"
    assert yaml.safe_load(options)["options"]["format"] == external.get("format", "csv")
    return lines


def test_columns_rows_and_errors_are_shown(s3):
    put(s3, "1.csv", b'id,amount,note\n1,2.5,\nx,3,"a\nb"\n3\n4,12.50,""\n5,0,"c\nd"\n')
    put(s3, "2.csv", b"id;amount;note\n")
    put(s3, "0.csv", b"")
    assert preview([ID, AMOUNT, {"name": "note"}], delimiter=",") == [
        "  header: (id, amount, note) in s3://acme-raw/orders/1.csv",
        "  columns: id bigint, amount decimal(12,2), note string",
        "  read of s3://acme-raw/orders/1.csv (55 B): 5 records, 2 errors",
        "  read of s3://acme-raw/orders/2.csv (15 B): 0 records, 1 error",
        "    id  amount  note",
        "    --  ------  ----",
        "    1   2.50    NULL",
        '    4   12.50   ""',
        "    5   0.00    c\\nd",
        "  3 errors:",
        "    - object s3://acme-raw/orders/1.csv, line 3, byte 22: column id: 'x' is not a "
        "bigint, in 'x,3,\"a\\nb\"'",
        "    - object s3://acme-raw/orders/1.csv, line 5, byte 32: expected 3 columns, got 1, in "
        "'3'; to read it, set missing_columns: null",
        "    - object s3://acme-raw/orders/2.csv, line 1, byte 0: header is id;amount;note but "
        "the source's header is id,amount,note: first difference at column 1, 'id;amount;note' "
        "instead of 'id'. Correct the object or remove it, or narrow `pattern` so that it is left "
        "out, then run again; or set skip_lines, if other lines precede the header; or set "
        'delimiter: ";"',
    ]


def test_the_example_of_the_docs(s3):
    page = (Path(__file__).parents[4] / "docs" / "s3-csv-source.md").read_text()
    example = page.partition("```text\nlake.orders: a preview")[2].partition("\n```")[0]
    put(s3, "1.csv", b'id,amount,note\n1,2.5,\nx,3,"a\nb"\n3\n4,12.50,""\n5,0,"c\nd"\n')
    lines = preview([ID, {"name": "amount"}, {"name": "note"}], infer=True)
    assert example.splitlines()[2:] == lines


@pytest.mark.parametrize("is_pinned", [False, True])
def test_new_columns_are_shown_as_a_run_would_add_them(s3, is_pinned):
    put(s3, "1.csv", b"id\n1\n")
    put(s3, "2.csv", b"id,note\n2,x\n")
    pinned = purify_names(parse(), ("id",)) if is_pinned else None
    assert preview(pinned=pinned, on_new_columns="add")[1:] == [
        "  columns: id string, note string",
        "  read of s3://acme-raw/orders/1.csv (5 B): 1 record, 0 errors",
        "  read of s3://acme-raw/orders/2.csv (12 B): 1 record, 0 errors",
        "    id  note",
        "    --  ----",
        "    1   NULL",
        "    2   x",
    ]


def test_an_end_that_only_the_preview_has_is_told(s3, monkeypatch):
    monkeypatch.setattr(module, "MOST_BYTES", 100)
    put(s3, "1", file_of(avro_record("string"), [{"f0": "a" * 200}]))
    lines = preview([{"name": "f0", "data_type": "string"}], format="avro", header=["f0"])
    assert "its Avro file ends early" in lines[-1]
    assert lines[-1].endswith("then run again. Only its first 100 B were read")


def test_the_options_in_force_are_those_of_the_format():
    run = SourceRun(None, parse(format="jsonl", header_match="subset"), CONNECTION)
    shown = yaml.safe_load(module._options(run.definition))
    assert shown == {"options": {
        "format": "jsonl", "header": True, "header_match": "subset", "on_header_mismatch": "fail",
        "missing_columns": "fail", "on_bad_row": "fail", "compression": "by_suffix",
    }}  # fmt: skip


def test_the_order_is_that_of_the_columns_and_rows_are_limited(s3):
    put(s3, "1.csv", b"a,b,other\n1,x,NULL\n2,y,0\n")
    columns = [{"name": "b"}, {"name": "a", "data_type": "int"}]
    lines = preview(columns, rows=1, infer=True, header_match="subset")
    assert lines[1:] == [
        "  columns: b string, a int",
        "  read of s3://acme-raw/orders/1.csv (25 B): 2 records, 0 errors",
        "    b  a",
        "    -  -",
        "    x  1",
        "  suggested by these records, to paste:",
        "  columns:",
        "    - {name: b, data_type: string}",
        "    - {name: a, data_type: bigint}",
    ]


def test_a_definition_that_fails_still_shows_what_the_header_gives(s3):
    put(s3, "1.csv", b"id,amount\n1,NULL\n")
    lines = preview([ID], infer=True)
    assert lines[:2] == [
        "  header: (id, amount) in s3://acme-raw/orders/1.csv",
        "  a run would fail:",
    ]
    assert "the columns are declared as (id), and the header is (id, amount)" in lines[3]
    assert lines[4:] == [
        "  columns: id string, amount string",
        "  read of s3://acme-raw/orders/1.csv (17 B): 1 record, 0 errors",
        "    id  amount",
        "    --  ------",
        '    1   "NULL"',
        "  suggested by these records, to paste:",
        "  columns:",
        "    - {name: id, data_type: bigint}",
        "    - {name: amount, data_type: string}",
    ]


def test_columns_without_usable_names_get_others(s3):
    put(s3, "1.csv", b"id,id\n1,2\n")
    assert "  columns: column1 string, column2 string" in preview()


def test_a_header_that_no_object_has_is_an_error_and_theirs_is_read(s3):
    put(s3, "1.csv", b"id,amount\n1,2\n")
    lines = preview(header=["a", "b"])
    assert lines[3] == "  1 error:"
    assert "header is id,amount but the source's header is a,b" in lines[4]
    assert lines[5] == "  columns: id string, amount string"
    assert lines[-1] == "    1   2"


def test_where_the_header_is_malformed_the_first_lines_are_shown(s3):
    put(s3, "1.csv.gz", gzip.compress(b'Report "of" 2024\r\n\nid,amount\n1,"2\n'))
    lines = preview(rows=4)
    assert "line 1, byte 0: the header is malformed: column 1 has a quote inside" in lines[1]
    assert lines[2:] == [
        *("  first lines:", '    Report "of" 2024', '    ""', "    id,amount", '    1,"2'),
    ]


def test_what_is_no_text_has_no_first_lines(s3):
    put(s3, "1.csv", b"PK\x03\x04" + b"\0" * 99)
    lines = preview()
    assert "zip" in lines[1]
    assert len(lines) == 2


def test_without_objects_there_is_nothing_to_read(s3):
    assert preview(header=["a"]) == ["  no object to read at s3://acme-raw/orders/"]


@pytest.mark.parametrize(
    ("how", "refused"), [({"delimiter": ";"}, True), ({"delimiter": ","}, False)]
)
def test_a_definition_other_than_the_pinned_one_is_previewed_as_declared(s3, how, refused):
    put(s3, "1.csv", b"id;amount,b\n1;2,3\n")
    pinned = purify_names(parse(), ["id;amount", "b"])
    lines = preview(pinned=replace(pinned, file_format="parquet"), **how)
    assert (lines[0] == "  a run would refuse this until the source is reset:") == refused
    names = "columns: id string, " if refused else 'columns: "id;amount" string, '
    assert any(names in line for line in lines)


def test_of_a_large_object_the_first_whole_records_are_read(s3, monkeypatch):
    monkeypatch.setattr(text, "BLOCK_BYTES", 32)
    put(s3, "1.csv", b"id,amount\n" + b"1,2.5\n" * 1000)
    lines = preview([ID, AMOUNT])
    assert "  read of s3://acme-raw/orders/1.csv (5.9 kB): 3 records, 0 errors" in lines
    assert lines[-1] == "    1   2.50"


def test_a_quote_that_is_not_closed_has_no_whole_object_read(s3, monkeypatch):
    monkeypatch.setattr(text, "BLOCK_BYTES", 32)
    monkeypatch.setattr(module, "MOST_BYTES", 500)
    opened = []
    read = module.ObjectReader.read
    monkeypatch.setattr(
        module.ObjectReader, "read", lambda self, size: opened.append(self) or read(self, size)
    )
    put(s3, "1.csv", b'id,amount\n1,"' + b"2.5\n" * 10_000)
    lines = preview(infer=True)
    assert "line 2, byte 10: column 2 has a quoted field that is not closed" in lines[4]
    assert lines[5:8] == ["  first lines:", "    id,amount", '    1,"2.5']
    assert max(reader.position for reader in opened if reader.byte_range) == 500


def test_few_objects_are_read(s3):
    for name in "abcd":
        put(s3, name, b"id\n1\n")
    assert sum(line.startswith("  read of ") for line in preview(objects=3)) == 3


def test_only_the_first_errors_are_shown(s3):
    put(s3, "1.csv", b"id\n" + b"x\n" * 99)
    lines = preview([ID])
    assert "  99 errors, the first 5 of them:" in lines
    assert sum("is not a bigint" in line for line in lines) == 5


def test_lines_of_json_suggest_types_that_hold_all_of_them(s3):
    put(
        s3,
        "1.jsonl",
        b'{"a":1,"b":"2024-01-01","c":{"x":1},"d":true,"e":null}\n'
        b'{"e":"7","a":1.25,"b":null,"c":[],"d":null}\n{\n{"a":2}\n',
    )
    lines = preview(format="jsonl", infer=True)
    assert "line 2, byte 55: column a: 1.25 is not a bigint, in '{" in "".join(lines)
    assert "to read it, set missing_columns: null" in "".join(lines)
    title, *pasted = lines[-7:]
    assert title == "  suggested by these records, to paste:"
    columns = yaml.safe_load("\n".join(pasted))["columns"]
    assert [column["data_type"] for column in columns] == [
        *("decimal(18,2)", "date", "string", "boolean", "bigint"),
    ]


def parquet_file():
    sink = io.BytesIO()
    pq.write_table(pa.table({"f0": pa.array([1, 2], pa.int32()), "f1": ["2024-01-01"] * 2}), sink)
    return sink.getvalue()


AVRO = file_of(avro_record("int", "string"), [{"f0": n, "f1": "2024-01-01"} for n in (1, 2)])


@pytest.mark.parametrize(("kind", "data"), [("parquet", parquet_file()), ("avro", AVRO)])
def test_files_with_types_show_their_own_and_suggest_those_of_their_texts(s3, kind, data):
    put(s3, "1", data)
    lines = preview(format=kind, infer=True)
    assert "  columns: f0 int, f1 string" in lines
    assert "    1   2024-01-01" in lines
    assert lines[-2:] == ["    - {name: f0, data_type: int}", "    - {name: f1, data_type: date}"]
    as_bad = preview([{"name": "f0"}, {"name": "f1", "data_type": "int"}], format=kind)
    assert "record 1: column f1: '2024-01-01' is not an int" in as_bad[4]
    assert "    1   2024-01-01" in as_bad


@pytest.mark.parametrize(
    ("texts", "data_type"),
    [
        ([], "string"),
        ([None, None], "string"),
        (["1", None, " 2 "], "bigint"),
        (["0", "1"], "bigint"),
        (["007", "8"], "string"),
        (["+4912345"], "string"),
        (["9223372036854775808"], "decimal(38,6)"),
        (["1", "12.50", "-.5"], "decimal(18,2)"),
        (["123456789012345678.5"], "decimal(38,6)"),
        (["0.1234567"], "double"),
        (["1e50"], "double"),
        (["1.5", "NaN"], "double"),
        (["t", "n"], "boolean"),
        (["2024-01-05"], "date"),
        (["2024-01-05", "2024-01-05 10:00:00+01"], "timestamp"),
        (["2024-13-05"], "string"),
        (["", "1"], "string"),
    ],
)
def test_the_narrowest_type(texts, data_type):
    assert narrowest_type(pa.array(texts, pa.string())) == data_type


NUMBERS = st.from_regex(r"\A[-+ ]?[0-9]{0,20}(\.[0-9]{0,9})?(e[0-9])?\Z")
DAYS = st.from_regex(r"\A20[0-9]{2}-[01][0-9]-[0-3][0-9]( [0-2][0-9]:[0-5][0-9](Z|\+01)?)?\Z")


@given(st.lists(st.none() | NUMBERS, max_size=4) | st.lists(DAYS | NUMBERS | st.text("tfyn01.")))
def test_all_texts_are_values_of_the_narrowest_type(texts):
    values = pa.array(texts, pa.string())
    assert convert(values, narrowest_type(values)).null_count == values.null_count


def test_messages_of_the_queue_stay_in_it(monkeypatch):
    monkeypatch.setattr(queue_inbox, "WAIT_S", 0)
    with post_office() as post:
        post.put("1.csv", b"id\n1\n")
        post.send(message(record("orders/1.csv")))
        run = post.run()
        run.spark = SimpleNamespace(conf={})
        with open_inbox(run) as inbox:
            objects = readable_objects(run, inbox, None)
            lines = preview_lines(run.definition, objects, None, PreviewRequest())
        assert lines[-3:] == ["    id", "    --", "    1"]
        assert post.left == (1, 0)


def test_what_is_wrong_with_the_arguments_is_told_at_once():
    with pytest.raises(ConfigError) as raised:
        parse_preview({"rows": 101, "objects": "all", "infer": "yes"})
    assert raised.value.problems == (
        "rows must be a whole number from 1 to 100, not 101",
        "objects must be a whole number from 1 to 20, not 'all'",
        "infer must be true or false, not 'yes'",
    )
    assert parse_preview({"rows": None, "objects": 1}) == PreviewRequest(objects=1)
