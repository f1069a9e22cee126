"""Formats of text: objects are decoded in chunks of whole records, and small objects together.

An object's records begin where `skip_preamble` and then `TextDecoder.begin` say, for one object,
for small ones that are joined, and for a large one that tasks read in ranges.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from dbt.adapters.mzs3.formats.read.chunks import (
    BLOCK_BYTES,
    MAX_RECORD_BYTES,
    Chunk,
    Chunks,
    RecordTooLarge,
    skip_preamble,
)
from dbt.adapters.mzs3.formats.read.columns import Column, RecordLayout, added_places
from dbt.adapters.mzs3.formats.read.compression import NONE, compression_of, plain_reader
from dbt.adapters.mzs3.formats.read.dialect import CR, LINES, SourceDialect
from dbt.adapters.mzs3.formats.read.encoding import ReadBytes, utf8_reader, width_in
from dbt.adapters.mzs3.formats.read.format import (
    Reading,
    RecordField,
    Records,
    Reject,
    StoredObject,
    raw_text,
)
from dbt.adapters.mzs3.formats.read.header import layout_of, malformed_header, split_header
from dbt.adapters.mzs3.formats.read.object_error import ObjectError
from dbt.adapters.mzs3.formats.read.signatures import LOOK_BYTES
from dbt.adapters.mzs3.types.table import arrow_type

FIRST_READ_BYTES = 64 * 1024

T = TypeVar("T")


@dataclass(frozen=True)
class TextFormat(ABC):
    """Text of one compression and encoding; with the dialect `LINES`, only in UTF-8."""

    compression: str
    reading: Reading
    dialect: SourceDialect = LINES

    def fields(self, stored: StoredObject) -> tuple[RecordField, ...] | None:
        """The fields of the first record; None if there is no record. Raises ObjectError."""
        return self.first(stored, self.fields_in)

    @abstractmethod
    def fields_in(self, chunk: Chunk) -> tuple[RecordField, ...] | None:
        """The fields of the chunk's first record; None if it has none. Raises HeaderProblem."""

    @abstractmethod
    def decoder(self, header: tuple[str, ...] | None, columns: Sequence[Column]) -> TextDecoder:
        """See `ObjectFormat`."""

    @property
    def start(self) -> Chunk:
        """The empty chunk where an object starts."""
        width = width_in(self.reading.encoding)
        return Chunk(b"", 0, 1, width=width, preamble=self.reading.skip_lines)

    def first(
        self,
        stored: StoredObject,
        find: Callable[[Chunk], T | None],
        max_record_bytes: int = MAX_RECORD_BYTES,
    ) -> T | None:
        """What `find` returns for the object's first chunk for which that is true.

        Raises ObjectError, also if the first record is longer than `max_record_bytes`.
        """
        with contextlib.closing(stored.open()) as reader:
            text = self.text(reader.read, stored.key)
            chunks = Chunks(text, self.dialect, self.start, FIRST_READ_BYTES, max_record_bytes)
            return next(filter(None, map(find, chunks)), None)

    def text(self, read: ReadBytes, key: str) -> ReadBytes:
        """Returns a reader of an object's text as UTF-8; `read` returns the bytes at `key`.

        With records that end in carriage returns, these and line feeds are swapped.
        """
        encoding = self.reading.encoding
        declared = None if self.dialect == LINES else encoding
        text = utf8_reader(plain_reader(read, key, self.compression, declared), encoding)
        return lambda size: self.dialect.ends_swapped(text(size))

    def whole_text(self, stored: StoredObject) -> bytes | None:
        """The object's text as UTF-8; None if the object is compressed. Raises ObjectError.

        A compressed object is not read, as its text may be far larger than the object.
        """
        start = stored.part(0, min(LOOK_BYTES, stored.size))
        if compression_of(start, stored.key, self.compression, self.reading.encoding) != NONE:
            return None
        with contextlib.closing(stored.open()) as reader:
            read = self.text(reader.read, stored.key)
            return b"".join(iter(lambda: read(BLOCK_BYTES), b""))


