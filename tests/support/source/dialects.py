"""Dialects of sources, text in them, and its rows as the plain reader finds them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from dbt.adapters.mzs3.formats.read.dialect import SourceDialect
from support.source.plain_reader import PlainRecord

DIALECTS = st.builds(
    SourceDialect,
    delimiter=st.sampled_from([",", "||", ", ", "§§", "\t"]),
    quote=st.sampled_from(['"', '"', "'", ""]),
    escape=st.sampled_from(["\\", '"', '"', "'", ""]),
    null=st.sampled_from(["", "\\N"]),
    record_delimiter=st.sampled_from(["lf", "lf", "cr"]),
    bare_quotes=st.booleans(),
    trim_space=st.booleans(),
    skip_blank_lines=st.booleans(),
    comment=st.sampled_from(["", "", "#"]),
).filter(lambda dialect: not dialect.problems())
"""All that a source may have."""


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


@st.composite
def records(draw: Any, dialect: SourceDialect) -> bytes:
    """Text of records of which most are well-formed, with lines that may be none."""
    delimiter, quote = dialect.delimiter, dialect.quote
    newline = " " if dialect.lines_are_records else "\n"
    fields = ["", "1", "\\N", "é", 'x" y' if dialect.bare_quotes else " z"]
    if quote:
        fields += [
            f"{quote}{text}{quote}" for text in ("", f"a{newline}b", f"{newline}{delimiter}")
        ]
        fields.append(f"{quote}{dialect.escape}{quote}{newline}{quote}")
    widths = st.sampled_from([2, 2, 2, 1, 3])
    lines = widths.flatmap(lambda width: st.tuples(*[st.sampled_from(fields)] * width))
    others = [quote, "1", "", "#", f"1{delimiter}\xff", delimiter * 2, f"a{quote}{delimiter}"]
    drawn = draw(st.lists(lines.map(delimiter.join), max_size=8))
    if draw(st.booleans()):
        drawn.insert(draw(st.integers(0, len(drawn))), draw(st.sampled_from(others)))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    return (end.join(drawn) + end * draw(st.booleans())).encode()


def plain_rows(
    records: Sequence[PlainRecord],
    dialect: SourceDialect,
    width: int,
    *,
    fills: bool = False,
    cuts: bool = False,
) -> dict[int, tuple[str | None, ...]]:
    """The fields of the good records, at least `width`, by number from 1."""
    blanks = b"" if not dialect.trim_space else b" " if dialect.delimiter == "\t" else b" \t"
    return {
        number: (*record.fields, *[None] * (width - len(record.fields)))
        for number, record in enumerate(records, 1)
        if record.fields is not None
        and (len(record.fields) >= width or (fills and record.raw.lstrip(blanks)))
        and (len(record.fields) <= width or cuts)
    }
