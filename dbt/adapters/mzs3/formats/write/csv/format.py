"""The format `csv`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from dbt.adapters.mzs3.formats.dialect import CsvDialect
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
from dbt.adapters.mzs3.options.option import group, option
from dbt.adapters.mzs3.options.values import choice, flag, names_or_all


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
    reading_options = ("header", "delimiter", "quote", "escape", "null")

    compression: str = option(choice(tuple(stored_as)), "none", after="format")
    header: bool = option(flag, False)
    """A header line in every file."""
    dialect: CsvDialect = group(CsvDialect)
    force_quote: tuple[str, ...] = option(names_or_all, ())
    """A list of columns whose values are always quoted, or `'*'`."""

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
