"""The format `csv`: rows as the lines that PostgreSQL writes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.errors import ExecutorError
from dbt.adapters.mzs3.formats.dialect import CsvDialect
from dbt.adapters.mzs3.formats.write.csv.files import (
    BLOCK_BYTES,
    CompressedCsvFile,
    CsvFile,
    RecordCounter,
    lines_of,
)
from dbt.adapters.mzs3.formats.write.csv.quoting import (
    TextBytes,
    append,
    escapes,
    fill_nulls,
    quote_values,
    text_scalar,
)
from dbt.adapters.mzs3.formats.write.csv.scalars import require_utf8
from dbt.adapters.mzs3.formats.write.csv.values import formatter_of
from dbt.adapters.mzs3.formats.write.format import (
    PLAIN,
    ExportFormat,
    FileType,
    FileWriter,
    LogicalType,
    OpenFile,
    Sink,
)
from dbt.adapters.mzs3.options.option import group, option
from dbt.adapters.mzs3.options.values import choice, flag, names_or_all

EVERY_COLUMN = "*"
# PostgreSQL before 18 reads a line with only this as the end of the data.
END_OF_DATA = "\\."


@dataclass(frozen=True)
class CsvFormat(ExportFormat):
    """The lines that PostgreSQL writes; with `header`, every file begins with a header line.

    `force_quote` holds the names of columns whose values are always quoted, or `*` for all.
    """

    name = "csv"
    title = "CSV"
    file_types: ClassVar[Mapping[str, FileType]] = {
        "none": FileType(".csv", "text/csv; charset=utf-8"),
        "gzip": FileType(".csv.gz", "application/gzip"),
        "zstd": FileType(".csv.zst", "application/zstd"),
    }
    reading_options = ("header", "delimiter", "quote", "escape", "null")

    compression: str = option(choice(tuple(file_types)), "none", after="format")
    header: bool = option(flag, False)
    """A header line in every file."""
    dialect: CsvDialect = group(CsvDialect)
    force_quote: tuple[str, ...] = option(names_or_all, ())
    """A list of columns whose values are always quoted, or `'*'`."""

    def column_problems(
        self, names: Sequence[str], parts: Iterable[tuple[str, str]]
    ) -> Iterable[str]:
        """Reports names in `force_quote` that no column has; CSV has a text for every type."""
        unknown = [n for n in self.force_quote if n != EVERY_COLUMN and n not in names]
        if unknown:
            yield (
                f"force_quote names {', '.join(unknown)}, but the columns are {', '.join(names)}"
            )

    def writer(
        self, schema: pa.Schema, logical_types: Sequence[LogicalType], max_file_size: int
    ) -> FileWriter:
        """The writer of rows as lines."""
        encoder = CsvEncoder(schema, self.dialect, self.force_quote, tuple(logical_types))
        header = encoder.header() if self.header else b""

        def begin(sink: Sink) -> OpenFile:
            if self.compression == "none":
                return CsvFile(sink, header, max_file_size)
            return CompressedCsvFile(sink, self.compression, header, max_file_size)

        return FileWriter(lambda rows: lines_of(encoder.encode(rows)), begin)

    def count_rows(self, file: pa.NativeFile) -> int:
        """The number of newlines outside of quotes, without the header's."""
        if self.compression != "none":
            file = pa.CompressedInputStream(file, self.compression)
        counter = RecordCounter(self.dialect)
        while block := file.read(BLOCK_BYTES):
            counter.feed(block)
        if counter.is_inside:
            raise ValueError("it ends within quotes")
        return max(0, counter.records - self.header)


@dataclass(frozen=True)
class CsvEncoder:
    """Encodes batches of one schema as PostgreSQL does, byte for byte. Can be pickled.

    `force_quote` holds the names of columns whose values are always quoted, or `*` for all; NULL
    is never quoted. Without `logical_types`, all columns are plain.
    """

    schema: pa.Schema
    dialect: CsvDialect
    force_quote: Collection[str] = ()
    logical_types: tuple[LogicalType, ...] = ()

    def encode(self, batch: pa.RecordBatch) -> pa.Array:
        """The lines of a batch as `large_string`, each with its `\\n`.

        The array's data buffer is the text of the file; it starts at offset 0, has no NULLs, and
        may exceed 2 GiB. Memory besides the batch: about four times the text. Raises ExecutorError
        if a text is not UTF-8.
        """
        logical_types = self.logical_types or (PLAIN,) * len(self.schema)
        columns = zip(self.schema.names, batch.columns, logical_types, strict=True)
        texts = [fill_nulls(self._field(*column), self.dialect.null) for column in columns]
        if not texts:
            return pa.repeat(text_scalar("\n"), batch.num_rows)
        texts[-1] = append(texts[-1], "\n")
        # As no text is NULL, "skip" skips nothing; it is Arrow's fastest way to join.
        delimiter = text_scalar(self.dialect.delimiter)
        return pc.binary_join_element_wise(*texts, delimiter, null_handling="skip")

    def header(self) -> bytes:
        """The line of column names with its newline; quoted only where needed."""
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
        whole_texts = (dialect.null, END_OF_DATA) if len(self.schema) == 1 else (dialect.null,)
        special = dialect.delimiter + dialect.quote + "\n\r"
        return self._quoted(text, TextBytes(text).mask_where(contains=special, equals=whole_texts))

    def _quoted(self, text: pa.Array, mask: pa.Array | None) -> pa.Array:
        quote = self.dialect.quote
        return quote_values(text, mask, quote, escapes(quote, self.dialect.escape))
