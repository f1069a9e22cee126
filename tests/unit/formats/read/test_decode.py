"""Rows and errors of objects without a header, byte by byte."""

import datetime
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.source.fields import (
    DIALECT,
    decode_one,
    decoder,
    problem_of,
    read,
    record,
    rows,
    write,
)

from dbt.adapters.mzs3.formats.read.chunks import BOM, Chunk, Chunks
from dbt.adapters.mzs3.formats.read.dialect import SourceDialect
from dbt.adapters.mzs3.formats.read.object_error import ObjectError

S = "string"

block_sizes = st.integers(min_value=1, max_value=200)
values = st.one_of(
    st.none(),
    st.sampled_from(["", '"', '""', "\n", "\r\n", "\r", ",", "\\.", "\\N", "NULL", " ", "\ufeff"]),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12),
    st.text('",\r\n ab\\', max_size=8),
)
dialects = st.sampled_from(
    [
        DIALECT,
        SourceDialect(delimiter="|", null="\\N"),
        SourceDialect(delimiter="\t", quote="'", escape="'", null="NULL"),
        SourceDialect(delimiter=" ", quote="^", escape="^"),
    ]
)


@st.composite
def tables(draw):
    width = draw(st.integers(1, 4))
    return draw(st.lists(st.tuples(*[values] * width), min_size=1, max_size=12))