class TextDecoder(ABC):
    """Decodes one source's objects to batches of its columns; see `ObjectDecoder`.

    Each object begins with the `header`, or with a record if that is None. A decoder learns from
    the records of a task how to read the next ones fast.
    """

    def __init__(
        self, form: TextFormat, header: tuple[str, ...] | None, columns: Sequence[Column]
    ) -> None:
        self.columns = columns
        self._form = form
        self._reading = form.reading
        self._header = header
        self._added = added_places(columns)
        self._in_order = RecordLayout.in_order(len(columns))
        # Most headers have the same bytes: their names are compared only once.
        self._last_header = b""
        self._last_layout = self._in_order

    @abstractmethod
    def decode(self, chunk: Chunk, layout: RecordLayout) -> Records:
        """The chunk's records. Raises ObjectError for a bad one unless these are rejected."""

    @abstractmethod
    def all_good(self, data: bytes, layout: RecordLayout) -> pa.RecordBatch | None:
        """The records of canonical text, if all are good and pyarrow reads them exactly."""

    def __call__(self, stored: StoredObject) -> Generator[Records, None, None]:
        """The records of one object; see `ObjectDecoder`."""
        with contextlib.closing(stored.open()) as reader:
            yield from self.records(self._form.text(reader.read, stored.key), self._form.start)

    def records(
        self, read: ReadBytes, start: Chunk, layout: RecordLayout | None = None
    ) -> Generator[Records, None, None]:
        """The records of the text that `read` returns, from the empty chunk `start` on.

        With a `layout` the text begins with a record, without one as an object does. Raises
        ObjectError.
        """
        if self._header is None:
            layout = layout or self._in_order
        chunks = Chunks(read, self._form.dialect, start, BLOCK_BYTES)
        try:
            for chunk in chunks:
                if layout is None:
                    layout, chunk = self.begin(chunk)
                    if not chunk.data:
                        continue
                records = self.decode(chunk, layout)
                if records.unread:
                    length = len(chunk.data) - records.unread
                    chunks.give_back(chunk.after(length), whole=length == 0)
                yield records
        except RecordTooLarge as large:
            if layout is None:
                raise malformed_header(large.problem, large.line, large.byte) from large
            if not self._reading.rejects:
                raise
            yield self._rest_rejected(large)

    def together(self, objects: Sequence[StoredObject]) -> tuple[pa.RecordBatch, list[int]] | None:
        """See `ObjectDecoder`. Parses all objects as one text, as one by one takes far longer.

        Each object's records end with a newline outside quotes, so that a record of the joined
        text is good exactly if it is in its object.
        """
        dialect = self._form.dialect
        quote = b"" if dialect.lines_are_records else dialect.quote.encode()
        layout: RecordLayout | None = None
        texts: list[bytes] = []
        counts: list[int] = []
        for stored in objects:
            try:
                if (text := self._form.whole_text(stored)) is None:
                    return None
                chunk = skip_preamble(self._form.start._replace(data=text, last=True), dialect)
                if chunk.data:
                    own, chunk = self.begin(chunk)
                    if layout not in (None, own):
                        return None
                    layout = own
            except ObjectError:
                return None
            text = dialect.canonical(chunk.data)
            if (count := _count_records(text, quote)) is None:
                return None
            texts.append(text if text.endswith(b"\n") or not text else text + b"\n")
            counts.append(count)
        batch = self.all_good(b"".join(texts), layout or self._in_order)
        # Blank lines of JSON are counted, but are no records.
        return None if batch is None or batch.num_rows != sum(counts) else (batch, counts)

    def begin(self, chunk: Chunk) -> tuple[RecordLayout, Chunk]:
        """The layout of an object's records, and its first chunk without the header.

        Raises HeaderProblem.
        """
        if self._header is None:
            return self._in_order, chunk
        if self._last_header and chunk.data.startswith(self._last_header):
            return self._last_layout, chunk.after(len(self._last_header))
        names, rest = split_header(chunk, self._form.dialect, self._reading.encoding)
        match = self._reading.header_match
        layout = layout_of(names, self._header, match, chunk, added=self._added)
        header = chunk.data[: len(chunk.data) - len(rest.data)]
        # Without a newline, another object's header may go on after these bytes.
        if header.endswith(b"\n"):
            self._last_header, self._last_layout = header, layout
        return layout, rest

    def raw_text(self, raw: bytes) -> str:
        """A rejected record's text, as `raw_text` returns it."""
        if self._form.dialect.record_delimiter == CR:
            raw = self._form.dialect.ends_swapped(raw.removesuffix(b"\n")) + b"\n"
        return raw_text(raw, self._reading.encoding)

    def batch(self, arrays: Iterable[pa.Array]) -> pa.RecordBatch:
        """The columns as a batch."""
        return pa.RecordBatch.from_arrays(list(arrays), names=[c.name for c in self.columns])

    def _rest_rejected(self, large: RecordTooLarge) -> Records:
        """One reject for a record that is too large for memory, and for the rest of its object."""
        assert large.line is not None and large.byte is not None
        no_rows = self.batch(pa.array([], arrow_type(c.data_type)) for c in self.columns)
        error = f"{large.problem} All that follows in the object is rejected with it"
        raw = self.raw_text(large.start)
        reject = Reject(0, large.line, large.byte, raw, None, error)
        return Records(no_rows, 1, pa.array([], pa.int64()), (reject,), is_certain=False)


def _count_records(text: bytes, quote: bytes) -> int | None:
    """The number of records if all are good; None if the last one has no proper end."""
    outside = text
    if quote and quote in text:
        pieces = text.split(quote)
        if len(pieces) % 2 == 0:
            return None
        outside = b"".join(pieces[::2])
    if text.endswith(b"\r"):
        return None
    return outside.count(b"\n") + (not text.endswith(b"\n") if text else 0)
