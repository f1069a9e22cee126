"""Finds where CSV records begin and end: field by field for one, by bytes for whole chunks."""

from __future__ import annotations

import itertools
import operator
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from dbt.adapters.mzs3.formats.read.dialect import CR, SEPARATOR, SourceDialect
from dbt.adapters.mzs3.formats.read.encoding import invalid_byte, invalid_utf8

# The first window after a misplaced quote, which may have others near it.
WINDOW_BYTES = 4 * 1024


class MalformedRecord(Exception):
    """What is wrong with a record, in its field `number`, counted from 1.

    `option` is the option of a source, with its value, that allows this; empty if none does.
    """

    def __init__(self, number: int, problem: str, option: str = "") -> None:
        self.number = number
        self.option = option
        super().__init__(f"column {number} {problem}")


def first_record(
    data: bytes, dialect: SourceDialect, encoding: str
) -> tuple[tuple[str, ...], int]:
    """The fields of the first record in the data, as text, and where the next record starts.

    The last record may lack its line end. A blank line is a record with one empty field. Messages
    name the object's `encoding`. Slow: for headers and bad records. Raises MalformedRecord.
    """
    delimiter, quote = dialect.delimiter.encode(), dialect.quote.encode()
    if dialect.lines_are_records:
        data = data[: data.find(b"\n") + 1 or len(data)]
    blanks = re.compile(dialect.blanks)
    text = re.compile(dialect.text_outside_quotes(rb"\r\n"))
    after_field = re.compile(b"%b|%b|\\Z" % (re.escape(delimiter), dialect.line_end))
    fields: list[str] = []
    position = 0
    while True:
        number = len(fields) + 1
        start = position
        position = _end(blanks, data, position)
        if quote and data.startswith(quote, position):
            raw, position = _quoted_field(data, position + 1, dialect, number)
            position = _end(blanks, data, position)
            follows = data[position : position + 1]
            if not (data.startswith(delimiter, position) or follows in b"\r\n"):
                option = _quote_option(data, position, dialect)
                raise MalformedRecord(number, "has text behind its closing quote", option)
        else:
            position = _end(text, data, position)
            raw = data[start:position]
            raw = raw.strip(b" \t") if dialect.trim_space else raw
            if quote and data.startswith(quote, position):
                problem = "has a quote inside a field that does not start with one"
                option = "" if dialect.rules_out_bare_quotes else "bare_quotes: true"
                option = option if raw.strip(b" \t") else "trim_space: true"
                raise MalformedRecord(number, problem, option)
            if len(delimiter) > 1 and SEPARATOR in raw:
                problem = (
                    "has the byte 0x1f, which unquoted fields can't hold beside a delimiter of "
                    "several characters"
                )
                raise MalformedRecord(number, problem)
        fields.append(_text(raw, number, encoding))
        found = after_field.match(data, position)
        if found is None and dialect.record_delimiter == CR:
            raise MalformedRecord(number, "has a line feed outside quotes")
        if found is None:
            problem = "has a carriage return outside quotes that no newline follows"
            raise MalformedRecord(number, problem, "record_delimiter: cr")
        position = found.end()
        if found.group() != delimiter:
            return tuple(fields), position


def _quote_option(data: bytes, position: int, dialect: SourceDialect) -> str:
    """The option that allows text behind what seemed to be a closing quote, before `position`."""
    if dialect.bare_quotes or dialect.escape != dialect.quote:
        return ""
    if data.endswith(b"\\" + dialect.quote.encode(), 0, position):
        return "escape: '\\'"
    after = rb"[ \t]+(?:%b|%b|\Z)" % (re.escape(dialect.delimiter.encode()), dialect.line_end)
    return "trim_space: true" if re.compile(after).match(data, position) else ""


def _end(pattern: re.Pattern[bytes], data: bytes, position: int) -> int:
    """Where the match of the pattern at the position ends, which may be empty."""
    found = pattern.match(data, position)
    return position if found is None else found.end()


