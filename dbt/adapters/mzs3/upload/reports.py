"""What the tasks of a write report: the files of all rows, or why they are not that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark import TaskContext
from pyspark.sql import DataFrame

from dbt.adapters.mzs3.rows.granted import Reason
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES
from dbt.adapters.mzs3.upload.spec import WriteSpec
from dbt.adapters.mzs3.upload.steady import (
    compared_shuffles,
    has_computed_other_rows,
    written_at_once,
)
from dbt.adapters.mzs3.upload.task import REPORT_DDL, write_parts

_OF_TASK = ("stage", "tied")


@dataclass(frozen=True)
class Reports:
    """A report of each file that was uploaded; in vain if something was `refuted`.

    Of a job that failed there are none, and its tasks may have uploads open that nobody knows.
    """

    files: list[dict[str, Any]]
    refuted: Reason | None = None


def files_in(reports: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The reports that are of files, without what a task says of itself."""
    return [
        {name: value for name, value in report.items() if name not in _OF_TASK}
        for report in reports
        if report["key"] is not None
    ]


def reported(parts: DataFrame, spec: WriteSpec) -> Reports:
    """Every row of `parts`, as `in_parts` makes them, is in one of the files, unless `refuted`.

    Raises what Spark raises.
    """
    spark = parts.sparkSession
    # What a task knows of itself is pyspark's, which workers have.
    write = write_parts(spec, TaskContext.get)
    try:
        with compared_shuffles(spark):
            found = [row.asDict() for row in parts.mapInArrow(write, REPORT_DDL).collect()]
    except SPARK_FAILURES as exc:
        if has_computed_other_rows(exc):
            return Reports([], "rows computed anew")
        raise
    tasks = [report for report in found if report["key"] is None]
    files = files_in(found)
    if any(task["tied"] for task in tasks):
        return Reports(files, "equal hashes")
    if not written_at_once(spark, {task["stage"] for task in tasks}, len(tasks)):
        return Reports(files, "rows computed anew")
    return Reports(files)
