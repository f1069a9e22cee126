"""The rows that are written for a source: its columns, metadata, and problems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.csv_source.executor.columns import (
    LAST_MODIFIED_COLUMN,
    OBJECT_COLUMN,
    PROBLEM_COLUMN,
    RECORD_COLUMN,
    Column,
    arrow_type,
    ddl,
)
from dbt.adapters.mzs3.csv_source.executor.formats.format import Records

# NULL for a good row. Without `raw` it is not a record's, but says why an object was skipped.
_PROBLEM_FIELDS = {
    "line": "bigint",
    "byte": "bigint",
    "raw": "string",
    "column": "string",
    "error": "string",
}
_PROBLEM_DDL = f"struct<{', '.join(f'`{k}`: {v}' for k, v in _PROBLEM_FIELDS.items())}>"
_PROBLEM_TYPE = pa.struct([(name, arrow_type(kind)) for name, kind in _PROBLEM_FIELDS.items()])

METADATA_COLUMNS = (
    Column(OBJECT_COLUMN, "string"),
    Column(RECORD_COLUMN, "bigint"),
    Column(LAST_MODIFIED_COLUMN, "timestamp"),
    Column(PROBLEM_COLUMN, _PROBLEM_DDL),
)


def schema_ddl(columns: Sequence[Column]) -> str:
    """The schema of the rows in Spark's DDL."""
    return ddl((*columns, *METADATA_COLUMNS))


@dataclass(frozen=True)
class ObjectRows:
    """Makes the rows of one object; `modified` is its time."""

    columns: tuple[Column, ...]
    uri: str
    modified: pa.Scalar

    def batches(self, records: Records, before: int) -> Iterator[pa.RecordBatch]:
        """The rows of records before which the object has `before` others."""
        batch = records.batch
        if batch.num_rows:
            if records.numbers is None:
                ones = pa.repeat(pa.scalar(1, pa.int64()), batch.num_rows)
                numbers = pc.cumulative_sum(ones, start=before)
            else:
                numbers = pc.add(records.numbers, pa.scalar(before + 1, pa.int64()))
            yield self._rows(batch.columns, numbers, pa.nulls(batch.num_rows, _PROBLEM_TYPE))
        if rejects := records.rejects:
            problems = pa.array([vars(reject) for reject in rejects], _PROBLEM_TYPE)
            numbers = pa.array([before + reject.number + 1 for reject in rejects], pa.int64())
            yield self._rows(self._no_values(len(rejects)), numbers, problems)

    def skipped(self, error: str) -> pa.RecordBatch:
        """The one row of an object that is left out."""
        problem = pa.array([{"error": error}], _PROBLEM_TYPE)
        return self._rows(self._no_values(1), pa.nulls(1, pa.int64()), problem)

    def _no_values(self, count: int) -> list[pa.Array]:
        return [pa.nulls(count, arrow_type(column.data_type)) for column in self.columns]

    def _rows(
        self, values: Sequence[pa.Array], numbers: pa.Array, problems: pa.Array
    ) -> pa.RecordBatch:
        count = len(numbers)
        arrays = [
            *values,
            pa.repeat(pa.scalar(self.uri), count),
            numbers,
            pa.repeat(self.modified, count),
            problems,
        ]
        names = [column.name for column in (*self.columns, *METADATA_COLUMNS)]
        return pa.RecordBatch.from_arrays(arrays, names=names)
