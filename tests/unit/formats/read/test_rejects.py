"""Records that are not right are set aside, one by one; the others are read as ever."""

import contextlib
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.source.fields import problem_of, read, write
from support.source.rejecting import longest_record, model, read_all

from dbt.adapters.mzs3.formats.read import csv, format, records
from dbt.adapters.mzs3.formats.read.columns import RecordLayout
from dbt.adapters.mzs3.formats.read.object_error import ObjectError

S = "string"
blocks = st.integers(1, 120)
soup = st.lists(
    st.sampled_from(
        [b'"', b'"', b",", b",", b"\n", b"\n", b"\r\n", b"\r", b"a", b"1", b'""', b'"x\ny"', b"\0",
         b"\xff", b"\xc3", "é".encode(), b" ", b"\xef\xbb\xbf", b"1,2\n", b'"1","2"\n']
    ),
    max_size=40,
).map(b"".join)  # fmt: skip


def same(data: bytes, width: int, block: int) -> None:
    body = data.removeprefix(b"\xef\xbb\xbf")
    expected, rejected = model(body, width)
    # Where no record is too large, none is taken for too large, whatever is wrong in it.
    most = longest_record(body)
    good, bad = read_all(data, *[S] * width, block_bytes=block, max_record_bytes=most)
    assert {n: [v or "" for v in row] for n, row in good.items()} == expected
    start = len(data) - len(body)
    assert {n: (r.line, r.byte, r.raw) for n, r in bad.items()} == {
        n: (line, start + byte, raw.decode(errors="backslashreplace"))
        for n, (line, byte, raw) in rejected.items()
    }


@given(soup, st.integers(1, 3), blocks)
@example(b'a"b,"\n1,2\n",3\n4,5\n', 2, 1)
@example(b'1,"2\n3,4\n', 2, 4)
@example(b'x\r"\n"\n1\n', 1, 1)
@example(b'1,a\r"b\n2,ok\n3,ok\n4,"x"\n5,ok\n', 2, 1 << 20)
@example(b'1,"a"\r"b\n2,ok\n', 2, 4)
def test_any_bytes_are_read_as_the_model_reads_them(data, width, block):
    same(data, width, block)


# What can stand between delimiters: newlines in quotes only, which open where a field does. What
# is wrong with a record's quotes is on its last line.
FIELD = rb'(?:"(?:[^"]|"")*"(?:\r[^,"\n]*)?|[^,"\n]*)'
SEVERAL_LINES = re.compile(rb"%b(?:,%b)*[^\n]*" % (FIELD, FIELD))
NOT_CLOSED = re.compile(rb'(?:%b,)*"(?:[^"]|"")*' % FIELD)


@given(soup, st.integers(1, 3), blocks)
@example(b'1,a\r"b\n2,ok\n3,ok\n4,"x"\n5,ok\n', 2, 1 << 20)
def test_a_reject_takes_no_line_with_it_but_those_in_its_quotes(data, width, block):
    body = data.removeprefix(b"\xef\xbb\xbf")
    _, bad = read_all(data, *[S] * width, block_bytes=block)
    for reject in bad.values():
        start = reject.byte - (len(data) - len(body))
        lines = len(reject.raw.split("\n"))
        raw = b"\n".join(body[start:].split(b"\n")[:lines])
        if lines > 1 and not SEVERAL_LINES.fullmatch(raw):
            assert NOT_CLOSED.fullmatch(body[start:]), raw


@given(soup, st.sampled_from([(S, S), ("int", S), ("tinyint",)]), blocks)
def test_the_first_reject_is_what_stops_a_run_that_rejects_nothing(data, types, block):
    _, bad = read_all(data, *types, block_bytes=block)
    if not bad:
        read(data, *types, block_bytes=block)
        return
    first = bad[min(bad)]
    expected = (first.line, first.byte, first.error)
    assert problem_of(data, *types, block_bytes=block) == expected


TYPED = ("bigint", "double", "decimal(6,2)", "timestamp", "boolean", S)
typed_rows = st.lists(
    st.tuples(
        st.sampled_from(["1", "-7", "+8", " 9", "0x1", "x", "9" * 19, ""]),
        st.sampled_from(["1.5", "1e3", "NaN", "1e400", "1_0", "-0", ""]),
        st.sampled_from(["1.20", "99999.99", ".5", "1e1", "1.234", ""]),
        st.sampled_from(["2020-01-02 03:04:05", "2020-01-02 03:04:05+01", "2020-02-30", "44", ""]),
        st.sampled_from(["t", "FALSE", "tRUE", "2", ""]),
        st.text('a",\n', max_size=3),
    ),
    max_size=25,
)


@given(typed_rows, blocks)
def test_values_are_the_same_beside_bad_ones(table, block):
    records = [write([[value or None for value in row]]) for row in table]
    good, _ = read_all(b"".join(records), *TYPED, block_bytes=block)
    alone = {}
    for number, one in enumerate(records, 1):
        with contextlib.suppress(ObjectError):
            (alone[number],) = read(one, *TYPED)
    assert repr(good) == repr(alone)


@given(soup, blocks)
def test_the_size_of_the_windows_does_not_matter(data, window):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "WINDOW_BYTES", window)
        same(data, 2, 1 << 20)


good_records = st.lists(
    st.tuples(st.text("ab\",\n'", max_size=5), st.text('cd"\r\n,', max_size=5)), max_size=8
).map(write)
# Each one record by the rule, whatever stands before and behind it.
BAD = [
    b'5" pipe,x\n',
    b'"a"b,"c"\n',
    b"a\rb,c\n",
    b"a,b\0\n",
    b"a,\xff\n",
    b"a\n",
    b"a,b,c\n",
    b"\n",
    b'"x\ny"\n',
    b"\r\n",
]


