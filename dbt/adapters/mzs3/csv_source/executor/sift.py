"""Records that are not right, told apart from the others of their chunk.

pyarrow reads here too, and every pass is over whole columns; records are looked at one by one
only where they are wrong, for what to say of them.
"""

from __future__ import annotations

import itertools
import operator
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.csv_source.executor.badvalues import convert_good
from dbt.adapters.mzs3.csv_source.executor.chunks import Chunk, RecordTooLarge, parse
from dbt.adapters.mzs3.csv_source.executor.columns import Column, RecordLayout
from dbt.adapters.mzs3.csv_source.executor.encoding import invalid_utf8, readable_text
from dbt.adapters.mzs3.csv_source.executor.object_error import (
    FIX_OBJECT,
    ObjectError,
    not_of_type,
    shown,
)
from dbt.adapters.mzs3.csv_source.executor.records import records
from dbt.adapters.mzs3.formats.csv.dialect import CsvDialect

MAX_RAW_BYTES = 1024 * 1024
"""How much of a rejected record is kept as its raw text."""

# Where a quote is wrong, the next is perhaps near.
WINDOW_BYTES = 4 * 1024


@dataclass(frozen=True)
class Reject:
    """A record that is not right: its number in the chunk from 0, where it is, what is wrong."""

    number: int
    line: int
    byte: int
    raw: str
    column: str | None
    error: str
    is_value: bool = False

    def problem(self) -> ObjectError:
        """The same as the error that a run ends in."""
        advice = (
            f"{FIX_OBJECT}; or declare the column as a string" if self.is_value else FIX_OBJECT
        )
        return ObjectError(self.error, advice, line=self.line, byte=self.byte)


@dataclass(frozen=True)
class Sifter:
    """Reads chunks of one source in which something may be wrong."""

    columns: tuple[Column, ...]
    dialect: CsvDialect
    encoding: str

    def sift(self, chunk: Chunk, layout: RecordLayout, *, last: bool) -> Sifted:
        """The chunk's records, the good ones converted.

        Unless it is the object's `last`, a record of which the end is not in the chunk is left.
        """
        cut = cut_records(
            chunk.data,
            self.dialect.delimiter.encode(),
            self.dialect.quote.encode(),
            last=last,
            blank_is_wrong=layout.width > 1,
        )
        count = len(cut.starts)
        numbers = _without(range(count), cut.malformed)
        try:
            text, rows = self._text(_joined(chunk.data, cut), layout)
        except ValueError as exc:
            raise _unreadable(chunk) from exc
        if len(text[0]) + len(rows) != len(numbers):
            raise _unreadable(chunk)
        ragged = {numbers[row] for row in rows}
        numbers = _without(numbers, ragged)
        arrays, values = self._convert(text, numbers)
        return Sifted(
            self,
            chunk,
            layout,
            cut,
            pa.RecordBatch.from_arrays(arrays, names=[c.name for c in self.columns]),
            pa.array(_without(numbers, values), pa.int64()),
            {**dict.fromkeys(cut.malformed | ragged), **values},
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
    ) -> tuple[list[pa.Array], dict[int, tuple[int, str]]]:
        """The good rows' columns; of each other row the first column that is wrong, its text."""
        arrays: list[pa.Array] = []
        values: dict[int, tuple[int, str]] = {}
        any_bad: pa.Array | None = None
        for index, (column, texts) in enumerate(zip(self.columns, text, strict=True)):
            array, is_bad = convert_good(texts, column.data_type)
            arrays.append(array)
            if is_bad is None:
                continue
            any_bad = is_bad if any_bad is None else pc.or_(any_bad, is_bad)
            rows = pc.indices_nonzero(is_bad)
            for row, value in zip(rows.to_pylist(), texts.take(rows).to_pylist(), strict=True):
                values.setdefault(numbers[row], (index, value))
        if any_bad is not None:
            good = pc.invert(any_bad)
            arrays = [array.filter(good) for array in arrays]
        return arrays, values


