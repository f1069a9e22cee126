"""Small files of the kinds that people meet: refused, with the option's name; read with it."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from support.s3.stored_objects import stored
from support.source.fields import columns, rows
from support.source.rejecting import read_all

from dbt.adapters.mzs3.formats.read import text
from dbt.adapters.mzs3.formats.read.csv import CsvFormat
from dbt.adapters.mzs3.formats.read.dialect import SourceDialect
from dbt.adapters.mzs3.formats.read.format import Reading
from dbt.adapters.mzs3.formats.read.object_error import ObjectError
from dbt.adapters.mzs3.formats.read.records import first_record

HEADER = ("id", "name")
CLEAN = [("1", "ann"), ("2", "bob")]
DIALECT = set(SourceDialect.__dataclass_fields__)

# The text, the options with which it is read, and its rows.
FILES: dict[str, tuple[bytes, dict[str, Any], list[tuple[str | None, ...]]]] = {
    "a title": (b"Report of May\nid,name\n1,ann\n2,bob\n", {"skip_lines": 1}, CLEAN),
    "a title with a quote": (
        b'The "big" report, 5"\nid,name\n1,ann\n2,bob\n', {"skip_lines": 1}, CLEAN),
    "a title and a blank line": (b"Report\n\nid,name\n1,ann\n2,bob\n", {"skip_lines": 2}, CLEAN),
    "a title behind a byte order mark": (
        b"\xef\xbb\xbfReport\r\nid,name\r\n1,ann\r\n2,bob\r\n", {"skip_lines": 1}, CLEAN),
    "sep=": (b"sep=;\nid;name\n1;ann\n2;bob\n", {"skip_lines": 1, "delimiter": ";"}, CLEAN),
    "blank lines before the header": (
        b"\n\nid,name\n1,ann\n2,bob\n", {"skip_blank_lines": True}, CLEAN),
    "a blank last line": (b"id,name\n1,ann\n2,bob\n\n", {"skip_blank_lines": True}, CLEAN),
    "blank lines between records": (
        b"id,name\r\n\r\n1,ann\r\n\r\n2,bob\r\n", {"skip_blank_lines": True}, CLEAN),
    "a blank line of spaces": (
        b"id,name\n1,ann\n   \n2,bob\n", {"skip_blank_lines": True, "trim_space": True}, CLEAN),
    "blank lines inside quotes": (
        b'id,name\n1,"a\n\nb"\n\n', {"skip_blank_lines": True}, [("1", "a\n\nb")]),
    "comments before the header": (
        b"# made by hand\n# 5\" of rain\nid,name\n1,ann\n2,bob\n", {"comment": "#"}, CLEAN),
    "a comment between records": (b"id,name\n1,ann\n#2,eve\n2,bob\n", {"comment": "#"}, CLEAN),
    "a comment at the end": (b"id,name\n1,ann\n2,bob\n# 2 rows", {"comment": "#"}, CLEAN),
    "a mark inside a field": (
        b'id,name\n1,a#b\n2,"#c"\n# x\n', {"comment": "#"}, [("1", "a#b"), ("2", "#c")]),
    "short records": (
        b"id,name\n1\n2,bob\n", {"missing_columns": "null"}, [("1", None), CLEAN[1]]),
    "a short record in quotes": (
        b'id,name\n"1"\n2,bob\n', {"missing_columns": "null"}, [("1", None), CLEAN[1]]),
    "long records": (b"id,name\n1,ann,x,y\n2,bob,z\n", {"extra_columns": "ignore"}, CLEAN),
    "a delimiter at each end": (b"id,name\n1,ann,\n2,bob,\n", {"extra_columns": "ignore"}, CLEAN),
    "long records, rescued": (
        b'id,name\n1,ann,x,"y, ""z"""\r\n2,bob\n3,eve,\n', {"extra_columns": "rescue"},
        [("1", "ann", 'x,"y, ""z"""'), ("2", "bob", None), ("3", "eve", "")]),
    "two pipes, rescued": (
        b'id||name\n1||ann||x|y||"a||b\x1f"\n', {"delimiter": "||", "extra_columns": "rescue"},
        [("1", "ann", 'x|y||"a||b\x1f"')]),
    "escapes, rescued": (
        b'id,name\n1,ann,"a\\"b"\n', {"escape": "\\", "extra_columns": "rescue"},
        [("1", "ann", '"a""b"')]),
    "old Excel, rescued": (
        b'id,name\r1,ann,"x\ny"\r',
        {"record_delimiter": "cr", "extra_columns": "rescue"}, [("1", "ann", '"x\ny"')]),
    "short and long": (
        b'id,name\n1\n2,bob,"x\ny"\n', {"missing_columns": "null", "extra_columns": "ignore"},
        [("1", None), CLEAN[1]]),
    "escaped quotes": (
        b'id,name\n1,"a \\"b\\" c"\n', {"escape": "\\"}, [("1", 'a "b" c')]),
    "an escaped escape": (
        b'id,name\n1,"C:\\\\x\\\\"\n2,"b"\n', {"escape": "\\"}, [("1", "C:\\x\\"), ("2", "b")]),
    "an escaped newline": (b'id,name\n1,"a\\\nb"\n', {"escape": "\\"}, [("1", "a\nb")]),
    "an escaped delimiter": (b'id,name\n1,"a\\,b"\n', {"escape": "\\"}, [("1", "a,b")]),
    "a dump of MySQL": (
        b'"id","name"\n"1",\\N\n"2","bo\\"b"\n', {"escape": "\\", "null": "\\N"},
        [("1", None), ("2", 'bo"b')]),
    "an escape outside quotes": (
        b'id,name\n1,C:\\x\\\n2,"a\\"b"\n', {"escape": "\\"}, [("1", "C:\\x\\"), ("2", 'a"b')]),
    "inches": (
        b'id,name\n1,5" pipe\n2,bob\n', {"bare_quotes": True}, [("1", '5" pipe'), CLEAN[1]]),
    "bare and true quotes": (
        b'id,name\n1,a "b" c\n2,"x, y"\n', {"bare_quotes": True},
        [("1", 'a "b" c'), ("2", "x, y")]),
    "no quotes at all": (
        b'id\tname\n1\t"ann\n2\tbob\n', {"delimiter": "\t", "quote": ""},
        [("1", '"ann'), CLEAN[1]]),
    "old Excel": (b"id,name\r1,ann\r2,bob\r", {"record_delimiter": "cr"}, CLEAN),
    "old Excel with a line break": (
        b'id,name\r1,"a\nb"\r2,bob', {"record_delimiter": "cr"}, [("1", "a\nb"), CLEAN[1]]),
    "spaces behind commas": (b'id, name\n1, ann\n2, bob\n', {"trim_space": True}, CLEAN),
    "spaces around quotes": (
        b'id,name\n1 , "ann "\n2,\t"bob" \n', {"trim_space": True}, [("1", "ann "), CLEAN[1]]),
    "spaces of nothing": (
        b"id,name\n1,  \n2,bob\n", {"trim_space": True}, [("1", None), CLEAN[1]]),
    "two pipes": (b"id||name\n1||ann\n2||bob\n", {"delimiter": "||"}, CLEAN),
    "comma and space": (b'id, name\n1, ann\n2, "bob"\n', {"delimiter": ", "}, CLEAN),
    "two pipes in quotes": (b'id||name\n1||"a||b"\n', {"delimiter": "||"}, [("1", "a||b")]),
    "one pipe between two": (b"id||name\n1||a|b\n", {"delimiter": "||"}, [("1", "a|b")]),
    "a section sign": (
        "id§§name\n1§§ann\n2§§bob\n".encode(), {"delimiter": "§§"}, CLEAN),
    "several header lines": (
        b"id,name\n(number),(text)\n1,ann\n2,bob\n", {"skip_lines": 2, "no_header": True}, CLEAN),
    "all at once": (
        b'Report\n# x\nid ; name\n\n1 ; "a ""b""" ; x\n2\n', {
            "skip_lines": 1, "comment": "#", "delimiter": ";", "trim_space": True,
            "skip_blank_lines": True, "missing_columns": "null", "extra_columns": "ignore"},
        [("1", 'a "b"'), ("2", None)]),
}  # fmt: skip


