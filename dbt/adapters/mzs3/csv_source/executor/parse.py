"""pyarrow's CSV reader as sources use it: on whole records that are plain, in one go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyarrow import csv

from dbt.adapters.mzs3.csv_source.executor.chunks import BOM
from dbt.adapters.mzs3.csv_source.executor.convert import FALSE_VALUES, TRUE_VALUES
from dbt.adapters.mzs3.csv_source.executor.layout import Layout
from dbt.adapters.mzs3.formats.csv.dialect import CsvDialect


def parse(
    data: bytes,
    layout: Layout,
    types: Sequence[pa.DataType],
    dialect: CsvDialect,
    *,
    ragged: list[int] | None = None,
) -> pa.RecordBatch:
    """The records' columns, in the order of `types`; fields of no column are left out.

    Raises ValueError for what pyarrow does not read. With `ragged`, records with another number
    of fields are left out, and their numbers, from 0, appended.
    """
    # The fields go by number, so that no name of theirs can matter.
    names = [str(field) for field in range(layout.width)]
    wanted = [str(field) for field in layout.fields]
    if data.startswith(BOM):
        # A record may start with this character; pyarrow drops one from what it reads.
        data = BOM + data
    if not data.endswith(b"\n"):
        # Without it pyarrow takes an empty last field for quoted if the one before it is.
        data += b"\n"

    def skip(row: Any) -> str:
        assert ragged is not None
        ragged.append(row.number - 1)
        return "skip"

    table = csv.read_csv(
        pa.py_buffer(data),
        csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
        csv.ParseOptions(
            delimiter=dialect.delimiter,
            quote_char=dialect.quote,
            double_quote=True,
            newlines_in_values=True,
            ignore_empty_lines=False,
            invalid_row_handler=None if ragged is None else skip,
        ),
        csv.ConvertOptions(
            check_utf8=True,
            column_types=dict(zip(wanted, types, strict=True)),
            null_values=[dialect.null],
            true_values=TRUE_VALUES,
            false_values=FALSE_VALUES,
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            include_columns=None if layout.is_in_order else wanted,
        ),
    )
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], table.schema)