@given(tables(), dialects, block_sizes, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_what_postgres_writes_is_read_back(table, dialect, block, line_end, final_newline):
    data = write(table, dialect, line_end)
    if not final_newline and not data.endswith(b"\n" + line_end.encode()):
        # Of a blank last line nothing would be left.
        data = data[: -len(line_end)]
    if data.startswith(BOM):
        # The first one of an object is its mark, so one that is data stands behind it.
        data = BOM + data
    if data:
        types = [S] * len(table[0])
        assert read(data, *types, dialect=dialect, block_bytes=block) == table


@given(tables(), block_sizes)
def test_chunks_are_the_object_cut_between_records(table, block):
    data = write([("x", *row) for row in table])
    ends = {len(write([("x", *row) for row in table[:n]])) for n in range(len(table) + 1)}
    cut = list(Chunks(io.BytesIO(data).read, DIALECT, block_bytes=block))
    assert b"".join(chunk.data for chunk in cut) == data
    for chunk in cut:
        assert chunk.byte in ends
        assert chunk.line == data[: chunk.byte].count(b"\n") + 1


def test_null_and_the_empty_string_differ():
    assert read(b'a,,""\n', S, S, S) == [("a", None, "")]


def test_with_another_null_text_an_empty_field_is_empty():
    assert read(b'\\N,,"\\N"\n', S, S, S, dialect=SourceDialect(null="\\N")) == [(None, "", "\\N")]


def test_a_blank_line_of_a_single_column_is_null():
    assert read(b'a\n\n""\n\r\n', S) == [("a",), (None,), ("",), (None,)]


def test_a_blank_line_of_two_columns_is_ragged():
    assert problem_of(b"1,2\n\n3,4\n", S, S) == (2, 4, "expected 2 columns, got 1")


@pytest.mark.parametrize("data", [b"\n1,2\n", b"\r\n1,2\n", b"1,2\r\n\r\n", b"1,2\n\r\n"])
def test_a_blank_line_is_ragged_wherever_it_is(data):
    assert problem_of(data, S, S)[2] == "expected 2 columns, got 1"


def test_quoted_newlines_stay():
    assert read(b'1,"a\nb\r\nc\rd"\r\n2,"\n"\n', S, S) == [("1", "a\nb\r\nc\rd"), ("2", "\n")]


def test_no_final_newline():
    assert read(b"1,2\n3,4", S, S) == [("1", "2"), ("3", "4")]


def test_an_empty_object_has_no_rows():
    assert read(b"", S, S) == []


def test_a_byte_order_mark_alone_has_no_rows():
    assert read(b"\xef\xbb\xbf", S, S) == []


@pytest.mark.parametrize("block", [1, 2, 3, 4, 5, 100])
def test_the_byte_order_mark_is_left_out_and_counted(block):
    assert read(b"\xef\xbb\xbf1\n2\n", "int", block_bytes=block) == [(1,), (2,)]
    assert problem_of(b"\xef\xbb\xbf1\nx\n", "int", block_bytes=block)[:2] == (2, 5)


def test_the_same_character_later_is_data():
    data = b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n"
    assert read(data, S, block_bytes=5) == [("a",), ("\ufeffb",)]


def test_a_record_larger_than_the_block():
    large = "x\n" * 50_000
    table = [("1", large), ("2", "y")]
    assert read(write(table), S, S, block_bytes=1000) == table


def test_a_record_larger_than_the_limit():
    data = io.BytesIO(b'a,b\n1,"' + b"x" * 3_000_000)
    with pytest.raises(ObjectError) as raised:
        list(Chunks(data.read, DIALECT, block_bytes=1024, max_record_bytes=1024 * 1024))
    assert (raised.value.line, raised.value.byte) == (2, 4)
    assert raised.value.problem == (
        "the record is larger than 1 MB; is a quoted field not closed?"
    )
    assert data.tell() < 2_200_000


def test_a_stray_quote_stops_the_reading_before_the_limit():
    data = io.BytesIO(b'5" pipe,1\n' + b"6,1\n" * 1_000_000)
    with pytest.raises(ObjectError) as raised:
        decode = decoder(S, S)
        for chunk in Chunks(data.read, DIALECT, block_bytes=1024):
            decode(chunk)
    assert (raised.value.line, raised.value.byte) == (1, 0)
    assert data.tell() < 5_000


MALFORMED = {
    b'a"b,c': "column 1 has a quote inside a field that does not start with one",
    b'a""b,c': "column 1 has a quote inside a field that does not start with one",
    b'a,b"': "column 2 has a quote inside a field that does not start with one",
    b'"a"b,c': "column 1 has text behind its closing quote",
    b'"a"b"",c': "column 1 has text behind its closing quote",
    b'a,"b" ': "column 2 has text behind its closing quote",
    b'a, "b"': "column 2 has a quote inside a field that does not start with one",
    b"a\rb,c": "column 1 has a carriage return outside quotes that no newline follows",
    b'"a"\rb,c': "column 1 has a carriage return outside quotes that no newline follows",
    b"a,b\r\r": "column 2 has a carriage return outside quotes that no newline follows",
    b"a,b\0": "column 2 has a NUL byte",
    b'"\0",b': "column 1 has a NUL byte",
    b"a,\xff": "column 2 is not valid UTF-8: byte 0xff",
    b"a,x\xc3": "column 2 is not valid UTF-8: byte 0xc3",
    b"a": "expected 2 columns, got 1",
    b"a,b,": "expected 2 columns, got 3",
    b'"a,b"': "expected 2 columns, got 1",
}


@pytest.mark.parametrize("bad", MALFORMED)
@pytest.mark.parametrize("block", [1, 7, 4096])
def test_a_malformed_record_is_an_error_with_its_position(bad, block):
    data = b'1,"x\ny"\n' + bad + b"\n2,z\n"
    assert problem_of(data, S, S, block_bytes=block) == (3, 8, MALFORMED[bad])


@pytest.mark.parametrize("bad", MALFORMED)
def test_a_malformed_last_record_without_newline(bad):
    expected = (2, 4, MALFORMED[bad])
    assert problem_of(b"1,2\n" + bad, S, S) == expected


def test_a_quote_that_is_never_closed():
    expected = (2, 4, "column 2 has a quoted field that is not closed")
    assert problem_of(b'1,2\n3,"4\n5,6\n', S, S) == expected


@given(
    st.lists(st.tuples(values, values), max_size=20),
    st.lists(st.tuples(values, values), max_size=3),
    st.sampled_from(sorted(MALFORMED)),
    block_sizes,
)
def test_the_position_is_the_first_malformed_record(before, after, bad, block):
    head = write([("x", *row) for row in before])
    # The records have three columns here, so that one more makes each malformed one so again.
    data = head + b"q," + bad + b"\n" + write([("x", *row) for row in after])
    line, byte, _ = problem_of(data, S, S, S, block_bytes=block)
    assert (line, byte) == (head.count(b"\n") + 1, len(head))


@given(
    st.lists(st.tuples(st.integers(-9, 9), values), max_size=30),
    st.lists(st.sampled_from(["x", "1e3", "", "128", "0x1", "--1", "1 2"]), min_size=1),
    block_sizes,
)
def test_the_position_is_the_first_bad_value(good, bad, block):
    head = write([(str(number), text) for number, text in good])
    tail = b"".join(record([text, "y"], SourceDialect(null="?")) for text in bad)
    data = head + (tail if bad[0] else b'"",y\n')
    line, byte, problem = problem_of(data, "tinyint", S, block_bytes=block)
    assert (line, byte) == (head.count(b"\n") + 1, len(head))
    assert problem == f"column c1: {bad[0]!r} is not a tinyint"


def test_the_first_bad_record_is_told_whatever_is_wrong_with_it():
    assert problem_of(b"1,2\nx,2\n1\n", "int", "int")[2] == "column c1: 'x' is not an int"
    assert problem_of(b"1,2\n1\nx,2\n", "int", "int")[2] == "expected 2 columns, got 1"
    assert problem_of(b"1,2\n1,y\nx,2\n", "int", "int")[:2] == (2, 4)
    assert problem_of(b"1,2\nx,y\n", "int", "int")[2] == "column c1: 'x' is not an int"


def test_long_values_are_cut_in_the_error():
    _, _, problem = problem_of(b"x" * 1000 + b"\n", "int")
    assert problem == f"column c1: '{'x' * 76}... is not an int"


EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def test_an_object_of_every_type():
    data = (
        b"t,-128,32767,-2147483648,9223372036854775807,1.5,1e+15,-12.30,2020-02-29,"
        b"2020-01-02 03:04:05.12+05:30,2020-01-02 03:04:05,\\x00ff,text\n" + b"," * 12 + b"\n"
    )
    types = ["boolean", "tinyint", "smallint", "int", "bigint", "float", "double"]
    types += ["decimal(12,2)", "date", "timestamp", "timestamp_ntz", "binary", "string"]
    first, second = read(data, *types)
    assert first[:7] == (True, -128, 32767, -2147483648, 9223372036854775807, 1.5, 1e15)
    assert str(first[7]) == "-12.30"
    assert first[8] == datetime.date(2020, 2, 29)
    assert (first[9] - EPOCH).total_seconds() == 1577914445.12
    assert first[10:] == (datetime.datetime(2020, 1, 2, 3, 4, 5), b"\0\xff", "text")
    assert second == (None,) * 13


def test_batches_of_one_source_have_the_same_types():
    decode = decoder("timestamp", "binary", "double")
    texts = [b"2020-01-02 03:04:05Z,\\x,1\n", b"2020-01-02 03:04:05,,Infinity\n", b",,\n"]
    schemas = {str(decode(Chunk(text, 0, 1)).schema) for text in texts}
    assert len(schemas) == 1
    assert rows(decode(Chunk(b",\\x0a,\n", 0, 1))) == [(None, b"\n", None)]


def test_a_column_of_other_spellings_is_learned():
    decode = decoder("bigint", "timestamp")
    chunk = Chunk(b"+5,2020-01-02 03:04:05\n 6 ,10000-01-01\n", 0, 1)
    assert decode(chunk).column(0).to_pylist() == [5, 6]
    assert decode(chunk).column(0).to_pylist() == [5, 6]


@pytest.mark.parametrize("other", ["0xff", "0x10", "0XA", "1.0", "1e2", "128", '""', "1_0", "+-1"])
def test_what_is_no_integer(other):
    assert problem_of(f"1\n{other}\n".encode(), "tinyint")[:2] == (2, 2)


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0), ("-0", 0), ("+7", 7), (" 7", 7), ("007", 7), ('"7"', 7)]
)
def test_what_is_an_integer(text, value):
    assert read(f"{text}\n".encode(), "tinyint") == [(value,)]


