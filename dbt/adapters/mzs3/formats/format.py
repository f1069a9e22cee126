"""What a file format has to do, whichever it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import pyarrow as pa

from dbt.adapters.mzs3.formats.csv.dialect import CsvDialect

Kind = Literal["plain", "list", "struct", "map", "interval", "variant"]

EVERY_COLUMN = "*"
# Columns that travel with the rows to workers, and are no content.
PART_COLUMN = "_mz_part"
HASH_COLUMN = "_mz_hash"


@dataclass(frozen=True)
class ExportFormat:
    """A format that exports write: its options, and what its files are called.

    `compressions` are the values of the option `compression`, the default first. `suffixes` are
    the ends of files' names, by the compression around the whole file; one inside shows in none.
    `own_options` are those that other formats do not have.
    """

    compressions: tuple[str, ...]
    suffixes: Mapping[str, str]
    own_options: tuple[str, ...] = ()


FORMATS: Mapping[str, ExportFormat] = {
    "csv": ExportFormat(
        ("none", "gzip", "zstd"),
        {"none": ".csv", "gzip": ".csv.gz", "zstd": ".csv.zst"},
        ("header", "delimiter", "quote", "escape", "null", "force_quote"),
    ),
    "parquet": ExportFormat(("snappy", "none", "gzip", "zstd", "lz4"), {"none": ".parquet"}),
}
"""By the value of the option `format`, the default first."""


class Sink(Protocol):
    """Takes the bytes of one file, in order."""

    @property
    def bytes(self) -> int:
        """How many it has taken."""

    def append(self, data: memoryview) -> None:
        """Take `data`, whose buffer must not change afterwards."""


class OpenFile(Protocol):
    """One file that is being written."""

    def take(self, piece: Any, start: int) -> int:
        """Write the piece's rows from `start` on, as many as fit; where the rows left begin.

        An end short of the piece's length means that the file is full. A file without rows takes
        at least one, whatever its size.
        """

    def close(self) -> None:
        """Write what is still held back, and the file's end."""


class FileFormat(Protocol):
    """Turns rows of one schema into files; the bytes depend on the rows alone.

    In particular they do not depend on how the rows were cut into batches.
    """

    @property
    def suffix(self) -> str:
        """The end of a file's name, such as `.csv`."""

    @property
    def content_type(self) -> str:
        """The media type of the objects."""

    def pieces(self, rows: pa.RecordBatch) -> Iterator[Any]:
        """The rows, prepared, in pieces small enough for a worker's memory; each has a length."""

    def open(self, sink: Sink) -> OpenFile:
        """Begin a file."""


@dataclass(frozen=True)
class LogicalType:
    """One column's, or one nested value's, meaning; the wire is what Spark sends.

    plain: as the Arrow type says. list: a list, `children` is its element. struct: a struct,
    `children` are its fields. map: a list of structs `(key, value)`, sorted by key, `children`
    are key and value. interval: a struct `(months int32, days int32, micros int64)`. variant: a
    string that holds JSON.
    """

    kind: Kind = "plain"
    children: tuple[LogicalType, ...] = ()


PLAIN = LogicalType()


@dataclass(frozen=True)
class ExportedColumn:
    """A column of the query: its name, and what its values mean."""

    name: str
    logical_type: LogicalType = field(default_factory=LogicalType)


@dataclass(frozen=True)
class CsvSpec:
    """How CSV files are written; `force_quote` holds column names, or `*` for all."""

    dialect: CsvDialect
    header: bool = False
    force_quote: tuple[str, ...] = ()
    compression: Literal["none", "gzip", "zstd"] = "none"

    @property
    def quoted_columns(self) -> frozenset[str] | Literal["*"]:
        """The columns whose values are quoted whatever they are."""
        return "*" if EVERY_COLUMN in self.force_quote else frozenset(self.force_quote)


@dataclass(frozen=True)
class ParquetSpec:
    """How Parquet files are written."""

    compression: Literal["none", "snappy", "gzip", "zstd", "lz4"] = "snappy"


@runtime_checkable
class FormatMaker(Protocol):
    """A format that is none of an export's own, as those of a shard's batches."""

    def file_format(self, schema: pa.Schema, max_file_size: int) -> FileFormat:
        """What writes rows of a schema; sizes in bytes."""


Spec = CsvSpec | ParquetSpec | FormatMaker
"""Any format."""