@given(st.lists(st.one_of(good_records, st.sampled_from(BAD)), max_size=12), blocks)
def test_every_good_record_stays(parts, block):
    data = b"".join(parts)
    good, bad = read_all(data, S, S, block_bytes=block)
    same(data, 2, block)
    alone = read_all(b"".join(p for p in parts if p not in BAD), S, S)
    assert list(good.values()) == list(alone[0].values())
    assert len(bad) == sum(p in BAD for p in parts)


@pytest.mark.parametrize(
    ("raw", "column", "error"),
    [
        ('5" pipe,x', "c1",
         "column 1 has a quote inside a field that does not start with one"),
        ('a,"b"c', "c2", "column 2 has text behind its closing quote"),
        ("a\rb,c", "c1",
         "column 1 has a carriage return outside quotes that no newline follows"),
        ("a,b\0", "c2", "column 2 has a NUL byte"),
        ("a", None, "expected 2 columns, got 1"),
        ("a,b,c", None, "expected 2 columns, got 3"),
        ("", None, "expected 2 columns, got 1"),
        ("128,b", "c1", "column c1: '128' is not a tinyint"),
        ('"x\ny",b', "c1", "column c1: 'x\\ny' is not a tinyint"),
    ],
)  # fmt: skip
def test_what_is_said_of_a_reject(raw, column, error):
    good, bad = read_all(f'1,"x\ny"\r\n{raw}\r\n'.encode(), "tinyint", S)
    assert good == {1: (1, "x\ny")}
    assert [(n, r.line, r.byte) for n, r in bad.items()] == [(2, 3, 9)]
    assert (bad[2].raw, bad[2].column, bad[2].error) == (raw, column, error)


def test_bytes_that_are_no_utf_8_are_shown():
    _, bad = read_all(b"1,a\xff\xc3\n", S, S)
    assert bad[1].raw == "1,a\\xff\\xc3"
    assert bad[1].error == "column 2 is not valid UTF-8: byte 0xff"


def test_a_field_that_is_never_closed_takes_in_the_rest():
    good, bad = read_all(b'1,2\n3,"4\n5,6\n7,8\n', S, S, block_bytes=4)
    assert good == {1: ("1", "2")}
    assert bad[2].raw == '3,"4\n5,6\n7,8'
    assert bad[2].error == "column 2 has a quoted field that is not closed"


def test_records_behind_a_wrong_quote_are_read_from_the_next_line():
    data = b'1,2\n5" pipe,x\n3,"a\nb"\n"x"y,"\n4,5\n'
    good, bad = read_all(data, S, S, block_bytes=10)
    assert good == {1: ("1", "2"), 3: ("3", "a\nb"), 5: ("4", "5")}
    assert {n: r.raw for n, r in bad.items()} == {2: '5" pipe,x', 4: '"x"y,"'}


def test_a_chunk_of_nothing_but_rejects():
    good, bad = read_all(b"x\ny\n", "int")
    assert (good, sorted(bad)) == ({}, [1, 2])
    good, bad = read_all(b"1\n2\n", S, S)
    assert (good, sorted(bad)) == ({}, [1, 2])


def test_the_leftmost_column_is_told():
    _, bad = read_all(b"1,x,y\nx,1,y\n", "int", "int", "int")
    assert [r.column for r in bad.values()] == ["c2", "c1"]


def test_many_records_with_few_that_are_bad():
    lines = [b"%d,x\n" % n if n % 100 else b"x,%d\n" % n for n in range(1, 5001)]
    lines[::250] = [b"1,2,3\n"] * 20
    good, bad = read_all(b"".join(lines), "int", S)
    assert sorted(bad) == sorted({*range(1, 5001, 250), *range(100, 5001, 100)})
    assert all(row == (n, "x") for n, row in good.items())
    assert bad[100].byte == sum(map(len, lines[:99]))
    assert bad[100].line == 100


def test_good_chunks_after_a_bad_one_are_read_fast_again(monkeypatch):
    asked = []
    original = csv.CsvDecoder._sift

    def counted(self, chunk, *args, **more):
        asked.append(chunk.byte)
        return original(self, chunk, *args, **more)

    monkeypatch.setattr(csv.CsvDecoder, "_sift", counted)
    data = b"x,1\n" + b"1,1\n" * 20
    good, _ = read_all(data, "int", S, block_bytes=8)
    assert len(good) == 20
    assert asked == [0, 8]


def test_a_very_long_raw_text_is_cut_between_characters(monkeypatch):
    monkeypatch.setattr(format, "MAX_RAW_BYTES", 6)
    _, bad = read_all("12345é,é\n".encode(), S)
    assert bad[1].raw == "12345"


def test_a_field_that_no_column_has_must_be_text_too():
    layout = RecordLayout(3, (2, 0))
    data = b"1,a,x\n2,\xff,y\n3,b\n4,\0,z\nq,,w\n5,b,\xff\n"
    for block in (1, 100):
        good, bad = read_all(data, S, "int", layout=layout, block_bytes=block)
        assert good == {1: ("x", 1)}
        assert {n: (r.column, r.error) for n, r in bad.items()} == {
            2: (None, "column 2 is not valid UTF-8: byte 0xff"),
            3: (None, "expected 3 columns, got 2"),
            4: (None, "column 2 has a NUL byte"),
            5: ("c2", "column c2: 'q' is not an int"),
            6: ("c1", "column 3 is not valid UTF-8: byte 0xff"),
        }
