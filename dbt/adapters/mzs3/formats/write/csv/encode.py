"""Rows as the lines of CSV."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.errors import ExecutorError
from dbt.adapters.mzs3.formats.dialect import CsvDialect
from dbt.adapters.mzs3.formats.write.csv.quoting import (
    TextBytes,
    appended,
    either,
    escapes,
    nulls_as,
    quoted,
    text_scalar,
)
from dbt.adapters.mzs3.formats.write.csv.scalars import require_utf8
from dbt.adapters.mzs3.formats.write.csv.values import formatter_of
from dbt.adapters.mzs3.formats.write.format import PLAIN, LogicalType

EVERY_COLUMN = "*"
# PostgreSQL before 18 takes a line of only this for the end of the data.
END_OF_DATA = "\\."


@dataclass(frozen=True)
class CsvEncoder:
    """Encodes batches of one schema as PostgreSQL does, byte for byte; can be pickled.

    `force_quote` holds the names of columns whose values are always quoted, or `*` for all; NULL
    never is. Without `logical_types`, all columns are what their types say.
    """

    schema: pa.Schema
    dialect: CsvDialect
    force_quote: Collection[str] = ()
    logical_types: tuple[LogicalType, ...] = ()

    def encode(self, batch: pa.RecordBatch) -> pa.Array:
        """The lines of a batch as `large_string`, each with its `\\n`.

        The array's data buffer is the text of the file; it starts at offset 0, has no NULLs, and
        may pass 2 GiB. Memory beside the batch: about four times the text. Raises ExecutorError
        if a text is not UTF-8.
        """
        logical_types = self.logical_types or (PLAIN,) * len(self.schema)
        columns = zip(self.schema.names, batch.columns, logical_types, strict=True)
        fields = [self._field(*column) for column in columns]
        if not fields:
            return pa.repeat(text_scalar("\n"), batch.num_rows)
        texts = [nulls_as(field, self.dialect.null) for field in fields]
        texts[-1] = appended(texts[-1], "\n")
        # No text is NULL, so none is skipped: it is the fastest way that Arrow has to join.
        delimiter = text_scalar(self.dialect.delimiter)
        return pc.binary_join_element_wise(*texts, delimiter, null_handling="skip")

    def header(self) -> bytes:
        """The line of column names with its newline; quoted where needed, never by force."""
        names = pa.array(self.schema.names, pa.large_string())
        texts = self._quoted_where_needed(names).to_pylist()
        return (self.dialect.delimiter.join(texts) + "\n").encode()

    def _field(self, name: str, values: pa.Array, logical_type: LogicalType) -> pa.Array:
        formatter = formatter_of(values.type, logical_type)
        if formatter is None:
            raise ExecutorError(
                f"column {name}: CSV has no text for values of type {values.type}; leave it out, "
                "or select it as another type, such as string"
            )
        with require_utf8(name, "CSV"):
            text = formatter.write(values)
        dialect = self.dialect
        if EVERY_COLUMN in self.force_quote or name in self.force_quote:
            return self._quoted(text, text.is_valid())
        special = dialect.delimiter + dialect.quote
        if formatter.may_hold(special) or formatter.may_be(dialect.null):
            return self._quoted_where_needed(text)
        return text

    def _quoted_where_needed(self, text: pa.Array) -> pa.Array:
        dialect = self.dialect
        known = TextBytes(text)
        special = dialect.delimiter + dialect.quote + "\n\r"
        mask = either(known.holding(special), known.equal_to(dialect.null))
        if len(self.schema) == 1:
            mask = either(mask, known.equal_to(END_OF_DATA))
        return self._quoted(text, mask)

    def _quoted(self, text: pa.Array, mask: pa.Array | None) -> pa.Array:
        quote = self.dialect.quote
        return quoted(text, mask, quote, escapes(quote, self.dialect.escape))
