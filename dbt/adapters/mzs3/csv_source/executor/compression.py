"""Objects that are compressed: which way, and their bytes decompressed as they are read."""

from __future__ import annotations

import bz2
import gzip
import io
import zlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from dbt.adapters.mzs3.csv_source.executor.object_error import FIX_OBJECT, ObjectError
from dbt.adapters.mzs3.csv_source.executor.stream import RAW_READ_BYTES, Read

BY_SUFFIX, NONE = "by_suffix", "none"
_SUFFIXES = {
    ".gz": "gzip",
    ".gzip": "gzip",
    ".zst": "zstd",
    ".zstd": "zstd",
    ".bz2": "bzip2",
}
# None of these is the start of CSV: two are no UTF-8, and a bzip2 block has pi in it.
_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    **{b"BZh%d1AY&SY" % level: "bzip2" for level in range(1, 10)},
}
_LONGEST_MAGIC = max(map(len, _MAGIC))
COMPRESSIONS = (BY_SUFFIX, NONE, "gzip", "zstd", "bzip2")


def compression_of(key: str, declared: str) -> str:
    """How the object at `key` is compressed: by its suffix unless declared."""
    if declared != BY_SUFFIX:
        return declared
    name = key.lower()
    return next((kind for suffix, kind in _SUFFIXES.items() if name.endswith(suffix)), NONE)


def plain_reader(read: Read, key: str, declared: str) -> Read:
    """Reads the object's text: its bytes, or what they decompress to.

    Raises ObjectError where the bytes are not what the compression makes, end early, or are
    compressed though nothing says so.
    """
    return _READERS[compression_of(key, declared)](read)


class Gunzip:
    """Decompresses gzip of one or several members; zeros behind each are padding, as to gzip."""

    def __init__(self, read: Read) -> None:
        self._stream = gzip.GzipFile(fileobj=io.BufferedReader(_Raw(read), RAW_READ_BYTES))

    def read(self, size: int) -> bytes:
        """Up to `size` decompressed bytes, at least one; b"" at the end of the last member."""
        try:
            return self._stream.read(size)
        except EOFError as exc:
            raise ends_early("gzip") from exc
        except (OSError, zlib.error) as exc:
            raise invalid("gzip", exc) from exc


class Unzstd:
    """Decompresses zstd of one or several frames."""

    def __init__(self, read: Read) -> None:
        self._stream = pa.CompressedInputStream(pa.PythonFile(_Raw(read), mode="r"), "zstd")

    def read(self, size: int) -> bytes:
        """Up to `size` decompressed bytes, at least one; b"" at the end of the last frame."""
        try:
            data: bytes = self._stream.read(size)
        except OSError as exc:
            if "Truncated" in str(exc):
                raise ends_early("zstd") from exc
            raise invalid("zstd", exc) from exc
        return data


class Bunzip2:
    """Decompresses bzip2 of one or several streams, also empty ones, at which Arrow gives up."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._input = b""
        self._decoder: bz2.BZ2Decompressor | None = None

    def read(self, size: int) -> bytes:
        """Up to `size` decompressed bytes, at least one; b"" at the end of the last stream."""
        data = b""
        while not data:
            if self._decoder is None or self._decoder.needs_input:
                self._input = self._input or self._read(RAW_READ_BYTES)
                if not self._input:
                    if self._decoder is not None:
                        raise ends_early("bzip2")
                    return b""
            decoder = self._decoder = self._decoder or bz2.BZ2Decompressor()
            try:
                data = decoder.decompress(self._input, size)
            except OSError as exc:
                raise invalid("bzip2", exc) from exc
            self._input = b""  # the decoder keeps what it has not read
            if decoder.eof:
                self._input, self._decoder = decoder.unused_data, None
        return data


class _Raw(io.RawIOBase):
    """What `read` gives, as a file."""

    def __init__(self, read: Read) -> None:
        super().__init__()
        self._read = read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def invalid(kind: str, exc: Exception) -> ObjectError:
    """The problem of an object that is not compressed as it should be."""
    return ObjectError(
        f"it is not valid {kind} ({exc})",
        "Correct or remove the object; for objects that are not compressed declare "
        "`compression: none`",
    )


def ends_early(kind: str) -> ObjectError:
    """The problem of an object of which the end is missing."""
    return ObjectError(f"its {kind} stream ends early", FIX_OBJECT)


def _uncompressed(read: Read) -> Read:
    """The bytes as they are, after a look at the first of them."""
    held: bytes | None = None

    def checked(size: int) -> bytes:
        nonlocal held
        if held is None:
            held = _first_bytes(read)
        if held:
            data, held = held[:size], held[size:]
            return data
        return read(size)

    return checked


def _first_bytes(read: Read) -> bytes:
    start = b""
    while len(start) < _LONGEST_MAGIC and (more := read(RAW_READ_BYTES)):
        start += more
    for magic, kind in _MAGIC.items():
        if start.startswith(magic):
            raise ObjectError(
                f"it is compressed by {kind}", f"Declare `compression: {kind}`", line=1, byte=0
            )
    return start


_READERS: dict[str, Callable[[Read], Read]] = {
    NONE: _uncompressed,
    "gzip": lambda read: Gunzip(read).read,
    "zstd": lambda read: Unzstd(read).read,
    "bzip2": lambda read: Bunzip2(read).read,
}
