"""The format that a spec asks for."""

from __future__ import annotations

import pyarrow as pa

from dbt.adapters.mzs3.copy.executor.csv.file import CsvFormat
from dbt.adapters.mzs3.copy.executor.format import FileFormat
from dbt.adapters.mzs3.copy.executor.parquet.file import ParquetFormat
from dbt.adapters.mzs3.copy.executor.spec import CsvSpec, FormatMaker, WriteSpec


def format_of(spec: WriteSpec, schema: pa.Schema) -> FileFormat:
    """The format for rows of `schema`: the columns that are content, under their real names."""
    if isinstance(spec.format, FormatMaker):
        return spec.format.file_format(schema, spec.max_file_size)
    content = [c for i, c in enumerate(spec.columns) if i not in spec.partition_by]
    shapes = tuple(column.shape for column in content)
    if isinstance(spec.format, CsvSpec):
        return CsvFormat(schema, shapes, spec.format, spec.max_file_size)
    return ParquetFormat(schema, shapes, spec.format, spec.max_file_size)
