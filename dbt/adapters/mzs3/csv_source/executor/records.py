"""Reads one record field by field and says exactly what is wrong with it: for headers and errors.

Slow, as it looks at every field in Python: the rows themselves are read by `decode`.
"""

from __future__ import annotations

import re

from dbt.adapters.mzs3.csv_source.executor.encoding import invalid_byte
from dbt.adapters.mzs3.formats.csv.dialect import CsvDialect


class MalformedRecord(Exception):
    """What is wrong with a record; `number` is that of the field, from 1."""

    def __init__(self, number: int, problem: str) -> None:
        self.number = number
        super().__init__(f"column {number} {problem}")


def first_record(data: bytes, dialect: CsvDialect, encoding: str) -> tuple[tuple[str, ...], int]:
    """The fields of the record that the data starts with, as text, and where the next one starts.

    The last record may lack its line end. A blank line is a record with one empty field.
    `encoding` is that of the object, for messages. Raises MalformedRecord.
    """
    delimiter, quote = dialect.delimiter.encode(), dialect.quote.encode()
    bare = re.compile(b"[^\r\n%b]*" % re.escape(delimiter + quote))
    fields: list[str] = []
    position = 0
    while True:
        number = len(fields) + 1
        if data.startswith(quote, position):
            raw, position = _quoted_field(data, position, quote, number)
            if data[position : position + 1] not in (delimiter, b"\r", b"\n", b""):
                raise MalformedRecord(number, "has text behind its closing quote")
        else:
            found = bare.match(data, position)
            assert found is not None
            raw, position = found.group(), found.end()
            if data.startswith(quote, position):
                problem = "has a quote inside a field that does not start with one"
                raise MalformedRecord(number, problem)
        fields.append(_text(raw, number, encoding))
        following = data[position : position + 1]
        if following == delimiter:
            position += 1
        elif data.startswith(b"\r\n", position):
            return tuple(fields), position + 2
        elif following in (b"\n", b""):
            return tuple(fields), position + len(following)
        else:
            problem = "has a carriage return outside quotes that no newline follows"
            raise MalformedRecord(number, problem)


def _quoted_field(data: bytes, start: int, quote: bytes, number: int) -> tuple[bytes, int]:
    """The text of the field whose opening quote is at `start`, and where the field ends."""
    parts: list[bytes] = []
    while True:
        end = data.find(quote, start + 1)
        if end < 0:
            raise MalformedRecord(number, "has a quoted field that is not closed")
        parts.append(data[start + 1 : end])
        start = end + 1
        if not data.startswith(quote, start):
            return quote.join(parts), start


def _text(raw: bytes, number: int, encoding: str) -> str:
    if b"\0" in raw:
        raise MalformedRecord(number, "has a NUL byte")
    try:
        return raw.decode()
    except UnicodeDecodeError as exc:
        byte = invalid_byte(raw, exc.start, encoding)
        name = encoding.upper() if encoding.startswith("utf") else encoding
        raise MalformedRecord(number, f"is not valid {name}: byte 0x{byte:02x}") from None
