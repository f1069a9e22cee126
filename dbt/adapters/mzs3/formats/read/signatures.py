"""Detects what kind of file an object is from its first bytes, whatever its name."""

from __future__ import annotations

import re

from dbt.adapters.mzs3.formats.read.encoding import UTF_8, UTF_16
from dbt.adapters.mzs3.formats.read.object_error import HeaderProblem

LOOK_BYTES = 512
"""How many bytes show an object's kind: the mark of a tar archive is at byte 257."""

GZIP, ZSTD, BZIP2 = "gzip", "zstd", "bzip2"
PARQUET_FILE = "a Parquet file"

_LEFT_OUT = "narrow `pattern` so that it is left out, then run again"
_UNPACK = f"Put the files that are in it under the location, or {_LEFT_OUT}"
_SAVE_AS_TEXT = f"Save it as CSV, or {_LEFT_OUT}"
_COMPRESS = f"Have it compressed by gzip, zstd or bzip2, or not at all; or {_LEFT_OUT}"
_REWRITE = f"Have it written in a format that sources read, or {_LEFT_OUT}"
# In a shorter text, NUL bytes are no sign of UTF-16 or UTF-32.
_LEAST_WIDE_BYTES = 8

# No text in UTF-8 starts with any of these: they contain control characters or invalid bytes or,
# for bzip2, digits of pi. In another encoding each byte may be a part of a character.
_DECOMPRESSED = {
    GZIP: re.compile(rb"\x1f\x8b\x08[\x00-\x1f]"),
    # Or a skippable frame, the start of files from pzstd.
    ZSTD: re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
    BZIP2: re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"),
}
# The kind in words that follow `it is`, the advice if text was expected, and the first bytes.
_OTHER_FILES = [
    (words, advice, re.compile(start, re.DOTALL))
    for words, advice, start in (
        (
            "a document of an office suite, such as a workbook",
            _SAVE_AS_TEXT,
            rb"PK\x03\x04.{0,80}(?:\[Content_Types\]\.xml|_rels/|xl/|mimetypeapplication/vnd\.oasis)"
            rb"|\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        ),
        ("a zip archive", _UNPACK, rb"PK(?:\x03\x04|\x05\x06|\x07\x08)"),
        ("a 7z archive", _UNPACK, rb"7z\xbc\xaf\x27\x1c"),
        ("a RAR archive", _UNPACK, rb"Rar!\x1a\x07"),
        ("a tar archive", _UNPACK, rb".{257}ustar(?:\x00|  \x00)"),
        ("compressed by xz", _COMPRESS, rb"\xfd7zXZ\x00"),
        ("compressed by lz4", _COMPRESS, rb"\x04\x22\x4d\x18"),
        ("compressed by snappy", _COMPRESS, rb"\xff\x06\x00\x00sNaPpY"),
        ("compressed by lzma", _COMPRESS, rb"\x5d\x00\x00.{2}(?:\xff{8}|.{5}\x00{3})"),
        ("compressed by Unix compress", _COMPRESS, rb"\x1f\x9d[\x09-\x10\x89-\x90]"),
        # After the mark there is Thrift, or the length of the encrypted metadata.
        (
            PARQUET_FILE,
            f"Declare `format: parquet`, or {_LEFT_OUT}",
            rb"PAR1\x15|PARE(?:\x15|..\x00\x00)",
        ),
        ("an Avro file", f"Declare `format: avro`, or {_LEFT_OUT}", rb"Obj\x01"),
        ("an ORC file", _REWRITE, rb"ORC(?:..\x00|\n.\x12|\x08\x03)"),
    )
]


def compression_in(start: bytes) -> str | None:
    """The compression of an object with these first bytes; None if sources don't support it."""
    found = (kind for kind, pattern in _DECOMPRESSED.items() if pattern.match(start))
    return next(found, None)


def kind_in(start: bytes) -> str | None:
    """What an object with these first bytes is, in words after `it is`; None if it may be text."""
    if (kind := compression_in(start)) is not None:
        return f"compressed by {kind}"
    return (_other_file(start) or (None, ""))[0]


def require_no_other_file(start: bytes) -> None:
    """Raises HeaderProblem for the start of a file that is not text and that no source unpacks."""
    if (other := _other_file(start)) is not None:
        words, advice = other
        raise HeaderProblem(f"it is {words}, not text", advice)


def require_encoding(start: bytes, encoding: str | None) -> None:
    """Unless `encoding` is UTF-16, raises HeaderProblem for text in UTF-16 or UTF-32.

    None is UTF-8 of a format for which no option can declare another encoding.
    """
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


def _other_file(start: bytes) -> tuple[str, str] | None:
    found = ((words, advice) for words, advice, begins in _OTHER_FILES if begins.match(start))
    return next(found, None)


def _wide_encoding(start: bytes, *, mark_may_be_text: bool) -> str | None:
    """UTF-16 or UTF-32, by a byte order mark or NUL bytes; None for anything else.

    With `mark_may_be_text`, the bytes of a mark may be characters of the text instead.
    """
    if start.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return "utf-32"
    if start.startswith((b"\xff\xfe", b"\xfe\xff")) and (b"\0" in start or not mark_may_be_text):
        return "utf-16"
    if len(start) < _LEAST_WIDE_BYTES:
        return None
    # Code points have at most 21 bits, and few have more than 16.
    for name, upper, lower in (
        ("utf-32-le", start[2::4] + start[3::4], start[::4]),
        ("utf-32-be", start[::4] + start[1::4], start[3::4]),
    ):
        if not any(upper) and 0 not in lower:
            return name
    # In UTF-16, each character of ASCII has a NUL byte.
    for name, upper, lower in (
        ("utf-16-le", start[1::2], start[::2]),
        ("utf-16-be", start[::2], start[1::2]),
    ):
        if upper.startswith(b"\0\0") and 2 * upper.count(0) >= len(upper) and 0 not in lower:
            return name
    return None