@dataclass(frozen=True)
class Sifted:
    """The good records of a chunk as `batch`, with their `numbers` in it, and the others."""

    sifter: Sifter
    chunk: Chunk
    layout: RecordLayout
    cut: Cut
    batch: pa.RecordBatch
    numbers: pa.Array
    bad: dict[int, tuple[int, str] | None]

    @property
    def count(self) -> int:
        """How many records there are, good and bad."""
        return len(self.cut.starts)

    def rejects(self) -> Iterator[Reject]:
        """The bad records, in their order."""
        data, width = self.chunk.data, self.chunk.width
        line, byte, reached = self.chunk.line, self.chunk.byte, 0
        for number in sorted(self.bad):
            start = self.cut.starts[number]
            line += data.count(b"\n", reached, start)
            byte += width(data[reached:start])
            reached = start
            raw = self.cut.record(data, number)
            column, error = self._wrong(raw, self.bad[number])
            yield Reject(
                number,
                line,
                byte,
                raw_text(raw, self.sifter.encoding),
                None if column is None else self.sifter.columns[column].name,
                error,
                is_value=self.bad[number] is not None,
            )

    def _wrong(self, raw: bytes, value: tuple[int, str] | None) -> tuple[int | None, str]:
        """The column, from 0, where it is one's, and what is wrong."""
        if value is not None:
            column = self.sifter.columns[value[0]]
            return value[0], not_of_type(column.name, shown(value[1]), column.data_type)
        record = next(records(raw, self.sifter.dialect, self.sifter.encoding))
        if record.problem is not None and record.malformed is not None:
            return self.layout.column_of(record.malformed - 1), record.problem
        width = self.layout.width
        if len(record.fields) != width:
            noun = "column" if width == 1 else "columns"
            return None, f"expected {width} {noun}, got {len(record.fields)}"
        # It is right by itself: pyarrow's reader and this one disagree.
        return None, "the record could not be read"


def oversized(problem: RecordTooLarge, encoding: str) -> Reject:
    """A record that could not be held; with it everything behind it in its object is left."""
    assert problem.line is not None and problem.byte is not None
    raw = raw_text(problem.start, encoding)
    error = f"{problem.problem} All that follows in the object is rejected with it"
    return Reject(0, problem.line, problem.byte, raw, None, error)


def _unreadable(chunk: Chunk) -> ObjectError:
    # pyarrow's reader and ours disagree.
    problem = "the records from here on could not be read"
    return ObjectError(problem, FIX_OBJECT, line=chunk.line, byte=chunk.byte)


def raw_text(raw: bytes, encoding: str) -> str:
    """A record's text without its line end, cut if it is very long."""
    if len(raw) <= MAX_RAW_BYTES:
        return readable_text(raw.removesuffix(b"\n").removesuffix(b"\r"), encoding)
    end = MAX_RAW_BYTES
    while raw[end] & 0xC0 == 0x80 and MAX_RAW_BYTES - end < 4:
        end -= 1  # not inside a character
    return readable_text(raw[:end], encoding)


def _without(numbers: Sequence[int], left_out: Collection[int]) -> Sequence[int]:
    return [n for n in numbers if n not in left_out] if left_out else numbers


def _joined(data: bytes, cut: Cut) -> bytes:
    """The data without its malformed records."""
    parts: list[bytes] = []
    start = 0
    for number in sorted(cut.malformed):
        parts.append(data[start : cut.starts[number]])
        start = cut.starts[number + 1] if number + 1 < len(cut.starts) else cut.end
    parts.append(data[start : cut.end])
    return b"".join(parts)


@dataclass
class Cut:
    """Where the records of a chunk start, up to `end`; the numbers, from 0, of malformed ones.

    A record is malformed for what `records` says so of, and a blank line where `blank` is wrong.
    """

    starts: list[int] = field(default_factory=list)
    end: int = 0
    malformed: set[int] = field(default_factory=set)

    def record(self, data: bytes, number: int) -> bytes:
        """The bytes of a record, its line end included."""
        following = self.starts[number + 1] if number + 1 < len(self.starts) else self.end
        return data[self.starts[number] : following]

    def _mark(self, places: Iterable[int]) -> None:
        self.malformed.update(bisect_right(self.starts, place) - 1 for place in places)


