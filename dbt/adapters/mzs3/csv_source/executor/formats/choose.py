"""The formats by their names in a source's definition."""

from __future__ import annotations

from dbt.adapters.mzs3.csv_dialect import CsvDialect
from dbt.adapters.mzs3.csv_source.executor.chunks import BLOCK_BYTES
from dbt.adapters.mzs3.csv_source.executor.formats.csv import CsvFormat
from dbt.adapters.mzs3.csv_source.executor.formats.format import (
    AVRO,
    PARQUET,
    ObjectFormat,
)
from dbt.adapters.mzs3.csv_source.executor.reading import Reading


def open_format(
    name: str,
    *,
    dialect: CsvDialect,
    compression: str,
    reading: Reading,
    block_bytes: int = BLOCK_BYTES,
) -> ObjectFormat:
    """The format of that name, for objects that are read in that way.

    Dialect, compression and the size of blocks are CSV's alone.
    """
    # Only here, as not every build of pyarrow has Parquet.
    if name == AVRO:
        from dbt.adapters.mzs3.csv_source.executor.formats.avro import AvroFormat

        return AvroFormat(reading)
    if name == PARQUET:
        from dbt.adapters.mzs3.csv_source.executor.formats.parquet import ParquetFormat

        return ParquetFormat(reading)
    return CsvFormat(dialect, compression, reading, block_bytes)