def _quoted_field(
    data: bytes, start: int, dialect: SourceDialect, number: int
) -> tuple[bytes, int]:
    """The text of a field from behind its opening quote on, and where the field ends."""
    quote, escape = dialect.quote.encode(), dialect.escape.encode()
    marks = re.compile(b"%b|%b" % (re.escape(quote), re.escape(escape)))
    parts: list[bytes] = []
    while (found := marks.search(data, start)) is not None:
        parts.append(data[start : found.start()])
        start = found.end()
        escapable = dialect.escapable if found.group() == escape else ()
        after = next((each for each in escapable if data.startswith(each, start)), None)
        if after is not None:
            parts.append(after)
            start += len(after)
        elif found.group() == quote:
            return b"".join(parts), start
        else:
            raise MalformedRecord(number, "has an escape before a character that needs none")
    where = " in its line" if dialect.lines_are_records else ""
    raise MalformedRecord(number, f"has a quoted field that is not closed{where}")


def _text(raw: bytes, number: int, encoding: str) -> str:
    if b"\0" in raw:
        raise MalformedRecord(number, "has a NUL byte")
    try:
        return raw.decode()
    except UnicodeDecodeError as exc:
        byte = invalid_byte(raw, exc.start, encoding)
        name = encoding.upper() if encoding.startswith("utf") else encoding
        raise MalformedRecord(number, f"is not valid {name}: byte 0x{byte:02x}") from None


@dataclass(frozen=True)
class Cut:
    """Where each record of `data` starts and ends, and the `end` of what was cut.

    Lines that are left out may be between records. `malformed` has the numbers, from 0, of the
    records that `first_record` refuses, and of blank lines where these are not allowed. If
    `quotes_misplaced`, a quote may be the reason for one of them.
    """

    data: bytes
    starts: Sequence[int]
    ends: Sequence[int]
    end: int
    malformed: set[int]
    quotes_misplaced: bool

    def well_formed(self) -> bytes:
        """The data without its malformed records."""
        parts: list[bytes] = []
        start = 0
        for number in sorted(self.malformed):
            parts.append(self.data[start : self.starts[number]])
            start = self.ends[number]
        parts.append(self.data[start : self.end])
        return b"".join(parts)


def cut_records(data: bytes, dialect: SourceDialect, *, last: bool, blank_is_wrong: bool) -> Cut:
    """The records of data that begins with a record.

    An unfinished record at the end, after `Cut.end`, is left out unless the data is the `last`.
    """
    if not dialect.is_canonical:
        return _matched_records(data, dialect, last=last, blank_is_wrong=blank_is_wrong)
    masked, misplaced = _masked_records(data, dialect, last=last)
    if not masked:
        return Cut(data, [], [], 0, set(), quotes_misplaced=False)
    # All loops run in C: `itertools.count` adds the line ends, one byte each.
    lengths = list(map(len, masked.removesuffix(b"\n").split(b"\n")))
    ends = itertools.accumulate(lengths[:-1], initial=0)
    starts = list(map(operator.add, ends, itertools.count()))
    wrong = misplaced + invalid_utf8(data)
    if b"\0" in data:
        wrong += [found.start() for found in re.finditer(b"\0", data)]
    if b"\r" in masked and masked.count(b"\r") != masked.count(b"\r\n"):
        wrong += [found.start() for found in re.finditer(rb"\r(?!\n)", masked)]
    if blank_is_wrong and (0 in lengths or 1 in lengths):
        wrong += [
            start
            for start, length in zip(starts, lengths, strict=True)
            if length < 2 and data.startswith((b"\n", b"\r\n"), start)
        ]
    malformed = {bisect_right(starts, place) - 1 for place in wrong if place < len(masked)}
    return Cut(data, starts, [*starts[1:], len(masked)], len(masked), malformed, bool(misplaced))


