"""Whether all files were written of the same rows, though executors may have been lost.

A part is a hash of the row's content. When an executor is lost, so is what it has put into the
shuffle, and Spark computes that again for the tasks that still need it. The sum of floats, ties
of a `row_number`, `rand()` may then be others, and rows go to other parts than before: to those
that are written already, and are lost, or from them, and are there twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.spark.settings import settings
from dbt.adapters.mzs3.spark.status import status_tracker

if TYPE_CHECKING:
    from pyspark import SparkStageInfo
    from pyspark.sql import SparkSession

# Spark compares what it computes again with what was lost, and fails the job if they differ. All
# versions can; up to 4.1 they do so only when asked to, and users may have switched it off.
_CHECKSUMS = "spark.sql.shuffle.orderIndependentChecksum"
_COMPARED = {
    f"{_CHECKSUMS}.enabled": "true",
    f"{_CHECKSUMS}.enableFullRetryOnMismatch": "true",
}
_OTHER_ROWS = (
    "shuffle map stage with indeterminate output was failed and retried",
    "indeterminate results from old attempt succeeded",
    "cannot rollback",
)
# What the scheduler says of a stage comes a little later than the stage's rows.
_LATE_S = 60.0
_LOOK_S = 0.02

_UNTOLD = (
    "all files were written, but Spark does not tell whether their rows were computed once: "
    f"after {_LATE_S:.0f} s its scheduler knows nothing more of stage {{}}. It forgets stages "
    "beyond spark.ui.retainedStages (1000 unless set) and drops what it has no time for "
    "(spark.scheduler.listenerbus.eventqueue.capacity); raise them and run it again"
)
COMPUTED_TWICE = (
    "Spark lost rows while files were written, and computed them anew, which need not give the "
    "same rows: so it was when all was begun again, too. Run it again when the cluster keeps its "
    "executors, or let shuffled rows outlive them (spark.shuffle.service.enabled, or "
    "spark.decommission.enabled and spark.storage.decommission.enabled)"
)


def compared_shuffles(spark: SparkSession) -> AbstractContextManager[None]:
    """While it lasts, a job of this session fails once Spark computes other rows than before."""
    return settings(spark, _COMPARED)


def has_computed_other_rows(failure: Exception) -> bool:
    """Whether that is why the job failed."""
    return any(text in str(failure) for text in _OTHER_ROWS)


def written_at_once(spark: SparkSession, stages: Collection[int], tasks: int) -> bool:
    """Whether so many tasks of a stage were all part of its first attempt.

    Spark makes another attempt only where rows that the stage reads were lost: then not all of
    its tasks have read the same. Yes where the scheduler is in another process, which can't be
    asked: `compared_shuffles` has to do. Raises SparkJobError if the scheduler does not tell.
    """
    tracker = status_tracker(spark)
    if tracker is None or not stages:
        return True
    [stage] = stages
    return _first_attempt(tracker.getStageInfo, stage, tasks)


def _first_attempt(look: Callable[[int], SparkStageInfo | None], stage: int, tasks: int) -> bool:
    deadline = time.monotonic() + _LATE_S
    while True:
        info = look(stage)
        if info is not None and info.currentAttemptId > 0:
            return False
        if info is not None and info.numCompletedTasks >= tasks:
            return True
        if time.monotonic() > deadline:
            raise SparkJobError(_UNTOLD.format(stage))
        time.sleep(_LOOK_S)
