"""Records that are not right, told apart from the others of their chunk.

pyarrow reads here too, and every pass is over whole columns; records are looked at one by one
only where they are wrong, for what to say of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.csv_source.executor.badvalues import convert_good
from dbt.adapters.mzs3.csv_source.executor.chunks import Chunk, RecordTooLarge
from dbt.adapters.mzs3.csv_source.executor.columns import Column
from dbt.adapters.mzs3.csv_source.executor.cut import Cut, cut_records
from dbt.adapters.mzs3.csv_source.executor.encoding import readable_text
from dbt.adapters.mzs3.csv_source.executor.layout import Layout
from dbt.adapters.mzs3.csv_source.executor.parse import parse
from dbt.adapters.mzs3.csv_source.executor.problem import (
    FIX_OBJECT,
    CsvProblem,
    not_of_type,
    shown,
)
from dbt.adapters.mzs3.csv_source.executor.records import records
from dbt.adapters.mzs3.formats.csv.dialect import CsvDialect

MAX_RAW_BYTES = 1024 * 1024
"""How much of a rejected record is kept as its raw text."""


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

    def problem(self) -> CsvProblem:
        """The same as the error that a run ends in."""
        advice = (
            f"{FIX_OBJECT}; or declare the column as a string" if self.is_value else FIX_OBJECT
        )
        return CsvProblem(self.error, advice, line=self.line, byte=self.byte)


@dataclass(frozen=True)
class Sifter:
    """Reads chunks of one source in which something may be wrong."""

    columns: tuple[Column, ...]
    dialect: CsvDialect
    encoding: str

    def sift(self, chunk: Chunk, layout: Layout, *, last: bool) -> Sifted:
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

    def _text(self, data: bytes, layout: Layout) -> tuple[list[pa.Array], list[int]]:
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
        for index, (column, field) in enumerate(zip(self.columns, text, strict=True)):
            array, is_bad = convert_good(field, column.data_type)
            arrays.append(array)
            if is_bad is None:
                continue
            any_bad = is_bad if any_bad is None else pc.or_(any_bad, is_bad)
            rows = pc.indices_nonzero(is_bad)
            for row, value in zip(rows.to_pylist(), field.take(rows).to_pylist(), strict=True):
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
    layout: Layout
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


def _unreadable(chunk: Chunk) -> CsvProblem:
    # pyarrow's reader and ours disagree.
    problem = "the records from here on could not be read"
    return CsvProblem(problem, FIX_OBJECT, line=chunk.line, byte=chunk.byte)


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
