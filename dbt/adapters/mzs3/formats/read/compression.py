"""Detects how an object is compressed, and decompresses its text; errors say what to do."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from bz2 import BZ2Decompressor
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dbt.adapters.mzs3.formats.read.encoding import RAW_READ_BYTES, UTF_8, UTF_16, ReadBytes
from dbt.adapters.mzs3.formats.read.object_error import FIX_OBJECT, HeaderProblem, ObjectError
from dbt.adapters.mzs3.formats.read.signatures import (
    BZIP2,
    GZIP,
    LOOK_BYTES,
    ZSTD,
    compression_in,
    require_encoding,
    require_no_other_file,
)

if TYPE_CHECKING:
    from lzma import LZMADecompressor

BY_SUFFIX, NONE = "by_suffix", "none"
_SUFFIXES = {".gz": GZIP, ".gzip": GZIP, ".zst": ZSTD, ".zstd": ZSTD, ".bz2": BZIP2}
COMPRESSIONS = (BY_SUFFIX, NONE, GZIP, ZSTD, BZIP2)

_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")

# libzstd's own limit of a frame's window, which Arrow does not increase.
_MOST_WINDOW_MB = 128
_ZSTD_FRAME = b"\x28\xb5\x2f\xfd"


def compression_by_name(key: str, declared: str) -> str:
    """The declared compression; with `by_suffix`, that of the suffix of the object's key."""
    if declared != BY_SUFFIX:
        return declared
    name = key.lower()
    return next((kind for suffix, kind in _SUFFIXES.items() if name.endswith(suffix)), NONE)


def compression_of(start: bytes, key: str, declared: str, encoding: str | None) -> str:
    """Returns the compression of the object at `key`, whose first bytes are `start`.

    With `by_suffix` the first bytes decide, or the key if they are those of no compression. Raises
    ObjectError if the first bytes contradict a declared compression: with another option the
    object can be read, so it is not skipped.
    """
    found = None if _is_text(start, declared, encoding) else compression_in(start)
    expected = compression_by_name(key, declared)
    if found is None or found == expected:
        return expected
    if declared != BY_SUFFIX:
        problem = f"it is compressed by {found}"
        advice = f"Declare `compression: {BY_SUFFIX}`, which goes by an object's first bytes too"
        raise ObjectError(problem, advice, line=1, byte=0)
    return found


def _is_text(start: bytes, declared: str, encoding: str | None) -> bool:
    """Whether the first bytes are text although they may look like a compressed file.

    In another encoding than UTF-8, text may start with such bytes. In an encoding with ASCII's
    characters, text has no control characters, and a compressed file soon has one.
    """
    if declared != NONE or encoding in (None, UTF_8):
        return False
    return encoding in UTF_16 or _CONTROL.search(start) is None


def plain_reader(read: ReadBytes, key: str, declared: str, encoding: str | None) -> ReadBytes:
    """Returns a reader of the object's text, decompressed, in its own `encoding`.

    For None see `require_encoding`. Raises ObjectError for an invalid or truncated stream, or
    another compression than declared; HeaderProblem if it is not text in the encoding.
    """
    start, read = _peek(read)
    if not _is_text(start, declared, encoding):
        kind = compression_of(start, key, declared, encoding)
        require_no_other_file(start)
        if kind != NONE:
            start, read = _peek(_decompressed(read, kind, start))
            if (inner := compression_in(start)) is not None:
                problem = f"it is compressed twice, by {kind} and inside that by {inner}"
                raise HeaderProblem(problem, "Have it compressed once, then run again")
            require_no_other_file(start)
    require_encoding(start, encoding)
    return read


def _peek(read: ReadBytes) -> tuple[bytes, ReadBytes]:
    """Returns the first bytes, and a function that reads from the first byte on."""
    start = b""
    while len(start) < LOOK_BYTES and (more := read(RAW_READ_BYTES)):
        start += more
    held = start

    def following(size: int) -> bytes:
        nonlocal held
        data, held = held[:size], held[size:]
        return data or read(size)

    return start[:LOOK_BYTES], following


