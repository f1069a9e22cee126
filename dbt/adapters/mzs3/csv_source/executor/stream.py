"""An object as a source reads it: its bytes, decompressed, as UTF-8.

The errors of each stream say what to do with the object.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import re
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dbt.adapters.mzs3.aws.client import s3_client
from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.aws.failures import AwsFailure, describe, error_code, is_missing, reason_of
from dbt.adapters.mzs3.csv_source.executor.object_error import (
    FIX_OBJECT,
    GONE,
    NOT_READ,
    ObjectError,
)
from dbt.adapters.mzs3.errors import ExecutorError, S3Error
from dbt.adapters.mzs3.objects.reader import ObjectStream, ReplacedError, WrongPartError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

Read = Callable[[int], bytes]
"""Reads up to that many bytes, at least one; b"" is the end."""

RAW_READ_BYTES = 256 * 1024

BY_SUFFIX, NONE = "by_suffix", "none"
_SUFFIXES = {".gz": "gzip", ".gzip": "gzip", ".zst": "zstd", ".zstd": "zstd", ".bz2": "bzip2"}
# None of these is the start of CSV: two are no UTF-8, and a bzip2 block has pi in it.
_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    **{b"BZh%d1AY&SY" % level: "bzip2" for level in range(1, 10)},
}
COMPRESSIONS = (BY_SUFFIX, NONE, "gzip", "zstd", "bzip2")

UTF_16 = ("utf-16", "utf-16-le", "utf-16-be")
# What decodes to itself where an encoding has ASCII's characters at ASCII's bytes, and no bytes
# that change what others mean.
_PROBES = (
    b"\\x41 \\u0041 \\n",
    bytes(range(128)),
    b"+AGE-",
    b"~{<:Ky~}",
    b"\x1b$B!!\x1b(B",
    b"\x1b$)C\x0e!!\x0f",
    b"xn--mnchen-3ya",
)
_ESCAPING = "mzs3.escape"
_NOTING = "mzs3.note"
# A byte that is not valid stands in the text as this code point and its value: UTF-8 has none of
# these, so the record it is in is found by its UTF-8 not being valid.
_ESCAPE = 0xDC00
_ESCAPED = re.compile("[\udc00-\udcff]")

UTF_8 = "utf-8"


def task_client(connection: AwsConnection, source: str) -> S3Client:
    """The client of a task that reads objects of the source. Raises ExecutorError."""
    try:
        return s3_client(connection)
    except S3Error as exc:
        raise ExecutorError(f"{source}: {exc}") from exc


class _RawFile(io.RawIOBase):
    def __init__(self, read: Read) -> None:
        super().__init__()
        self._read = read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._read(min(len(buffer), RAW_READ_BYTES))
        buffer[: len(data)] = data
        return len(data)


def as_file(read: Read) -> io.BufferedReader:
    """A file of the bytes that `read` gives."""
    return io.BufferedReader(_RawFile(read), RAW_READ_BYTES)


class ObjectReader(ObjectStream):
    """Reads one object, as it was when it was listed; raises ObjectError where it can't be."""

    def read(self, size: int) -> bytes:
        """Up to `size` bytes, at least one; b"" at the end."""
        try:
            return super().read(size)
        except (*AwsFailure, ReplacedError, OSError) as exc:
            raise read_problem(exc, self) from exc


def read_problem(exc: Exception, stream: ObjectStream) -> ObjectError:
    """What is wrong with an object that could not be read further, and what to do."""
    if isinstance(exc, ReplacedError) or error_code(exc) in ("PreconditionFailed", "412"):
        problem = f"it was replaced after it was listed: its ETag is no longer {stream.etag}"
        advice = "Do not overwrite objects while they are ingested; run again to list it anew"
        return ObjectError(problem, advice, cause=GONE)
    if isinstance(exc, WrongPartError):
        return ObjectError(
            str(exc),
            "Have the store, or the proxy before it, send the part that is asked for; nothing of "
            "the object was kept; run again",
            cause=NOT_READ,
        )
    if is_missing(exc):
        problem = "it was removed after it was listed"
        return ObjectError(problem, "Put it back, or run again without it", cause=GONE)
    if error_code(exc) == "InvalidObjectState":
        problem = f"it is archived, so that it can't be read ({reason_of(exc)})"
        return ObjectError(problem, "Restore it, then run again")
    problem = describe(exc, f"reading it from byte {stream.position}", "s3:GetObject")
    return ObjectError(problem, "Nothing of it was kept; run again", cause=NOT_READ)


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


