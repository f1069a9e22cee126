"""Chunks of whole records of text: cut from a stream, and those of CSV parsed by pyarrow."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from dbt.adapters.mzs3.arrow.arrays import binary_value
from dbt.adapters.mzs3.formats.read.columns import RecordLayout
from dbt.adapters.mzs3.formats.read.convert import FALSE_VALUES, TRUE_VALUES
from dbt.adapters.mzs3.formats.read.dialect import SourceDialect
from dbt.adapters.mzs3.formats.read.encoding import ReadBytes
from dbt.adapters.mzs3.formats.read.object_error import FIX_OBJECT, HeaderProblem, ObjectError
from dbt.adapters.mzs3.formats.read.records import has_stray_quote
from dbt.adapters.mzs3.text import count_noun

BLOCK_BYTES = 4 * 1024 * 1024
MAX_RECORD_BYTES = 128 * 1024 * 1024
BOM = b"\xef\xbb\xbf"
FIX_PREAMBLE = "Correct skip_lines, or the object, or remove it, then run again"


class Chunk(NamedTuple):
    """Records, and the byte and line of their object where they start; `last` if no more follow.

    `width` returns the length, in bytes, of UTF-8 text in the object's own encoding. `preamble` is
    how many lines before the header or first record are still to be skipped, None after these.
    """

    data: bytes
    byte: int
    line: int
    last: bool = False
    width: Callable[[bytes], int] = len
    preamble: int | None = None

    def after(self, length: int) -> Chunk:
        """The chunk without its first `length` bytes, which are whole records."""
        newlines = self.data.count(b"\n", 0, length)
        before = length if self.width is len else self.width(self.data[:length])
        byte, line = self.byte + before, self.line + newlines
        return self._replace(data=self.data[length:], byte=byte, line=line)


def skip_preamble(start: Chunk, dialect: SourceDialect) -> Chunk:
    """Returns the chunk, from an object's start, without what precedes its header or records.

    That is the BOM, then `start.preamble` lines, then lines that the dialect leaves out. Unless
    the chunk is the last, `preamble` of the result is None only if nothing of that can follow.
    Raises HeaderProblem for an object that has too few lines.
    """
    if start.byte == 0 and start.data.startswith(BOM):
        start = start.after(len(BOM))
    data, missing, end = start.data, start.preamble or 0, 0
    found: re.Match[bytes] | None = None
    while missing and end < len(data):
        newline = data.find(b"\n", end) + 1
        if not newline and not start.last:
            break
        missing, end = missing - 1, newline or len(data)
    if missing and start.last and (start.byte or data):
        problem = f"the object has {count_noun(missing, 'line')} fewer than skip_lines"
        raise HeaderProblem(problem, FIX_PREAMBLE, line=start.line, byte=start.byte)
    while not missing and not dialect.is_canonical and end < len(data):
        found = dialect.left_out.match(data, end)
        if found is None or not (found.group().endswith(b"\n") or start.last):
            break
        end = found.end()
    if not start.last and dialect.skip_blank_lines:
        # Perhaps a blank line of which the end is still to come.
        found = re.compile(dialect.blanks + rb"\r?\Z").match(data, end) or found
    is_over = start.last or (not missing and end < len(data) and found is None)
    return start.after(end)._replace(preamble=None if is_over else missing)


START = Chunk(b"", 0, 1, preamble=0)


class RecordTooLarge(ObjectError):
    """A record that is too large for memory; `start` is its first bytes, `hint` a likely cause."""

    def __init__(
        self, rest: Chunk, limit: int, hint: str = "is a quoted field not closed?"
    ) -> None:
        self.start = rest.data
        problem = f"the record is larger than {limit // 2**20} MB; {hint}"
        super().__init__(problem, FIX_OBJECT, line=rest.line, byte=rest.byte)


@dataclass(eq=False)
class Chunks:
    """An iterator over chunks of about `block_bytes`, of whole records, without the preamble.

    Holds one block and one record. The last chunk may lack its newline. Near a misplaced quote a
    chunk may end inside a record: the decoder finds the quote, and calls `give_back`. The empty
    chunk `start` is where the stream begins. Raises RecordTooLarge for a record, or a preamble, of
    more than `max_record_bytes`.
    """

    read: ReadBytes
    dialect: SourceDialect
    start: Chunk = START
    block_bytes: int = BLOCK_BYTES
    max_record_bytes: int = MAX_RECORD_BYTES

    def __post_init__(self) -> None:
        self._rest = self.start
        self._more_needed = False

    def __iter__(self) -> Iterator[Chunk]:
        return self

    def __next__(self) -> Chunk:
        rest = self._rest
        while True:
            found = self._complete(rest) if rest.preamble is None else 0
            if found:
                self._rest = rest.after(found)
                return rest._replace(data=rest.data[:found])
            # For a record longer than a block, doubling keeps the work proportional to its length.
            most = max(self.max_record_bytes, len(rest.data)) + self.block_bytes
            wanted = min(len(rest.data) + max(self.block_bytes, len(rest.data)), most)
            grown = _fill(self.read, rest.data, max(wanted, len(BOM)))
            if len(grown) == len(rest.data):
                break
            self._more_needed = False
            rest = rest._replace(data=grown)
            if rest.preamble is not None:
                rest = skip_preamble(rest, self.dialect)
                seen = rest.byte + len(rest.data) - len(BOM)
                if rest.preamble is not None and seen > self.max_record_bytes:
                    raise RecordTooLarge(
                        rest, self.max_record_bytes, "do lines to skip, or comments, never end?"
                    )
        if rest.preamble is not None:
            rest = skip_preamble(rest._replace(last=True), self.dialect)
        self._rest = rest.after(len(rest.data))
        if not rest.data:
            raise StopIteration
        return rest._replace(last=True)

    def give_back(self, tail: Chunk, *, whole: bool) -> None:
        """Puts `tail`, the end of the last chunk, before the next; `whole` if it is all of that.

        The tail begins with a record that does not end in the last chunk.
        """
        self._rest = tail._replace(data=tail.data + self._rest.data, last=False)
        self._more_needed = whole

    def _complete(self, rest: Chunk) -> int:
        """How many bytes are complete records; 0 if more have to be read first."""
        if self.dialect.lines_are_records:
            end = rest.data.rfind(b"\n") + 1
            if not end and len(rest.data) > self.max_record_bytes:
                raise RecordTooLarge(rest, self.max_record_bytes, "is each one on its own line?")
            return end
        data, quote = self.dialect.without_escapes(rest.data), self.dialect.quote.encode()
        end = 0 if self._more_needed else end_of_records(data, quote)
        if end or len(rest.data) <= self.block_bytes:
            return end
        if not self._more_needed and has_stray_quote(rest.data, self.dialect):
            return len(rest.data)
        if len(rest.data) > self.max_record_bytes:
            raise RecordTooLarge(rest, self.max_record_bytes)
        return 0


def end_of_records(data: bytes, quote: bytes) -> int:
    """Where the last complete record ends in data that starts with a record; 0 without any.

    A newline ends a record if the number of quotes before it is even.
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
        # Continue before the quote that opened the field with this newline.
        end = data.rfind(quote, 0, newline)
        inside = False


