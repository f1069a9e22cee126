"""Objects that are compressed: which way, and their bytes decompressed as they are read."""

from __future__ import annotations

import bz2
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

# zlib's own number for "a gzip member, header and checksum included".
_GZIP_WINDOW = 31


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


class _Blocks:
    """Decompresses a stream of one or several parts, never holding more than it returns."""

    kind: str
    part: str
    # Whether zero bytes between and after parts are padding.
    padded = False

    def __init__(self, read: Read) -> None:
        self._read = read
        self._input = b""
        self._decoder: Any = None
        self._begun = False

    def read(self, size: int) -> bytes:
        """Up to `size` decompressed bytes, at least one; b"" at the end of the last part."""
        while self._decoder is not None or self._begin():
            asks = not self._input and self._wants_input()
            raw = self._read(RAW_READ_BYTES) if asks else self._input
            try:
                data: bytes = self._decoder.decompress(raw, size)
            except (zlib.error, OSError) as exc:
                raise invalid(self.kind, exc) from exc
            self._input = self._left_over()
            if self._decoder.eof:
                self._input = self._decoder.unused_data
                self._decoder = None
            elif asks and not raw and not data:
                raise ends_early(self.kind)
            if data:
                return data
        return b""

    def _begin(self) -> bool:
        while True:
            if self.padded and self._begun:
                self._input = self._input.lstrip(b"\0")
            if self._input:
                break
            self._input = self._read(RAW_READ_BYTES)
            if not self._input:
                return False
        self._decoder = self._new_decoder()
        self._begun = True
        return True

    def _new_decoder(self) -> Any:
        raise NotImplementedError

    def _wants_input(self) -> bool:
        return True

    def _left_over(self) -> bytes:
        raise NotImplementedError


class Gunzip(_Blocks):
    """Decompresses gzip of one or several members; zeros behind each are padding, as to gzip."""

    kind = "gzip"
    padded = True

    def _new_decoder(self) -> Any:
        return zlib.decompressobj(_GZIP_WINDOW)

    def _left_over(self) -> bytes:
        left: bytes = self._decoder.unconsumed_tail
        return left


class Bunzip2(_Blocks):
    """Decompresses bzip2 of one or several streams."""

    kind = "bzip2"

    def _new_decoder(self) -> Any:
        return bz2.BZ2Decompressor()

    def _wants_input(self) -> bool:
        wants: bool = self._decoder.needs_input
        return wants

    def _left_over(self) -> bytes:
        return b""  # the decoder keeps it


class Unzstd:
    """Decompresses zstd of one or several frames."""

    def __init__(self, read: Read) -> None:
        self._stream = pa.CompressedInputStream(pa.PythonFile(_Readable(read), mode="r"), "zstd")

    def read(self, size: int) -> bytes:
        """Up to `size` decompressed bytes, at least one; b"" at the end of the last frame."""
        try:
            data: bytes = self._stream.read(size)
        except OSError as exc:
            if "Truncated" in str(exc):
                raise ends_early("zstd") from exc
            raise invalid("zstd", exc) from exc
        return data


class _Readable:
    """A file to pyarrow that can do no more than be read."""

    closed = False

    def __init__(self, read: Read) -> None:
        self.read = read

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        pass


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
