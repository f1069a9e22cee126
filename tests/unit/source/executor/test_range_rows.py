"""Reading an object in ranges, of any size, gives the rows that reading it at once gives."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.examples import examples
from support.s3.opened import bucket_of
from support.s3.stored_objects import is_no_utf_16, stored
from support.source.dialects import DIALECTS, plain_rows, records, texts
from support.source.fields import DIALECT
from support.source.plain_reader import BOM, plain_records

from dbt.adapters.mzs3.errors import ExecutorError
from dbt.adapters.mzs3.formats.read import text
from dbt.adapters.mzs3.formats.read.columns import Column
from dbt.adapters.mzs3.formats.read.dialect import SourceDialect
from dbt.adapters.mzs3.formats.read.format import Reading
from dbt.adapters.mzs3.formats.read.object_error import UNCLEAR
from dbt.adapters.mzs3.formats.read.text import TextFormat
from dbt.adapters.mzs3.source.executor import ranges, stored_object
from dbt.adapters.mzs3.source.executor.fetch import FetchSpec, fetch_objects, format_of
from dbt.adapters.mzs3.source.executor.ranges import (
    LargeObject,
    plan_ranges,
    range_rows,
    read_ranges,
    survey_of,
)
from dbt.adapters.mzs3.source.large_objects import large_objects
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import S3Location

NOW = datetime(2026, 1, 2, tzinfo=timezone.utc)
COLUMNS = (Column("a", "string"), Column("b", "string"))
HEADER = ("a", "b")


class OneObject:
    """An S3 with one object, which counts the bytes that it was asked for."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.fetched = 0

    def get_object(self, *, Range: str | None = None, **_: Any) -> dict[str, Any]:
        first, _, last = (Range or "bytes=0-").removeprefix("bytes=").partition("-")
        body = self.data[int(first) : int(last) + 1 if last else None]
        end = int(first) + len(body) - 1
        self.fetched += len(body)
        return {
            "Body": io.BytesIO(body),
            "ETag": '"e"',
            "ContentLength": len(body),
            "ContentRange": f"bytes {first}-{end}/{len(self.data)}",
            "ResponseMetadata": {"HTTPStatusCode": 206 if Range else 200},
        }


def spec(header: tuple[str, ...] | None = HEADER, **changes: Any) -> FetchSpec:
    known: dict[str, Any] = {"compression": "by_suffix", "dialect": DIALECT, **changes}
    return FetchSpec(
        connection=AwsConnection(),
        location=S3Location("b", ""),
        source="lake.orders",
        header=header,
        columns=COLUMNS,
        **known,
    )


@pytest.fixture(scope="module")
def serve() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:

        def use(data: bytes, block_bytes: int = 50, survey_bytes: int = 1 << 20) -> OneObject:
            patch.setattr(text, "BLOCK_BYTES", block_bytes)
            patch.setattr(ranges, "SURVEY_BLOCK_BYTES", survey_bytes)
            served = OneObject(data)
            patch.setattr(
                stored_object, "shared_store", lambda _, at: bucket_of(served, at.bucket)
            )
            return served

        yield use


def at_once(spec: FetchSpec) -> list[dict[str, Any]]:
    listed = {"key": ["k.csv"], "etag": ["e"], "size": [0], "last_modified": [NOW]}
    return _rows(fetch_objects(spec, format_of(spec))(iter([pa.RecordBatch.from_pydict(listed)])))


def in_ranges(spec: FetchSpec, data: bytes, range_bytes: int) -> list[dict[str, Any]]:
    size = len(data)
    form = format_of(spec)
    assert isinstance(form, TextFormat)
    begin = form.first(stored(data), form.decoder(spec.header, spec.columns).begin)
    if begin is None:
        return []
    layout, first = begin
    cut = [
        {
            "object": 0,
            "key": "k.csv",
            "etag": "e",
            "range": index,
            "start": start,
            "end": min(start + range_bytes, size),
        }
        for index, start in enumerate(range(first.byte, size, range_bytes))
    ]
    by_line = spec.format == "jsonl" or spec.dialect.lines_are_records
    quote = b"" if by_line else spec.dialect.quote.encode()
    read = read_ranges(spec, quote)
    blocks = list(read(iter([pa.RecordBatch.from_pylist(cut)]))) if cut else []
    texts = [text for batch in blocks for text in batch["survey"].to_pylist() if text]
    plans = plan_ranges([survey_of(text) for text in texts], first)
    large = LargeObject("k.csv", "e", size, NOW, first, layout)
    return _rows(range_rows(spec, form, [(large, plans)])(iter(blocks)))


