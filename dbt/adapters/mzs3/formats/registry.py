"""The format that a spec asks for."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from dbt.adapters.mzs3.formats.csv.file import CsvFormat
from dbt.adapters.mzs3.formats.format import CsvSpec, ExportedColumn, FileFormat, FormatMaker, Spec
from dbt.adapters.mzs3.formats.parquet.file import ParquetFormat


def format_of(
    spec: Spec, columns: Sequence[ExportedColumn], schema: pa.Schema, max_file_size: int
) -> FileFormat:
    """The format for rows of `schema`: these columns, under their real names; sizes in bytes."""
    if isinstance(spec, FormatMaker):
        return spec.file_format(schema, max_file_size)
    logical_types = tuple(column.logical_type for column in columns)
    if isinstance(spec, CsvSpec):
        return CsvFormat(schema, logical_types, spec, max_file_size)
    return ParquetFormat(schema, logical_types, spec, max_file_size)
