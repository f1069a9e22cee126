"""The part of an export that runs on the cluster: every file uploaded, none visible."""

from __future__ import annotations

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from dbt.adapters.mzs3.copy.commit.pending import PendingFile
from dbt.adapters.mzs3.copy.executor.spec import WriteSpec
from dbt.adapters.mzs3.copy.executor.task import REPORT_DDL, write_empty_part, write_parts
from dbt.adapters.mzs3.copy.rows.plan import in_parts
from dbt.adapters.mzs3.copy.rows.shapes import normalised
from dbt.adapters.mzs3.errors import CopyError
from dbt.adapters.mzs3.spark.ship import ship_executor_code


def upload_parts(
    frame: DataFrame, spec: WriteSpec, parts: int, *, empty_file: bool = True
) -> tuple[list[PendingFile], int]:
    """The open uploads of all files, and the rows that Spark counted on their way to them.

    Without rows there is one file nevertheless, unless `empty_file` is false. Raises what Spark
    raises; tasks may then still be opening uploads for some seconds.
    """
    ship_executor_code()
    counted = Observation()
    rows = in_parts(frame, parts, spec.partition_by)
    rows = rows.observe(counted, F.count(F.lit(1)).alias("rows"))
    reports = [row.asDict() for row in rows.mapInArrow(write_parts(spec), REPORT_DDL).collect()]
    if not reports and empty_file:
        schema = normalised(frame).limit(0).toArrow().schema
        reports = write_empty_part(spec, schema)
    return [PendingFile.from_dict(report) for report in reports], int(counted.get["rows"])


def check_count(written: int, counted: int) -> None:
    """Workers count what they write, Spark counts what it hands them: raises if they differ."""
    if written != counted:
        raise CopyError(
            f"workers wrote {written} rows, but Spark counted {counted}; "
            "this is a defect of the export, please report it"
        )
