"""Sources read every dialect that they allow as a plain reader does, however an object is cut."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st
from support.examples import examples
from support.s3.stored_objects import stored
from support.source.fields import columns, rows
from support.source.plain_reader import plain_records
from support.source.rejecting import read_all

from dbt.adapters.mzs3.formats.read.csv import CsvFormat
from dbt.adapters.mzs3.formats.read.dialect import SourceDialect
from dbt.adapters.mzs3.formats.read.format import Reading

S = "string"
dialects = st.builds(
    SourceDialect,
    delimiter=st.sampled_from([",", "||", ", ", "\t"]),
    quote=st.sampled_from(['"', '"', "'", ""]),
    escape=st.sampled_from(["\\", '"', '"', "'", ""]),
    null=st.sampled_from(["", "\\N"]),
    record_delimiter=st.sampled_from(["lf", "lf", "cr"]),
    bare_quotes=st.booleans(),
    trim_space=st.booleans(),
    skip_blank_lines=st.booleans(),
    comment=st.sampled_from(["", "", "#"]),
).filter(lambda dialect: not dialect.problems() and not dialect.is_canonical)


def _has_lines(data: bytes, dialect: SourceDialect, count: int) -> bool:
    """Whether the text is empty, or has at least so many lines."""
    end = b"\r" if dialect.record_delimiter == "cr" else b"\n"
    return not data or len(data.removesuffix(end).split(end)) >= count


@st.composite
def texts(draw: Any, dialect: SourceDialect) -> bytes:
    """Text with what means something in the dialect, or almost does."""
    delimiter, quote, escape = (
        each.encode() for each in (dialect.delimiter, dialect.quote, dialect.escape)
    )
    tokens = [delimiter, delimiter, quote, quote, escape, escape + quote, b"\n", b"\n", b"\r",
              b"\r\n", b" ", b"\t", b"a", b"1", b"#", b"|", b"\\N", b"\0", b"\x1f", b"\xff",
              "é".encode(), quote + b"x" + delimiter + b"\ny" + quote,
              b"a" + delimiter + b"b\n", quote + b"1 " + quote + delimiter + b" 2\n"]  # fmt: skip
    if dialect.record_delimiter == "cr":
        tokens = [token.replace(b"\n", b"\r") for token in tokens] + [b"\n"]
    return b"".join(draw(st.lists(st.sampled_from(tokens), max_size=30)))


@examples(2000)
@given(
    st.data(),
    dialects,
    st.integers(1, 3),
    st.integers(1, 60),
    st.sampled_from([0, 0, 1, 3]),
    st.sampled_from(["fail", "null"]),
    st.sampled_from(["fail", "ignore", "rescue"]),
)
def test_any_text_is_read_as_the_plain_reader_does(
    data: st.DataObject,
    dialect: SourceDialect,
    width: int,
    block: int,
    skip_lines: int,
    missing_columns: str,
    extra_columns: str,
) -> None:
    text = data.draw(texts(dialect))
    assume(_has_lines(text, dialect, skip_lines))
    expected = list(plain_records(text, dialect, skip_lines))
    blanks = b"" if not dialect.trim_space else b" " if dialect.delimiter == "\t" else b" \t"
    good, bad = read_all(
        text,
        *[S] * width,
        dialect=dialect,
        block_bytes=block,
        skip_lines=skip_lines,
        missing_columns=missing_columns,
        extra_columns=extra_columns,
    )
    wanted = {
        number: (
            *(*record.fields, *[None] * width)[:width],
            *[record.fields[width:]] * (extra_columns == "rescue"),
        )
        for number, record in enumerate(expected, 1)
        if record.fields is not None
        and (
            len(record.fields) >= width
            or (missing_columns == "null" and record.raw.lstrip(blanks))
        )
        and (len(record.fields) <= width or extra_columns != "fail")
    }
    if extra_columns == "rescue":
        good = {n: (*row[:-1], _fields_of(row[-1], dialect)) for n, row in good.items()}
    assert good == wanted
    places = {
        number: (record.line, record.byte)
        for number, record in enumerate(expected, 1)
        if number not in wanted
    }
    assert {number: (reject.line, reject.byte) for number, reject in bad.items()} == places


def _fields_of(rescued: str | None, dialect: SourceDialect) -> tuple[str | None, ...] | None:
    """The fields of a rescued text, in which quotes are doubled, and blanks are left out."""
    if rescued is None:
        return ()
    plain = replace(dialect, escape=dialect.quote, comment="", skip_blank_lines=False)
    end = "\r" if dialect.record_delimiter == "cr" else "\n"
    [record] = plain_records((rescued + end).encode(), plain)
    return record.fields


@examples(500)
@given(st.data(), dialects, st.integers(1, 2))
def test_small_objects_are_read_together_as_each_alone_or_not_at_all(
    data: st.DataObject, dialect: SourceDialect, width: int
) -> None:
    objects = [data.draw(texts(dialect)) for _ in range(3)]
    form = CsvFormat("none", Reading(), dialect)
    together = form.decoder(None, columns(*[S] * width)).together([stored(one) for one in objects])
    if together is not None:
        batch, counts = together
        each = [[record.fields for record in plain_records(one, dialect)] for one in objects]
        assert rows(batch) == [fields for records in each for fields in records]
        assert counts == [len(records) for records in each]
