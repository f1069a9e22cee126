"""How the files of an export are to be read, as its manifest says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from dbt.adapters.mzs3.formats.csv.dialect import CsvDialect

_SUFFIXES = {
    ".csv": ("csv", "none"),
    ".csv.gz": ("csv", "gzip"),
    ".csv.zst": ("csv", "zstd"),
    ".parquet": ("parquet", "none"),
}


@dataclass(frozen=True)
class Layout:
    """The options that shape files. `single_file` is the one whose name says nothing."""

    format: str
    compression: str
    header: bool
    dialect: CsvDialect
    single_file: str | None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Layout:
        """From the manifest's `options`; what is not there has its default."""
        given = {f.name: options[f.name] for f in fields(CsvDialect) if f.name in options}
        return cls(
            format=options.get("format", "csv"),
            compression=options.get("compression", "none"),
            header=options.get("header", False),
            dialect=CsvDialect(**given),
            single_file=options.get("single_file"),
        )

    def of_file(self, name: str) -> tuple[str, str]:
        """The format and the compression of the file with this name.

        By its suffix, as partitions that an overwrite has kept may be older than the options.
        """
        if name != self.single_file:
            for suffix, found in _SUFFIXES.items():
                if name.endswith(suffix):
                    return found
        return self.format, self.compression
