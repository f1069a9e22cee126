"""The file formats that exports write: Arrow batches as bytes."""

from __future__ import annotations

from collections.abc import Mapping

from dbt.adapters.mzs3.formats.write.csv.format import CsvFormat
from dbt.adapters.mzs3.formats.write.format import ExportFormat
from dbt.adapters.mzs3.formats.write.parquet import ParquetFormat

FORMATS: Mapping[str, type[ExportFormat]] = {
    CsvFormat.name: CsvFormat,
    ParquetFormat.name: ParquetFormat,
}
"""The formats by the value of the option `format`; the first is the default."""
