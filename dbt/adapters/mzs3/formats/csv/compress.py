"""Compressed CSV files: one stream, the same bytes for the same lines."""

from __future__ import annotations

import zlib
from bisect import bisect_right
from typing import Protocol

import pyarrow as pa

from dbt.adapters.mzs3.formats.csv.values import Lines
from dbt.adapters.mzs3.formats.format import Sink

# How much text is compressed between two looks at the size; each look costs some ten bytes.
CHUNK_BYTES = 1 << 20
# A file is full when what fits for certain is a smaller share of it than this.
LEAST_SHARE = 64
# Twice as fast as zlib's own choice, 6, for files 6 % larger (500 000 rows of flights).
GZIP_LEVEL = 4

# zlib's own number for "a gzip member, header and checksum included"; its header has no time.
_GZIP_WINDOW = 31
# Above what either codec adds to data that it can't compress: an eighth (zlib, `deflateBound`
# for any settings; zstd adds less), and for headers, checksums and the mark of a flush this.
_EXPANSION = 8
_OVERHEAD = 128
# Gzip's last block and checksum, zstd's last block.
_END = 32


class CompressedCsvFile:
    """One file of at most `max_file_size` compressed bytes, unless its only row is larger.

    One gzip member or one zstd frame. Lines are held back until they make a chunk, which is
    compressed and flushed, so that the size is known. A line is taken only if it fits even where
    it can't be compressed. Chunks end where the lines say, not where batches were cut, and so do
    files: at least 98 % full while lines are short.

    Memory: two chunks, or twice a line that is larger.
    """

    def __init__(self, sink: Sink, compression: str, header: bytes, max_file_size: int) -> None:
        self._sink = sink
        self._stream: _Stream = _Gzip() if compression == "gzip" else _Zstd()
        self._max_file_size = max_file_size
        self._empty = True
        self._chunk = bytearray(header)
        self._room = self._room_for_text()

    def take(self, lines: Lines, start: int) -> int:
        """As many whole lines as fit, found by bisection."""
        while start < len(lines):
            end = self._fill(lines, start)
            if end == start:
                if self._chunk:
                    self._flush()
                    continue
                end = self._one_large(lines, start)
                if end == start:
                    return start
            start = end
        return start

    def close(self) -> None:
        """End the stream."""
        self._write(self._stream.end(self._chunk))

    def _flush(self) -> None:
        self._write(self._stream.flush(self._chunk))
        room = self._room_for_text()
        self._room = 0 if room < self._max_file_size // LEAST_SHARE else room

    def _fill(self, lines: Lines, start: int) -> int:
        """Add the lines that the chunk still has room for."""
        offsets = lines.offsets
        room = max(0, min(CHUNK_BYTES, self._room) - len(self._chunk))
        end = bisect_right(offsets, offsets[start] + room, lo=start, hi=len(offsets)) - 1
        return self._add(lines, start, end)

    def _one_large(self, lines: Lines, start: int) -> int:
        """A line larger than a chunk gets one of its own, if it fits or has to."""
        fits = lines.offsets[start + 1] - lines.offsets[start] <= self._room
        return self._add(lines, start, start + 1 if fits or self._empty else start)

    def _add(self, lines: Lines, start: int, end: int) -> int:
        if end > start:
            self._chunk += lines.data[lines.offsets[start] : lines.offsets[end]]
            self._empty = False
        return end

    def _room_for_text(self) -> int:
        """How much text is sure to fit into what the file has left."""
        left = self._max_file_size - self._sink.bytes - _END - _OVERHEAD
        return max(0, left) * _EXPANSION // (_EXPANSION + 1)

    def _write(self, data: bytes) -> None:
        self._chunk = bytearray()
        if data:
            self._sink.append(memoryview(data))


class _Stream(Protocol):
    def flush(self, text: bytearray) -> bytes:
        """Everything so far that was not returned yet, `text` last."""

    def end(self, text: bytearray) -> bytes:
        """The same, and the stream's end."""


class _Gzip:
    def __init__(self) -> None:
        self._deflate = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)

    def flush(self, text: bytearray) -> bytes:
        return self._deflate.compress(text) + self._deflate.flush(zlib.Z_SYNC_FLUSH)

    def end(self, text: bytearray) -> bytes:
        return self._deflate.compress(text) + self._deflate.flush(zlib.Z_FINISH)


class _Zstd:
    """Arrow's zstd, at the one level its streams have."""

    def __init__(self) -> None:
        self._out = _Output()
        self._frame = pa.CompressedOutputStream(pa.PythonFile(self._out, mode="w"), "zstd")

    def flush(self, text: bytearray) -> bytes:
        self._frame.write(text)
        self._frame.flush()
        return self._out.pop()

    def end(self, text: bytearray) -> bytes:
        self._frame.write(text)
        self._frame.close()
        return self._out.pop()


class _Output:
    """What Arrow needs of a file to write to."""

    def __init__(self) -> None:
        self.closed = False
        self._written: list[bytes] = []

    def write(self, data: bytes) -> None:
        self._written.append(data)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True

    def pop(self) -> bytes:
        data = b"".join(self._written)
        self._written.clear()
        return data
