"""The SHA-256 and the rows of one object, in one pass over it."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.mzs3.formats.csv.dialect import CsvDialect
from dbt.adapters.mzs3.formats.format import FORMATS
from dbt.adapters.mzs3.objects.prefix import ListedObject, Prefix
from dbt.adapters.mzs3.objects.reader import ObjectStream

CHUNK_BYTES = 1 << 20

# Cutting a block at its quotes takes many times its size if it is all quotes and newlines.
BLOCK_BYTES = 256 << 10


_SUFFIXES = {
    suffix: (name, compression)
    for name, kind in FORMATS.items()
    for compression, suffix in kind.suffixes.items()
}


@dataclass(frozen=True)
class Content:
    """What an object holds; `rows` is None, and `reason` says why, where they can't be counted."""

    sha256: str
    rows: int | None
    reason: str = ""


def content_of(file: ObjectFile, name: str, layout: FileLayout) -> Content:
    """Reads the object from its start; holds a chunk of it, and of Parquet the footer.

    Raises what `file` raises.
    """
    file_format, compression = layout.of_file(name)
    source = _Hashed(file)
    rows, reason = None, ""
    try:
        if file_format == "csv":
            rows = _csv_rows(source, compression, layout)
        else:
            source.drain()
            rows = int(pq.read_metadata(pa.PythonFile(file, mode="r")).num_rows)
    except (OSError, pa.ArrowException, _Unreadable) as exc:
        if file.failure is not None:
            raise
        reason = str(exc)
    if file_format == "csv":
        source.drain()
    return Content(source.sha256, rows, reason)


class _Unreadable(Exception):
    """The text is not what an export writes."""


class _Hashed:
    """The object read in order, which is how its hash needs it; a file to pyarrow."""

    closed = False

    def __init__(self, file: ObjectFile) -> None:
        self._file = file
        self._hash = hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self._hash.update(data)
        return data

    def drain(self) -> None:
        while self.read(CHUNK_BYTES):
            pass

    def close(self) -> None:
        pass


def _csv_rows(source: _Hashed, compression: str, layout: FileLayout) -> int:
    text = source
    if compression != "none":
        text = pa.CompressedInputStream(pa.PythonFile(source, mode="r"), compression)
    counter = RecordCounter(layout.dialect)
    while block := text.read(BLOCK_BYTES):
        counter.feed(block)
    if counter.is_inside:
        raise _Unreadable("it ends within quotes")
    return counter.records - 1 if layout.header and counter.records else counter.records


class RecordCounter:
    """Counts the newlines outside of quotes, as PostgreSQL tells them, in text fed in pieces.

    Exact for what exports write: a quote opens a field or is in quotes. Memory: a block.
    """

    def __init__(self, dialect: CsvDialect) -> None:
        self.records = 0
        self._quote = dialect.quote.encode()
        self._escape = dialect.escape.encode()
        self._inside = False
        self._held = b""
        self._others = bytes(byte for byte in range(256) if byte not in self._quote + b"\n")
        # Then an escape in front of a quote may be one that ends a field or a record.
        self._ambiguous = dialect.escape in (dialect.delimiter, "\n")
        self._special = re.compile(b"[" + re.escape(self._quote + self._escape) + b"]")

    @property
    def is_inside(self) -> bool:
        """Whether the text so far ends within quotes."""
        return self._inside

    def feed(self, text: bytes) -> None:
        """Count the records that end in this piece."""
        for start in range(0, len(text), BLOCK_BYTES):
            block = text[start : start + BLOCK_BYTES]
            if self._escape == self._quote:
                self._count(block)
            elif self._ambiguous:
                self._walk(block)
            else:
                self._count(self._unescaped(block))

    def _count(self, block: bytes) -> None:
        """The newlines of every second stretch between quotes."""
        if self._quote not in block:
            self.records += 0 if self._inside else block.count(b"\n")
            return
        # Two quotes without a newline between them change nothing, and are most of them.
        marks = block.translate(None, self._others).replace(self._quote * 2, b"")
        stretches = marks.split(self._quote)
        self.records += b"".join(stretches[int(self._inside) :: 2]).count(b"\n")
        self._inside ^= len(stretches) % 2 == 0

    def _unescaped(self, block: bytes) -> bytes:
        """The block without escaped characters.

        Outside of quotes an escape means nothing, and is never in front of a quote; so removing
        them there too changes no record. A run of escapes at the end waits for what follows.
        """
        text = self._held + block
        if self._escape not in text:
            return text
        run = len(text) - len(text.rstrip(self._escape))
        self._held = self._escape * (run % 2)
        if run:
            text = text[:-run]
        return text.replace(self._escape * 2, b"").replace(self._escape + self._quote, b"")

    def _walk(self, block: bytes) -> None:
        """From quote to quote and escape to escape, for dialects in which nothing less will do."""
        text, at = self._held + block, 0
        self._held = b""
        while at < len(text):
            if not self._inside:
                end = text.find(self._quote, at)
                end = len(text) if end < 0 else end
                self.records += text.count(b"\n", at, end)
                self._inside, at = end < len(text), end + 1
                continue
            found = self._special.search(text, at)
            if found is None:
                return
            at = found.end()
            if found.group() == self._quote:
                self._inside = False
            elif at == len(text):
                self._held = self._escape
            else:
                at += 1