def cut_records(
    data: bytes, delimiter: bytes, quote: bytes, *, last: bool, blank_is_wrong: bool
) -> Cut:
    """The records of data that starts with one.

    Unless it is the `last` of its object, a record whose end is not there is left, behind
    `Cut.end`.
    """
    scan = _Scan(data, delimiter, quote, last, blank_is_wrong)
    cut = scan.run()
    if b"\0" in data:
        scan.found += [match.start() for match in re.finditer(b"\0", data)]
    places = [*scan.found, *invalid_utf8(data)]
    cut._mark(place for place in places if place < cut.end)
    return cut


class _Scan:
    """Goes over the data once, in one piece until a quote is wrong, then in small ones."""

    def __init__(
        self, data: bytes, delimiter: bytes, quote: bytes, last: bool, blank_is_wrong: bool
    ) -> None:
        self._data = data
        self._delimiter = delimiter
        self._quote = quote
        self._last = last
        self._blank_is_wrong = blank_is_wrong
        # Behind text, or before it: a pattern that starts with a literal is searched for fastest.
        # No field begins behind a carriage return; one may end before it, that of a line's end.
        self._stray = re.compile(
            b"%b(?:(?<=[^\n%b]%b)|(?=[^\r\n%b]))"
            % (re.escape(quote), re.escape(delimiter + quote), re.escape(quote),
               re.escape(delimiter + quote))
        )  # fmt: skip
        self._cut = Cut()
        self.found: list[int] = []

    def run(self) -> Cut:
        """The records, without what is wrong inside them: that is `found`."""
        window = len(self._data)
        while self._cut.end < len(self._data):
            start = self._cut.end
            masked = mask(self._data[start : start + window], self._delimiter, self._quote)
            stray = self._stray.search(masked)
            end = masked.rfind(b"\n", 0, stray.start() if stray else len(masked)) + 1
            self._take(masked[:end])
            if stray is not None:
                if not self._take_malformed(start + stray.start()):
                    break
                window = WINDOW_BYTES
            elif start + window >= len(self._data):
                if end < len(masked) and self._last:
                    self._take_tail(masked[end:])
                break
            else:
                window *= 2
        return self._cut

    def _take(self, masked: bytes) -> None:
        """Whole records that begin at the end of the cut."""
        if not masked:
            return
        cut = self._cut
        # In C throughout: the line ends, one byte each, are added by counting.
        lengths = list(map(len, masked.split(b"\n")))[:-1]
        ends = accumulate(lengths[:-1], initial=cut.end)
        starts = list(map(operator.add, ends, itertools.count()))
        if self._blank_is_wrong and (0 in lengths or 1 in lengths):
            lines = zip(starts, lengths, strict=True)
            self.found += [at for at, length in lines if length < 2 and self._is_blank(at)]
        self._find_lone_returns(masked)
        cut.starts += starts
        cut.end += len(masked)

    def _is_blank(self, at: int) -> bool:
        return self._data.startswith((b"\n", b"\r\n"), at)

    def _find_lone_returns(self, masked: bytes) -> None:
        if b"\r" in masked and masked.count(b"\r") != masked.count(b"\r\n"):
            places = re.finditer(rb"\r(?!\n)", masked)
            self.found += [self._cut.end + place.start() for place in places]

    def _take_malformed(self, wrong: int) -> bool:
        """The record with a quote that is wrong; False if its end is not there."""
        newline = self._data.find(b"\n", wrong)
        if newline < 0 and not self._last:
            return False
        self._cut.malformed.add(len(self._cut.starts))
        self._cut.starts.append(self._cut.end)
        self._cut.end = len(self._data) if newline < 0 else newline + 1
        return True

    def _take_tail(self, masked: bytes) -> None:
        """The last record of the object, without a newline; perhaps a quote is not closed."""
        cut = self._cut
        self._find_lone_returns(masked)
        if self._data.count(self._quote, cut.end) % 2:
            cut.malformed.add(len(cut.starts))
        cut.starts.append(cut.end)
        cut.end = len(self._data)


def mask(data: bytes, delimiter: bytes, quote: bytes) -> bytes:
    """The data, as long as it is, with nothing but delimiters inside quotes."""
    if quote not in data:
        return data
    pieces = data.split(quote)
    pieces[1::2] = [delimiter * len(piece) for piece in pieces[1::2]]
    return quote.join(pieces)
