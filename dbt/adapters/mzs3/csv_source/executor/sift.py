"""Separates the records of a chunk that are not right from the good ones.

pyarrow reads here too, and every pass is over whole columns; records are looked at one by one
only where they are wrong, for what to say of them.
"""

from __future__ import annotations

import itertools
import operator
import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.csv_source.executor.badvalues import convert_good
from dbt.adapters.mzs3.csv_source.executor.chunks import Chunk, RecordTooLarge, parse
from dbt.adapters.mzs3.csv_source.executor.columns import Column, RecordLayout
from dbt.adapters.mzs3.csv_source.executor.encoding import invalid_utf8, readable_text
from dbt.adapters.mzs3.csv_source.executor.formats.format import Records, Reject
from dbt.adapters.mzs3.csv_source.executor.object_error import (
    FIX_OBJECT,
    ObjectError,
    not_of_type,
    shown,
)
from dbt.adapters.mzs3.csv_source.executor.reading import Reading
from dbt.adapters.mzs3.csv_source.executor.records import MalformedRecord, first_record
from dbt.adapters.mzs3.formats.csv.dialect import CsvDialect
from dbt.adapters.mzs3.text import counted

MAX_RAW_BYTES = 1024 * 1024
"""How much of a rejected record is kept as its raw text."""

# Where a quote is wrong, the next is perhaps near.
WINDOW_BYTES = 4 * 1024


@dataclass(frozen=True)
class Decoded(Records):
    """A chunk's records: those in its first `length` bytes; the rest is for the next chunk."""

    length: int = field(kw_only=True)


@dataclass(frozen=True)
class Sifter:
    """Decodes chunks of one source's objects in which something may be wrong."""

    columns: tuple[Column, ...]
    dialect: CsvDialect
    reading: Reading

    def sift(self, chunk: Chunk, layout: RecordLayout) -> Decoded:
        """The chunk's records: the good ones converted, and the rejected ones.

        Where bad records are not rejected, raises ObjectError for the first one. Where they are,
        a record of which the end is not in the chunk is left, unless nothing follows the chunk.
        """
        cut = cut_records(
            chunk.data,
            self.dialect,
            last=chunk.last or not self.reading.rejects,
            blank_is_wrong=layout.width > 1,
        )
        numbers = _without(range(len(cut.starts)), cut.malformed)
        try:
            text, rows = self._text(cut.well_formed(), layout)
            if len(text[0]) + len(rows) != len(numbers):
                raise ValueError  # pyarrow's reader and ours disagree
        except ValueError as exc:
            problem = "the records from here on could not be read"
            raise ObjectError(problem, FIX_OBJECT, line=chunk.line, byte=chunk.byte) from exc
        ragged = {numbers[row] for row in rows}
        numbers = _without(numbers, ragged)
        arrays, values = self._convert(text, numbers)
        bad = {**dict.fromkeys(cut.malformed | ragged), **values}
        rejects = self._rejects(chunk, layout, cut, bad)
        if bad and not self.reading.rejects:
            raise next(rejects).problem()
        return Decoded(
            pa.RecordBatch.from_arrays(arrays, names=[c.name for c in self.columns]),
            len(cut.starts),
            pa.array(_without(numbers, values), pa.int64()),
            tuple(rejects),
            length=cut.end,
        )

    def _text(self, data: bytes, layout: RecordLayout) -> tuple[list[pa.Array], list[int]]:
        """The columns as text, and the numbers of the records that have not as many fields."""
        types = [pa.string()] * len(self.columns)
        if not data:
            return [pa.array([], kind) for kind in types], []
        ragged: list[int] = []
        return parse(data, layout, types, self.dialect, ragged=ragged).columns, ragged

    def _convert(
        self, text: Sequence[pa.Array], numbers: Sequence[int]
    ) -> tuple[list[pa.Array], dict[int, tuple[Column, str]]]:
        """The columns of the good rows; of each bad row the first bad column, and its text."""
        arrays: list[pa.Array] = []
        values: dict[int, tuple[Column, str]] = {}
        any_bad: pa.Array | None = None
        for column, texts in zip(self.columns, text, strict=True):
            array, is_bad = convert_good(texts, column.data_type)
            arrays.append(array)
            if is_bad is None:
                continue
            any_bad = is_bad if any_bad is None else pc.or_(any_bad, is_bad)
            rows = pc.indices_nonzero(is_bad)
            for row, value in zip(rows.to_pylist(), texts.take(rows).to_pylist(), strict=True):
                values.setdefault(numbers[row], (column, value))
        if any_bad is not None:
            good = pc.invert(any_bad)
            arrays = [array.filter(good) for array in arrays]
        return arrays, values

    def _rejects(
        self,
        chunk: Chunk,
        layout: RecordLayout,
        cut: Cut,
        bad: dict[int, tuple[Column, str] | None],
    ) -> Iterator[Reject]:
        """The bad records, in their order; `bad` has the value that is wrong where it is known."""
        line, byte, reached = chunk.line, chunk.byte, 0
        for number in sorted(bad):
            start, value = cut.starts[number], bad[number]
            line += chunk.data.count(b"\n", reached, start)
            byte += chunk.width(chunk.data[reached:start])
            reached = start
            raw = chunk.data[start : cut.end_of(number)]
            column, error = _wrong_value(*value) if value else self._wrong(raw, layout)
            text = _raw_text(raw, self.reading.encoding)
            yield Reject(number, line, byte, text, column, error, is_value=value is not None)

    def _wrong(self, raw: bytes, layout: RecordLayout) -> tuple[str | None, str]:
        """The column that is wrong, if it is one, and what is wrong."""
        try:
            fields, _ = first_record(raw, self.dialect, self.reading.encoding)
        except MalformedRecord as malformed:
            index = layout.column_of(malformed.number - 1)
            return None if index is None else self.columns[index].name, str(malformed)
        if len(fields) != layout.width:
            return None, f"expected {counted(layout.width, 'column')}, got {len(fields)}"
        # It is right by itself: pyarrow's reader and this one disagree.
        return None, "the record could not be read"