class ObjectFile:
    """The object as it was when it was listed, from any byte on; holds only what is asked for.

    One GET per stretch read in order. Raises what ObjectStream raises, and keeps it as `failure`,
    as those who read through others can't tell it from theirs.
    """

    closed = False  # to pyarrow; there is nothing to close but the connection

    def __init__(
        self, prefix: Prefix, listed: ListedObject, *, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._prefix = prefix
        self._listed = listed
        self._pause = pause
        self._stream = self._stream_from(0)
        self.failure: Exception | None = None

    def read(self, size: int = -1) -> bytes:
        """Exactly `size` bytes, or all up to the end; fewer only at the end."""
        left = self._listed.size - self.tell()
        missing = left if size < 0 else min(size, left)
        pieces = []
        try:
            while missing > 0:
                pieces.append(self._stream.read(missing))
                missing -= len(pieces[-1])
        except Exception as exc:
            self.failure = exc
            raise
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go on from another byte; as of any file."""
        start = offset + (0, self.tell(), self._listed.size)[whence]
        self.close()
        self._stream = self._stream_from(start)
        return start

    def tell(self) -> int:
        """The byte that is read next."""
        return self._stream.position

    def seekable(self) -> bool:
        """It is."""
        return True

    def close(self) -> None:
        """Give the connection back; the next read opens another."""
        self._stream.close()

    def _stream_from(self, start: int) -> ObjectStream:
        return ObjectStream(
            self._prefix.client,
            self._prefix.location.bucket,
            self._listed.key,
            self._listed.etag,
            span=(start, self._listed.size),
            pause=self._pause,
        )


@dataclass(frozen=True)
class FileLayout:
    """The options that shape files. `single_file` is the one whose name says nothing."""

    format: str
    compression: str
    header: bool
    dialect: CsvDialect
    single_file: str | None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> FileLayout:
        """From the manifest's `options`; what is not there has its default."""
        given = {f.name: options[f.name] for f in fields(CsvDialect) if f.name in options}
        return cls(
            format=options.get("format", "csv"),
            compression=options.get("compression", "none"),
            header=options.get("header", False),
            dialect=CsvDialect(**given),
            single_file=options.get("single_file"),
        )

    def of_file(self, name: str) -> tuple[str, str]:
        """The format and the compression of the file with this name.

        By its suffix, as partitions that an overwrite has kept may be older than the options.
        """
        if name != self.single_file:
            for suffix, found in _SUFFIXES.items():
                if name.endswith(suffix):
                    return found
        return self.format, self.compression
