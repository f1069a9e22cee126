"""CSV as a format of objects: chunks of text, decoded to Arrow batches.

pyarrow parses the chunks, and what it accepts wrongly is checked. All passes are over whole
columns; only bad records are read one by one, for their messages.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.formats.read.chunks import Chunk, is_plain, parse
from dbt.adapters.mzs3.formats.read.columns import INTEGERS, Column, RecordLayout
from dbt.adapters.mzs3.formats.read.convert import convert, convert_good, is_special, require_year
from dbt.adapters.mzs3.formats.read.dialect import CR, SourceDialect, delimiter_option
from dbt.adapters.mzs3.formats.read.encoding import invalid_utf8
from dbt.adapters.mzs3.formats.read.format import RecordField, Records, Reject
from dbt.adapters.mzs3.formats.read.header import PREAMBLE, split_header
from dbt.adapters.mzs3.formats.read.object_error import (
    FIX_OBJECT,
    ObjectError,
    excerpt,
    not_of_type,
)
from dbt.adapters.mzs3.formats.read.records import Cut, MalformedRecord, cut_records, first_record
from dbt.adapters.mzs3.formats.read.text import TextDecoder, TextFormat
from dbt.adapters.mzs3.text import count_noun
from dbt.adapters.mzs3.types.table import arrow_type

# pyarrow's reader changes decimals that are out of range, accepts an hour without minutes in a
# timestamp, and does not support binary.
_ALWAYS_AS_TEXT = ("binary", "decimal", "timestamp")


@dataclass(frozen=True)
class CsvFormat(TextFormat):
    """CSV of one dialect, compression and encoding; every field is a text."""

    dialect: SourceDialect = field(default_factory=SourceDialect)

    def fields_in(self, chunk: Chunk) -> tuple[RecordField, ...]:
        """The names in the chunk's first record. Raises HeaderProblem."""
        names, _ = split_header(chunk, self.dialect, self.reading.encoding)
        return tuple(RecordField(name, "string", "string") for name in names)

    def decoder(self, header: tuple[str, ...] | None, columns: Sequence[Column]) -> CsvDecoder:
        """Without a header, objects have only records, with a field for each column."""
        return CsvDecoder(self, header, columns)


