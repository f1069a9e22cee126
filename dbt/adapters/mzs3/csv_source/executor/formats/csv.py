"""CSV as a format of objects: chunks of text, each record with its place."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from dbt.adapters.mzs3.csv_source.executor.chunks import (
    BLOCK_BYTES,
    Chunk,
    Chunks,
    RecordTooLarge,
)
from dbt.adapters.mzs3.csv_source.executor.columns import Column, RecordLayout, arrow_type
from dbt.adapters.mzs3.csv_source.executor.compression import plain_reader
from dbt.adapters.mzs3.csv_source.executor.decode import Decoder
from dbt.adapters.mzs3.csv_source.executor.encoding import utf8_reader, width_in
from dbt.adapters.mzs3.csv_source.executor.formats.format import (
    ObjectDecoder,
    RecordField,
    Records,
    StoredObject,
)
from dbt.adapters.mzs3.csv_source.executor.header import (
    malformed_header,
    split_header,
    without_header,
)
from dbt.adapters.mzs3.csv_source.executor.reading import Reading
from dbt.adapters.mzs3.csv_source.executor.sift import oversized
from dbt.adapters.mzs3.csv_source.executor.stream import Read
from dbt.adapters.mzs3.formats.csv.dialect import CsvDialect

FIRST_READ_BYTES = 64 * 1024


@dataclass(frozen=True)
class CsvFormat:
    """CSV of one dialect, compression and encoding; every field is a text."""

    dialect: CsvDialect
    compression: str
    reading: Reading
    block_bytes: int = BLOCK_BYTES

    def fields(self, stored: StoredObject) -> tuple[RecordField, ...] | None:
        """The names in the first record; None if the object is empty. Raises ObjectError."""
        with contextlib.closing(stored.open()) as reader:
            for chunk in self.chunks(reader.read, stored.key, FIRST_READ_BYTES):
                names, _ = split_header(chunk, self.dialect, self.reading.encoding)
                return tuple(RecordField(name, "string", "string") for name in names)
        return None

    def decoder(self, header: tuple[str, ...] | None, columns: Sequence[Column]) -> ObjectDecoder:
        """Without a header, objects have records only, with a field for each column."""
        return CsvDecoder(self, header, tuple(columns)).records

    def chunks(self, read: Read, key: str, block_bytes: int) -> Chunks:
        """The chunks of the object at `key`, of which `read` gives the bytes."""
        encoding = self.reading.encoding
        text = utf8_reader(plain_reader(read, key, self.compression), encoding)
        return Chunks(text, self.dialect, block_bytes=block_bytes, width=width_in(encoding))


class CsvDecoder:
    """Reads CSV objects of one source, a chunk at a time."""

    def __init__(
        self, form: CsvFormat, header: tuple[str, ...] | None, columns: tuple[Column, ...]
    ) -> None:
        self._form = form
        self._header = header
        self._columns = columns
        self._decoder = Decoder(columns, form.dialect, form.reading)

    def records(self, stored: StoredObject) -> Generator[Records, None, None]:
        """See `ObjectDecoder`. Records that are not right are set aside if reading says so."""
        reading = self._form.reading
        layout = None
        with contextlib.closing(stored.open()) as reader:
            found = self._form.chunks(reader.read, stored.key, self._form.block_bytes)
            try:
                for chunk in found:
                    if layout is None:
                        layout, chunk = self._begin(chunk)
                        if not chunk.data:
                            continue
                    decoded = self._decoder.decode(chunk, layout)
                    if decoded.length < len(chunk.data):
                        found.give_back(chunk.after(decoded.length), whole=decoded.length == 0)
                    yield decoded
            except RecordTooLarge as problem:
                if layout is None and self._header is not None:
                    where = problem.line, problem.byte
                    raise malformed_header(problem.problem, *where) from problem
                if not reading.rejects:
                    raise
                yield Records(self._no_rows(), 1, rejects=(oversized(problem, reading.encoding),))

    def _begin(self, chunk: Chunk) -> tuple[RecordLayout, Chunk]:
        """Which fields are the columns, and the chunk without the header, which is checked."""
        if self._header is None:
            return RecordLayout.in_order(len(self._columns)), chunk
        return without_header(chunk, self._header, self._form.dialect, self._form.reading)

    def _no_rows(self) -> pa.RecordBatch:
        arrays = [pa.nulls(0, arrow_type(column.data_type)) for column in self._columns]
        return pa.RecordBatch.from_arrays(arrays, names=[c.name for c in self._columns])
