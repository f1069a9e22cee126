"""Decodes chunks of CSV to Arrow batches: pyarrow reads, and what it lets pass is checked."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.csv_source.executor.chunks import Chunk, is_plain, parse
from dbt.adapters.mzs3.csv_source.executor.columns import (
    INTEGERS,
    Column,
    RecordLayout,
    arrow_type,
)
from dbt.adapters.mzs3.csv_source.executor.convert import convert, is_special
from dbt.adapters.mzs3.csv_source.executor.datetimes import require_year
from dbt.adapters.mzs3.csv_source.executor.encoding import invalid_utf8
from dbt.adapters.mzs3.csv_source.executor.reading import Reading
from dbt.adapters.mzs3.csv_source.executor.sift import Decoded, Sifter
from dbt.adapters.mzs3.formats.csv.dialect import CsvDialect

# pyarrow's reader takes decimals out of range for other numbers, and does not know binary.
_ALWAYS_AS_TEXT = ("binary", "decimal")


class Decoder:
    """Decodes chunks of one source's objects to batches of its columns, in order.

    A field that is the dialect's NULL text and not quoted is NULL; `""` is the empty string.
    Keep one for all objects of a task: it learns which columns pyarrow's reader cannot read by
    itself, and whether to expect records that are not right.
    """

    def __init__(self, columns: tuple[Column, ...], dialect: CsvDialect, reading: Reading) -> None:
        self._columns = columns
        self._dialect = dialect
        self._sifter = Sifter(columns, dialect, reading)
        # Columns read as text and converted by us.
        self._as_text = frozenset(
            i for i, c in enumerate(columns) if c.data_type.startswith(_ALWAYS_AS_TEXT)
        )
        self._integers = frozenset(i for i, c in enumerate(columns) if c.data_type in INTEGERS)
        self._expects_rejects = False

    def decode(self, chunk: Chunk, layout: RecordLayout) -> Decoded:
        """The chunk's records; see `Sifter.sift` for those that are not right."""
        if not self._expects_rejects:
            batch = self._all_good(chunk.data, layout)
            if batch is not None:
                return Decoded(batch, batch.num_rows, length=len(chunk.data))
        decoded = self._sifter.sift(chunk, layout)
        # One chunk with bad records is seldom alone: the next is not tried in vain.
        self._expects_rejects = bool(decoded.rejects)
        return decoded

    def _all_good(self, data: bytes, layout: RecordLayout) -> pa.RecordBatch | None:
        """The records if all of them are right, else None."""
        if not is_plain(data, self._dialect, one_column=layout.width == 1):
            return None
        if layout.drops and invalid_utf8(data):
            return None  # of what is left out pyarrow would not see it
        with suppress(ValueError):
            return self._read(data, layout, self._as_text | self._hex_suspects(data))
        with suppress(ValueError):
            return self._learn(data, layout)
        return None

    def _learn(self, data: bytes, layout: RecordLayout) -> pa.RecordBatch:
        """The records, by converting each column from text; remembers which need that."""
        every = frozenset(range(len(self._columns)))
        text = self._parse(data, layout, every).columns
        batch = self._batch(map(convert, text, [column.data_type for column in self._columns]))
        self._as_text |= {i for i, t in enumerate(text) if not self._reads(t, i)}
        return batch

    def _reads(self, text: pa.Array, index: int) -> bool:
        try:
            _certain(pc.cast(text, arrow_type(self._columns[index].data_type)))
        except ValueError:
            return False
        return True

    def _hex_suspects(self, data: bytes) -> frozenset[int]:
        # pyarrow's reader takes 0xff for a number, PostgreSQL's COPY does not.
        # Most data has no such letter, and one byte is found far faster than two.
        found = any(x in data and b"0" + x in data for x in (b"x", b"X"))
        return self._integers if found else frozenset()

    def _read(self, data: bytes, layout: RecordLayout, as_text: frozenset[int]) -> pa.RecordBatch:
        arrays = self._parse(data, layout, as_text).columns
        return self._batch(
            convert(array, column.data_type) if index in as_text else _certain(array)
            for index, (array, column) in enumerate(zip(arrays, self._columns, strict=True))
        )

    def _parse(self, data: bytes, layout: RecordLayout, as_text: frozenset[int]) -> pa.RecordBatch:
        types = [
            pa.string() if i in as_text else arrow_type(column.data_type)
            for i, column in enumerate(self._columns)
        ]
        return parse(data, layout, types, self._dialect)

    def _batch(self, arrays: Iterable[pa.Array]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(list(arrays), names=[c.name for c in self._columns])


def _certain(array: pa.Array) -> pa.Array:
    """The array. Raises ValueError for what pyarrow also makes of text that PostgreSQL refuses."""
    require_year(array)
    if pa.types.is_floating(array.type) and pc.any(is_special(array)).as_py():
        raise ValueError("a special value, perhaps from a number out of range")
    return array
