"""The CSV that sources read: PostgreSQL's, and what other programs write instead.

`canonical` rewrites whole chunks in PostgreSQL's dialect, which pyarrow reads; `records` finds
where records begin and end, also those that are not well-formed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from operator import add, mul, sub

from dbt.adapters.mzs3.formats.dialect import CsvDialect
from dbt.adapters.mzs3.options.option import option
from dbt.adapters.mzs3.options.values import choice, flag, text

LF, CR = "lf", "cr"
# Stands for a delimiter of several characters in canonical text.
SEPARATOR = b"\x1f"
# No text may have a NUL byte, so two bytes of which the first is one stand for others for a while.
_ESCAPED_ESCAPE, _ESCAPED_QUOTE, _REFUSED = b"\0\1", b"\0\2", b"\0\3"
_SWAP_ENDS = bytes.maketrans(b"\r\n", b"\n\r")


def delimiter_option(fields: Sequence[str], width: int) -> str:
    """The option, as in YAML, with a usual delimiter that makes so many fields of the only one;
    empty if none does."""
    usual = (",", ";", "\t", "|", "||", "::") if len(fields) == 1 < width else ()
    found = (each for each in usual if fields[0].count(each) == width - 1)
    return next((f"delimiter: {json.dumps(each)}" for each in found), "")


@dataclass(frozen=True)
class SourceDialect(CsvDialect):
    """A dialect of objects. Each option allows what is an error without it."""

    escape: str = option(text, '"', like="quote", formats=("csv",), pinned=True)
    """What makes a quote, a delimiter, a newline or itself an ordinary character, inside quotes.
    Without it, `quote`, for quotes alone."""
    record_delimiter: str = option(
        choice((LF, CR)), LF, formats=("csv",), pinned=True, after="delimiter"
    )
    """What ends a record: `lf`, a line feed, which a carriage return may precede; `cr`, a carriage
    return alone."""
    bare_quotes: bool = option(flag, False, formats=("csv",), pinned=True, after="escape")
    """`true`: a quote inside a field that does not start with one is a character like others, as
    in `5" pipe`. Each line is a record then: quoted fields hold no newlines."""
    trim_space: bool = option(flag, False, formats=("csv",), pinned=True, after="null")
    """`true`: spaces and tabs around a field, or around its quotes, are left out; with
    `delimiter: "\\t"`, spaces alone."""
    skip_blank_lines: bool = option(flag, False, formats=("csv",), pinned=True, after="trim_space")
    """`true`: blank lines are left out. `false`: each is a record of one empty field."""
    comment: str = option(text, "", formats=("csv",), pinned=True, after="skip_blank_lines")
    """What begins a line that is left out, such as `'#'`: one one-byte character. Each line is a
    record then: quoted fields hold no newlines."""

    def problems(self, _: object = None, *, of_source: bool = True) -> list[str]:
        """What PostgreSQL would refuse, and what can't be read exactly together."""
        problems = super().problems(of_source=of_source)
        delimiter, quote, escape, comment = self.delimiter, self.quote, self.escape, self.comment
        several, has_escape = len(delimiter) > 1, escape != quote
        if has_escape and not quote:
            problems.append("escape needs a quote: only quoted fields have escapes")
        if escape in {"\n", "\r"}:
            problems.append("escape cannot be newline or carriage return")
        if has_escape and escape == delimiter:
            problems.append("delimiter and escape must be different")
        if several and not {quote, escape}.isdisjoint(delimiter):
            problems.append("delimiter cannot contain quote or escape")
        if several and "\x1f" in "".join((delimiter, quote, comment, self.null)):
            problems.append("0x1f can't be used beside a delimiter of several characters")
        taken = {quote, *delimiter, *" \t\r\n\0"}
        if comment and (len(comment.encode()) != 1 or comment in taken):
            problems.append(
                "comment must be a single one-byte character, and no quote, delimiter or blank"
            )
        if comment and self.null.startswith(comment):
            problems.append("comment must not begin the null specification")
        marks = (delimiter.strip("\t"), quote, escape, self.null)
        if self.trim_space and any(mark.startswith((" ", "\t")) for mark in marks):
            problems.append(
                "trim_space needs a delimiter, quote, escape and null that do not begin with a "
                "blank"
            )
        if self.bare_quotes and not quote:
            problems.append("bare_quotes needs a quote: without one, every quote is bare")
        if self.bare_quotes and self.rules_out_bare_quotes:
            problems.append(
                "bare_quotes can't be combined with escape, trim_space or a delimiter of several "
                "characters, as it would be unclear where fields end"
            )
        return problems

    @property
    def _marks(self) -> tuple[bytes, bytes, bytes]:
        return self.delimiter.encode(), self.quote.encode(), self.escape.encode()

    def ends_swapped(self, data: bytes) -> bytes:
        """The text; if records end in carriage returns, with these and line feeds swapped."""
        return data.translate(_SWAP_ENDS) if self.record_delimiter == CR else data

    @property
    def canonical_dialect(self) -> SourceDialect:
        """The dialect of canonical text."""
        delimiter = self.delimiter if len(self.delimiter) == 1 else SEPARATOR.decode()
        return replace(self, delimiter=delimiter, escape=self.quote, trim_space=False)

    @property
    def is_canonical(self) -> bool:
        """Whether all text is canonical as it is, and is PostgreSQL's."""
        strict = not (self.bare_quotes or self.trim_space or self.skip_blank_lines or self.comment)
        usual = len(self.delimiter) == 1 and self.record_delimiter == LF
        return strict and usual and self.escape == self.quote

    @property
    def rules_out_bare_quotes(self) -> bool:
        """Whether `bare_quotes` is refused beside the other options."""
        return self.trim_space or len(self.delimiter) > 1 or self.escape != self.quote

    @property
    def lines_are_records(self) -> bool:
        """Whether each newline ends a record, as none is inside quotes."""
        return not self.quote or self.bare_quotes or bool(self.comment)

    @property
    def line_end(self) -> bytes:
        """The pattern of what ends a line."""
        return rb"\n" if self.record_delimiter == CR else rb"\r?\n"

    @property
    def escapable(self) -> tuple[bytes, ...]:
        """What an escape may precede."""
        delimiter, quote, escape = self._marks
        ends = (b"\n",) if self.record_delimiter == CR else (b"\r\n", b"\n")
        return (quote,) if escape == quote else (quote, escape, delimiter, *ends)

    def text_outside_quotes(self, excluded: bytes) -> bytes:
        """The pattern of a field's text without quotes and these characters, all up to there."""
        if not self.bare_quotes:
            excluded += re.escape(self.quote.encode())
        first, rest = self.delimiter[0].encode(), self.delimiter[1:].encode()
        others = rb"[^%b%b]*" % (excluded, re.escape(first))
        if not rest:
            return others
        # A delimiter's first character is text if the others do not follow.
        return rb"%b(?:%b(?!%b)%b)*" % (others, re.escape(first), re.escape(rest), others)

    @property
    def filled_field(self) -> str:
        """The pattern of a well-formed field that is not empty, in canonical text."""
        delimiter, quote = re.escape(self.delimiter), re.escape(self.quote)
        first = rf"[^{delimiter}{quote}\r\n\x00]"
        text = rf"{first}[^{delimiter}{'' if self.bare_quotes else quote}\r\n\x00]*"
        if not quote:
            return text
        newline = r"\n" if self.lines_are_records else ""
        inside = rf"[^{quote}{newline}\x00]*"
        return rf"(?:{quote}{inside}(?:{quote}{quote}{inside})*{quote}|{text})"

    def fields(self, count: int) -> str:
        """The pattern of a record's first fields, of which it has more, in canonical text."""
        field = rf"(?:{self.filled_field})?"
        return rf"{field}(?:{re.escape(self.delimiter)}{field}){{{count - 1}}}"

    def padded(self, data: bytes, count: int) -> bytes:
        """These well-formed records, canonical and without bare quotes, with NULL for each field
        that they lack of `count`; all passes are in C."""
        delimiter, quote, _ = self._marks
        pieces = data.removesuffix(b"\n").split(quote) if quote else [data.removesuffix(b"\n")]
        lines = quote.join(pieces[::2]).replace(b"\r\n", b"\n").removesuffix(b"\r").split(b"\n")
        lacks = map(sub, repeat(count - 1), map(bytes.count, lines, repeat(delimiter)))
        fields = map(mul, repeat(delimiter + self.null.encode()), lacks)
        outside = b"\n".join(map(add, lines, fields))
        pieces[::2] = outside.split(quote) if quote else [outside]
        return quote.join(pieces) + b"\n"

    def with_own_delimiter(self, text: str) -> str:
        """Canonical text whose fields stand between delimiters of the dialect."""
        pieces = text.split(self.quote) if self.quote else [text]
        own, separator = self.delimiter, self.canonical_dialect.delimiter
        pieces[::2] = [piece.replace(separator, own) for piece in pieces[::2]]
        return self.quote.join(pieces)

    @property
    def can_be_cut(self) -> bool:
        """Whether newlines, and the number of quotes before them, say where records end."""
        has_escapes = self.escape != self.quote and not self.lines_are_records
        return self.record_delimiter == LF and not has_escapes

    def without_escapes(self, data: bytes) -> bytes:
        """Data of the same length whose quotes all begin or end a field, or are one of two."""
        if self.escape == self.quote:
            return data
        _, quote, escape = self._marks
        return data.replace(escape * 2, b"__").replace(escape + quote, b"__")

    def canonical(self, data: bytes) -> bytes:
        """These records in `canonical_dialect`, without lines that are left out.

        The result is well-formed exactly if the records are. A few passes in C.
        """
        if self.is_canonical or not data:
            return data
        if not data.endswith((b"\n", b"\r")):
            data += b"\n"  # a last line of nothing but blanks is a line
        if self.comment:
            data = self.left_out.sub(b"", data)
        if self.bare_quotes or not self.quote:
            return self._canonical_outside(data)
        _, quote, escape = self._marks
        if escape != quote:
            data = data.replace(b"\0", _REFUSED).replace(escape * 2, _ESCAPED_ESCAPE)
            data = data.replace(escape + quote, _ESCAPED_QUOTE)
        pieces = data.split(quote)
        outside, inside = quote.join(pieces[::2]), quote.join(pieces[1::2])
        outside = self._canonical_outside(outside)
        if escape != quote:
            # PostgreSQL knows escapes only inside quotes. Other programs also escape what would
            # end a field; an escape of anything else has no meaning that all agree on.
            for _ in range(2):  # where two quotes meet, programs disagree
                outside = outside.replace(quote * 2, quote + _REFUSED + quote)
            outside = outside.replace(_ESCAPED_ESCAPE, escape * 2)
            outside = outside.replace(_ESCAPED_QUOTE, _REFUSED)
            for each in self.escapable[2:]:
                inside = inside.replace(escape + each, each)
            inside = inside.replace(escape, _REFUSED).replace(_ESCAPED_ESCAPE, escape)
        pieces[::2] = outside.split(quote)
        pieces[1::2] = inside.split(quote) if len(pieces) > 1 else []
        return quote.join(pieces).replace(_ESCAPED_QUOTE, quote * 2)

    def _canonical_outside(self, outside: bytes) -> bytes:
        """Text outside quotes, in which one quote stands for each quoted text."""
        if len(self.delimiter) > 1:
            outside = outside.replace(SEPARATOR, _REFUSED)
            outside = outside.replace(self.delimiter.encode(), SEPARATOR)
        if self.trim_space:
            outside = self._trimmed(outside)
        if self.skip_blank_lines:  # those of blanks alone are empty by now
            outside = re.compile(b"^" + self.line_end, re.MULTILINE).sub(b"", outside)
        return outside

    def _trimmed(self, outside: bytes) -> bytes:
        # A search is fastest for a pattern that starts with a literal, so that the text is
        # reversed to find blanks before one. Blanks between a carriage return and a newline stay:
        # without them, both would seem to be a line's end.
        delimiter = self.canonical_dialect.delimiter.encode()
        blanks = self._blank + b"+"
        ends = [b"\n"] if self.record_delimiter == CR else [b"\n\r", b"\n"]
        for mark in (delimiter, b"\n"):
            outside = re.sub(re.escape(mark) + blanks, mark.replace(b"\\", b"\\\\"), outside)
        outside = outside.lstrip(b" " if self.delimiter == "\t" else b" \t")[::-1]
        for mark in (delimiter, *ends):
            before = rb"%b%b(?!%b|\r)" % (re.escape(mark), blanks, self._blank)
            outside = re.sub(before, mark.replace(b"\\", b"\\\\"), outside)
        return outside[::-1]

    @property
    def _blank(self) -> bytes:
        return b"[ ]" if self.delimiter == "\t" else b"[ \t]"

    @property
    def blanks(self) -> bytes:
        """The pattern of what is left out around fields and quotes; empty if nothing is."""
        return self._blank + b"*" if self.trim_space else b""

    @property
    def left_out(self) -> re.Pattern[bytes]:
        """A line that is left out, with its end."""
        kinds = [rb"%b[^\n]*" % re.escape(self.comment.encode())] if self.comment else []
        if self.skip_blank_lines:
            kinds.append(self.blanks)
        # The last line may lack its end, but nothing at all is no line.
        line = rb"^(?!\Z)(?:%b)(?:%b|\Z)" % (b"|".join(kinds or [b"(?!)"]), self.line_end)
        return re.compile(line, re.MULTILINE)

    @property
    def records(self) -> re.Pattern[bytes]:
        """Matches one record after another, and lines that are left out, all of the data.

        The groups: `out`, a line that is left out; `good`; `open`, a record with a quote that is
        not closed in the data; `bad`, which ends where a line does.
        """
        delimiter, quote, escape = map(re.escape, self._marks)
        blanks = self.blanks
        bare = self.text_outside_quotes(rb"\n")
        separator = SEPARATOR if len(self.delimiter) > 1 else b""
        plain = self.text_outside_quotes(rb"\r\n\0" + separator)
        opened = closed = sound = b"(?!)"
        if quote:
            newline = rb"\n" if self.lines_are_records else b""
            after = [escape, quote, delimiter, *([] if newline else [self.line_end])]
            pair = quote * 2 if escape == quote else escape + (b"." if newline else b"(?s:.)")
            text = rb"[^%b%b%b]*" % (quote, escape, newline)
            text = rb"%b(?:%b%b)*" % (text, pair, text)
            opened = rb"%b%b%b" % (blanks, quote, text)
            closed = rb"%b%b%b" % (opened, quote, blanks)
            if escape != quote:
                pair = rb"%b(?:%b)" % (escape, b"|".join(after))
            text = rb"[^\0%b%b%b]*" % (quote, escape, newline)
            sound = rb"%b%b%b(?:%b%b)*%b%b" % (blanks, quote, text, pair, text, quote, blanks)
            bare, plain = (rb"(?!%b)%b" % (quote, each) for each in (bare, plain))
        before = rb"(?:(?:%b|%b)%b)*" % (closed, bare, delimiter)
        field = rb"(?:%b|%b)" % (sound, plain)
        kinds = {
            "out": self.left_out.pattern,
            "good": rb"%b(?:%b%b)*(?:%b|\Z)" % (field, delimiter, field, self.line_end),
            "open": rb"%b%b(?:%b)?\Z" % (before, opened, escape if escape != quote else b""),
            "bad": rb"%b(?:%b)?[^\n]*(?:\n|\Z)" % (before, closed),
        }
        pattern = b"|".join(b"(?P<%b>%b)" % (name.encode(), each) for name, each in kinds.items())
        return re.compile(rb"(?!\Z)(?:%b)" % pattern, re.MULTILINE)


LINES = SourceDialect(delimiter="\0", quote="", escape="", null="\0")
"""Each line is a record; unlike any dialect that a source may have."""