def _fill(read: ReadBytes, held: bytes, wanted: int) -> bytes:
    parts = [held]
    missing = wanted - len(held)
    while missing > 0 and (data := read(missing)):
        parts.append(data)
        missing -= len(data)
    return b"".join(parts)


def is_plain(
    data: bytes, dialect: SourceDialect, *, one_column: bool, may_be_short: bool = False
) -> bool:
    """Whether pyarrow reads these whole records, canonical text, exactly as PostgreSQL does.

    False for: NUL bytes; a quote inside a field that does not start with one, unless the dialect
    has bare quotes; text after a closing quote; a quoted field that is not closed, or not in its
    line where each line is a record; a carriage return outside quotes that no newline follows; if
    there is more than one column, a blank line and, unless records `may_be_short`, one with one
    field. `cut_records` finds the records with these. One pass over the bytes, with a regular
    expression.
    """
    filled, delimiter = dialect.filled_field, re.escape(dialect.delimiter)
    record = rf"(?:{filled})?(?:{delimiter}(?:{filled})?){'*' if one_column else '+'}"
    if may_be_short and not one_column:
        record = rf"(?:{record}|{filled})"
    # pyarrow's regular expressions take linear time, whatever the data.
    whole = rf"\A(?:{record}{dialect.line_end.decode()})*(?:{record})?\z"
    return bool(pc.match_substring_regex(binary_value(data), whole)[0].as_py())


def parse(
    data: bytes,
    layout: RecordLayout,
    types: Sequence[pa.DataType],
    dialect: SourceDialect,
    *,
    ragged: list[Any] | None = None,
) -> pa.RecordBatch:
    """The columns of canonical text, in the order of `types`, without fields that are not columns.

    Raises ValueError for records that pyarrow can't read. With `ragged`, leaves out records with a
    wrong number of fields, and appends them to `ragged`, each as pyarrow's InvalidRow.
    """
    # Fields are named with numbers, so that their own names do not matter.
    names = [str(field) for field in range(layout.width)]
    wanted = [str(field) for field in layout.fields]
    if data.startswith(BOM):
        # The first record may start with this character; pyarrow drops only one.
        data = BOM + data
    if not data.endswith(b"\n"):
        # Without it pyarrow treats an empty last field as quoted if the field before it is.
        data += b"\n"

    def skip(row: Any) -> str:
        assert ragged is not None
        ragged.append(row)
        return "skip"

    table = csv.read_csv(
        pa.py_buffer(data),
        csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
        csv.ParseOptions(
            delimiter=dialect.delimiter,
            quote_char=dialect.quote or False,
            newlines_in_values=True,
            ignore_empty_lines=False,
            invalid_row_handler=None if ragged is None else skip,
        ),
        csv.ConvertOptions(
            column_types=dict(zip(wanted, types, strict=True)),
            null_values=[dialect.null],
            true_values=TRUE_VALUES,
            false_values=FALSE_VALUES,
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            include_columns=None if wanted == names else wanted,
        ),
    )
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], table.schema)
