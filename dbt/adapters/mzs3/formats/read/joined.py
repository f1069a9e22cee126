"""Joins small CSV objects to one text: to parse many small ones takes far longer."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from dbt.adapters.mzs3.formats.dialect import CsvDialect
from dbt.adapters.mzs3.formats.read.chunks import BLOCK_BYTES, BOM, Chunk
from dbt.adapters.mzs3.formats.read.columns import RecordLayout
from dbt.adapters.mzs3.formats.read.compression import NONE, compression_of, plain_reader
from dbt.adapters.mzs3.formats.read.encoding import LOOK_BYTES, utf8_reader
from dbt.adapters.mzs3.formats.read.format import Reading, StoredObject
from dbt.adapters.mzs3.formats.read.object_error import ObjectError
from dbt.adapters.mzs3.formats.read.records import without_header


@dataclass(frozen=True)
class JoinedObjects:
    """The records of objects, and how many each has if all are right; all have one layout.

    Each object's records end with a newline, and outside quotes: so what is right in `data`, or
    wrong, is so in the object it is of.
    """

    data: bytes
    counts: list[int]
    layout: RecordLayout


def joined_objects(
    objects: Sequence[StoredObject],
    header: tuple[str, ...] | None,
    width: int,
    dialect: CsvDialect,
    compression: str,
    reading: Reading,
) -> JoinedObjects | None:
    """The objects joined; None if one can't be read so.

    `width` is the number of fields of records without a header.
    """
    heading = _Heading(header, width, dialect, reading)
    texts: list[bytes] = []
    counts: list[int] = []
    for stored in objects:
        try:
            whole = whole_text(stored, compression, reading.encoding)
            text = None if whole is None else heading.without(whole)
        except ObjectError:
            return None
        if text is None or (count := _records(text, dialect)) is None:
            return None
        texts.append(text if text.endswith(b"\n") or not text else text + b"\n")
        counts.append(count)
    return JoinedObjects(b"".join(texts), counts, heading.layout)


def whole_text(stored: StoredObject, compression: str, encoding: str) -> bytes | None:
    """The text of an object, as UTF-8; None if it is compressed. Raises ObjectError.

    As its text may be far larger than the object was when it was fetched.
    """
    start = stored.part(0, min(LOOK_BYTES, stored.size))
    if compression_of(start, stored.key, compression, encoding) != NONE:
        return None
    with contextlib.closing(stored.open()) as reader:
        plain = plain_reader(reader.read, stored.key, compression, encoding)
        read = utf8_reader(plain, encoding)
        return b"".join(iter(lambda: read(BLOCK_BYTES), b""))


class _Heading:
    """Takes headers from objects, and compares those that have the same bytes but once."""

    def __init__(
        self, pinned: tuple[str, ...] | None, width: int, dialect: CsvDialect, reading: Reading
    ) -> None:
        self._pinned = pinned
        self._dialect = dialect
        self._reading = reading
        self._known = b""
        self._in_order = RecordLayout.in_order(width)
        self._layout: RecordLayout | None = None

    @property
    def layout(self) -> RecordLayout:
        """That of the records so far."""
        return self._layout or self._in_order

    def without(self, data: bytes) -> bytes | None:
        """The records of an object's text; None for a layout unlike that of those before it.

        Raises ObjectError for a header that is not right.
        """
        data = data.removeprefix(BOM)
        if self._pinned is None or not data:
            return data
        if self._known and data.startswith(self._known):
            return data[len(self._known) :]
        layout, rest = without_header(
            Chunk(data, 0, 1), self._pinned, self._dialect, self._reading
        )
        if self._layout not in (None, layout):
            return None
        start = data[: len(data) - len(rest.data)]
        # Without its newline the same bytes may be but the start of another name.
        self._known = start if start.endswith(b"\n") else b""
        self._layout = layout
        return rest.data


def _records(text: bytes, dialect: CsvDialect) -> int | None:
    """How many records there are if all are right; None if the last one has no proper end."""
    quote = dialect.quote.encode()
    outside = text
    if quote and quote in text:
        pieces = text.split(quote)
        if len(pieces) % 2 == 0:
            return None
        outside = b"".join(pieces[::2])
    if text.endswith(b"\r"):
        return None
    return outside.count(b"\n") + (not text.endswith(b"\n") if text else 0)
