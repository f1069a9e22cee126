"""The files of a batch: uploaded by the cluster, then made objects that no state names yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from dbt.adapters.mzs3.aws.failures import AwsFailure, describe
from dbt.adapters.mzs3.errors import ShardError
from dbt.adapters.mzs3.objects.abort import abort_all
from dbt.adapters.mzs3.objects.concurrently import each
from dbt.adapters.mzs3.objects.prefix import Place
from dbt.adapters.mzs3.shard.rows.changes import DIFF
from dbt.adapters.mzs3.shard.state.batch import BatchFile
from dbt.adapters.mzs3.shard.write.clean_up import left_by_tasks
from dbt.adapters.mzs3.spark.ship import ship_executor_code
from dbt.adapters.mzs3.upload.parts import check_count
from dbt.adapters.mzs3.upload.pending import PendingFile, complete
from dbt.adapters.mzs3.upload.reports import reported
from dbt.adapters.mzs3.upload.spec import WriteSpec
from dbt.adapters.mzs3.upload.steady import COMPUTED_TWICE


@dataclass(frozen=True)
class Uploaded:
    """Open uploads of a batch's files, and how many rows they add and take away."""

    files: tuple[PendingFile, ...]
    additions: int
    retractions: int


def upload(place: Place, changes: DataFrame, spec: WriteSpec) -> Uploaded:
    """The files of changes `t`, `d`, c0, c1, … in parts; no file where there is no change.

    The first column is the part, as `in_parts` makes it. Where rows were computed anew while
    others were written, all is uploaded once more. Raises what Spark raises, and ShardError.
    """
    ship_executor_code()
    for _ in range(2):
        uploaded = _attempt(place, changes, spec)
        if uploaded is not None:
            return uploaded
        left_by_tasks(place, spec.prefix)  # what is still there costs storage, and no more
    raise ShardError(COMPUTED_TWICE)


def _attempt(place: Place, changes: DataFrame, spec: WriteSpec) -> Uploaded | None:
    """None if rows were computed anew; then the uploads that were reported are aborted."""
    counted = Observation()
    diff = F.col(DIFF)
    none = F.lit(0).cast("bigint")
    observed = changes.observe(
        counted,
        F.count(F.lit(1)).alias("rows"),
        F.sum(F.when(diff > 0, diff).otherwise(none)).alias("additions"),
        F.sum(F.when(diff < 0, -diff).otherwise(none)).alias("retractions"),
    )
    reports = reported(observed, spec)
    if reports.refuted is not None:
        abort_all(place, [(report["key"], report["upload_id"]) for report in reports.files])
        return None
    files = tuple(map(PendingFile.from_dict, reports.files))
    check_count(sum(file.rows for file in files), int(counted.get["rows"]))
    return Uploaded(
        files, int(counted.get["additions"] or 0), int(counted.get["retractions"] or 0)
    )


def make_visible(place: Place, files: Sequence[PendingFile]) -> tuple[BatchFile, ...]:
    """Every upload as an object; raises ShardError, with none left open, if one can't be."""

    def one(file: PendingFile) -> BatchFile:
        if not complete(place, file):
            raise ShardError(
                f"the upload of {place.uri_of(file.key)} is gone: something else than this run "
                "has aborted it, such as a lifecycle rule of the bucket; run again"
            )
        found = place.find(file.key)
        if found is None:
            raise ShardError(
                f"{place.uri_of(file.key)} is gone right after it was written: something else "
                "than this run has removed it; run again"
            )
        name = file.key.removeprefix(place.location.prefix)
        return BatchFile(name, file.bytes, found.etag, file.rows)

    try:
        return tuple(each(files, one))
    except AwsFailure as exc:
        abort_all(place, [(file.key, file.upload_id) for file in files])
        doing = f"completing the files of a batch at {place.uri}"
        raise ShardError(describe(exc, doing, "s3:PutObject and s3:ListBucket")) from exc
