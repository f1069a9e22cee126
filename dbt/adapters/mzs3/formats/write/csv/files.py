"""CSV files of whole lines, compressed or not, and a counter of their records."""

from __future__ import annotations

import re
import zlib
from typing import Any

import pyarrow as pa

from dbt.adapters.mzs3.formats.dialect import CsvDialect
from dbt.adapters.mzs3.formats.write.format import RowBlock, Sink, SinkFile

# Bytes of text between flushes. A flush reveals the compressed size, and costs some ten bytes.
CHUNK_BYTES = 1 << 20
# A file counts as full once less than 1/64 of `max_file_size` is certain to be free.
LEAST_SHARE = 64
# Twice as fast as zlib's default level, 6, for files that are 6 % larger (on 500 000 rows).
GZIP_LEVEL = 4

# zlib's `wbits` for gzip with header and checksum; the header has no timestamp.
_GZIP_WINDOW = 31
# Upper bounds of what a codec adds to data that it can't compress: 1/8 of the data (zlib's
# `deflateBound`; zstd adds less), and `_OVERHEAD` for headers, checksums and the mark of a flush.
_EXPANSION = 8
_OVERHEAD = 128
# The size of gzip's last block and checksum, or of zstd's last block.
_END = 32
# The block size of `RecordCounter`: splitting a block may take many times its size in memory.
BLOCK_BYTES = 256 << 10

Lines = RowBlock[memoryview]
"""`content[ends[i]:ends[i + 1]]` is line i, including its newline."""


def lines_of(texts: pa.Array) -> Lines:
    """Converts the texts that `CsvEncoder.encode` returns to Lines."""
    _, offsets, data = texts.buffers()
    return RowBlock(memoryview(data or b""), memoryview(offsets).cast("q")[: len(texts) + 1])


class CsvFile:
    """One uncompressed file of whole lines; a line above `max_file_size` gets its own file."""

    def __init__(self, sink: Sink, header: bytes, max_file_size: int) -> None:
        self._sink = sink
        self._max_file_size = max_file_size
        self._empty = True
        if header:
            sink.append(memoryview(header))

    def take(self, lines: Lines, start: int) -> int:
        """Writes the lines from index `start` on that fit. Returns the index of the next line."""
        end = lines.end_within(start, self._max_file_size - self._sink.bytes)
        if end == start and self._empty:
            end = start + 1
        if end > start:
            self._sink.append(lines.content[lines.ends[start] : lines.ends[end]])
            self._empty = False
        return end

    def close(self) -> None:
        """Does nothing; a CSV file ends with its last line."""


class CompressedCsvFile:
    """One file of at most `max_file_size` compressed bytes, unless its only row is larger.

    It is one gzip member or one zstd frame. Lines are collected into a chunk, which is compressed
    and flushed, so that the compressed size is known. A line is added only if it fits even without
    compression. Where chunks and files end depends on the lines, not on batches. Files are at
    least 98 % full while lines are short.

    Memory: two chunks, or twice a line that is larger than a chunk.
    """

    def __init__(self, sink: Sink, compression: str, header: bytes, max_file_size: int) -> None:
        self._sink = sink
        self._output = SinkFile(sink)
        self._stream: Any
        if compression == "gzip":
            self._stream = _Gzip(self._output)
        else:  # Arrow's streams have only one level
            self._stream = pa.CompressedOutputStream(pa.PythonFile(self._output, "w"), compression)
        self._max_file_size = max_file_size
        self._empty = True
        self._chunk = bytearray(header)
        self._room = self._room_for_text()

    def take(self, lines: Lines, start: int) -> int:
        """Writes the lines from index `start` on that fit. Returns the index of the next line."""
        while start < len(lines):
            end = lines.end_within(start, min(CHUNK_BYTES, self._room) - len(self._chunk))
            if end == start and self._chunk:
                self._flush()
                continue
            if end == start:  # a line larger than a chunk is its own chunk
                size = lines.ends[start + 1] - lines.ends[start]
                if size > self._room and not self._empty:
                    return start
                end = start + 1
            self._chunk += lines.content[lines.ends[start] : lines.ends[end]]
            self._empty = False
            start = end
        return start

    def close(self) -> None:
        """Ends the compressed stream."""
        self._stream.write(self._chunk)
        self._stream.close()

    def __del__(self) -> None:
        # On deletion, Arrow's stream writes the frame's end, which a failed file does not need.
        self._output.is_given_up = True

    def _flush(self) -> None:
        self._stream.write(self._chunk)
        self._stream.flush()
        self._chunk = bytearray()
        room = self._room_for_text()
        self._room = 0 if room < self._max_file_size // LEAST_SHARE else room

    def _room_for_text(self) -> int:
        """How many bytes of text certainly fit into the rest of the file."""
        free = self._max_file_size - self._sink.bytes - _END - _OVERHEAD
        return max(0, free) * _EXPANSION // (_EXPANSION + 1)


class _Gzip:
    """zlib's gzip with the interface of Arrow's streams."""

    def __init__(self, output: SinkFile) -> None:
        self._output = output
        self._deflate = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)

    def write(self, text: bytearray) -> None:
        self._output.write(self._deflate.compress(text))

    def flush(self) -> None:
        self._output.write(self._deflate.flush(zlib.Z_SYNC_FLUSH))

    def close(self) -> None:
        self._output.write(self._deflate.flush(zlib.Z_FINISH))


class RecordCounter:
    """Counts the newlines outside of quotes, by PostgreSQL's rules, in text fed in pieces.

    Exact for files of exports, where each quote opens a field or is within quotes. `is_inside` is
    whether the text so far ends within quotes. Memory: one block.
    """

    def __init__(self, dialect: CsvDialect) -> None:
        self.records = 0
        self.is_inside = False
        self._quote, self._escape = dialect.quote.encode(), dialect.escape.encode()
        self._others = bytes(byte for byte in range(256) if byte not in self._quote + b"\n")
        self._cut_off = b""
        quote, escape = re.escape(self._quote), re.escape(self._escape)
        inner = b"[^%b%b]*" % (quote, escape)
        # Matches from a quote to the closing one or the block's end, which may cut off an escape.
        self._stretch = re.compile(
            b"%b%b(?:%b.%b)*(%b|%b?\\Z)" % (quote, inner, escape, inner, quote, escape), re.DOTALL
        )

    def feed(self, block: bytes) -> None:
        """Counts the records that end in this piece, of BLOCK_BYTES at most."""
        if self._escape != self._quote:
            self._count_between_stretches(block)
        elif self._quote in block:
            # Two quotes with no newline or quote between them enclose no newline, and are dropped.
            marks = block.translate(None, self._others).replace(self._quote * 2, b"")
            stretches = marks.split(self._quote)
            self.records += b"".join(stretches[int(self.is_inside) :: 2]).count(b"\n")
            self.is_inside ^= len(stretches) % 2 == 0
        elif not self.is_inside:
            self.records += block.count(b"\n")

    def _count_between_stretches(self, block: bytes) -> None:
        pieces = self._stretch.split(self._quote * self.is_inside + self._cut_off + block)
        self.records += b"".join(pieces[::2]).count(b"\n")
        end = pieces[-2] if len(pieces) > 1 else self._quote
        self.is_inside = end != self._quote
        self._cut_off = end if self.is_inside else b""
