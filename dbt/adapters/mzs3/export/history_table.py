"""The history: a table with a row for every run of an export."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from dbt.adapters.mzs3.spark.run_table import RunTable
from dbt.adapters.mzs3.types.table import SPARK_TYPE_OF_PYTHON, arrow_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = "mzs3_copy_history"
_MAX_ERROR = 2000


@dataclass(frozen=True)
class RecordedRun:
    """A row of the table; times have a time zone, and any text is untrusted.

    `status` is `rows`, `error` or `cancelled` (Materialize's design "Copy to S3", CopyResponse).
    `rows`, `bytes` and `files` are None unless the export was committed. `error` says why it was
    not, or which old files a committed export could not delete. `native` says whether Comet ran
    all of the plan; None without Comet, over Spark Connect, or if not all was uploaded.
    """

    model: str
    location: str
    as_of: int
    started: datetime
    ended: datetime | None
    status: str
    rows: int | None
    bytes: int | None
    files: int | None
    error: str | None
    invocation_id: str
    format: str
    on_existing: str
    native: bool | None = None


def _arrow_type(annotation: str) -> pa.DataType:
    name = annotation.removesuffix(" | None")
    if name == "datetime":
        return pa.timestamp("ms", "UTC")
    return arrow_type(SPARK_TYPE_OF_PYTHON[name])


_COLUMNS = pa.schema((each.name, _arrow_type(str(each.type))) for each in fields(RecordedRun))


class History:
    """The history in `schema`, or `catalog.schema`; the table is created if it is missing."""

    def __init__(self, spark: SparkSession, schema: str) -> None:
        self._table = RunTable(spark, schema, TABLE, _COLUMNS, "Every run of copy_to_s3")

    def append(self, run: RecordedRun) -> None:
        """Adds a run to the table, with the first 2000 characters of its error. Raises what Spark
        raises."""
        values = {**asdict(run), "error": (run.error or "")[:_MAX_ERROR] or None}
        rows = pa.Table.from_pylist([values], _COLUMNS)
        self._table.append(rows, int(run.started.timestamp() * 1000))
