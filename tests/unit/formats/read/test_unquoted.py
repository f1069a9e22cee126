"""`quote: ''`: nothing is quoted; a newline always ends a record, and a delimiter a field."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.s3.stored_objects import is_no_utf_16, stored
from support.source.fields import parse, purify_names
from support.source.rejecting import read_all

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.formats.dialect import CsvDialect
from dbt.adapters.mzs3.formats.read.chunks import Chunks, RecordTooLarge
from dbt.adapters.mzs3.formats.read.columns import Column
from dbt.adapters.mzs3.formats.read.csv import CsvFormat
from dbt.adapters.mzs3.formats.read.dialect import SourceDialect
from dbt.adapters.mzs3.formats.read.format import Reading
from dbt.adapters.mzs3.formats.read.object_error import HeaderProblem, ObjectError
from dbt.adapters.mzs3.formats.write.csv.format import CsvFormat as CsvExport
from dbt.adapters.mzs3.source.purify import PinnedDefinition, contradictions

UNQUOTED = SourceDialect("\t", "", "", "\\N")
AB = (Column("a"), Column("b"))
LINES = st.lists(
    st.sampled_from(
        [b'"', b'""', b"'", b"\\", b"\\N", b"\t", b"\t", b"\n", b"\n", b"\r\n", b"\r", b"a", b",",
         b"\0", b"\xff", "é".encode(), b"1\t2\n", b'"x\ty"\n', b'5" pipe\tz\n', b"\\N\t\\N\n"]
    ),
    max_size=12,
).map(b"".join).filter(is_no_utf_16)  # fmt: skip


def plainly(data: bytes, width: int) -> tuple[dict[int, tuple], dict[int, tuple[int, int, str]]]:
    """The good records and the bad ones, with line, byte and text; cut with `split` alone."""
    good: dict[int, tuple] = {}
    bad: dict[int, tuple[int, int, str]] = {}
    lines = data.split(b"\n")
    byte = 0
    for number, line in enumerate(lines, 1):
        if number == len(lines) and not line:
            break
        record = line.removesuffix(b"\r") if number < len(lines) else line
        fields = record.split(b"\t")
        try:
            texts = tuple(field.decode() for field in fields)
        except UnicodeDecodeError:
            texts = ()
        if len(texts) == width and not {b"\r"[0], 0} & set(record):
            good[number] = tuple(None if text == "\\N" else text for text in texts)
        else:
            bad[number] = number, byte, line.removesuffix(b"\r").decode(errors="backslashreplace")
        byte += len(line) + 1
    return good, bad


def places(rejects: dict[int, Any]) -> dict[int, tuple[int, int, str]]:
    return {n: (reject.line, reject.byte, reject.raw) for n, reject in rejects.items()}


@given(LINES, st.integers(1, 2), st.integers(1, 30))
@example(b'"\n', 1, 1)
@example(b'"a\tb"\n"\n', 2, 3)
@example(b"\n\n", 1, 1)
def test_lines_are_records_in_pieces_of_any_size(data: bytes, width: int, size: int) -> None:
    texts = ["string"] * width
    good, bad = plainly(data, width)
    for block_bytes in (1, size, len(data) + 1):
        found = read_all(data, *texts, dialect=UNQUOTED, block_bytes=block_bytes)
        assert (found[0], places(found[1])) == (good, bad)


@given(st.lists(LINES, min_size=2, max_size=4), st.booleans())
def test_objects_are_read_together_as_each_alone(texts: list[bytes], header: bool) -> None:
    names = ('"a', "b") if header else None
    texts = [b'"a\tb\n' + text if header else text for text in texts]
    form = CsvFormat("none", Reading(), UNQUOTED)
    together = form.decoder(names, AB).together([stored(text) for text in texts])
    skipped = 1 if header else 0
    expected = [plainly(text, 2) for text in texts]
    if any(bad for _, bad in expected):
        assert together is None
        return
    rows = [[row for n, row in sorted(good.items()) if n > skipped] for good, _ in expected]
    if together is not None:  # it is not if the last line ends in a carriage return
        batch, counts = together
        assert [tuple(row.values()) for row in batch.to_pylist()] == [
            r for one in rows for r in one
        ]
        assert counts == [len(one) for one in rows]
    for text, own in zip(texts, rows, strict=True):
        records = form.decoder(names, AB)(stored(text))
        found = [tuple(row.values()) for one in records for row in one.batch.to_pylist()]
        assert found == own


def test_good_objects_are_read_together() -> None:
    texts = [b'1"\t2\n', b'"3\t\\N', b'"\t"\r\n']
    form = CsvFormat("none", Reading(), UNQUOTED)
    found = form.decoder(None, AB).together([stored(text) for text in texts])
    assert found is not None
    batch, counts = found
    rows = [{"a": '1"', "b": "2"}, {"a": '"3', "b": None}, {"a": '"', "b": '"'}]
    assert (batch.to_pylist(), counts) == (rows, [1, 1, 1])


def test_the_first_bad_record_is_told_with_its_place() -> None:
    form = CsvFormat("none", Reading(), UNQUOTED)
    with pytest.raises(ObjectError) as raised:
        list(form.decoder(None, AB)(stored(b'"\t1\n"\n2\t3\n')))
    problem = raised.value
    assert (problem.problem, problem.line, problem.byte) == ("expected 2 columns, got 1", 2, 4)


def test_the_header_is_read_without_quotes() -> None:
    form = CsvFormat("none", Reading(), UNQUOTED)
    assert [field.name for field in form.fields(stored(b'"id"\ta"b\n')) or ()] == ['"id"', 'a"b']
    with pytest.raises(HeaderProblem, match="the source's header"):
        list(form.decoder(("id", "b"), AB)(stored(b'"id"\tb\n')))


def test_a_line_without_end_is_told_as_such() -> None:
    stream = Chunks(io.BytesIO(b"x" * 100).read, UNQUOTED, block_bytes=10, max_record_bytes=30)
    with pytest.raises(RecordTooLarge, match="is each one on its own line"):
        list(stream)


def test_values_of_types_are_read_without_quotes() -> None:
    good, bad = read_all(b'1\t\\N\n"2"\tx\n', "int", "string", dialect=UNQUOTED)
    assert good == {1: (1, None)}
    assert bad[2].error == "column c1: '\"2\"' is not an int"


def test_a_source_may_have_no_quotes() -> None:
    definition = parse(delimiter="\t", quote="", null='"')
    assert definition.dialect == SourceDialect("\t", "", "", '"')
    pinned = purify_names(definition, ["a"])
    assert PinnedDefinition.from_json(pinned.to_json()) == pinned
    assert contradictions(pinned, definition) == []
    assert contradictions(pinned, parse(delimiter="\t", null='"x', quote="'")) == [
        "the quote is declared as \"'\" but was pinned as ''",
        "the null is declared as '\"x' but was pinned as '\"'",
    ]


@pytest.mark.parametrize(
    ("external", "problem"),
    [
        ({"quote": "", "escape": "\\"}, "external: escape needs a quote"),
        ({"escape": ""}, "external: escape must be a single one-byte character"),
        ({"quote": "''"}, "external: quote must be a single one-byte character"),
        ({"quote": "", "null": "a,b"}, "external: delimiter must not appear in the null"),
        ({"quote": "", "delimiter": ""}, "external: delimiter must be a single one-byte"),
    ],
)
def test_one_problem_is_told_once(external: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse(**external)
    (found,) = raised.value.problems
    assert found.startswith(problem)


def test_an_export_has_quotes() -> None:
    export = CsvExport(dialect=CsvDialect(quote="", escape="")).dialect
    assert list(export.problems()) == ["quote must be a single one-byte character"]
