"""Transcodes text in other encodings to UTF-8, and keeps invalid bytes recognizable."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from contextlib import suppress

ReadBytes = Callable[[int], bytes]
"""Reads at most that many bytes, and at least one; b"" is the end."""

RAW_READ_BYTES = 256 * 1024

UTF_16 = ("utf-16", "utf-16-le", "utf-16-be")
# These decode to ASCII's characters only in encodings in which ASCII's bytes are always ASCII's
# characters, whatever bytes precede.
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
# An invalid byte becomes the code point with this number plus the byte's value. UTF-8 can't have
# such a code point, so the record stays invalid.
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
    """Returns a reader of the object as UTF-8; it may return more bytes than requested.

    Bytes that are invalid in the encoding become bytes that are invalid in UTF-8, which
    `invalid_byte` converts back. Holds at most one read.
    """
    if encoding == UTF_8:
        return read
    codecs.register_error(_ESCAPING, _escape)
    start = b""
    if encoding == "utf-16":
        while len(start) < len(codecs.BOM_UTF16) and (more := read(1)):
            start += more
        # Without a byte order mark, the lower byte comes first.
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
    """A function for the length of UTF-8 text in this encoding, in bytes; `len` for UTF-8 itself.

    If an encoding has several forms of a character, it counts the form that Python writes.
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
    """The invalid byte in the object, for transcoded text that is invalid at `start`."""
    if encoding != UTF_8:
        with suppress(UnicodeDecodeError, TypeError):
            return ord(raw[start : start + 3].decode(UTF_8, "surrogatepass")) - _ESCAPE
    return raw[start]


def readable_text(raw: bytes, encoding: str) -> str:
    """The text, with each invalid byte as `\\xff`."""
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
