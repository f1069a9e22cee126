"""The table that has a row for every run of an export."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

import pyarrow as pa

from dbt.adapters.mzs3.spark.run_table import RunTable
from dbt.adapters.mzs3.spark.sql import qualified_name
from dbt.adapters.mzs3.types.table import OF_PYTHON, arrow_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = "mzs3_copy_history"
_MAX_ERROR = 2000


@dataclass(frozen=True)
class RecordedRun:
    """A run as the table has it; `started` and `ended` are ms since the epoch.

    `status` is `rows`, `error` or `cancelled` (Materialize's design "Copy to S3", CopyResponse).
    `rows`, `bytes` and `files` are None unless the export was committed. `error` says what failed
    or was cancelled, or what a committed export has left of the one before; it may be empty.
    """

    model: str
    location: str
    as_of: int
    started: int
    ended: int
    status: str
    rows: int | None
    bytes: int | None
    files: int | None
    error: str
    invocation_id: str
    format: str
    on_existing: str


_MOMENTS = dict.fromkeys(("started", "ended"), pa.timestamp("ms", "UTC"))
_COLUMNS = pa.schema(
    (
        column.name,
        _MOMENTS.get(column.name, arrow_type(OF_PYTHON[str(column.type).removesuffix(" | None")])),
    )
    for column in fields(RecordedRun)
)


def history_table(schema: str) -> str:
    """The table's name as SQL spells it; the schema may be in a catalog: `catalog.schema`."""
    return qualified_name(schema, TABLE)


class History:
    """The table of runs in a schema; creates it where there is none."""

    def __init__(self, spark: SparkSession, schema: str) -> None:
        self._table = RunTable(spark, schema, TABLE, _COLUMNS, "Every run of copy_to_s3")

    def append(self, run: RecordedRun) -> None:
        """Add a run to the table; of its error the first 2000 characters.

        Raises what Spark raises.
        """
        values = {**asdict(run), "error": run.error[:_MAX_ERROR] or None}
        self._table.append(pa.Table.from_pylist([values], _COLUMNS), run.started)