def _matched_records(
    data: bytes, dialect: SourceDialect, *, last: bool, blank_is_wrong: bool
) -> Cut:
    """See `cut_records`. For any dialect; far slower, as it matches record by record."""
    starts: list[int] = []
    ends: list[int] = []
    malformed: set[int] = set()
    quotes_misplaced = False
    whole = len(data)
    is_utf8 = not invalid_utf8(data)
    blank = re.compile(b"%b(?:%b)?" % (dialect.blanks, dialect.line_end))
    for found in dialect.records.finditer(data):
        (start, end), kind = found.span(), found.lastgroup
        if end == len(data) and not last and (kind == "open" or data[-1:] != b"\n"):
            whole = start
            break
        if kind == "out":
            continue
        quotes_misplaced |= kind != "good" and not dialect.lines_are_records
        is_blank = blank_is_wrong and blank.fullmatch(data, start, end)
        if kind != "good" or is_blank or not (is_utf8 or not invalid_utf8(found.group())):
            malformed.add(len(starts))
        starts.append(start)
        ends.append(end)
    return Cut(data, starts, ends, whole, malformed, quotes_misplaced)


def _masked_records(data: bytes, dialect: SourceDialect, *, last: bool) -> tuple[bytes, list[int]]:
    """The data up to the end of its last record, masked, and the places of misplaced quotes.

    The mask has delimiters in place of text inside quotes, and of records with a misplaced quote
    except their line ends.
    """
    # In one pass: all data up to the first misplaced quote, then small windows.
    delimiter, quote = dialect.delimiter.encode(), dialect.quote.encode()
    if not quote:
        return data if last else data[: data.rfind(b"\n") + 1], []
    stray_quote = _stray_quote(dialect)
    parts: list[bytes] = []
    misplaced: list[int] = []
    end, window = 0, len(data)
    while end < len(data):
        start = end
        masked = _mask(data[start : start + window], delimiter, quote)
        stray = stray_quote.search(masked)
        whole = masked.rfind(b"\n", 0, stray.start() if stray else len(masked)) + 1
        parts.append(masked[:whole])
        end += whole
        if stray is not None:
            place = start + stray.start()
            newline = data.find(b"\n", place)
            if newline < 0 and not last:
                break
            misplaced.append(place)
            following = len(data) if newline < 0 else newline
            parts.append(delimiter * (following - end) + data[following : following + 1])
            end = min(following + 1, len(data))
            window = WINDOW_BYTES
        elif start + window >= len(data):
            if last:  # it may lack its newline, or a closing quote
                parts.append(masked[whole:])
                if data.count(quote, end) % 2:
                    misplaced.append(end)
            break
        else:
            window *= 2
    return b"".join(parts), misplaced


def has_stray_quote(data: bytes, dialect: SourceDialect) -> bool:
    """Whether a quote stands where none can, in data that may end inside a quoted field."""
    delimiter = dialect.delimiter.encode()
    data, dialect = dialect.canonical(data), dialect.canonical_dialect
    for length in range(len(delimiter) - 1, 0, -1):  # the data may end inside a delimiter
        data = data.removesuffix(delimiter[:length] + b"\n")
    masked = _mask(data, dialect.delimiter.encode(), dialect.quote.encode())
    return _stray_quote(dialect).search(masked) is not None


def _stray_quote(dialect: SourceDialect) -> re.Pattern[bytes]:
    """A quote after text, or before text, in masked data.

    No field begins after a carriage return, but one may end before it, at a line's end.
    """
    # A search is fastest for a pattern that starts with a literal.
    quote = re.escape(dialect.quote.encode())
    others = re.escape(dialect.delimiter.encode()) + quote
    return re.compile(b"%b(?:(?<=[^\n%b]%b)|(?=[^\r\n%b]))" % (quote, others, quote, others))


def _mask(data: bytes, delimiter: bytes, quote: bytes) -> bytes:
    if quote not in data:
        return data
    pieces = data.split(quote)
    pieces[1::2] = [delimiter * len(piece) for piece in pieces[1::2]]
    return quote.join(pieces)