def _wrong_value(column: Column, value: str) -> tuple[str, str]:
    return column.name, not_of_type(column.name, shown(value), column.data_type)


def oversized(problem: RecordTooLarge, encoding: str) -> Reject:
    """The reject for a record too large to be held, and all that follows it in its object."""
    assert problem.line is not None and problem.byte is not None
    raw = _raw_text(problem.start, encoding)
    error = f"{problem.problem} All that follows in the object is rejected with it"
    return Reject(0, problem.line, problem.byte, raw, None, error)


def _raw_text(raw: bytes, encoding: str) -> str:
    """A record's text without its line end, cut if it is very long."""
    if len(raw) <= MAX_RAW_BYTES:
        return readable_text(raw.removesuffix(b"\n").removesuffix(b"\r"), encoding)
    end = MAX_RAW_BYTES
    while raw[end] & 0xC0 == 0x80 and MAX_RAW_BYTES - end < 4:
        end -= 1  # not inside a character
    return readable_text(raw[:end], encoding)


def _without(numbers: Sequence[int], left_out: Collection[int]) -> Sequence[int]:
    return [n for n in numbers if n not in left_out] if left_out else numbers


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

    Unless it is the `last` of its object, a record whose end is not there is left, behind
    `Cut.end`.
    """
    masked, wrong = _masked_records(data, dialect, last=last)
    if not masked:
        return Cut(data, [], 0, set())
    # In C throughout: the line ends, one byte each, are added by counting.
    lengths = list(map(len, masked.removesuffix(b"\n").split(b"\n")))
    ends = accumulate(lengths[:-1], initial=0)
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
    but for their line ends. Goes over the data once, in one piece until a quote is wrong, then
    in small ones.
    """
    delimiter, quote = dialect.delimiter.encode(), dialect.quote.encode()
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
