"""The part of an export that runs on the cluster: every file uploaded, none visible."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from dbt.adapters.mzs3.errors import CopyError
from dbt.adapters.mzs3.rows.batches import WIDE_ROW, unmeasured_batches
from dbt.adapters.mzs3.rows.granted import Granted, Reason, granted
from dbt.adapters.mzs3.rows.plan import in_parts
from dbt.adapters.mzs3.rows.shapes import normalised
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES
from dbt.adapters.mzs3.spark.ship import ship_executor_code
from dbt.adapters.mzs3.upload.pending import PendingFile
from dbt.adapters.mzs3.upload.reports import files_in, reported
from dbt.adapters.mzs3.upload.spec import WriteSpec
from dbt.adapters.mzs3.upload.steady import COMPUTED_TWICE
from dbt.adapters.mzs3.upload.task import write_empty_part

BeforeAgain = Callable[[Reason, list[tuple[str, str]]], object]
"""Told why the query runs once more, and of the uploads, by key and id, that were in vain."""


@dataclass(frozen=True)
class Uploads:
    """The open uploads of all files; whether they are the query's rows is for `check` to say."""

    files: list[PendingFile]
    counted: int
    computed_twice: bool

    def check(self) -> None:
        """Raises CopyError if rows may be missing or doubled."""
        if self.computed_twice:
            raise CopyError(COMPUTED_TWICE)
        check_count(sum(file.rows for file in self.files), self.counted)


def upload_parts(
    frame: DataFrame,
    spec: WriteSpec,
    parts: int,
    *,
    before_again: BeforeAgain,
    empty_file: bool = True,
) -> Uploads:
    """The open uploads of all files, and the rows that Spark counted on their way to them.

    Without rows there is one file nevertheless, unless `empty_file` is false. Where rows are not
    what the fastest way takes them for, or some were computed anew while others were written, the
    query runs once more, of which `before_again` is told first. Raises what Spark raises; tasks
    may then still be opening uploads for some seconds.
    """
    ship_executor_code()
    rows = normalised(frame)
    attempt = _upload_rows(rows, spec, parts, before_again)
    reports = attempt.files
    if not reports and empty_file and attempt.refuted is None:
        reports = files_in(write_empty_part(spec, rows.limit(0).toArrow().schema))
    return Uploads(
        [PendingFile.from_dict(report) for report in reports],
        attempt.counted,
        computed_twice=attempt.refuted is not None,
    )


@dataclass(frozen=True)
class _Attempt:
    """Reports of files, and the count of their rows; in vain if something was `refuted`."""

    files: list[dict[str, Any]]
    counted: int = 0
    refuted: Reason | None = None


def _upload_rows(
    rows: DataFrame, spec: WriteSpec, parts: int, before_again: BeforeAgain
) -> _Attempt:
    """The first attempt that nothing refutes, or the second whose rows were computed anew."""
    taken = granted(rows.schema, spec.partition_by)
    found: set[Reason] = set()
    while True:
        attempt = _attempt(rows, spec, parts, taken)
        if attempt.refuted is None or attempt.refuted in found:
            return attempt
        found.add(attempt.refuted)
        uploads = [(report["key"], report["upload_id"]) for report in attempt.files]
        before_again(attempt.refuted, uploads)
        taken = taken.but_for(attempt.refuted)
        if attempt.refuted != "wide rows":
            # The uploads of an interrupted run may be among them.
            spec = replace(spec, reusable={})


def _attempt(rows: DataFrame, spec: WriteSpec, parts: int, taken: Granted) -> _Attempt:
    counted = Observation()
    ordered = in_parts(rows, parts, spec.partition_by, taken)
    ordered = ordered.observe(counted, F.count(F.lit(1)).alias("rows"))
    session = rows.sparkSession
    try:
        with unmeasured_batches(session) if taken.narrow_rows else nullcontext():
            found = reported(ordered, replace(spec, sorted_by_hash=taken.distinct_hashes))
    except SPARK_FAILURES as exc:
        if taken.narrow_rows and WIDE_ROW in str(exc):
            return _Attempt([], refuted="wide rows")
        raise
    if found.refuted is not None:
        return _Attempt(found.files, refuted=found.refuted)
    return _Attempt(found.files, int(counted.get["rows"]))


def check_count(written: int, counted: int) -> None:
    """Workers count what they write, Spark counts what it hands them: raises if they differ."""
    if written != counted:
        raise CopyError(
            f"workers wrote {written} rows, but Spark counted {counted}; "
            "this is a defect of the export, please report it"
        )
