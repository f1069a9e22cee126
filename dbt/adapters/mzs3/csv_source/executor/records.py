"""Reads records one by one and says exactly what is wrong with one: for headers and errors.

Slow, as it looks at every field in Python: the rows themselves are read by `decode`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from dbt.adapters.mzs3.csv_source.executor.encoding import UTF_8, encoding_name, invalid_byte
from dbt.adapters.mzs3.formats.csv.dialect import CsvDialect


@dataclass(frozen=True)
class Record:
    """One record: where it is in the data, its fields as text, what is wrong with it if anything.

    `start` and `end` are offsets of its first byte and of the byte after its line end. With a
    problem, which the field of the number `malformed`, from 1, has, no record follows.
    """

    start: int
    end: int
    fields: tuple[str, ...]
    problem: str | None = None
    malformed: int | None = None


class _Malformed(Exception):
    """Carries which field of a record is wrong, from 1, and what is."""

    def __init__(self, number: int, problem: str) -> None:
        self.number = number
        super().__init__(f"column {number} {problem}")


def records(data: bytes, dialect: CsvDialect, encoding: str = UTF_8) -> Iterator[Record]:
    """Every record of data that starts with one, up to the first that is malformed.

    The last record may lack its line end. A blank line is a record with one empty field.
    `encoding` is that of the object, for what is said of it.
    """
    reader = _Reader(data, dialect, encoding)
    start = 0
    while start < len(data):
        fields: list[str] = []
        try:
            end = reader.read(start, fields)
        except _Malformed as malformed:
            yield Record(start, start, tuple(fields), str(malformed), malformed.number)
            return
        yield Record(start, end, tuple(fields))
        start = end


class _Reader:
    def __init__(self, data: bytes, dialect: CsvDialect, encoding: str) -> None:
        delimiter, quote = re.escape(dialect.delimiter.encode()), re.escape(dialect.quote.encode())
        self._data = data
        self._encoding = encoding
        self._quote = dialect.quote.encode()
        self._delimiter = dialect.delimiter.encode()
        self._bare = re.compile(b"[^\r\n" + delimiter + quote + b"]*")
        self._quoted_part = re.compile(b"[^" + quote + b"]*")

    def read(self, position: int, fields: list[str]) -> int:
        """Append the fields of the record at `position`; returns where the next record starts."""
        while True:
            number = len(fields) + 1
            raw, position = self._field(position, number)
            fields.append(_text(raw, number, self._encoding))
            following = self._data[position : position + 1]
            if following == self._delimiter:
                position += 1
            elif following == b"\r" and self._data[position + 1 : position + 2] == b"\n":
                return position + 2
            elif following in (b"\n", b""):
                return position + len(following)
            else:
                raise _Malformed(
                    number, "has a carriage return outside quotes that no newline follows"
                )

    def _field(self, position: int, number: int) -> tuple[bytes, int]:
        if self._data.startswith(self._quote, position):
            return self._quoted(position, number)
        bare = self._bare.match(self._data, position)
        assert bare is not None
        if self._data.startswith(self._quote, bare.end()):
            raise _Malformed(number, "has a quote inside a field that does not start with one")
        return bare.group(), bare.end()

    def _quoted(self, position: int, number: int) -> tuple[bytes, int]:
        parts: list[bytes] = []
        while True:
            part = self._quoted_part.match(self._data, position + 1)
            assert part is not None
            parts.append(part.group())
            position = part.end()
            if position >= len(self._data):
                raise _Malformed(number, "has a quoted field that is not closed")
            if not self._data.startswith(self._quote, position + 1):
                break
            position += 1
        position += 1
        if self._data[position : position + 1] not in (self._delimiter, b"\r", b"\n", b""):
            raise _Malformed(number, "has text behind its closing quote")
        return self._quote.join(parts), position


def _text(raw: bytes, number: int, encoding: str) -> str:
    if b"\0" in raw:
        raise _Malformed(number, "has a NUL byte")
    try:
        return raw.decode()
    except UnicodeDecodeError as exc:
        byte = invalid_byte(raw, exc.start, encoding)
        raise _Malformed(
            number, f"is not valid {encoding_name(encoding)}: byte 0x{byte:02x}"
        ) from None
