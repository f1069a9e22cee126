"""When a field is quoted, and what is escaped in it."""

import struct

import pyarrow as pa
import pytest

from dbt.adapters.mzs3.formats.dialect import CsvDialect
from dbt.adapters.mzs3.formats.write.csv.format import CsvEncoder


def lines(*columns, dialect=None, force_quote=frozenset()):
    arrays = [column if isinstance(column, pa.Array) else pa.array(column) for column in columns]
    batch = pa.record_batch(arrays, names=[chr(ord("a") + i) for i in range(len(arrays))])
    encoder = CsvEncoder(batch.schema, dialect or CsvDialect(), force_quote)
    return encoder.encode(batch).to_pylist()


def test_null_and_the_empty_text_differ():
    assert lines([None, "", "x"], [1, 2, 3]) == [",1\n", '"",2\n', "x,3\n"]


def test_null_in_a_single_column_is_an_empty_line():
    assert lines([None, ""]) == ["\n", '""\n']


def test_null_in_the_last_column_ends_the_line():
    assert lines([1, 2], ["x", None]) == ["1,x\n", "2,\n"]


@pytest.mark.parametrize("null", ["", "NULL"])
def test_what_is_stored_where_a_null_is_does_not_show(null):
    offsets = pa.py_buffer(struct.pack("<4q", 0, 1, 3, 4))
    buffers = [pa.py_buffer(b"\x05"), offsets, pa.py_buffer(b"ab,c")]
    values = pa.Array.from_buffers(pa.large_string(), 3, buffers)
    assert values.to_pylist() == ["a", None, "c"]
    found = lines(values, [1, 2, 3], dialect=CsvDialect(null=null))
    assert found == ["a,1\n", f"{null},2\n", "c,3\n"]


@pytest.mark.parametrize("plain", [1, 9])
def test_quotes_are_the_same_for_few_values_and_for_most(plain):
    special = ['say "no"', "a,b", None, 'x\\"y']
    expected = ['"say \\"no\\"",1\n', '"a,b",1\n', ",1\n", '"x\\\\\\"y",1\n']
    texts = [*special, *["plain"] * plain]
    found = lines(texts, [1] * len(texts), dialect=CsvDialect(escape="\\"))
    assert found == [*expected, *["plain,1\n"] * plain]


def test_text_equal_to_the_null_text_is_quoted():
    found = lines(["NULL", None, "", "NULLS"], [1, 2, 3, 4], dialect=CsvDialect(null="NULL"))
    assert found == ['"NULL",1\n', "NULL,2\n", ",3\n", "NULLS,4\n"]


def test_number_equal_to_the_null_text_is_quoted():
    assert lines([0, None, 10], dialect=CsvDialect(null="0")) == ['"0"\n', "0\n", "10\n"]


def test_boolean_equal_to_the_null_text_is_quoted():
    assert lines([True, None], dialect=CsvDialect(null="t")) == ['"t"\n', "t\n"]


def test_end_of_data_mark_is_quoted_when_it_is_the_whole_line():
    assert lines(["\\.", "\\.x"]) == ['"\\."\n', "\\.x\n"]


def test_end_of_data_mark_is_bare_beside_other_columns():
    assert lines(["\\."], [1]) == ["\\.,1\n"]


@pytest.mark.parametrize("special", [",", "\n", "\r", "\r\n"])
def test_delimiter_and_line_ends_are_quoted(special):
    assert lines([f"a{special}b", "ab"], [1, 2]) == [f'"a{special}b",1\n', "ab,2\n"]


@pytest.mark.parametrize(
    "bare", [" lead", "trail ", "\t", "\\", "'", ";", "#", "\v", "\x85", "\u2028", "é", "日", "\0"]
)
def test_nothing_else_is_quoted(bare):
    assert lines([bare], [1]) == [f"{bare},1\n"]


def test_quotes_are_doubled():
    assert lines(['say "hi"', '"'], [1, 2]) == ['"say ""hi""",1\n', '"""",2\n']


def test_another_escape_stands_before_quotes_and_itself():
    assert lines(['a"b\\c'], [1], dialect=CsvDialect(escape="\\")) == ['"a\\"b\\\\c",1\n']


def test_another_escape_is_left_alone_without_quotes():
    assert lines(["a\\b"], [1], dialect=CsvDialect(escape="\\")) == ["a\\b,1\n"]


def test_forced_columns_are_quoted_but_not_their_nulls():
    found = lines(["x", None], [1, 2], force_quote=frozenset({"a"}))
    assert found == ['"x",1\n', ",2\n"]


def test_all_columns_can_be_forced():
    assert lines([True, None], [1.5, 2.0], force_quote="*") == ['"t","1.5"\n', ',"2"\n']


def test_number_is_quoted_when_it_holds_the_delimiter():
    assert lines([-1, 1], [2, 2], dialect=CsvDialect(delimiter="-")) == ['"-1"-2\n', "1-2\n"]


def test_array_is_quoted_for_its_commas():
    assert lines([["a", "b"], ["c"], []], [1, 2, 3]) == ['"{a,b}",1\n', "{c},2\n", "{},3\n"]


def test_header_follows_the_rules_of_values():
    schema = pa.schema([(name, pa.int32()) for name in ("id", "a,b", 'A"q', "\\.", "é", "")])
    expected = 'id,"a,b","A""q",\\.,é,""\n'.encode()
    assert CsvEncoder(schema, CsvDialect()).header() == expected


def test_header_of_a_single_column_is_never_the_end_of_data():
    assert CsvEncoder(pa.schema([("\\.", pa.int32())]), CsvDialect()).header() == b'"\\."\n'


def test_header_is_not_forced():
    schema = pa.schema([("id", pa.int32())])
    assert CsvEncoder(schema, CsvDialect(), "*").header() == b"id\n"


def test_columns_of_the_same_name_keep_their_places():
    batch = pa.record_batch([pa.array([1]), pa.array(["x"])], names=["a", "a"])
    assert CsvEncoder(batch.schema, CsvDialect()).encode(batch).to_pylist() == ["1,x\n"]