def read(data: bytes, options: dict[str, Any], pieces: int | None = None) -> list[tuple[Any, ...]]:
    dialect = {key: value for key, value in options.items() if key in DIALECT}
    if "quote" in dialect:
        dialect["escape"] = dialect["quote"]
    reading = {k: v for k, v in options.items() if k not in DIALECT and k != "no_header"}
    form = CsvFormat("none", Reading(**reading), SourceDialect(**dialect))
    header = None if options.get("no_header") else HEADER
    decoder = form.decoder(header, columns("string", "string"))
    if pieces is None:
        return [row for found in decoder(stored(data)) for row in rows(found.batch)]
    together = decoder.together([stored(data)] * pieces)
    assert together is not None
    return rows(together[0])


@pytest.mark.parametrize("name", FILES)
def test_with_its_options_a_file_is_read_as_its_clean_version(name: str) -> None:
    data, options, expected = FILES[name]
    assert read(data, options) == expected
    assert read(data, options, 3) == expected * 3


@pytest.mark.parametrize("name", FILES)
def test_without_its_options_a_file_is_refused_with_its_place(name: str) -> None:
    data, options, expected = FILES[name]
    for option in options:
        if options.get("no_header"):
            continue  # a line before the records is a record then
        without = {key: value for key, value in options.items() if key != option}
        try:
            found = read(data, without)
        except ObjectError as problem:
            assert problem.line is not None
        else:  # nothing is lost, but a value is another one: without `null`, or with its blanks
            assert option in ("null", "trim_space", "comment", "escape")
            assert found != expected


