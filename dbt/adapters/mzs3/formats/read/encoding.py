"""What an object's bytes are: text in an encoding, as UTF-8, or by their start another file."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from dbt.adapters.mzs3.formats.read.object_error import HeaderProblem
from dbt.adapters.mzs3.formats.read.stream import RAW_READ_BYTES, ReadBytes

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


def utf8_reader(read: ReadBytes, encoding: str) -> ReadBytes:
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


LOOK_BYTES = 512
"""So many bytes are looked at: that which makes a tar archive one is at byte 257."""

GZIP, ZSTD, BZIP2 = "gzip", "zstd", "bzip2"
PARQUET_FILE = "a Parquet file"

_LEFT_OUT = "narrow `pattern` so that it is left out, then run again"
_UNPACK = f"Put the files that are in it under the location, or {_LEFT_OUT}"
_SAVE_AS_TEXT = f"Save it as CSV, or {_LEFT_OUT}"
_COMPRESS = f"Have it compressed by gzip, zstd or bzip2, or not at all; or {_LEFT_OUT}"
_REWRITE = f"Have it written in a format that sources read, or {_LEFT_OUT}"
# In a shorter text NUL bytes say little.
_LEAST_WIDE_BYTES = 8


@dataclass(frozen=True)
class _Signature:
    """What begins so: in words behind `it is`, and what to do with it where text is read."""

    words: str
    advice: str
    pattern: re.Pattern[bytes]


def _begins(words: str, advice: str, pattern: bytes) -> _Signature:
    return _Signature(words, advice, re.compile(pattern, re.DOTALL))


# None of what follows is the start of a text in UTF-8: there is a byte in it that is no character,
# or, for bzip2, pi. In another encoding each byte may be a part of one.
_DECOMPRESSED = {
    GZIP: re.compile(rb"\x1f\x8b\x08[\x00-\x1f]"),
    # Or a frame that is to be skipped, as those that pzstd begins with.
    ZSTD: re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
    BZIP2: re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"),
}
_OTHERS = (
    _begins(
        "a document of an office suite, such as a workbook",
        _SAVE_AS_TEXT,
        rb"PK\x03\x04.{0,80}(?:\[Content_Types\]\.xml|_rels/|xl/|mimetypeapplication/vnd\.oasis)"
        rb"|\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    ),
    _begins("a zip archive", _UNPACK, rb"PK(?:\x03\x04|\x05\x06|\x07\x08)"),
    _begins("a 7z archive", _UNPACK, rb"7z\xbc\xaf\x27\x1c"),
    _begins("a RAR archive", _UNPACK, rb"Rar!\x1a\x07"),
    _begins("a tar archive", _UNPACK, rb".{257}ustar(?:\x00|  \x00)"),
    _begins("compressed by xz", _COMPRESS, rb"\xfd7zXZ\x00"),
    _begins("compressed by lz4", _COMPRESS, rb"\x04\x22\x4d\x18"),
    _begins("compressed by snappy", _COMPRESS, rb"\xff\x06\x00\x00sNaPpY"),
    _begins("compressed by lzma", _COMPRESS, rb"\x5d\x00\x00.{2}(?:\xff{8}|.{5}\x00{3})"),
    _begins("compressed by Unix compress", _COMPRESS, rb"\x1f\x9d[\x09-\x10\x89-\x90]"),
    # Behind the mark there is Thrift, or the length of what is encrypted.
    _begins(
        PARQUET_FILE,
        f"Declare `format: parquet`, or {_LEFT_OUT}",
        rb"PAR1\x15|PARE(?:\x15|..\x00\x00)",
    ),
    _begins("an Avro file", f"Declare `format: avro`, or {_LEFT_OUT}", rb"Obj\x01"),
    _begins("an ORC file", _REWRITE, rb"ORC(?:..\x00|\n.\x12|\x08\x03)"),
)


def compression_in(start: bytes) -> str | None:
    """The compression that an object with this start is of; None for one that no source reads."""
    found = (kind for kind, pattern in _DECOMPRESSED.items() if pattern.match(start))
    return next(found, None)


def kind_in(start: bytes) -> str | None:
    """What an object with this start is, in words behind `it is`; None if it may be text."""
    kind = compression_in(start)
    if kind is not None:
        return f"compressed by {kind}"
    other = _other(start)
    return None if other is None else other.words


def require_text(start: bytes, encoding: str | None) -> None:
    """Raise HeaderProblem for the start of what is no text, or is text in another encoding.

    Where `encoding` is None the text has to be UTF-8, and no option can say otherwise.
    """
    require_no_other_file(start)
    require_encoding(start, encoding)


def require_no_other_file(start: bytes) -> None:
    """Raise HeaderProblem for the start of what no source decompresses, and is no text."""
    other = _other(start)
    if other is not None:
        raise HeaderProblem(f"it is {other.words}, not text", other.advice)


def require_encoding(start: bytes, encoding: str | None) -> None:
    """Raise HeaderProblem for text in UTF-16 or UTF-32 that should be in this; see above."""
    if encoding in UTF_16:
        return
    found = _wide_encoding(start, mark_may_be_text=encoding not in (None, UTF_8))
    if found is None:
        return
    if encoding is None or found not in UTF_16:
        advice = f"Have it written in UTF-8, or {_LEFT_OUT}"
    else:
        advice = f"Declare `encoding: {found}`, or {_LEFT_OUT}"
    raise HeaderProblem(f"it is text in {found}, not in {encoding or UTF_8}", advice)


def _other(start: bytes) -> _Signature | None:
    return next((one for one in _OTHERS if one.pattern.match(start)), None)


def _wide_encoding(start: bytes, *, mark_may_be_text: bool) -> str | None:
    """UTF-16 or UTF-32 by a byte order mark or NUL bytes; None for anything else.

    With `mark_may_be_text`, the bytes of a mark may be characters of the text.
    """
    if start.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return "utf-32"
    if start.startswith((b"\xff\xfe", b"\xfe\xff")) and (b"\0" in start or not mark_may_be_text):
        return "utf-16"
    if len(start) < _LEAST_WIDE_BYTES:
        return None
    # No character has a number of more than 21 bits, and few one of more than 16.
    for name, upper, lower in (
        ("utf-32-le", start[2::4] + start[3::4], start[::4]),
        ("utf-32-be", start[::4] + start[1::4], start[3::4]),
    ):
        if not any(upper) and 0 not in lower:
            return name
    # Characters of ASCII have a NUL byte each.
    for name, upper, lower in (
        ("utf-16-le", start[1::2], start[::2]),
        ("utf-16-be", start[::2], start[1::2]),
    ):
        if upper.startswith(b"\0\0") and 2 * upper.count(0) >= len(upper) and 0 not in lower:
            return name
    return None
