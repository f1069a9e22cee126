"""The format `csv`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from dbt.adapters.mzs3.formats.write.csv.dialect import CsvDialect
from dbt.adapters.mzs3.formats.write.csv.encode import EVERY_COLUMN, CsvEncoder
from dbt.adapters.mzs3.formats.write.csv.files import CompressedCsvFile, CsvFile, lines_of
from dbt.adapters.mzs3.formats.write.csv.records import BLOCK_BYTES, RecordCounter
from dbt.adapters.mzs3.formats.write.format import (
    ExportFormat,
    FileWriter,
    LogicalType,
    OpenFile,
    Sink,
    StoredAs,
)
from dbt.adapters.mzs3.options.values import flag, names_or_all, text


@dataclass(frozen=True)
class CsvFormat(ExportFormat):
    """The lines that PostgreSQL writes, a header first in every file if there is one.

    `force_quote` holds the names of columns whose values are quoted whatever they are, or `*`.
    """

    name = "csv"
    title = "CSV"
    stored_as: ClassVar[Mapping[str, StoredAs]] = {
        "none": StoredAs(".csv", "text/csv; charset=utf-8"),
        "gzip": StoredAs(".csv.gz", "application/gzip"),
        "zstd": StoredAs(".csv.zst", "application/zstd"),
    }
    options: ClassVar[Mapping[str, Callable[[Any], Any]]] = {
        "header": flag,
        "delimiter": text,
        "quote": text,
        "escape": text,
        "null": text,
        "force_quote": names_or_all,
    }
    reading_options = ("header", "delimiter", "quote", "escape", "null")

    header: bool = False
    """CSV: a header line in every file."""
    delimiter: str = CsvDialect.delimiter
    """CSV: one one-byte character."""
    quote: str = CsvDialect.quote
    """CSV: one one-byte character."""
    escape: str = CsvDialect.escape
    """CSV: one one-byte character. Without it, `quote`."""
    null: str = CsvDialect.null
    """CSV: how NULL is written; a value that equals it is quoted."""
    force_quote: tuple[str, ...] = ()
    """CSV: a list of columns whose values are always quoted, or `'*'`."""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> ExportFormat:
        """As `ExportFormat.of`; the escape is the quote by default, as in PostgreSQL."""
        return super().of({"escape": given.get("quote", cls.escape), **given})

    @property
    def dialect(self) -> CsvDialect:
        """The four characters and texts that are the dialect."""
        return CsvDialect(self.delimiter, self.quote, self.escape, self.null)

    def problems(self) -> Iterable[str]:
        """What PostgreSQL would refuse."""
        return self.dialect.problems()

    def column_problems(
        self, names: Sequence[str], parts: Iterable[tuple[str, str]]
    ) -> Iterable[str]:
        """Names in `force_quote` that no column has; CSV has a text for every type."""
        unknown = [n for n in self.force_quote if n != EVERY_COLUMN and n not in names]
        if unknown:
            yield (
                f"force_quote names {', '.join(unknown)}, but the columns are {', '.join(names)}"
            )

    def writer(
        self, schema: pa.Schema, logical_types: Sequence[LogicalType], max_file_size: int
    ) -> FileWriter:
        """What writes the lines of the rows."""
        encoder = CsvEncoder(schema, self.dialect, self.force_quote, tuple(logical_types))
        header = encoder.header() if self.header else b""

        def begin(sink: Sink) -> OpenFile:
            if self.compression == "none":
                return CsvFile(sink, header, max_file_size)
            return CompressedCsvFile(sink, self.compression, header, max_file_size)

        return FileWriter(lambda rows: lines_of(encoder.encode(rows)), begin)

    def count_rows(self, file: pa.NativeFile) -> int:
        """The newlines outside of quotes, less the header's."""
        if self.compression != "none":
            file = pa.CompressedInputStream(file, self.compression)
        counter = RecordCounter(self.dialect)
        while block := file.read(BLOCK_BYTES):
            counter.feed(block)
        if counter.is_inside:
            raise ValueError("it ends within quotes")
        return max(0, counter.records - self.header)