@pytest.mark.parametrize(
    ("data", "option"),
    [
        (b"Report\nid,name\n1,ann\n", "skip_lines"),
        (b"Report,\nid,name\n", "skip_lines"),
        (b'Report "May"\nid,name\n', "skip_lines"),
        (b"id;name\n1;ann\n", 'delimiter: ";"'),
        (b"id,name\n1;ann\n", 'delimiter: ";"'),
        (b"id,name\n1|ann\n", 'delimiter: "|"'),
        (b"id,name\n1,ann\n\n", "skip_blank_lines: true"),
        (b"id,name\n# x\n", "comment: '#'"),
        (b"id,name\n1\tann\n", 'delimiter: "\\t"'),
        (b"id,name\n1\n", "missing_columns: null"),
        (b"id,name\n1,ann,x\n", "extra_columns: ignore"),
        (b'id,name\n1,"a\\"b"\n', "escape: '\\'"),
        (b'id,name\n1,5" pipe\n', "bare_quotes: true"),
        (b"id,name\r1,ann\r", "record_delimiter: cr"),
        (b'id,name\n1, "ann"\n', "trim_space: true"),
        (b'id,name\n1,"ann" \n', "trim_space: true"),
    ],
)
def test_the_error_names_the_option(data: bytes, option: str) -> None:
    with pytest.raises(ObjectError) as raised:
        read(data, {})
    assert f"; or set {option}" in raised.value.advice


def test_too_few_lines_are_an_error() -> None:
    with pytest.raises(
        ObjectError, match="the object has 3 lines fewer than skip_lines"
    ) as raised:
        read(b"Report\nid,name\n", {"skip_lines": 5})
    assert (raised.value.line, raised.value.byte) == (3, 15)
    assert "skip_lines" in raised.value.advice
    assert read(b"", {"skip_lines": 5}) == []


@pytest.mark.parametrize("data", [b"#" + b"x" * 2000, b"\n" * 2000, b"x" * 2000])
def test_what_precedes_the_header_is_bounded(data: bytes) -> None:
    dialect = SourceDialect(comment="#", skip_blank_lines=True)
    form = CsvFormat("none", Reading(skip_lines=1), dialect)
    with pytest.raises(ObjectError, match="do lines to skip, or comments, never end"):
        form.first(stored(data), lambda chunk: True, max_record_bytes=1000)


@pytest.mark.parametrize(
    ("data", "options", "error"),
    [
        (b'id,name\n1,"a\\tb"\n', {"escape": "\\"},
         "column 2 has an escape before a character that needs none"),
        (b'id,name\n1,"a""b"\n', {"escape": "\\"}, "column 2 has text behind its closing quote"),
        (b"id||name\n1||a\x1fb\n", {"delimiter": "||"},
         "column 2 has the byte 0x1f, which unquoted fields can't hold"),
        (b'id,name\n1,"a\nb"\n', {"comment": "#"},
         "column 2 has a quoted field that is not closed in its line"),
        (b'id,name\n1,"a"b\n', {"bare_quotes": True},
         "column 2 has text behind its closing quote"),
        (b"id,name\r1,a\nb\r", {"record_delimiter": "cr"},
         "column 2 has a line feed outside quotes"),
    ],
)  # fmt: skip
def test_what_is_not_exact_is_an_error(data: bytes, options: dict[str, Any], error: str) -> None:
    with pytest.raises(ObjectError, match=error) as raised:
        read(data, options)
    assert raised.value.line == 2


