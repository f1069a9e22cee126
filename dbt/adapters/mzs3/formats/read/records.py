"""Records told apart by their bytes, and the first of them as a header."""

from __future__ import annotations

import itertools
import operator
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dbt.adapters.mzs3.formats.dialect import CsvDialect
from dbt.adapters.mzs3.formats.read.chunks import Chunk
from dbt.adapters.mzs3.formats.read.columns import RecordLayout
from dbt.adapters.mzs3.formats.read.encoding import invalid_byte, invalid_utf8
from dbt.adapters.mzs3.formats.read.format import EXACT, SUBSET, Reading
from dbt.adapters.mzs3.formats.read.object_error import HEADER, HeaderProblem, shown

# Where a quote is wrong, the next is perhaps near.
WINDOW_BYTES = 4 * 1024


class MalformedRecord(Exception):
    """What is wrong with a record; `number` is that of the field, from 1."""

    def __init__(self, number: int, problem: str) -> None:
        self.number = number
        super().__init__(f"column {number} {problem}")


def first_record(data: bytes, dialect: CsvDialect, encoding: str) -> tuple[tuple[str, ...], int]:
    """The fields of the record that the data starts with, as text, and where the next one starts.

    The last record may lack its line end. A blank line is a record with one empty field.
    `encoding` is that of the object, for messages. Slow: for headers, and for what is wrong with a
    record. Raises MalformedRecord.
    """
    delimiter, quote = dialect.delimiter.encode(), dialect.quote.encode()
    bare = re.compile(b"[^\r\n%b]*" % re.escape(delimiter + quote))
    behind_field = re.compile(b"%b|\r?\n|\\Z" % re.escape(delimiter))
    fields: list[str] = []
    position = 0
    while True:
        number = len(fields) + 1
        if quote and data.startswith(quote, position):
            raw, position = _quoted_field(data, position, quote, number)
            if data[position : position + 1] not in (delimiter, b"\r", b"\n", b""):
                raise MalformedRecord(number, "has text behind its closing quote")
        else:
            found = bare.match(data, position)
            assert found is not None
            raw, position = found.group(), found.end()
            if quote and data.startswith(quote, position):
                problem = "has a quote inside a field that does not start with one"
                raise MalformedRecord(number, problem)
        fields.append(_text(raw, number, encoding))
        found = behind_field.match(data, position)
        if found is None:
            problem = "has a carriage return outside quotes that no newline follows"
            raise MalformedRecord(number, problem)
        position = found.end()
        if found.group() != delimiter:
            return tuple(fields), position


def _quoted_field(data: bytes, start: int, quote: bytes, number: int) -> tuple[bytes, int]:
    """The text of the field whose opening quote is at `start`, and where the field ends."""
    parts: list[bytes] = []
    while True:
        end = data.find(quote, start + 1)
        if end < 0:
            raise MalformedRecord(number, "has a quoted field that is not closed")
        parts.append(data[start + 1 : end])
        start = end + 1
        if not data.startswith(quote, start):
            return quote.join(parts), start


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
    """The records of `data`, which starts with one: where each starts, and the `end` of the last.

    `malformed` has the numbers, from 0, of those that `first_record` refuses, and of blank lines
    where one is wrong.
    """

    data: bytes
    starts: list[int]
    end: int
    malformed: set[int]

    def end_of(self, number: int) -> int:
        """Where a record ends, its line end included."""
        return self.starts[number + 1] if number + 1 < len(self.starts) else self.end

    def well_formed(self) -> bytes:
        """The data without its malformed records."""
        parts: list[bytes] = []
        start = 0
        for number in sorted(self.malformed):
            parts.append(self.data[start : self.starts[number]])
            start = self.end_of(number)
        parts.append(self.data[start : self.end])
        return b"".join(parts)


def cut_records(data: bytes, dialect: CsvDialect, *, last: bool, blank_is_wrong: bool) -> Cut:
    """The records of data that starts with one.

    A record whose end is not there is left, behind `Cut.end`, unless the data is the `last`.
    """
    masked, wrong = _masked_records(data, dialect, last=last)
    if not masked:
        return Cut(data, [], 0, set())
    # In C throughout: the line ends, one byte each, are added by counting.
    lengths = list(map(len, masked.removesuffix(b"\n").split(b"\n")))
    ends = itertools.accumulate(lengths[:-1], initial=0)
    starts = list(map(operator.add, ends, itertools.count()))
    wrong += invalid_utf8(data)
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
    return Cut(data, starts, len(masked), malformed)


