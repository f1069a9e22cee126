"""The part of an export that runs on the cluster: every file uploaded, none visible."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from dbt.adapters.mzs3.copy.commit.pending import PendingFile
from dbt.adapters.mzs3.copy.executor.spec import WriteSpec
from dbt.adapters.mzs3.copy.executor.task import REPORT_DDL, write_empty_part, write_parts
from dbt.adapters.mzs3.copy.rows.batches import WIDE_ROW, can_be_narrow, unmeasured_batches
from dbt.adapters.mzs3.copy.rows.plan import in_parts
from dbt.adapters.mzs3.copy.rows.shapes import normalised
from dbt.adapters.mzs3.errors import CopyError
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES
from dbt.adapters.mzs3.spark.ship import ship_executor_code

Uploaded = tuple[list[dict[str, object]], int]


def upload_parts(
    frame: DataFrame,
    spec: WriteSpec,
    parts: int,
    *,
    before_wide_rows: Callable[[], object],
    empty_file: bool = True,
) -> tuple[list[PendingFile], int]:
    """The open uploads of all files, and the rows that Spark counted on their way to them.

    Without rows there is one file nevertheless, unless `empty_file` is false. The query runs a
    second time if a row is too wide for the faster way, of which `before_wide_rows` is told first.
    Raises what Spark raises; tasks may then still be opening uploads for some seconds.
    """
    ship_executor_code()
    rows = normalised(frame)
    reports, counted = _upload_rows(rows, spec, parts, before_wide_rows)
    if not reports and empty_file:
        reports = write_empty_part(spec, rows.limit(0).toArrow().schema)
    return [PendingFile.from_dict(report) for report in reports], counted


def _upload_rows(
    rows: DataFrame, spec: WriteSpec, parts: int, before_wide_rows: Callable[[], object]
) -> Uploaded:
    if can_be_narrow(rows.schema):
        try:
            with unmeasured_batches(rows.sparkSession):
                return _attempt(rows, spec, parts, only_narrow=True)
        except SPARK_FAILURES as exc:
            if WIDE_ROW not in str(exc):
                raise
        before_wide_rows()
    return _attempt(rows, spec, parts, only_narrow=False)


def _attempt(rows: DataFrame, spec: WriteSpec, parts: int, *, only_narrow: bool) -> Uploaded:
    counted = Observation()
    ordered = in_parts(rows, parts, spec.partition_by, only_narrow=only_narrow)
    ordered = ordered.observe(counted, F.count(F.lit(1)).alias("rows"))
    reports = ordered.mapInArrow(write_parts(spec), REPORT_DDL).collect()
    return [report.asDict() for report in reports], int(counted.get["rows"])


def check_count(written: int, counted: int) -> None:
    """Workers count what they write, Spark counts what it hands them: raises if they differ."""
    if written != counted:
        raise CopyError(
            f"workers wrote {written} rows, but Spark counted {counted}; "
            "this is a defect of the export, please report it"
        )
