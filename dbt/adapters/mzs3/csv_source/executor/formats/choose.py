"""The formats by their names in a source's definition.

All imported at the top: what executors run travels to them with the modules it names there.
"""

from __future__ import annotations

from dbt.adapters.mzs3.csv_source.executor.chunks import BLOCK_BYTES
from dbt.adapters.mzs3.csv_source.executor.formats.avro import AvroFormat
from dbt.adapters.mzs3.csv_source.executor.formats.csv import CsvFormat
from dbt.adapters.mzs3.csv_source.executor.formats.format import (
    AVRO,
    PARQUET,
    ObjectFormat,
)
from dbt.adapters.mzs3.csv_source.executor.formats.parquet import ParquetFormat
from dbt.adapters.mzs3.csv_source.executor.reading import Reading
from dbt.adapters.mzs3.formats.csv.dialect import CsvDialect


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
    if name == AVRO:
        return AvroFormat(reading)
    if name == PARQUET:
        return ParquetFormat(reading)
    return CsvFormat(dialect, compression, reading, block_bytes)
