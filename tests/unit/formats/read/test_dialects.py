"""Sources read every dialect that they allow as a plain reader does, however an object is cut."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.examples import examples
from support.s3.stored_objects import stored
from support.source.dialects import DIALECTS, plain_rows, texts
from support.source.fields import columns, read, rows
from support.source.plain_reader import plain_records
from support.source.rejecting import read_all

from dbt.adapters.mzs3.formats.read.csv import CsvFormat
from dbt.adapters.mzs3.formats.read.dialect import SourceDialect
from dbt.adapters.mzs3.formats.read.format import Reading

S = "string"
unusual = DIALECTS.filter(lambda dialect: not dialect.is_canonical)


def _has_lines(data: bytes, dialect: SourceDialect, count: int) -> bool:
    """Whether the text is empty, or has at least so many lines."""
    end = b"\r" if dialect.record_delimiter == "cr" else b"\n"
    return not data or len(data.removesuffix(end).split(end)) >= count


@examples(2000)
@given(
    st.data(),
    unusual,
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
    good, bad = read_all(
        text,
        *[S] * width,
        dialect=dialect,
        block_bytes=block,
        skip_lines=skip_lines,
        missing_columns=missing_columns,
        extra_columns=extra_columns,
    )
    fits = {"fills": missing_columns == "null", "cuts": extra_columns != "fail"}
    wanted = {
        number: (*fields[:width], *[fields[width:]] * (extra_columns == "rescue"))
        for number, fields in plain_rows(expected, dialect, width, **fits).items()
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


@pytest.mark.parametrize("delimiter", ["||", "§§"])
@pytest.mark.parametrize("block", range(1, 11))
def test_a_block_may_end_inside_a_delimiter_behind_a_quote(block: int, delimiter: str) -> None:
    text = f'""{delimiter}"b"\n'.encode()
    found = read(text, S, S, dialect=SourceDialect(delimiter), block_bytes=block)
    assert found == [("", "b")]


def _fields_of(rescued: str | None, dialect: SourceDialect) -> tuple[str | None, ...] | None:
    """The fields of a rescued text, in which quotes are doubled, and blanks are left out."""
    if rescued is None:
        return ()
    plain = replace(dialect, escape=dialect.quote, comment="", skip_blank_lines=False)
    end = "\r" if dialect.record_delimiter == "cr" else "\n"
    [record] = plain_records((rescued + end).encode(), plain)
    return record.fields


@examples(500)
@given(st.data(), unusual, st.integers(1, 2))
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
