"""What a worker needs to know of a file's columns and format."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

import pyarrow as pa

from dbt.adapters.mzs3.formats.csv.dialect import CsvDialect
from dbt.adapters.mzs3.formats.format import FileFormat
from dbt.adapters.mzs3.formats.shape import Shape

EVERY_COLUMN = "*"
# Columns that travel with the rows to workers, and are no content.
PART_COLUMN = "_mz_part"
HASH_COLUMN = "_mz_hash"


@dataclass(frozen=True)
class ExportedColumn:
    """A column of the query: its name, and what its values mean."""

    name: str
    shape: Shape = field(default_factory=Shape)


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
