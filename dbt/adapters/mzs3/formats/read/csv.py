"""CSV as a format of objects: chunks of text, decoded to Arrow batches; each record has a place.

pyarrow reads, and what it lets pass is checked. Every pass is over whole columns; records are
looked at one by one only where they are wrong, for what to say of them.
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
    Chunk,
    Chunks,
    RecordTooLarge,
    is_plain,
    parse,
)
from dbt.adapters.mzs3.formats.read.columns import INTEGERS, Column, RecordLayout
from dbt.adapters.mzs3.formats.read.compression import plain_reader
from dbt.adapters.mzs3.formats.read.convert import convert, convert_good, is_special, require_year
from dbt.adapters.mzs3.formats.read.encoding import invalid_utf8, utf8_reader, width_in
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
from dbt.adapters.mzs3.formats.read.joined import joined_objects
from dbt.adapters.mzs3.formats.read.object_error import (
    FIX_OBJECT,
    ObjectError,
    not_of_type,
    shown,
)
from dbt.adapters.mzs3.formats.read.records import (
    Cut,
    MalformedRecord,
    cut_records,
    first_record,
    malformed_header,
    split_header,
    without_header,
)
from dbt.adapters.mzs3.formats.read.stream import ReadBytes
from dbt.adapters.mzs3.text import counted
from dbt.adapters.mzs3.types.table import arrow_type

FIRST_READ_BYTES = 64 * 1024

# pyarrow's reader takes decimals out of range for other numbers, and an hour without minutes for
# a timestamp, and does not know binary.
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
        """Without a header, objects have records only, with a field for each column."""
        return _ObjectDecoder(self, header, Decoder(tuple(columns), self.dialect, self.reading))

    def chunks(self, read: ReadBytes, key: str, block_bytes: int) -> Chunks:
        """The chunks of the object at `key`, of which `read` gives the bytes."""
        encoding = self.reading.encoding
        text = utf8_reader(plain_reader(read, key, self.compression, encoding), encoding)
        return Chunks(text, self.dialect, Chunk(b"", 0, 1, width=width_in(encoding)), block_bytes)


@dataclass(frozen=True)
class _ObjectDecoder:
    """Decodes objects with this header, or without one, by the decoder of a task."""

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
        """See `ObjectDecoder`: where each object is right, so are all of them joined."""
        object_format, width = self.object_format, len(self.decoder.columns)
        joined = joined_objects(
            objects,
            self.header,
            width,
            object_format.dialect,
            object_format.compression,
            object_format.reading,
        )
        if joined is None:
            return None
        batch = self.decoder.all_good(joined.data, joined.layout)
        if batch is None or batch.num_rows != sum(joined.counts):
            return None
        return batch, joined.counts


class Decoder:
    """Decodes chunks of one source's objects to batches of its columns, in order.

    A field that is the dialect's NULL text and not quoted is NULL; `""` is the empty string.
    Keep one for all objects of a task: it learns which columns pyarrow's reader cannot read by
    itself, and whether to expect records that are not right.
    """

    def __init__(self, columns: tuple[Column, ...], dialect: CsvDialect, reading: Reading) -> None:
        self.columns = columns
        self._dialect = dialect
        self._reading = reading
        self._all_text = [pa.string()] * len(columns)
        # Columns read as text and converted by us.
        self._as_text = frozenset(
            i for i, c in enumerate(columns) if c.data_type.startswith(_ALWAYS_AS_TEXT)
        )
        self._integers = frozenset(i for i, c in enumerate(columns) if c.data_type in INTEGERS)
        self._expects_rejects = False

    def decode(self, chunk: Chunk, layout: RecordLayout) -> Records:
        """The chunk's records: the good ones converted, and the rejected ones; and their length.

        Where bad records are not rejected, raises ObjectError for the first one. Where they are,
        a record of which the end is not in the chunk is left, unless nothing follows the chunk.
        """
        batch = self.all_good(chunk.data, layout)
        if batch is not None:
            return Records(batch, batch.num_rows, length=len(chunk.data))
        decoded = self._sift(chunk, layout)
        # One chunk with bad records is seldom alone: the next is not tried in vain.
        self._expects_rejects = bool(decoded.rejects)
        return decoded

    def all_good(self, data: bytes, layout: RecordLayout) -> pa.RecordBatch | None:
        """The records if all of them are right; None else, and where one is expected not to be."""
        if self._expects_rejects or not is_plain(
            data, self._dialect, one_column=layout.width == 1
        ):
            return None
        if len(layout.fields) < layout.width and invalid_utf8(data):
            return None  # of the fields that are left out pyarrow would not see it
        # pyarrow's reader takes 0xff for a number, PostgreSQL's COPY does not.
        # Most data has no such letter, and one byte is found far faster than two.
        perhaps_hex = any(x in data and b"0" + x in data for x in (b"x", b"X"))
        as_text = (self._as_text | self._integers) if perhaps_hex else self._as_text
        types = [
            pa.string() if i in as_text else arrow_type(column.data_type)
            for i, column in enumerate(self.columns)
        ]
        with contextlib.suppress(ValueError):
            arrays = parse(data, layout, types, self._dialect).columns
            return self._batch(
                convert(array, column.data_type) if index in as_text else _certain(array)
                for index, (array, column) in enumerate(zip(arrays, self.columns, strict=True))
            )
        with contextlib.suppress(ValueError):
            return self._learn(data, layout)
        return None

    def _sift(self, chunk: Chunk, layout: RecordLayout) -> Records:
        """The chunk's records, of which some are perhaps not right."""
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
        rejects = self._described(chunk, layout, cut, bad)
        if bad and not self._reading.rejects:
            first = next(rejects)
            # Of other records no column's type is to blame.
            advice = "; or declare the column as a string" if first.number in values else ""
            raise ObjectError(first.error, FIX_OBJECT + advice, line=first.line, byte=first.byte)
        good = pa.array(_without(numbers, values), pa.int64())
        return Records(self._batch(arrays), len(cut.starts), good, tuple(rejects), cut.end)

    def _learn(self, data: bytes, layout: RecordLayout) -> pa.RecordBatch:
        """The records, by converting each column from text; remembers which need that."""
        text = parse(data, layout, self._all_text, self._dialect).columns
        batch = self._batch(map(convert, text, [column.data_type for column in self.columns]))
        for index, (array, column) in enumerate(zip(text, self.columns, strict=True)):
            if index in self._as_text:
                continue
            try:
                _certain(pc.cast(array, arrow_type(column.data_type)))
            except ValueError:
                self._as_text |= {index}
        return batch

    def _text_columns(self, data: bytes, layout: RecordLayout) -> tuple[list[pa.Array], list[int]]:
        """The columns as text, and the numbers of the records that have not as many fields."""
        if not data:
            return [pa.array([], kind) for kind in self._all_text], []
        ragged: list[int] = []
        return parse(data, layout, self._all_text, self._dialect, ragged=ragged).columns, ragged

    def _convert(
        self, text: Sequence[pa.Array], numbers: Sequence[int]
    ) -> tuple[list[pa.Array], dict[int, tuple[str, str]]]:
        """The columns of the good rows; of each bad row the first bad column, and its error."""
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
                    error = not_of_type(column.name, shown(value), column.data_type)
                    values[numbers[row]] = column.name, error
        if any_bad is not None:
            good = pc.invert(any_bad)
            arrays = [array.filter(good) for array in arrays]
        return arrays, values

    def _described(
        self, chunk: Chunk, layout: RecordLayout, cut: Cut, bad: dict[int, tuple[str, str] | None]
    ) -> Iterator[Reject]:
        """The bad records, in their order; `bad` has the column and the error where known."""
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
        """The column that is wrong, if it is one, and what is wrong."""
        try:
            fields, _ = first_record(raw, self._dialect, self._reading.encoding)
        except MalformedRecord as malformed:
            names = {i: c.name for i, c in zip(layout.fields, self.columns, strict=True)}
            return names.get(malformed.number - 1), str(malformed)
        if len(fields) != layout.width:
            return None, f"expected {counted(layout.width, 'column')}, got {len(fields)}"
        # It is right by itself: pyarrow's reader and this one disagree.
        return None, "the record could not be read"

    def _batch(self, arrays: Iterable[pa.Array]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(list(arrays), names=[c.name for c in self.columns])


def _certain(array: pa.Array) -> pa.Array:
    """The array. Raises ValueError for what pyarrow also makes of text that PostgreSQL refuses."""
    if pa.types.is_date32(array.type):
        require_year(array)
    if pa.types.is_floating(array.type) and pc.any(is_special(array)).as_py():
        raise ValueError("a special value, perhaps from a number out of range")
    return array


def _without(numbers: Sequence[int], left_out: Collection[int]) -> Sequence[int]:
    return [n for n in numbers if n not in left_out] if left_out else numbers
