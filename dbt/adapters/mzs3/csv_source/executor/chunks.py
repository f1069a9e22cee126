"""Cuts a stream of CSV into chunks that end where a record ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dbt.adapters.mzs3.csv_dialect import CsvDialect
from dbt.adapters.mzs3.csv_source.executor.problem import FIX_OBJECT, CsvProblem
from dbt.adapters.mzs3.csv_source.executor.stream import Read
from dbt.adapters.mzs3.csv_source.executor.strict import has_stray_quote

BLOCK_BYTES = 4 * 1024 * 1024
MAX_RECORD_BYTES = 128 * 1024 * 1024
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Chunk:
    """Whole records of an object, and where in it they start."""

    data: bytes
    byte: int
    line: int

    def after(self, length: int) -> Chunk:
        """The chunk without its first `length` bytes, which end where a record does."""
        newlines = self.data.count(b"\n", 0, length)
        return Chunk(self.data[length:], self.byte + length, self.line + newlines)


def chunks(
    read: Read,
    dialect: CsvDialect,
    *,
    block_bytes: int = BLOCK_BYTES,
    max_record_bytes: int = MAX_RECORD_BYTES,
) -> Iterator[Chunk]:
    """Chunks of about `block_bytes`, whole records each, without the byte order mark.

    Holds one block and one record. The last chunk may lack its newline. Where quotes are wrong,
    a chunk may end inside a record, and its first records show what is wrong. Raises CsvProblem
    for a record of more than `max_record_bytes`.
    """
    delimiter, quote = dialect.delimiter.encode(), dialect.quote.encode()
    held = _fill(read, b"", max(block_bytes, len(BOM)))
    start = len(BOM) if held.startswith(BOM) else 0
    rest = Chunk(held[start:], start, 1)
    while True:
        end = end_of_records(rest.data, quote)
        if end:
            yield Chunk(rest.data[:end], rest.byte, rest.line)
            rest = rest.after(end)
        elif len(rest.data) > block_bytes:
            if has_stray_quote(rest.data, delimiter, quote):
                yield rest
                return
            if len(rest.data) > max_record_bytes:
                raise _too_large(rest, max_record_bytes)
        # A record longer than a block: doubling keeps the work in proportion to its length.
        wanted = len(rest.data) + max(block_bytes, len(rest.data))
        grown = _fill(read, rest.data, wanted)
        if len(grown) == len(rest.data):
            break
        rest = Chunk(grown, rest.byte, rest.line)
    if rest.data:
        yield rest


def end_of_records(data: bytes, quote: bytes) -> int:
    """Where the last complete record ends in data that starts with a record; 0 if none does.

    A newline ends a record where the number of quotes before it is even.
    """
    end = len(data)
    inside = data.count(quote) % 2 == 1
    while True:
        newline = data.rfind(b"\n", 0, end)
        if newline < 0:
            return 0
        if data.count(quote, newline, end) % 2:
            inside = not inside
        if not inside:
            return newline + 1
        # Skip to the quote that opened what this newline is inside of.
        end = data.rfind(quote, 0, newline)
        inside = False


def _fill(read: Read, held: bytes, wanted: int) -> bytes:
    parts = [held]
    missing = wanted - len(held)
    while missing > 0:
        data = read(missing)
        if not data:
            break
        parts.append(data)
        missing -= len(data)
    return b"".join(parts)


def _too_large(rest: Chunk, limit: int) -> CsvProblem:
    return CsvProblem(
        f"the record is larger than {limit // (1024 * 1024)} MB; is a quoted field not closed?",
        FIX_OBJECT,
        line=rest.line,
        byte=rest.byte,
    )