def _rows(batches: Iterator[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


def by_number(rows: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """The rows in the order of their records."""
    found = {row["_mz_record"]: row for row in sorted(rows, key=lambda row: row["_mz_record"])}
    assert len(found) == len(rows)
    return found


VALUES = st.text('ab",\n', max_size=5)
TABLES = st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=10)


def written(table: list[tuple[str, str]], end: str) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator=end, quoting=csv.QUOTE_ALL).writerows(table)
    return out.getvalue().encode()


@given(
    TABLES,
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.integers(1, 60),
)
def test_the_rows_are_the_same(
    serve: Any,
    table: list[tuple[str, str]],
    end: str,
    header: bool,
    bom: bool,
    ends_in_newline: bool,
    range_bytes: int,
) -> None:
    data = written([HEADER, *table] if header else table, end)
    data = data if ends_in_newline else data.removesuffix(end.encode())
    served = serve(b"\xef\xbb\xbf" + data if bom else data)
    how = spec(HEADER if header else None)
    expected = at_once(how)
    assert [(row["a"], row["b"]) for row in expected] == table
    assert [row["_mz_record"] for row in expected] == list(range(1, len(table) + 1))
    assert in_ranges(how, served.data, range_bytes) == expected


def test_each_byte_is_fetched_about_once(serve: Any) -> None:
    served = serve(written([HEADER, *[("x" * 20, "\n")] * 100], "\n"))
    in_ranges(spec(), served.data, 500)
    ranges = -(-len(served.data) // 500)
    assert served.fetched <= len(served.data) + ranges * len('"xxxxxxxxxxxxxxxxxxxx","\n"\n')


def test_rejects_are_where_they_are_and_numbered_as_they_are(serve: Any) -> None:
    rows = [b"1,2", b"3", b"4,5,6", b'"7\n",8', b"9"] * 4
    served = serve(b"a,b\n" + b"\n".join(rows) + b"\n")
    how = spec(reading=Reading(on_bad_row="reject"))
    expected = sorted(at_once(how), key=lambda row: row["_mz_record"])
    assert [row["mz_problem"]["line"] for row in expected if row["mz_problem"]][:3] == [3, 4, 7]
    for range_bytes in (1, 7, 20, 64):
        found = in_ranges(how, served.data, range_bytes)
        assert sorted(found, key=lambda row: row["_mz_record"]) == expected


@given(
    st.lists(
        st.sampled_from(
            [b'"\t1\n', b'1\t"2"\r\n', b'"\n', b'a"\t\\N\n', b"\n", b"1\t\xff\n", b"x\ry\t\n"]
        ),
        max_size=8,
    ).map(b"".join),
    st.booleans(),
    st.integers(1, 30),
)  # fmt: skip
def test_without_quotes_the_rows_are_the_same(
    serve: Any, lines: bytes, ends_in_newline: bool, range_bytes: int
) -> None:
    data = b'"a\tb\n' + lines
    served = serve(data if ends_in_newline else data.removesuffix(b"\n"))
    unquoted = SourceDialect("\t", "", "", "\\N")
    how = spec(('"a', "b"), dialect=unquoted, reading=Reading(on_bad_row="reject"))
    expected = sorted(at_once(how), key=lambda row: row["_mz_record"])
    assert len(expected) == len(served.data.removesuffix(b"\n").split(b"\n")) - 1
    found = in_ranges(how, served.data, range_bytes)
    assert sorted(found, key=lambda row: row["_mz_record"]) == expected


CAN_BE_CUT = DIALECTS.filter(lambda dialect: dialect.can_be_cut)
WITH_NEWLINES = DIALECTS.map(
    lambda dialect: replace(
        dialect, escape=dialect.quote, record_delimiter="lf", bare_quotes=False, comment=""
    )
)


@examples(800)
@given(
    st.data(),
    CAN_BE_CUT | WITH_NEWLINES,
    st.sampled_from(["", 'not "all\n', '"\n\n#\n']),
    st.booleans(),
    st.booleans(),
    st.builds(
        Reading,
        on_bad_row=st.sampled_from(["fail", "reject", "reject"]),
        missing_columns=st.sampled_from(["fail", "null"]),
        extra_columns=st.sampled_from(["fail", "ignore", "rescue"]),
    ),
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(1, 40),
)
def test_of_any_dialect_the_rows_are_the_plain_readers(
    serve: Any,
    drawn: st.DataObject,
    dialect: SourceDialect,
    preamble: str,
    bom: bool,
    has_header: bool,
    reading: Reading,
    range_bytes: int,
    survey_bytes: int,
    block_bytes: int,
) -> None:
    header = dialect.delimiter.join(HEADER) + "\n" if has_header else ""
    of_records = records(dialect) | records(dialect) | texts(dialect)
    data = BOM * bom + (preamble + header).encode() + drawn.draw(of_records)
    assume(data and is_no_utf_16(data))
    skip_lines = preamble.count("\n")
    how = spec(
        HEADER if has_header else None,
        dialect=dialect,
        reading=replace(reading, skip_lines=skip_lines),
    )
    plain = list(plain_records(data, dialect, skip_lines))
    # Where records end may depend on all that is before a range; or lines are left out.
    is_unclear = not dialect.lines_are_records and any(one.fields is None for one in plain)
    starts = [*(one.byte for one in plain), len(data)]
    is_unclear |= any(one.end < start for one, start in zip(plain, starts[1:], strict=True))
    del plain[:has_header]
    wanted = plain_rows(plain, dialect, 2, fills=reading.fills, cuts=reading.cuts)
    bad = [one for number, one in enumerate(plain, 1) if number not in wanted]
    serve(data, block_bytes, survey_bytes)
    if bad and not reading.rejects:
        with pytest.raises(ExecutorError, match=f", line {bad[0].line}, byte {bad[0].byte}: "):
            at_once(how)
        with pytest.raises(ExecutorError, match="read again by one task"):
            in_ranges(how, data, range_bytes)
        return
    whole = by_number(at_once(how))
    good = {number: (row["a"], row["b"]) for number, row in whole.items() if number in wanted}
    assert good == {number: fields[:2] for number, fields in wanted.items()}
    problems = [row["mz_problem"] for number, row in whole.items() if number not in wanted]
    places = [(problem["line"], problem["byte"]) for problem in problems]
    assert places == [(one.line, one.byte) for one in bad]
    try:
        assert by_number(in_ranges(how, data, range_bytes)) == whole
    except ExecutorError as unclear:
        assert unclear.cause == UNCLEAR and is_unclear


@examples(200)
@given(DIALECTS.filter(lambda dialect: not dialect.can_be_cut))
def test_of_other_dialects_each_object_is_read_whole(dialect: SourceDialect) -> None:
    assert dialect.record_delimiter == "cr" or dialect.escape != dialect.quote
    objects: Any = None  # nothing is asked of them
    assert large_objects(spec(dialect=dialect), objects, 1 << 40) == []


@pytest.mark.parametrize("range_bytes", [1, 7, 20])
def test_a_preamble_is_skipped_once(serve: Any, range_bytes: int) -> None:
    served = serve(b'not "all\na,b\n' + b"1,2\n" * 5)
    how = spec(reading=Reading(skip_lines=1))
    found = in_ranges(how, served.data, range_bytes)
    assert found == at_once(how)
    assert len(found) == 5


def test_comments_among_records_are_for_one_task_to_count(serve: Any) -> None:
    served = serve(b"a,b\n1,2\n#x\n3,4\n5,6\n")
    with pytest.raises(ExecutorError, match=UNCLEAR):
        in_ranges(spec(dialect=SourceDialect(comment="#")), served.data, 8)


@pytest.mark.parametrize("on_bad_row", ["fail", "reject"])
@pytest.mark.parametrize("bad", [b'3,4"5', b'"3"4,5', b'3,"4'])
def test_where_quotes_are_wrong_one_task_must_judge(
    serve: Any, on_bad_row: str, bad: bytes
) -> None:
    served = serve(b"a,b\n1,2\n" + bad + b"\n" + b"6,7\n" * 5)
    how = spec(reading=Reading(on_bad_row=on_bad_row))
    for range_bytes in (5, 20, 30):
        with pytest.raises(ExecutorError, match=UNCLEAR):
            in_ranges(how, served.data, range_bytes)


def test_of_too_many_rejects_one_task_must_tell(serve: Any) -> None:
    served = serve(b"a,b\n" + b"1\n" * 10)
    how = spec(reading=Reading(on_bad_row="reject", max_rejects=9))
    with pytest.raises(ExecutorError) as raised:
        in_ranges(how, served.data, 100)
    assert (raised.value.cause, raised.value.s3_object) == (UNCLEAR, "s3://b/k.csv")
    all_allowed = spec(reading=Reading(on_bad_row="reject", max_rejects=10))
    assert len(in_ranges(all_allowed, served.data, 100)) == 10


def test_a_store_that_does_not_honour_ranges_is_left_to_one_task(serve: Any) -> None:
    served = serve(b"a,b\n" + b"1,2\n" * 10)
    get = served.get_object
    served.get_object = lambda **request: get(**{**request, "Range": None})
    with pytest.raises(ExecutorError, match=UNCLEAR):
        in_ranges(spec(), served.data, 20)


def test_a_bad_value_is_for_one_task_to_name(serve: Any) -> None:
    served = serve(b"a,b\n1,2\n3\n")
    with pytest.raises(ExecutorError, match=UNCLEAR):
        in_ranges(spec(), served.data, 6)


@given(
    st.lists(st.tuples(st.text('a"\\{},\n', max_size=5), st.text()), min_size=1, max_size=10),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.integers(1, 60),
)
def test_of_json_lines_the_rows_are_the_same(
    serve: Any, table: list[tuple[str, str]], end: str, bom: bool, range_bytes: int
) -> None:
    data = end.join(json.dumps(dict(zip("ba", row, strict=True))) for row in table).encode()
    served = serve(b"\xef\xbb\xbf" + data if bom else data)
    how = spec(format="jsonl")
    expected = at_once(how)
    assert [(row["b"], row["a"], row["_mz_record"]) for row in expected] == [
        (*row, number) for number, row in enumerate(table, 1)
    ]
    assert in_ranges(how, served.data, range_bytes) == expected


JSON_LINES = {
    b'{"a":"1","b":"2"}': ("1", "2"),
    b'{"b":"\\n"}\r': (None, "\n"),
    b' {"b":null, "a":"3"}': ("3", None),
    b"{}": (None, None),
    b'{"a":"1","c":"2"}': None,
    b'{"a":': None,
    b"": None,
    b" \r": None,
}


@examples(250)
@given(
    st.lists(st.sampled_from([*JSON_LINES]), max_size=8),
    st.booleans(),
    st.sampled_from(["fail", "null"]),
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(1, 40),
)
def test_of_json_lines_without_some_keys_the_rows_are_the_same(
    serve: Any,
    lines: list[bytes],
    bom: bool,
    missing_columns: str,
    range_bytes: int,
    survey_bytes: int,
    block_bytes: int,
) -> None:
    data = BOM * bom + b"\n".join(lines)
    assume(data)
    serve(data, block_bytes, survey_bytes)
    reading = Reading(on_bad_row="reject", missing_columns=missing_columns)
    how = spec(format="jsonl", reading=reading)
    whole = by_number(at_once(how))
    records = [(n, line) for n, line in enumerate(lines, 1) if line.strip()]
    values = [
        JSON_LINES[line] if reading.fills or (b"a" in line and b"b" in line) else None
        for _, line in records
    ]
    problems = [row["mz_problem"] for row in whole.values()]
    found = [(row["a"], row["b"]) for row in whole.values()]
    assert found == [value or (None, None) for value in values]
    assert [problem and problem["line"] for problem in problems] == [
        None if value else line for value, (line, _) in zip(values, records, strict=True)
    ]
    try:
        assert by_number(in_ranges(how, data, range_bytes)) == whole
    except ExecutorError as unclear:
        assert unclear.cause == UNCLEAR and len(records) < len(lines)


def test_rejects_of_json_lines_are_where_they_are(serve: Any) -> None:
    rows = [b'{"a":"1","b":null}', b"3", b'{"a":', b'{"b":"x","a":5}', b"\xff"] * 4
    served = serve(b"\n".join(rows) + b"\n")
    how = spec(format="jsonl", reading=Reading(on_bad_row="reject"))
    expected = sorted(at_once(how), key=lambda row: row["_mz_record"])
    assert [row["mz_problem"]["line"] for row in expected if row["mz_problem"]][:3] == [2, 3, 4]
    for range_bytes in (1, 7, 20, 64):
        found = in_ranges(how, served.data, range_bytes)
        assert sorted(found, key=lambda row: row["_mz_record"]) == expected


@pytest.mark.parametrize("data", [b'{"a":"","b":""}\n\n' * 5, b'{"a":"","b":""}\n' * 5 + b"5"])
def test_json_lines_that_are_blank_or_bad_are_for_one_task(serve: Any, data: bytes) -> None:
    served = serve(data)
    with pytest.raises(ExecutorError, match=UNCLEAR):
        in_ranges(spec(format="jsonl"), served.data, 20)