def _decompressed(read: ReadBytes, kind: str, start: bytes) -> ReadBytes:
    """Returns a reader of the decompressed bytes; `start` is for its ObjectErrors."""
    # There may be several compressed streams, one after the other. Only in gzip may zeros follow a
    # stream, as padding.
    decompress = DECOMPRESSORS[kind](read)

    def checked(size: int) -> bytes:
        try:
            return decompress(size)
        except (EOFError, OSError, zlib.error) as exc:
            raise _problem(exc, kind, start) from exc

    return checked


def _problem(exc: Exception, kind: str, start: bytes) -> ObjectError:
    # Arrow has no exception classes for these, only messages.
    text = str(exc)
    if isinstance(exc, EOFError) or "Truncated" in text:
        return ObjectError(f"its {kind} stream ends early", FIX_OBJECT)
    if kind == ZSTD and "too much memory" in text:
        window = _zstd_window_mb(start)
        # Otherwise a later frame, or one after a skippable frame, needs the window.
        needed = f"{window} MB" if window > _MOST_WINDOW_MB else f"more than {_MOST_WINDOW_MB} MB"
        return ObjectError(
            f"its zstd takes a window of {needed}, where {_MOST_WINDOW_MB} MB is the most",
            "Have it compressed without --long, or with --long=27 at most, then run again",
        )
    return ObjectError(
        f"it is not valid {kind} ({exc})",
        "Correct or remove the object; for objects that are not compressed declare "
        "`compression: none`",
    )


def _zstd_window_mb(start: bytes) -> int:
    """The window, in MB, of the zstd frame at `start`; 0 if there is none (RFC 8878, 3.1.1.1).

    A frame with a single segment has its size in place of a window.
    """
    if not start.startswith(_ZSTD_FRAME):
        return 0
    descriptor, window = start[4:6]
    if not descriptor & 0x20:
        base = 1 << 10 + (window >> 3)
        return (base + base // 8 * (window & 7)) >> 20
    after_dictionary = 5 + (0, 1, 2, 4)[descriptor & 3]
    size = (1, 2, 4, 8)[descriptor >> 6]
    return int.from_bytes(start[after_dictionary:][:size], "little") >> 20


class _RawFile(io.RawIOBase):
    def __init__(self, read: ReadBytes) -> None:
        super().__init__()
        self._read = read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._read(min(len(buffer), RAW_READ_BYTES))
        buffer[: len(data)] = data
        return len(data)


def as_file(read: ReadBytes) -> io.BufferedReader:
    """A file object for the bytes that `read` returns."""
    return io.BufferedReader(_RawFile(read), RAW_READ_BYTES)


def streams_reader(
    new_decoder: Callable[[], BZ2Decompressor | LZMADecompressor], read: ReadBytes
) -> ReadBytes:
    """Returns a reader of what streams hold, one after the other.

    It raises EOFError for a stream that was cut off, and the decoder's error for other bytes.
    """
    # Not BZ2File, which ignores other bytes after a stream; Arrow's reader fails on empty ones.
    decoder: BZ2Decompressor | LZMADecompressor | None = None
    held = b""

    def decompress(size: int) -> bytes:
        nonlocal decoder, held
        data = b""
        while not data:
            if decoder is None or decoder.needs_input:
                held = held or read(RAW_READ_BYTES)
                if not held and decoder is not None:
                    raise EOFError
                if not held:
                    return b""
            decoder = decoder or new_decoder()
            data = decoder.decompress(held, size)
            held = b""  # the decoder keeps what it has not read
            if decoder.eof:
                held, decoder = decoder.unused_data, None
        return data

    return decompress


DECOMPRESSORS: dict[str, Callable[[ReadBytes], ReadBytes]] = {
    "gzip": lambda read: gzip.GzipFile(fileobj=as_file(read)).read,
    "zstd": lambda read: pa.CompressedInputStream(pa.PythonFile(as_file(read)), "zstd").read,
    "bzip2": partial(streams_reader, BZ2Decompressor),
}
