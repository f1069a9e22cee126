"""Decompressing objects; an error says what to do with the object."""

from __future__ import annotations

import bz2
import gzip
import zlib
from collections.abc import Callable

import pyarrow as pa

from dbt.adapters.mzs3.csv_source.executor.object_error import FIX_OBJECT, ObjectError
from dbt.adapters.mzs3.csv_source.executor.stream import RAW_READ_BYTES, Read, as_file

BY_SUFFIX, NONE = "by_suffix", "none"
_SUFFIXES = {".gz": "gzip", ".gzip": "gzip", ".zst": "zstd", ".zstd": "zstd", ".bz2": "bzip2"}
# None of these is the start of CSV: two are no UTF-8, and a bzip2 block has pi in it.
_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    **{b"BZh%d1AY&SY" % level: "bzip2" for level in range(1, 10)},
}
COMPRESSIONS = (BY_SUFFIX, NONE, "gzip", "zstd", "bzip2")


def compression_of(key: str, declared: str) -> str:
    """How the object at `key` is compressed: by its suffix unless declared."""
    if declared != BY_SUFFIX:
        return declared
    name = key.lower()
    return next((kind for suffix, kind in _SUFFIXES.items() if name.endswith(suffix)), NONE)


def plain_reader(read: Read, key: str, declared: str) -> Read:
    """Reads the object's bytes, decompressed.

    Raises ObjectError where the bytes are not what the compression makes, end early, or are
    compressed though nothing says so.
    """
    kind = compression_of(key, declared)
    if kind == NONE:
        return _uncompressed(read)
    # The compressed bytes may be in several parts, one after the other. Zeros behind a part are
    # padding in gzip alone.
    decompress = _DECOMPRESSORS[kind](read)

    def checked(size: int) -> bytes:
        try:
            return decompress(size)
        except (EOFError, OSError, zlib.error) as exc:
            # Arrow has no exception of its own for it.
            if isinstance(exc, EOFError) or "Truncated" in str(exc):
                raise ObjectError(f"its {kind} stream ends early", FIX_OBJECT) from exc
            raise ObjectError(
                f"it is not valid {kind} ({exc})",
                "Correct or remove the object; for objects that are not compressed declare "
                "`compression: none`",
            ) from exc

    return checked


def _bunzip2(read: Read) -> Read:
    # By hand: Python's file ignores other bytes behind a stream, Arrow's fails at an empty one.
    decoder: bz2.BZ2Decompressor | None = None
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
            decoder = decoder or bz2.BZ2Decompressor()
            data = decoder.decompress(held, size)
            held = b""  # the decoder keeps what it has not read
            if decoder.eof:
                held, decoder = decoder.unused_data, None
        return data

    return decompress


_DECOMPRESSORS: dict[str, Callable[[Read], Read]] = {
    "gzip": lambda read: gzip.GzipFile(fileobj=as_file(read)).read,
    "zstd": lambda read: pa.CompressedInputStream(pa.PythonFile(as_file(read)), "zstd").read,
    "bzip2": _bunzip2,
}


def _uncompressed(read: Read) -> Read:
    """Reads the bytes as they are, after a look at the first of them."""
    start = b""
    while len(start) < max(map(len, _MAGIC)) and (more := read(RAW_READ_BYTES)):
        start += more
    for magic, kind in _MAGIC.items():
        if start.startswith(magic):
            problem, advice = f"it is compressed by {kind}", f"Declare `compression: {kind}`"
            raise ObjectError(problem, advice, line=1, byte=0)

    def following(size: int) -> bytes:
        nonlocal start
        data, start = start[:size], start[size:]
        return data or read(size)

    return following
