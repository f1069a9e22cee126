"""CSV as a format of objects: chunks of text, decoded to Arrow batches.

pyarrow parses the chunks, and what it accepts wrongly is checked. All passes are over whole
columns; only bad records are read one by one, for their messages.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.formats.dialect import CsvDialect
from dbt.adapters.mzs3.formats.read.chunks import (
    BLOCK_BYTES,
    BOM,
    Chunk,
    Chunks,
    RecordTooLarge,
    is_plain,
    parse,
)
from dbt.adapters.mzs3.formats.read.columns import INTEGERS, Column, RecordLayout
from dbt.adapters.mzs3.formats.read.compression import plain_reader, whole_text
from dbt.adapters.mzs3.formats.read.convert import convert, convert_good, is_special, require_year
from dbt.adapters.mzs3.formats.read.encoding import ReadBytes, invalid_utf8, utf8_reader, width_in
from dbt.adapters.mzs3.formats.read.format import (
    ObjectDecoder,
    Reading,
    RecordField,
    Records,
    Reject,
    StoredObject,
    raw_text,
    rest_rejected,
)
from dbt.adapters.mzs3.formats.read.header import malformed_header, split_header, without_header
from dbt.adapters.mzs3.formats.read.object_error import (
    FIX_OBJECT,
    ObjectError,
    excerpt,
    not_of_type,
)
from dbt.adapters.mzs3.formats.read.records import Cut, MalformedRecord, cut_records, first_record
from dbt.adapters.mzs3.text import counted
from dbt.adapters.mzs3.types.table import arrow_type

FIRST_READ_BYTES = 64 * 1024

# pyarrow's reader changes decimals that are out of range, accepts an hour without minutes in a
# timestamp, and does not support binary.
_ALWAYS_AS_TEXT = ("binary", "decimal", "timestamp")


@dataclass(frozen=True)
class CsvFormat:
    """CSV of one dialect, compression and encoding; every field is a text."""

    dialect: CsvDialect
    compression: str
    reading: Reading

    def fields(self, stored: StoredObject) -> tuple[RecordField, ...] | None:
        """The names in the first record; None if the object is empty. Raises ObjectError."""
        with contextlib.closing(stored.open()) as reader:
            for chunk in self.chunks(reader.read, stored.key, FIRST_READ_BYTES):
                names, _ = split_header(chunk, self.dialect, self.reading.encoding)
                return tuple(RecordField(name, "string", "string") for name in names)
        return None

    def decoder(self, header: tuple[str, ...] | None, columns: Sequence[Column]) -> ObjectDecoder:
        """Without a header, objects have only records, with a field for each column."""
        return _ObjectDecoder(self, header, Decoder(tuple(columns), self.dialect, self.reading))

    def chunks(self, read: ReadBytes, key: str, block_bytes: int) -> Chunks:
        """The chunks of the object at `key`, whose bytes `read` returns."""
        encoding = self.reading.encoding
        text = utf8_reader(plain_reader(read, key, self.compression, encoding), encoding)
        return Chunks(text, self.dialect, Chunk(b"", 0, 1, width=width_in(encoding)), block_bytes)


@dataclass(frozen=True)
class _ObjectDecoder:
    """Decodes objects with this header, or without one, using the decoder of the task."""

    object_format: CsvFormat
    header: tuple[str, ...] | None
    decoder: Decoder

    def __call__(self, stored: StoredObject) -> Generator[Records, None, None]:
        object_format, header, decoder = self.object_format, self.header, self.decoder
        layout = RecordLayout.in_order(len(decoder.columns)) if header is None else None
        with contextlib.closing(stored.open()) as reader:
            chunks = object_format.chunks(reader.read, stored.key, BLOCK_BYTES)
            try:
                for chunk in chunks:
                    if layout is None:
                        assert header is not None
                        layout, chunk = without_header(
                            chunk, header, object_format.dialect, object_format.reading
                        )
                        if not chunk.data:
                            continue
                    decoded = decoder.decode(chunk, layout)
                    if decoded.length < len(chunk.data):
                        chunks.give_back(chunk.after(decoded.length), whole=decoded.length == 0)
                    yield decoded
            except RecordTooLarge as large:
                if layout is None:
                    raise malformed_header(large.problem, large.line, large.byte) from large
                if not object_format.reading.rejects:
                    raise
                yield rest_rejected(large, decoder.columns, object_format.reading.encoding)

    def together(self, objects: Sequence[StoredObject]) -> tuple[pa.RecordBatch, list[int]] | None:
        """See `ObjectDecoder`; parses all objects as one text: one by one takes far longer.

        Each object's records end with a newline outside quotes: so a record is good or bad in the
        joined text exactly as in its object.
        """
        object_format = self.object_format
        reading, dialect = object_format.reading, object_format.dialect
        in_order = RecordLayout.in_order(len(self.decoder.columns))
        layout: RecordLayout | None = None
        known_header = b""  # most headers have the same bytes: names are compared only once
        texts: list[bytes] = []
        counts: list[int] = []
        for stored in objects:
            try:
                text = whole_text(stored, object_format.compression, reading.encoding)
                if text is None:
                    return None
                text = text.removeprefix(BOM)
                if known_header and text.startswith(known_header):
                    text = text[len(known_header) :]
                elif text and self.header is not None:
                    chunk = Chunk(text, 0, 1)
                    own, rest = without_header(chunk, self.header, dialect, reading)
                    if layout not in (None, own):
                        return None
                    start = text[: len(text) - len(rest.data)]
                    # Without a newline, another object's header may go on after these bytes.
                    known_header = start if start.endswith(b"\n") else b""
                    layout, text = own, rest.data
            except ObjectError:
                return None
            if (count := _count_records(text, dialect)) is None:
                return None
            texts.append(text if text.endswith(b"\n") or not text else text + b"\n")
            counts.append(count)
        batch = self.decoder.all_good(b"".join(texts), layout or in_order)
        return None if batch is None or batch.num_rows != sum(counts) else (batch, counts)


class Decoder:
    """Decodes chunks of one source's objects to batches of its columns, in order.

    An unquoted field that equals the dialect's NULL text is NULL; `""` is the empty string. Keep
    one decoder for all objects of a task: it learns which columns pyarrow's reader can't read, and
    whether to expect bad records.
    """

    def __init__(self, columns: tuple[Column, ...], dialect: CsvDialect, reading: Reading) -> None:
        self.columns = columns
        self._dialect = dialect
        self._reading = reading
        self._all_text = [pa.string()] * len(columns)
        # Columns that pyarrow reads as text, for `convert`.
        self._as_text = frozenset(
            i for i, c in enumerate(columns) if c.data_type.startswith(_ALWAYS_AS_TEXT)
        )
        self._integers = frozenset(i for i, c in enumerate(columns) if c.data_type in INTEGERS)
        self._expects_rejects = False

    def decode(self, chunk: Chunk, layout: RecordLayout) -> Records:
        """The chunk's records, good ones converted, and the length of these records.

        Raises ObjectError for the first bad record unless bad records are rejected. If they are, a
        record that does not end in the chunk is not decoded, except in the last chunk.
        """
        batch = self.all_good(chunk.data, layout)
        if batch is not None:
            return Records(batch, batch.num_rows, length=len(chunk.data))
        decoded = self._sift(chunk, layout)
        # After a chunk with bad records, most have some: `all_good` skips its attempt.
        self._expects_rejects = bool(decoded.rejects)
        return decoded

    def all_good(self, data: bytes, layout: RecordLayout) -> pa.RecordBatch | None:
        """The records if all of them are good; None if one is bad, or a bad one is expected."""
        if self._expects_rejects or not is_plain(
            data, self._dialect, one_column=layout.width == 1
        ):
            return None
        if len(layout.fields) < layout.width and invalid_utf8(data):
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
            arrays = parse(data, layout, types, self._dialect).columns
            return self._batch(
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
        try:
            text, rows = self._text_columns(cut.well_formed(), layout)
            if len(text[0]) + len(rows) != len(numbers):
                raise ValueError  # pyarrow's reader and ours disagree
        except ValueError as exc:
            problem = "the records from here on could not be read"
            raise ObjectError(problem, FIX_OBJECT, line=chunk.line, byte=chunk.byte) from exc
        ragged = {numbers[row] for row in rows}
        numbers = _without(numbers, ragged)
        arrays, values = self._convert(text, numbers)
        bad = {**dict.fromkeys(cut.malformed | ragged), **values}
        rejects = self._describe(chunk, layout, cut, bad)
        if bad and not self._reading.rejects:
            first = next(rejects)
            # For other bad records, no column's type is the cause.
            advice = "; or declare the column as a string" if first.number in values else ""
            raise ObjectError(first.error, FIX_OBJECT + advice, line=first.line, byte=first.byte)
        good = pa.array(_without(numbers, values), pa.int64())
        return Records(self._batch(arrays), len(cut.starts), good, tuple(rejects), cut.end)

    def _learn(self, data: bytes, layout: RecordLayout) -> pa.RecordBatch:
        """The records, with all columns converted from text. Notes which columns need that."""
        text = parse(data, layout, self._all_text, self._dialect).columns
        batch = self._batch(map(convert, text, [column.data_type for column in self.columns]))
        for index, (array, column) in enumerate(zip(text, self.columns, strict=True)):
            if index in self._as_text:
                continue
            try:
                _require_certain(pc.cast(array, arrow_type(column.data_type)))
            except ValueError:
                self._as_text |= {index}
        return batch

    def _text_columns(self, data: bytes, layout: RecordLayout) -> tuple[list[pa.Array], list[int]]:
        """The columns as text, and the numbers of the records with a wrong number of fields."""
        if not data:
            return [pa.array([], kind) for kind in self._all_text], []
        ragged: list[int] = []
        return parse(data, layout, self._all_text, self._dialect, ragged=ragged).columns, ragged

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
            raw = chunk.data[start : cut.end_of(number)]
            name, error = bad[number] or self._wrong(raw, layout)
            kept = raw_text(raw, self._reading.encoding)
            yield Reject(number, line, byte, kept, name, error)

    def _wrong(self, raw: bytes, layout: RecordLayout) -> tuple[str | None, str]:
        """The bad column, if there is exactly one, and what is wrong."""
        try:
            fields, _ = first_record(raw, self._dialect, self._reading.encoding)
        except MalformedRecord as malformed:
            names = {i: c.name for i, c in zip(layout.fields, self.columns, strict=True)}
            return names.get(malformed.number - 1), str(malformed)
        if len(fields) != layout.width:
            return None, f"expected {counted(layout.width, 'column')}, got {len(fields)}"
        # `first_record` accepts the record: pyarrow's reader and ours disagree.
        return None, "the record could not be read"

    def _batch(self, arrays: Iterable[pa.Array]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(list(arrays), names=[c.name for c in self.columns])


def _require_certain(array: pa.Array) -> pa.Array:
    """Returns the array. Raises ValueError if its text may be one that PostgreSQL refuses."""
    if pa.types.is_date32(array.type):
        require_year(array)
    if pa.types.is_floating(array.type) and pc.any(is_special(array)).as_py():
        raise ValueError("a special value, perhaps from a number out of range")
    return array


def _without(numbers: Sequence[int], left_out: Collection[int]) -> Sequence[int]:
    return [n for n in numbers if n not in left_out] if left_out else numbers


def _count_records(text: bytes, dialect: CsvDialect) -> int | None:
    """The number of records if all are good; None if the last one has no proper end."""
    quote = dialect.quote.encode()
    outside = text
    if quote and quote in text:
        pieces = text.split(quote)
        if len(pieces) % 2 == 0:
            return None
        outside = b"".join(pieces[::2])
    if text.endswith(b"\r"):
        return None
    return outside.count(b"\n") + (not text.endswith(b"\n") if text else 0)
