"""CSV files: whole lines, up to exactly `max_file_size`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

import pyarrow as pa

from dbt.adapters.mzs3.formats.csv.compress import CompressedCsvFile
from dbt.adapters.mzs3.formats.csv.encode import CsvEncoder
from dbt.adapters.mzs3.formats.csv.lines import Lines
from dbt.adapters.mzs3.formats.format import OpenFile, Sink
from dbt.adapters.mzs3.formats.shape import Shape
from dbt.adapters.mzs3.formats.spec import CsvSpec

_SUFFIXES = {"none": ".csv", "gzip": ".csv.gz", "zstd": ".csv.zst"}
_CONTENT_TYPES = {
    "none": "text/csv; charset=utf-8",
    "gzip": "application/gzip",
    "zstd": "application/zstd",
}


class CsvFormat:
    """The lines that PostgreSQL writes, a header first in every file if there is one.

    A row is never split: one that is larger than `max_file_size` gets a file of its own.
    """

    def __init__(
        self, schema: pa.Schema, shapes: tuple[Shape, ...], spec: CsvSpec, max_file_size: int
    ) -> None:
        self._encoder = CsvEncoder(schema, spec.dialect, spec.quoted_columns, shapes)
        self._header = self._encoder.header() if spec.header else b""
        self._compression = spec.compression
        self._max_file_size = max_file_size

    @property
    def suffix(self) -> str:
        """`.csv`, and what the compression adds."""
        return _SUFFIXES[self._compression]

    @property
    def content_type(self) -> str:
        """The media type of what is stored, compressed or not."""
        return _CONTENT_TYPES[self._compression]

    def pieces(self, rows: pa.RecordBatch) -> Iterator[Lines]:
        """The rows as lines."""
        return (Lines(lines) for lines in self._encoder.encode_in_pieces(rows))

    def open(self, sink: Sink) -> OpenFile:
        """Begin a file, with the header."""
        if self._compression == "none":
            return CsvFile(sink, self._header, self._max_file_size)
        return CompressedCsvFile(sink, self._compression, self._header, self._max_file_size)


class CsvFile:
    """One uncompressed file."""

    def __init__(self, sink: Sink, header: bytes, max_file_size: int) -> None:
        self._sink = sink
        self._max_file_size = max_file_size
        self._empty = True
        if header:
            sink.append(memoryview(header))

    def take(self, lines: Lines, start: int) -> int:
        """As many whole lines as fit, found by bisection."""
        offsets = lines.offsets
        room = max(0, self._max_file_size - self._sink.bytes)
        end = bisect_right(offsets, offsets[start] + room, lo=start, hi=len(offsets)) - 1
        if end == start and self._empty:
            end = start + 1
        if end > start:
            self._sink.append(lines.data[offsets[start] : offsets[end]])
            self._empty = False
        return end

    def close(self) -> None:
        """Nothing: a CSV file ends with its last line."""