@pytest.mark.parametrize("block", [1, 3, 4, 100])
@pytest.mark.parametrize(
    ("data", "options", "expected"),
    [
        (b"  #x,1\na,b\n", {"comment": "#", "trim_space": True, "skip_blank_lines": True},
         [("#x", "1"), ("a", "b")]),
        (b"\n\n\r\n1,2\r\n", {"skip_blank_lines": True}, [("1", "2")]),
        (b" \r\n1,2\r\n", {"skip_blank_lines": True, "trim_space": True}, [("1", "2")]),
        (b"1\n1,2,3\n", {"missing_columns": "null", "extra_columns": "ignore", "null": "-"},
         [("1", None), ("1", "2")]),
    ],
)  # fmt: skip
def test_chunks_of_any_size_have_the_same_records(
    data: bytes, options: dict[str, Any], expected: list[tuple[str | None, ...]], block: int
) -> None:
    dialect = SourceDialect(**{k: v for k, v in options.items() if k in DIALECT})
    reading = {k: v for k, v in options.items() if k not in DIALECT}
    good, bad = read_all(data, "string", "string", dialect=dialect, block_bytes=block, **reading)
    assert (list(good.values()), bad) == (expected, {})


def test_bytes_that_are_no_text_are_rejected_wherever_a_chunk_ends() -> None:
    data = b'1,\xff\n1,2"\n3,"4\n5"\n'
    for block in (1, 100):
        good, bad = read_all(
            data, "string", "string", dialect=SourceDialect(trim_space=True), block_bytes=block
        )
        assert (good, sorted(bad)) == ({3: ("3", "4\n5")}, [1, 2])


def test_of_old_excel_names_and_rejects_have_their_line_breaks() -> None:
    form = CsvFormat("none", Reading(), SourceDialect(record_delimiter="cr"))
    fields = form.fields(stored(b'"a\nb",c\r1,2\r'))
    assert fields is not None
    assert [field.name for field in fields] == ["a\nb", "c"]
    _, bad = read_all(b'"a\nb"\r', "int", "int", dialect=SourceDialect(record_delimiter="cr"))
    assert bad[1].raw == '"a\nb"'


def test_a_long_field_takes_no_more_memory_than_it_has() -> None:
    record = b"1," + b"x" * 4_000_000 + b"\n"
    tracemalloc.start()
    try:
        first_record(record, SourceDialect(), "utf-8")
        first_record(record, SourceDialect("||"), "utf-8")
        assert tracemalloc.get_traced_memory()[1] < 40_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("block", [1, 4, 5, 6, 7, 1000])
def test_the_advice_does_not_depend_on_where_a_chunk_ends(
    monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(text, "BLOCK_BYTES", block)
    advice = []
    for data in (b"id,name\nReport\n", b"id,name\n1,a\n2,b\n3\n"):
        with pytest.raises(ObjectError) as raised:
            read(data, {})
        advice.append("skip_lines" in raised.value.advice)
    assert advice == [True, False]


def test_no_option_is_named_that_is_refused_beside_others() -> None:
    for options in ({"trim_space": True}, {"escape": "\\"}, {"delimiter": "||"}):
        delimiter = str(options.get("delimiter", ",")).encode()
        data = b'id,name\n1,5" pipe\n'.replace(b",", delimiter)
        with pytest.raises(ObjectError, match="has a quote inside a field") as raised:
            read(data, options)
        assert "bare_quotes" not in raised.value.advice


def test_fields_that_are_too_many_are_left_out_without_copies_of_what_stays() -> None:
    row = b'"' + b"x" * 2_000_000 + b'",2' + b",3" * 1000 + b"\n"
    tracemalloc.start()
    try:
        good, _ = read_all(row, "string", "int", extra_columns="ignore")
        assert tracemalloc.get_traced_memory()[1] < 60_000_000
    finally:
        tracemalloc.stop()
    assert good == {1: ("x" * 2_000_000, 2)}
