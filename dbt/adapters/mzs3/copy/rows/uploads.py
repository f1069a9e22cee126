"""The part of an export that runs on the cluster: every file uploaded, none visible."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from dbt.adapters.mzs3.copy.commit.pending import PendingFile
from dbt.adapters.mzs3.copy.executor.spec import WriteSpec
from dbt.adapters.mzs3.copy.executor.task import REPORT_DDL, write_empty_part, write_parts
from dbt.adapters.mzs3.copy.rows.batches import unmeasured_batches
from dbt.adapters.mzs3.copy.rows.granted import Granted, Reason, granted
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
    before_again: Callable[[Reason], object],
    empty_file: bool = True,
) -> tuple[list[PendingFile], int]:
    """The open uploads of all files, and the rows that Spark counted on their way to them.

    Without rows there is one file nevertheless, unless `empty_file` is false. The query runs a
    second time if a row is not as the faster way has it, of which `before_again` is told first.
    Raises what Spark raises; tasks may then still be opening uploads for some seconds.
    """
    ship_executor_code()
    rows = normalised(frame)
    reports, counted = _upload_rows(rows, spec, parts, before_again)
    if not reports and empty_file:
        reports = write_empty_part(spec, rows.limit(0).toArrow().schema)
    return [PendingFile.from_dict(report) for report in reports], counted


def _upload_rows(
    rows: DataFrame, spec: WriteSpec, parts: int, before_again: Callable[[Reason], object]
) -> Uploaded:
    taken = granted(rows.schema, spec.partition_by)
    while True:
        try:
            return _attempt(rows, spec, parts, taken)
        except SPARK_FAILURES as exc:
            reason = taken.refuted_by(exc)
            if reason is None:
                raise
        before_again(reason)
        taken = taken.but_for(reason)
        if reason == "equal hashes":
            # Nobody knows now what the attempt has sent to the uploads of an interrupted run.
            spec = replace(spec, reusable={})


def _attempt(rows: DataFrame, spec: WriteSpec, parts: int, taken: Granted) -> Uploaded:
    counted = Observation()
    ordered = in_parts(rows, parts, spec.partition_by, taken)
    ordered = ordered.observe(counted, F.count(F.lit(1)).alias("rows"))
    write = write_parts(replace(spec, sorted_by_hash=taken.distinct_hashes))
    session = rows.sparkSession
    with unmeasured_batches(session) if taken.narrow_rows else nullcontext():
        reports = ordered.mapInArrow(write, REPORT_DDL).collect()
    return [report.asDict() for report in reports], int(counted.get["rows"])


def check_count(written: int, counted: int) -> None:
    """Workers count what they write, Spark counts what it hands them: raises if they differ."""
    if written != counted:
        raise CopyError(
            f"workers wrote {written} rows, but Spark counted {counted}; "
            "this is a defect of the export, please report it"
        )