def test_floats_as_postgres_prints_them():
    data = b"Infinity\n-Infinity\nNaN\n1e+15\n-0\n5e-324\n1e-05\n"
    found = decode_one(data, "double").to_pylist()
    expected = ["inf", "-inf", "nan", "1000000000000000.0", "-0.0", "5e-324", "1e-05"]
    assert [repr(value) for value in found] == expected


@pytest.mark.parametrize(
    ("text", "data_type"), [("1e400", "double"), ("-1e400", "double"), ("1e39", "float")]
)
def test_a_float_out_of_range_is_an_error(text, data_type):
    data = f"Infinity\n{text}\n".encode()
    assert problem_of(data, data_type)[2] == f"column c1: {text!r} is not a {data_type}"


@pytest.mark.parametrize(
    ("text", "data_type"),
    [
        ("1e-400", "double"),
        ("-2.4e-324", "double"),
        ("0." + "0" * 400 + "1", "double"),
        ("1e-50", "float"),
        ("7e-46", "float"),
        ("nan(1)", "double"),
        ("NaN(ind)", "float"),
    ],
)
@pytest.mark.parametrize("before", ["1.5", "0", "NaN"])
def test_a_float_that_would_become_zero_or_nan_is_an_error(text, data_type, before):
    # Of zeros and NaN the column may be learned before, or be seen with the error.
    decode = decoder(data_type)
    decode(Chunk(f"{before}\n".encode(), 0, 1))
    with pytest.raises(ObjectError) as raised:
        decode(Chunk(f"{before}\n{text}\n".encode(), 0, 1))
    assert raised.value.line == 2
    assert raised.value.problem.endswith(f" is not a {data_type}")


