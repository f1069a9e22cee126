"""The table that has a row for every run of an export."""

from __future__ import annotations

import uuid
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException

from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.spark.engine import engine_of
from dbt.adapters.mzs3.spark.sql import qualified_name, quote_identifier

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = "mzs3_copy_history"
_MAX_ERROR = 2000
_PARTITIONS = "# Partition Information"  # as DESCRIBE TABLE EXTENDED heads them


@dataclass(frozen=True)
class RecordedRun:
    """A run as the table has it; `started` and `ended` are ms since the epoch.

    `status` is `rows`, `error` or `cancelled` (Materialize's design "Copy to S3", CopyResponse).
    `rows`, `bytes` and `files` are None unless the export was committed. `error` says what failed,
    what was cancelled, or what a committed export has left of the one before it; it may be empty.
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


_TEXT, _COUNT = ("string", pa.string()), ("bigint", pa.int64())
_TYPES = {"str": _TEXT, "int": _COUNT, "int | None": _COUNT}
_COLUMNS = {column.name: _TYPES[str(column.type)] for column in fields(RecordedRun)}
_COLUMNS |= dict.fromkeys(("started", "ended"), ("timestamp", pa.timestamp("ms", "UTC")))
"""The types of the table's columns, as Spark and as Arrow has them."""


def history_table(schema: str) -> str:
    """The table's name as SQL spells it; the schema may be in a catalog: `catalog.schema`."""
    return qualified_name(schema, TABLE)


class History:
    """The schema's table of runs, which is created if there is none.

    That is at the beginning of a run, so that its end, which a user may wait for after Ctrl-C, is
    one small job of Spark. Raises what Spark raises, and SparkJobError if the name is taken by
    something else.
    """

    def __init__(self, spark: SparkSession, schema: str) -> None:
        self._spark = spark
        self._table = history_table(schema)
        self._location = _location(spark, schema)

    def append(self, run: RecordedRun) -> None:
        """Add a run to the table; of its error the first 2000 characters.

        Any number of threads and processes may append at once: each row is a partition of its
        own, `day` (of the start, UTC) and `run`, which becomes visible atomically, in the
        metastore. Raises what Spark raises.
        """
        day = datetime.fromtimestamp(run.started / 1000, tz=timezone.utc).date().isoformat()
        run_id = uuid.uuid4().hex
        # Not INSERT: those that run at once share a folder for unfinished files, which the first
        # one to commit removes.
        folder = f"{self._location}/day={day}/run={run_id}"
        values = {**asdict(run), "error": run.error[:_MAX_ERROR] or None}
        row = pa.table({name: pa.array([values[name]], of) for name, (_, of) in _COLUMNS.items()})
        engine_of(self._spark).write_parquet(self._spark, folder, row)
        added = f"ADD PARTITION (day = '{day}', run = '{run_id}')"
        self._spark.sql(f"ALTER TABLE {self._table} {added}")


def _location(spark: SparkSession, schema: str) -> str:
    """The folder of the table's files; creates the table if there is none."""
    describe = f"DESCRIBE TABLE EXTENDED {history_table(schema)}"
    try:
        described = spark.sql(describe).collect()
    except AnalysisException as exc:
        # Trying comes before looking, as every run but the first finds the table.
        if exc.getCondition() != "TABLE_OR_VIEW_NOT_FOUND":
            raise
        _make(spark, history_table(schema))
        described = spark.sql(describe).collect()
    names = [described_row[0] for described_row in described]
    places = [value for name, value, *_ in described if name == "Location"]
    partitions = names.index(_PARTITIONS) + 2 if _PARTITIONS in names else len(names)
    if not places or names[partitions : partitions + 2] != ["day", "run"]:
        raise SparkJobError(
            f"{schema}.{TABLE} is not the table that dbt-mzs3 makes under this name; rename or "
            "drop it, and the next run makes the table"
        )
    return str(places[-1])


def _make(spark: SparkSession, table: str) -> None:
    columns = ", ".join(f"{quote_identifier(name)} {kind}" for name, (kind, _) in _COLUMNS.items())
    try:
        spark.sql(
            f"CREATE TABLE IF NOT EXISTS {table} ({columns}, day string, run string) "
            "USING parquet PARTITIONED BY (day, run) COMMENT 'Every run of copy_to_s3 (dbt-mzs3)'"
        )
    except PySparkException:
        # Another run may have made it, and put a row in its folder, since it was looked for.
        if not spark.catalog.tableExists(table):
            raise
