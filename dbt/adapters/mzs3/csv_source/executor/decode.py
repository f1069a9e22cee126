"""Turns chunks of CSV into Arrow batches: pyarrow reads, we check what it would let pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.csv_source.executor.chunks import Chunk, is_plain, parse
from dbt.adapters.mzs3.csv_source.executor.columns import Column, RecordLayout, arrow_type
from dbt.adapters.mzs3.csv_source.executor.convert import convert, is_special
from dbt.adapters.mzs3.csv_source.executor.datetimes import require_year
from dbt.adapters.mzs3.csv_source.executor.formats.format import Records
from dbt.adapters.mzs3.csv_source.executor.reading import Reading
from dbt.adapters.mzs3.csv_source.executor.sift import Sifter
from dbt.adapters.mzs3.formats.csv.dialect import CsvDialect

_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
# pyarrow's reader takes decimals out of range for other numbers, and does not know binary.
_ALWAYS_AS_TEXT = ("binary", "decimal")


@dataclass(frozen=True)
class Decoded(Records):
    """A chunk's records: those in its first `length` bytes; the rest is for the next chunk."""

    length: int = field(kw_only=True)


class Decoder:
    """Decodes chunks of one source's objects to batches of its columns, in order.

    A field that is the dialect's NULL text and not quoted is NULL; `""` is the empty string.
    Keep one for all objects of a task: it learns which columns pyarrow's reader cannot read by
    itself, and whether to expect records that are not right.
    """

    def __init__(
        self, columns: Sequence[Column], dialect: CsvDialect, reading: Reading | None = None
    ) -> None:
        self._columns = tuple(columns)
        self._dialect = dialect
        self._reading = reading or Reading()
        self._delimiter = dialect.delimiter.encode()
        self._quote = dialect.quote.encode()
        self._in_order = RecordLayout.in_order(len(self._columns))
        self._sifter = Sifter(self._columns, dialect, self._reading.encoding)
        # Columns read as text and converted by us.
        self._as_text = frozenset(
            i for i, c in enumerate(columns) if c.data_type.startswith(_ALWAYS_AS_TEXT)
        )
        self._integers = frozenset(i for i, c in enumerate(columns) if c.data_type in _INTEGERS)
        self._expects_rejects = False

    def decode(self, chunk: Chunk, layout: RecordLayout | None = None) -> Decoded:
        """The chunk's records; without a layout, one field for each column.

        Where bad records are not rejected, raises ObjectError, at the first of the chunk.
        """
        layout = layout or self._in_order
        if not self._expects_rejects:
            batch = self._all_good(chunk.data, layout)
            if batch is not None:
                return Decoded(batch, batch.num_rows, length=len(chunk.data))
        return self._sift(chunk, layout)

    def _all_good(self, data: bytes, layout: RecordLayout) -> pa.RecordBatch | None:
        """The records if there is nothing wrong with any; only then is this the way."""
        one_column = layout.width == 1
        if not is_plain(data, self._delimiter, self._quote, one_column=one_column):
            return None
        if layout.drops and not _is_utf8(data):
            return None  # of what is left out pyarrow would not see it
        try:
            return self._read(data, layout, self._as_text | self._hex_suspects(data))
        except ValueError:
            pass
        try:
            return self._learn(data, layout)
        except ValueError:
            return None

    def _sift(self, chunk: Chunk, layout: RecordLayout) -> Decoded:
        rejects = self._reading.rejects
        sifted = self._sifter.sift(chunk, layout, last=chunk.last or not rejects)
        if sifted.bad and not rejects:
            raise next(sifted.rejects()).problem()
        # One chunk with bad records is seldom alone: the next is not tried in vain.
        self._expects_rejects = bool(sifted.bad)
        return Decoded(
            sifted.batch,
            sifted.count,
            sifted.numbers,
            tuple(sifted.rejects()),
            length=sifted.cut.end,
        )

    def _learn(self, data: bytes, layout: RecordLayout) -> pa.RecordBatch:
        """Every column read as text and converted; remembers those that need it."""
        every = frozenset(range(len(self._columns)))
        text = self._parse(data, layout, every).columns
        arrays = [convert(t, c.data_type) for t, c in zip(text, self._columns, strict=True)]
        self._as_text |= {i for i, t in enumerate(text) if not self._reads(t, i)}
        return self._batch(arrays)

    def _reads(self, text: pa.Array, index: int) -> bool:
        try:
            _require_certain(pc.cast(text, arrow_type(self._columns[index].data_type)))
        except ValueError:
            return False
        return True

    def _hex_suspects(self, data: bytes) -> frozenset[int]:
        # pyarrow's reader takes 0xff for a number, PostgreSQL's COPY does not.
        # Most data has no such letter, and one byte is found far faster than two.
        found = any(x in data and b"0" + x in data for x in (b"x", b"X"))
        return self._integers if found else frozenset()

    def _read(self, data: bytes, layout: RecordLayout, as_text: frozenset[int]) -> pa.RecordBatch:
        batch = self._parse(data, layout, as_text)
        arrays = []
        for index, (array, column) in enumerate(zip(batch.columns, self._columns, strict=True)):
            if index in as_text:
                arrays.append(convert(array, column.data_type))
            else:
                _require_certain(array)
                arrays.append(array)
        return self._batch(arrays)

    def _parse(self, data: bytes, layout: RecordLayout, as_text: frozenset[int]) -> pa.RecordBatch:
        types = [
            pa.string() if i in as_text else arrow_type(column.data_type)
            for i, column in enumerate(self._columns)
        ]
        return parse(data, layout, types, self._dialect)

    def _batch(self, arrays: list[pa.Array]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(arrays, names=[c.name for c in self._columns])


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _require_certain(array: pa.Array) -> None:
    """Raise ValueError for what pyarrow's reader also makes of text that PostgreSQL refuses."""
    require_year(array)
    if pa.types.is_floating(array.type) and pc.any(is_special(array)).as_py():
        raise ValueError("a special value, perhaps from a number out of range")