@pytest.mark.parametrize("text", ["0", "-0", "0.0", ".0", "0.", "0e5", "-0.00E-400", " 0 "])
def test_what_is_a_zero(text):
    assert decode_one(f"{text}\n1\n".encode(), "double").to_pylist() == [0, 1]


@pytest.mark.parametrize("text", ["nan", "NAN", "-nan"])
def test_what_is_a_nan(text):
    (found,) = decode_one(f"{text}\n".encode(), "float").to_pylist()
    assert found != found


@given(st.lists(st.none() | st.floats(allow_subnormal=True), min_size=1, max_size=20))
def test_every_double(column):
    lines = ["" if value is None else repr(value) for value in column]
    found = decode_one("".join(f"{line}\n" for line in lines).encode(), "double").to_pylist()
    assert [repr(value) for value in found] == [repr(value) for value in column]


@pytest.mark.parametrize("text", ["t", "true", "TRUE", "True", "y", "yes", "on", "1", " t "])
def test_what_is_true(text):
    assert read(f"{text}\nf\n".encode(), "boolean") == [(True,), (False,)]


@pytest.mark.parametrize("text", ["2", "tr", "tRUE", '""', "NULL"])
def test_what_is_no_boolean(text):
    assert problem_of(f"t\n{text}\n".encode(), "boolean")[:2] == (2, 2)


@given(st.lists(st.one_of(st.none(), st.binary(max_size=20)), min_size=1, max_size=20))
def test_binary(column):
    lines = ["" if value is None else f"\\x{value.hex()}" for value in column]
    data = "".join(f"{line}\n" for line in lines).encode()
    assert decode_one(data, "binary").to_pylist() == column


@pytest.mark.parametrize("text", ["00", "\\x0", "\\x0g", "\\x 00", "x00", "\\000"])
def test_what_is_no_binary(text):
    assert problem_of(f"\\x00\n{text}\n".encode(), "binary")[:2] == (2, 5)
