"""Whether a chunk of CSV is plain: nothing in it that readers of CSV understand differently."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc


def is_plain(data: bytes, delimiter: bytes, quote: bytes, *, one_column: bool) -> bool:
    """Whether whole records have only what pyarrow reads as PostgreSQL does.

    False for: NUL bytes; a quote inside a field that does not start with one; text behind a
    closing quote; a quoted field that is not closed; a carriage return outside quotes that no
    newline follows; a blank line where there is more than one column. What makes it false is
    for `locate` to find. A few passes over the bytes in C, none over records.
    """
    if b"\0" in data:
        return False
    outside = data
    if quote in data:
        pieces = data.split(quote)
        if len(pieces) % 2 == 0:
            return False
        outside = _outside(pieces, quote)
        if _has_stray_quote(outside, delimiter, quote):
            return False
    if b"\r" in outside and outside.count(b"\r") != outside.count(b"\r\n"):
        return False
    return one_column or not _has_blank_line(outside)


def has_stray_quote(data: bytes, delimiter: bytes, quote: bytes) -> bool:
    """Whether a quote stands where none can, in data that may end inside a quoted field."""
    pieces = data.split(quote)
    outside = _outside(pieces, quote)
    if len(pieces) % 2 == 0:
        # The last piece is inside, so a quote follows the last one outside.
        outside += quote
    return _has_stray_quote(outside, delimiter, quote)


def _outside(pieces: list[bytes], quote: bytes) -> bytes:
    # Every second piece is outside quotes; the pieces inside are left out.
    return quote.join(pieces[::2])


def _has_stray_quote(outside: bytes, delimiter: bytes, quote: bytes) -> bool:
    # A quoted field stands between delimiters and line ends, and two quotes that touch are one
    # quote in a field, so what is outside and not empty starts and ends with one of these.
    # Reversed for the other side: a pattern that starts with a literal is searched for fastest.
    # A carriage return begins a line's end, so it can only be behind a field.
    none_of = re.escape(delimiter + quote)
    before_text = re.compile(re.escape(quote) + b"[^\r\n" + none_of + b"]")
    behind_text = re.compile(re.escape(quote) + b"[^\n" + none_of + b"]")
    return bool(before_text.search(outside) or behind_text.search(outside[::-1]))


def _has_blank_line(outside: bytes) -> bool:
    if outside.startswith((b"\n", b"\r\n")):
        return True
    # pyarrow's search is several times faster than Python's for two newlines in a row.
    return bool(pc.match_substring_regex(pa.scalar(outside), r"\n\r?\n").as_py())
