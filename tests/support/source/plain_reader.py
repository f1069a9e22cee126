"""A plain reader of any dialect of sources: one character after the other, by the docs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dbt.adapters.mzs3.formats.read.dialect import SourceDialect

BOM = b"\xef\xbb\xbf"
_SWAP = bytes.maketrans(b"\r\n", b"\n\r")


@dataclass(frozen=True)
class PlainRecord:
    """A record's place, its text without the line end, and its fields; None if it is malformed."""

    line: int
    byte: int
    end: int
    raw: bytes
    fields: tuple[str | None, ...] | None


def plain_records(
    data: bytes, dialect: SourceDialect, skip_lines: int = 0
) -> Iterator[PlainRecord]:
    """The records of an object without a header."""
    swaps = dialect.record_delimiter == "cr"
    data = data.translate(_SWAP) if swaps else data
    start = len(BOM) if data.startswith(BOM) else 0
    for _ in range(skip_lines):
        start = _line_end(data, start)
    while start < len(data):
        end, fields = (_left_out(data, start, dialect), None)
        if end is None:
            end, fields = _record(data, start, dialect)
            raw = data[start:end].removesuffix(b"\n")
            raw = raw.translate(_SWAP) if swaps else raw.removesuffix(b"\r")
            if fields and swaps:
                fields = [f if f is None else f.translate({10: 13, 13: 10}) for f in fields]
            place = data.count(b"\n", 0, start) + 1, start, end
            yield PlainRecord(*place, raw, None if fields is None else tuple(fields))
        start = end


def _left_out(data: bytes, start: int, dialect: SourceDialect) -> int | None:
    """Where a line ends that is no record; None if it is one."""
    if dialect.comment and data.startswith(dialect.comment.encode(), start):
        return _line_end(data, start)
    at = _blanks(data, start, dialect)
    is_blank = dialect.skip_blank_lines and (_end(data, at, dialect) or at == len(data))
    return _line_end(data, start) if is_blank else None


def _record(data: bytes, at: int, dialect: SourceDialect) -> tuple[int, list[str | None] | None]:
    delimiter, quote = dialect.delimiter.encode(), dialect.quote.encode()
    fields: list[str | None] = []
    is_sound = True
    while True:
        opening = _blanks(data, at, dialect)
        if quote and data.startswith(quote, opening):
            at, value, is_good = _quoted(data, opening + 1, dialect)
            at = _blanks(data, at, dialect)
            if at < len(data) and not (data.startswith(delimiter, at) or _end(data, at, dialect)):
                return _line_end(data, at), None
        else:
            start = at
            while at < len(data) and not (
                data.startswith(delimiter, at) or _end(data, at, dialect)
            ):
                if quote and data.startswith(quote, at) and not dialect.bare_quotes:
                    return _line_end(data, at), None
                at += 1
            value = data[start:at].strip(b" \t") if dialect.trim_space else data[start:at]
            is_good = not {*value} & {0, 13} and not (len(delimiter) > 1 and b"\x1f" in value)
            value = None if value == dialect.null.encode() else value
        is_sound &= is_good
        try:
            fields.append(None if value is None else value.decode())
        except UnicodeDecodeError:
            is_sound = False
        if data.startswith(delimiter, at):
            at += len(delimiter)
        else:
            return at + _end(data, at, dialect), fields if is_sound else None


def _quoted(data: bytes, at: int, dialect: SourceDialect) -> tuple[int, bytes, bool]:
    """The text of a field from behind its opening quote on, with its end; whether it is right."""
    quote, escape = dialect.quote.encode(), dialect.escape.encode()
    ends = [] if dialect.lines_are_records else [b"\r\n", b"\n"]
    escapable = [quote, escape, dialect.delimiter.encode(), *ends] if escape != quote else [quote]
    value, is_good = b"", True
    while at < len(data) and not (dialect.lines_are_records and data.startswith(b"\n", at)):
        after = next((e for e in escapable if data.startswith(escape + e, at)), None)
        if after is not None:
            value, at = value + after, at + len(escape + after)
        elif data.startswith(quote, at):
            return at + 1, value, is_good
        elif data.startswith(escape, at):
            is_good, at = False, at + 2
        else:
            is_good &= data[at] != 0
            value, at = value + data[at : at + 1], at + 1
    return at, value, False


def _blanks(data: bytes, at: int, dialect: SourceDialect) -> int:
    blanks = b" " if dialect.delimiter == "\t" else b" \t"
    while dialect.trim_space and at < len(data) and data[at] in blanks:
        at += 1
    return at


def _end(data: bytes, at: int, dialect: SourceDialect) -> int:
    """The length of the line end at the place; 0 without one."""
    if dialect.record_delimiter == "lf" and data.startswith(b"\r\n", at):
        return 2
    return int(data.startswith(b"\n", at))


def _line_end(data: bytes, at: int) -> int:
    return data.find(b"\n", at) + 1 or len(data)