class CsvDecoder(TextDecoder):
    """Decodes CSV. Learns which columns pyarrow can't read, and whether to expect bad records.

    An unquoted field that equals the dialect's NULL text is NULL; `""` is the empty string.
    """

    def __init__(
        self, form: CsvFormat, header: tuple[str, ...] | None, columns: Sequence[Column]
    ) -> None:
        super().__init__(form, header, columns)
        self.columns = columns = form.reading.with_rescued(columns)
        self._dialect = form.dialect
        self._canonical = form.dialect.canonical_dialect
        self._all_text = [pa.string()] * len(columns)
        # Columns that pyarrow reads as text, for `convert`.
        self._as_text = frozenset(
            i for i, c in enumerate(columns) if c.data_type.startswith(_ALWAYS_AS_TEXT)
        )
        self._integers = frozenset(i for i, c in enumerate(columns) if c.data_type in INTEGERS)
        self._expects_rejects = False

    def decode(self, chunk: Chunk, layout: RecordLayout) -> Records:
        """See `TextDecoder`. If bad records are rejected, one that does not end in the chunk is
        not decoded, except in the last chunk."""
        good = None if self._expects_rejects else self._dialect.canonical(chunk.data)
        batch = None if good is None else self.all_good(good, layout)
        if batch is not None:
            return Records(batch, batch.num_rows)
        decoded = self._sift(chunk, layout)
        # After a chunk with bad records, most have some: `all_good` skips its attempt.
        self._expects_rejects = bool(decoded.rejects)
        return decoded

    def all_good(self, data: bytes, layout: RecordLayout) -> pa.RecordBatch | None:
        """See `TextDecoder`; None also if a bad record is expected."""
        if self._expects_rejects or not is_plain(
            data,
            self._canonical,
            one_column=layout.width == 1,
            may_be_short=self._reading.fills,
        ):
            return None
        is_strict = len(layout.fields) == layout.width and not (
            self._reading.fills or self._reading.cuts
        )
        if not is_strict and invalid_utf8(data):
            return None  # pyarrow does not check fields that are left out
        # pyarrow's reader accepts 0xff as a number, PostgreSQL's COPY does not. Most data has no
        # x, and a search for one byte is far faster than for two.
        perhaps_hex = any(x in data and b"0" + x in data for x in (b"x", b"X"))
        as_text = (self._as_text | self._integers) if perhaps_hex else self._as_text
        types = [
            pa.string() if i in as_text else arrow_type(column.data_type)
            for i, column in enumerate(self.columns)
        ]
        with contextlib.suppress(ValueError):
            arrays = self._parse(data, layout, types)
            return self.batch(
                convert(array, column.data_type) if index in as_text else _require_certain(array)
                for index, (array, column) in enumerate(zip(arrays, self.columns, strict=True))
            )
        with contextlib.suppress(ValueError):
            return self._learn(data, layout)
        return None

    def _sift(self, chunk: Chunk, layout: RecordLayout) -> Records:
        """The chunk's records, some of which may be bad."""
        last = chunk.last or not self._reading.rejects
        cut = cut_records(chunk.data, self._dialect, last=last, blank_is_wrong=layout.width > 1)
        numbers = _without(range(len(cut.starts)), cut.malformed)
        rows: list[Any] = []
        try:
            data = self._dialect.canonical(cut.well_formed())
            text = self._parse(data, layout, self._all_text, rows)
            if len(text[0]) + len(rows) != len(numbers) or b"\0" in data:
                raise ValueError  # pyarrow's reader and ours disagree
        except ValueError as exc:
            problem = "the records from here on could not be read"
            raise ObjectError(problem, FIX_OBJECT, line=chunk.line, byte=chunk.byte) from exc
        ragged = {numbers[row.number - 1] for row in rows}
        numbers = _without(numbers, ragged)
        arrays, values = self._convert(text, numbers)
        bad = {**dict.fromkeys(cut.malformed | ragged), **values}
        rejects = self._describe(chunk, layout, cut, bad)
        if bad and not self._reading.rejects:
            first = next(rejects)
            advice = "; or declare the column as a string"
            # For other bad records, no column's type is the cause.
            if min(bad) not in values:
                advice = f"; or set {first.option}" if first.option else ""
                # What was taken for the header, or for the first record, may be a title.
                advice += PREAMBLE if first.line <= 2 else ""
            raise ObjectError(first.error, FIX_OBJECT + advice, line=first.line, byte=first.byte)
        good = pa.array(_without(numbers, values), pa.int64())
        return Records(
            self.batch(arrays),
            len(cut.starts),
            good,
            tuple(rejects),
            unread=len(chunk.data) - cut.end,
            is_certain=not cut.quotes_misplaced and cut.end == len(chunk.data),
        )

    def _learn(self, data: bytes, layout: RecordLayout) -> pa.RecordBatch:
        """The records, with all columns converted from text. Notes which columns need that."""
        text = self._parse(data, layout, self._all_text)
        batch = self.batch(map(convert, text, [column.data_type for column in self.columns]))
        for index, (array, column) in enumerate(zip(text, self.columns, strict=True)):
            if index in self._as_text:
                continue
            try:
                _require_certain(pc.cast(array, arrow_type(column.data_type)))
            except ValueError:
                self._as_text |= {index}
        return batch

    def _parse(
        self,
        data: bytes,
        layout: RecordLayout,
        types: Sequence[pa.DataType],
        ragged: list[Any] | None = None,
    ) -> list[pa.Array]:
        """The columns of canonical text; see `parse`. Shorter and longer records are among them
        if the source allows these; the last column may be of what is rescued."""
        if not data:
            return [pa.array([], kind) for kind in types]
        reading, rows = self._reading, list[Any]()
        if reading.fills and not self._dialect.bare_quotes:
            data = self._canonical.padded(data, layout.width)
        collects = ragged is not None or reading.fills or reading.cuts
        present, count = layout.present(types), len(layout.fields)
        own, rescued = present[:count], present[count:]
        columns: list[pa.Array] = parse(
            data, layout, own, self._canonical, ragged=rows if collects else None
        ).columns
        columns += (pa.nulls(len(columns[0]), kind) for kind in rescued)
        fits = [
            reading.fills if row.actual_columns < layout.width else reading.cuts for row in rows
        ]
        if not all(fits):
            if ragged is None:
                raise ValueError  # as pyarrow does
            ragged += (row for row, does_fit in zip(rows, fits, strict=True) if not does_fit)
        if any(fits):
            columns = self._with_fitted(columns, rows, [*compress(rows, fits)], layout, own)
        columns = layout.with_missing(columns, types)
        if self._dialect.record_delimiter != CR:
            return columns
        return [_with_ends_swapped(column) for column in columns]

    def _with_fitted(
        self,
        columns: Sequence[pa.Array],
        ragged: Sequence[Any],
        fitted: Sequence[Any],
        layout: RecordLayout,
        types: Sequence[pa.DataType],
    ) -> list[pa.Array]:
        """The columns of all records but those that are `ragged`, and of the `fitted` ones of
        these: NULL in place of missing fields, without the fields that are too many."""
        others = {row.number - 1 for row in ragged}
        numbers = [n for n in range(len(columns[0]) + len(ragged)) if n not in others]
        numbers += (row.number - 1 for row in fitted)
        missing = self._canonical.delimiter + self._canonical.null
        first = re.compile(self._canonical.fields(layout.width))
        texts, rescued = list[str](), list[str | None]()
        for row in fitted:
            lacks = layout.width - row.actual_columns
            end = len(row.text) if lacks > 0 else next(first.finditer(row.text)).end()
            texts.append(row.text[:end] + missing * lacks + "\n")
            rescued.append(None if lacks > 0 else row.text[end + 1 :])  # behind the delimiter
        found = parse("".join(texts).encode(), layout, types, self._canonical).columns
        if len(columns) > len(found):
            own = [text and self._dialect.with_own_delimiter(text) for text in rescued]
            found.append(pa.array(own, pa.string()))
        order = pc.array_sort_indices(pa.array(numbers))
        return [pa.concat_arrays(both).take(order) for both in zip(columns, found, strict=True)]

    def _convert(
        self, text: Sequence[pa.Array], numbers: Sequence[int]
    ) -> tuple[list[pa.Array], dict[int, tuple[str, str]]]:
        """The good records' columns; and each bad record's first bad column with its error."""
        arrays: list[pa.Array] = []
        values: dict[int, tuple[str, str]] = {}
        any_bad: pa.Array | None = None
        for column, texts in zip(self.columns, text, strict=True):
            array, is_bad = convert_good(texts, column.data_type)
            arrays.append(array)
            if is_bad is None:
                continue
            any_bad = is_bad if any_bad is None else pc.or_(any_bad, is_bad)
            rows = pc.indices_nonzero(is_bad)
            for row, value in zip(rows.to_pylist(), texts.take(rows).to_pylist(), strict=True):
                if numbers[row] not in values:
                    error = not_of_type(column.name, excerpt(value), column.data_type)
                    values[numbers[row]] = column.name, error
        if any_bad is not None:
            good = pc.invert(any_bad)
            arrays = [array.filter(good) for array in arrays]
        return arrays, values

    def _describe(
        self, chunk: Chunk, layout: RecordLayout, cut: Cut, bad: dict[int, tuple[str, str] | None]
    ) -> Iterator[Reject]:
        """The bad records in order; `bad` has the column and the error of each, where known."""
        line, byte, reached = chunk.line, chunk.byte, 0
        for number in sorted(bad):
            start = cut.starts[number]
            line += chunk.data.count(b"\n", reached, start)
            byte += chunk.width(chunk.data[reached:start])
            reached = start
            raw = chunk.data[start : cut.ends[number]]
            name, error, *option = bad[number] or self._wrong(raw, layout)
            yield Reject(number, line, byte, self.raw_text(raw), name, error, *option)

    def _wrong(self, raw: bytes, layout: RecordLayout) -> tuple[str | None, str, str]:
        """The bad column, if there is exactly one, what is wrong, and the option that reads it."""
        width, dialect = layout.width, self._dialect
        try:
            fields, _ = first_record(raw, dialect, self._reading.encoding)
        except MalformedRecord as malformed:
            present = layout.present(self.columns)
            names = {i: c.name for i, c in zip(layout.fields, present, strict=False)}
            return names.get(malformed.number - 1), str(malformed), malformed.option
        if len(fields) == width:  # pyarrow's reader and ours disagree
            return None, "the record could not be read", ""
        if re.fullmatch(b"%b(?:%b)?" % (dialect.blanks, dialect.line_end), raw):
            option = "skip_blank_lines: true"
        elif raw.startswith(b"#"):
            option = "comment: '#'"
        elif other := delimiter_option(fields, width):
            option = other
        else:
            option = "missing_columns: null" if len(fields) < width else "extra_columns: ignore"
        return None, f"expected {count_noun(width, 'column')}, got {len(fields)}", option


def _with_ends_swapped(column: pa.Array) -> pa.Array:
    """The texts with line feeds for carriage returns, and the other way round."""
    if not pa.types.is_string(column.type):
        return column
    for found, instead in (("\n", "\0"), ("\r", "\n"), ("\0", "\r")):
        column = pc.replace_substring(column, found, instead)
    return column


def _require_certain(array: pa.Array) -> pa.Array:
    """Returns the array. Raises ValueError if its text may be one that PostgreSQL refuses."""
    if pa.types.is_date32(array.type):
        require_year(array)
    if pa.types.is_floating(array.type) and pc.any(is_special(array)).as_py():
        raise ValueError("a special value, perhaps from a number out of range")
    return array


def _without(numbers: Sequence[int], left_out: Collection[int]) -> Sequence[int]:
    return [n for n in numbers if n not in left_out] if left_out else numbers
