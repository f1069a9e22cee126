"""Turns chunks of CSV into Arrow batches: pyarrow reads, we check what it would let pass."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from dbt.adapters.mzs3.csv_dialect import CsvDialect
from dbt.adapters.mzs3.csv_source.executor.chunks import BOM, Chunk
from dbt.adapters.mzs3.csv_source.executor.columns import Column, arrow_type
from dbt.adapters.mzs3.csv_source.executor.convert import FALSE_VALUES, TRUE_VALUES, convert
from dbt.adapters.mzs3.csv_source.executor.datetimes import require_year
from dbt.adapters.mzs3.csv_source.executor.floats import is_special
from dbt.adapters.mzs3.csv_source.executor.locate import first_problem
from dbt.adapters.mzs3.csv_source.executor.strict import is_plain

_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
# pyarrow's reader takes decimals out of range for other numbers, and does not know binary.
_ALWAYS_AS_TEXT = ("binary", "decimal")


class Decoder:
    """Decodes chunks of one source's objects to batches of its columns, in order.

    A field that is the dialect's NULL text and not quoted is NULL; `""` is the empty string.
    Raises CsvProblem, at the first record of the chunk that is not right. Keep one for all
    objects of a task: it learns which columns pyarrow's reader cannot read by itself.
    """

    def __init__(self, columns: Sequence[Column], dialect: CsvDialect) -> None:
        self._columns = tuple(columns)
        self._dialect = dialect
        self._delimiter = dialect.delimiter.encode()
        self._quote = dialect.quote.encode()
        # Columns read as text and converted by us.
        self._as_text = frozenset(
            i for i, c in enumerate(columns) if c.data_type.startswith(_ALWAYS_AS_TEXT)
        )
        self._integers = frozenset(i for i, c in enumerate(columns) if c.data_type in _INTEGERS)

    def decode(self, chunk: Chunk) -> pa.RecordBatch:
        """The chunk's records as one batch."""
        plain = is_plain(
            chunk.data, self._delimiter, self._quote, one_column=len(self._columns) == 1
        )
        if plain:
            try:
                return self._read(chunk.data, self._as_text | self._hex_suspects(chunk.data))
            except ValueError:
                pass
            try:
                return self._learn(chunk.data)
            except ValueError:
                pass
        raise first_problem(chunk, self._columns, self._dialect, self.all_text)

    def all_text(self, data: bytes) -> list[pa.Array]:
        """The fields of plain records as columns of text, for `locate` to convert."""
        columns: list[pa.Array] = self._parse(data, frozenset(range(len(self._columns)))).columns
        return columns

    def _learn(self, data: bytes) -> pa.RecordBatch:
        """Every column read as text and converted; remembers those that need it."""
        text = self.all_text(data)
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

    def _read(self, data: bytes, as_text: frozenset[int]) -> pa.RecordBatch:
        batch = self._parse(data, as_text)
        arrays = []
        for index, (array, column) in enumerate(zip(batch.columns, self._columns, strict=True)):
            if index in as_text:
                arrays.append(convert(array, column.data_type))
            else:
                _require_certain(array)
                arrays.append(array)
        return self._batch(arrays)

    def _parse(self, data: bytes, as_text: frozenset[int]) -> pa.RecordBatch:
        # The columns go by number, so that no name of theirs can matter.
        names = [str(i) for i in range(len(self._columns))]
        types = {
            names[i]: pa.string() if i in as_text else arrow_type(column.data_type)
            for i, column in enumerate(self._columns)
        }
        if data.startswith(BOM):
            # A record may start with this character; pyarrow drops one from what it reads.
            data = BOM + data
        if not data.endswith(b"\n"):
            # Without it pyarrow takes an empty last field for quoted if the one before it is.
            data += b"\n"
        table = csv.read_csv(
            pa.py_buffer(data),
            csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
            csv.ParseOptions(
                delimiter=self._dialect.delimiter,
                quote_char=self._dialect.quote,
                double_quote=True,
                newlines_in_values=True,
                ignore_empty_lines=False,
            ),
            csv.ConvertOptions(
                check_utf8=True,
                column_types=types,
                null_values=[self._dialect.null],
                true_values=TRUE_VALUES,
                false_values=FALSE_VALUES,
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        return table.combine_chunks().to_batches()[0]

    def _batch(self, arrays: list[pa.Array]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(arrays, names=[c.name for c in self._columns])


def _require_certain(array: pa.Array) -> None:
    """Raise ValueError for what pyarrow's reader also makes of text that PostgreSQL refuses."""
    require_year(array)
    if pa.types.is_floating(array.type) and pc.any(is_special(array)).as_py():
        raise ValueError("a special value, perhaps from a number out of range")