def _masked_records(data: bytes, dialect: CsvDialect, *, last: bool) -> tuple[bytes, list[int]]:
    """The data to the end of its last record, and the places of quotes that are wrong.

    All inside quotes is replaced by delimiters, and so are records with a quote that is wrong,
    but for their line ends.
    """
    # Goes over the data once, in one piece until a quote is wrong, then in small ones.
    delimiter, quote = dialect.delimiter.encode(), dialect.quote.encode()
    if not quote:
        return data if last else data[: data.rfind(b"\n") + 1], []
    literal, others = re.escape(quote), re.escape(delimiter + quote)
    # Behind text, or before it: a pattern that starts with a literal is searched for fastest.
    # No field begins behind a carriage return; one may end before it, that of a line's end.
    stray_quote = re.compile(
        b"%b(?:(?<=[^\n%b]%b)|(?=[^\r\n%b]))" % (literal, others, literal, others)
    )
    parts: list[bytes] = []
    wrong: list[int] = []
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
            wrong.append(place)
            following = len(data) if newline < 0 else newline
            parts.append(delimiter * (following - end) + data[following : following + 1])
            end = min(following + 1, len(data))
            window = WINDOW_BYTES
        elif start + window >= len(data):
            if last:  # perhaps it has no newline, or a quote is not closed
                parts.append(masked[whole:])
                if data.count(quote, end) % 2:
                    wrong.append(end)
            break
        else:
            window *= 2
    return b"".join(parts), wrong


def _mask(data: bytes, delimiter: bytes, quote: bytes) -> bytes:
    if quote not in data:
        return data
    pieces = data.split(quote)
    pieces[1::2] = [delimiter * len(piece) for piece in pieces[1::2]]
    return quote.join(pieces)


FIX_HEADER = (
    "Correct the object or remove it, or narrow `pattern` so that it is left out, then run again"
)


def split_header(
    chunk: Chunk, dialect: CsvDialect, encoding: str
) -> tuple[tuple[str, ...], Chunk]:
    """The names in a chunk's first record, and the chunk behind it. Raises HeaderProblem."""
    try:
        names, end = first_record(chunk.data, dialect, encoding)
    except MalformedRecord as malformed:
        raise malformed_header(str(malformed), chunk.line, chunk.byte) from malformed
    return names, chunk.after(end)


def without_header(
    chunk: Chunk, pinned: Sequence[str], dialect: CsvDialect, reading: Reading
) -> tuple[RecordLayout, Chunk]:
    """The layout of the records, and the first chunk without the header.

    Raises HeaderProblem, also for a malformed one.
    """
    found, rest = split_header(chunk, dialect, reading.encoding)
    return layout_of(found, pinned, reading.header_match, chunk), rest


def layout_of(
    found: Sequence[str], pinned: Sequence[str], match: str, chunk: Chunk | None = None
) -> RecordLayout:
    """Where the columns are in records with this header: one field for each pinned name.

    Case and spaces count. Raises HeaderProblem, for where the chunk is, if they do not match.
    """
    if match == EXACT:
        difference = header_difference(found, pinned)
    else:
        difference = any_order_difference(found, pinned, match)
    if difference is not None:
        line, byte = (chunk.line, chunk.byte) if chunk else (None, None)
        raise HeaderProblem(difference, FIX_HEADER, line=line, byte=byte, cause=HEADER)
    if match == EXACT:
        return RecordLayout.in_order(len(pinned))
    positions = {name: position for position, name in enumerate(found)}
    return RecordLayout(len(found), tuple(positions[name] for name in pinned))


def malformed_header(problem: str, line: int | None, byte: int | None) -> HeaderProblem:
    """The problem of an object whose first record can't be read."""
    return HeaderProblem(f"the header is malformed: {problem}", FIX_HEADER, line=line, byte=byte)


def header_difference(found: Sequence[str], pinned: Sequence[str]) -> str | None:
    """How a header differs from the pinned one, and first where; None if it does not."""
    for number, names in enumerate(itertools.zip_longest(found, pinned), 1):
        if names[0] != names[1]:
            here, there = ("nothing" if name is None else shown(name) for name in names)
            return (
                f"header is {_line(found)} but the source's header is {_line(pinned)}: first "
                f"difference at column {number}, {here} instead of {there}"
            )
    return None


def any_order_difference(found: Sequence[str], pinned: Sequence[str], match: str) -> str | None:
    """How the names of a header, in any order, differ from the pinned ones; None if they do not.

    A subset's header may have others beside the pinned names, even twice.
    """
    difference = name_difference(found, pinned, match)
    if difference is None:
        return None
    return (
        f"header is {_line(found)} but the names of the source's header are {_line(pinned)}, in "
        f"any order: {difference}"
    )


def name_difference(found: Sequence[str], pinned: Sequence[str], match: str) -> str | None:
    """What is missing, doubled or too many among names in any order; None if nothing is."""
    counts = Counter(found)
    wanted = set(counts if match == SUBSET else pinned)
    kinds = [
        [f"{shown(name)} is missing" for name in pinned if name not in counts],
        [f"{shown(name)} is there {counts[name]} times" for name in pinned if counts[name] > 1],
        [f"{shown(name)} is not one of them" for name in counts if name not in wanted],
    ]
    firsts = [kind[0] for kind in kinds if kind]
    if not firsts:
        return None
    more = sum(map(len, kinds)) - len(firsts)
    return ", ".join(firsts) + (f" ({more} more)" if more else "")


def _line(names: Sequence[str]) -> str:
    return shown(",".join(names), quoted=False)