def canonical_encoding(name: str) -> str:
    """The canonical name of an encoding. Raises ValueError, whose text says what is possible."""
    with suppress(LookupError, ValueError):
        found = codecs.lookup(name).name
        if found == "utf-8-sig":
            return UTF_8  # a byte order mark is left out anyway
        if found in UTF_16 or all(
            probe.decode(found) == probe.decode("latin-1") for probe in _PROBES
        ):
            return found
    raise ValueError(
        f"{name!r} is not an encoding that a source can have: UTF-8, UTF-16, or one of Python's "
        "codecs that has ASCII's characters at ASCII's bytes, such as latin-1, cp1252 or shift_jis"
    )


def utf8_reader(read: Read, encoding: str) -> Read:
    """Reads the object transcoded to UTF-8; a call may return more bytes than asked for.

    Bytes that are not valid in the encoding come out as such that are not valid in UTF-8, for
    `invalid_byte` to tell. Holds no more than one read.
    """
    if encoding == UTF_8:
        return read
    codecs.register_error(_ESCAPING, _escape)
    start = b""
    if encoding == "utf-16":
        while len(start) < len(codecs.BOM_UTF16) and (more := read(1)):
            start += more
        # Without a mark the lower byte is first.
        encoding = "utf-16-be" if start == codecs.BOM_UTF16_BE else "utf-16-le"
    decoder = codecs.getincrementaldecoder(encoding)(_ESCAPING)
    ended = False

    def decoded(size: int) -> bytes:
        nonlocal start, ended
        while not ended:
            raw, start = start or read(min(size, RAW_READ_BYTES)), b""
            ended = not raw
            if raw and encoding not in UTF_16 and raw.isascii() and not decoder.getstate()[0]:
                return raw
            text = decoder.decode(raw, final=ended)
            if text:
                return text.encode(UTF_8, "surrogatepass")
        return b""

    return decoded


def _escape(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    wrong = error.object[error.start : error.end]
    return "".join(chr(_ESCAPE + byte) for byte in wrong), error.end


def width_in(encoding: str) -> Callable[[bytes], int]:
    """A function for the bytes that UTF-8 text has in this encoding; `len` for UTF-8 itself.

    Where an encoding has several forms of a character, it counts that which Python writes.
    """
    if encoding == UTF_8:
        return len
    plain = "utf-16-le" if encoding == "utf-16" else encoding

    def width(data: bytes) -> int:
        if data.isascii():
            return len(data) * (2 if encoding in UTF_16 else 1)
        text = data.decode(UTF_8, "surrogatepass")
        rest, escaped = _ESCAPED.subn("", text)
        return len(rest.encode(plain, "replace")) + escaped

    return width


def invalid_byte(raw: bytes, start: int, encoding: str) -> int:
    """The invalid byte of the object, where its transcoded text is not valid at `start`."""
    if encoding != UTF_8:
        with suppress(UnicodeDecodeError, TypeError):
            return ord(raw[start : start + 3].decode(UTF_8, "surrogatepass")) - _ESCAPE
    return raw[start]


def readable_text(raw: bytes, encoding: str) -> str:
    """The text, with each byte that is not valid as `\\xff`."""
    if encoding == UTF_8:
        return raw.decode(UTF_8, "backslashreplace")
    text = raw.decode(UTF_8, "surrogatepass")
    return _ESCAPED.sub(lambda found: f"\\x{ord(found[0]) - _ESCAPE:02x}", text)


def invalid_utf8(data: bytes) -> list[int]:
    """The positions of all invalid UTF-8 sequences, in one pass."""
    if data.isascii():
        return []
    places: list[int] = []

    def note(error: UnicodeError) -> tuple[str, int]:
        assert isinstance(error, UnicodeDecodeError)
        places.append(error.start)
        return "", error.end

    codecs.register_error(_NOTING, note)
    data.decode(UTF_8, _NOTING)
    return places
