"""CSV as a format of objects: chunks of text, each record with its place."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import partial

from dbt.adapters.mzs3.csv_source.executor.chunks import BLOCK_BYTES, Chunks, RecordTooLarge
from dbt.adapters.mzs3.csv_source.executor.columns import Column, RecordLayout
from dbt.adapters.mzs3.csv_source.executor.compression import plain_reader
from dbt.adapters.mzs3.csv_source.executor.decode import Decoder
from dbt.adapters.mzs3.csv_source.executor.encoding import utf8_reader, width_in
from dbt.adapters.mzs3.csv_source.executor.formats.format import (
    ObjectDecoder,
    Reading,
    RecordField,
    Records,
    StoredObject,
)
from dbt.adapters.mzs3.csv_source.executor.header import (
    malformed_header,
    split_header,
    without_header,
)
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
        decoder = Decoder(tuple(columns), self.dialect, self.reading)
        return partial(self._records, header, columns, decoder)

    def chunks(self, read: Read, key: str, block_bytes: int) -> Chunks:
        """The chunks of the object at `key`, of which `read` gives the bytes."""
        encoding = self.reading.encoding
        text = utf8_reader(plain_reader(read, key, self.compression), encoding)
        return Chunks(text, self.dialect, block_bytes=block_bytes, width=width_in(encoding))

    def _records(
        self,
        header: tuple[str, ...] | None,
        columns: Sequence[Column],
        decoder: Decoder,
        stored: StoredObject,
    ) -> Generator[Records, None, None]:
        layout = RecordLayout.in_order(len(columns)) if header is None else None
        with contextlib.closing(stored.open()) as reader:
            found = self.chunks(reader.read, stored.key, self.block_bytes)
            try:
                for chunk in found:
                    if layout is None:
                        assert header is not None
                        layout, chunk = without_header(chunk, header, self.dialect, self.reading)
                        if not chunk.data:
                            continue
                    decoded = decoder.decode(chunk, layout)
                    if decoded.length < len(chunk.data):
                        found.give_back(chunk.after(decoded.length), whole=decoded.length == 0)
                    yield decoded
            except RecordTooLarge as problem:
                if layout is None:
                    where = problem.line, problem.byte
                    raise malformed_header(problem.problem, *where) from problem
                if not self.reading.rejects:
                    raise
                yield decoder.oversized(problem)
