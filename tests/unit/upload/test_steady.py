"""Whether files are of the same rows, by what Spark tells of the stage that wrote them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkStageInfo
from pyspark.errors import PySparkException

from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.upload import job as upload_job
from dbt.adapters.mzs3.upload.job import (
    has_computed_other_rows,
    run_upload_job,
    wrote_in_one_attempt,
)


def told(attempt: int, done: int, failed: int = 0) -> SparkStageInfo:
    return SparkStageInfo(5, attempt, "collect", 12, 0, done, failed)


class Tracker:
    """Tells of stage 5 one after the other, and the last for ever."""

    def __init__(self, infos: Sequence[SparkStageInfo | None]) -> None:
        self._infos = list(infos)

    def getStageInfo(self, stage: int) -> SparkStageInfo | None:
        assert stage == 5
        return self._infos.pop(0) if len(self._infos) > 1 else self._infos[0]


def is_steady(
    monkeypatch: pytest.MonkeyPatch, *infos: SparkStageInfo | None, late_s: float = 60
) -> bool:
    monkeypatch.setattr(upload_job, "_LATE_S", late_s)
    spark: Any = SimpleNamespace()
    engine = SimpleNamespace(status_tracker=lambda _: Tracker(infos))
    monkeypatch.setattr(upload_job, "engine", engine)
    return wrote_in_one_attempt(spark, {5}, 12)


@pytest.mark.parametrize(
    "infos",
    [
        [told(0, 12)],
        [told(0, 12, failed=3)],  # tasks that were tried again read the same
        [told(0, 13)],  # one was run twice
        [None, told(0, 11), told(0, 12)],  # told late
    ],
)
def test_files_of_a_first_attempt_are_of_the_same_rows(
    infos: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_steady(monkeypatch, *infos)


@pytest.mark.parametrize(
    "infos",
    [
        [told(1, 12)],
        [told(1, 3)],
        [told(0, 9), told(1, 0)],
    ],
)
def test_files_of_more_attempts_are_not(infos: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_steady(monkeypatch, *infos)


@pytest.mark.parametrize(
    "info",
    [
        told(0, 9),  # it is never told how the others ended
        None,
    ],
)
def test_a_stage_that_is_not_told_of_is_an_error(
    info: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SparkJobError, match=r"knows nothing more of stage 5.*retainedStages"):
        is_steady(monkeypatch, info, late_s=0)


def test_without_a_task_or_a_scheduler_there_is_nothing_to_ask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spark: Any = SimpleNamespace()
    engine = SimpleNamespace(status_tracker=lambda _: Tracker([None]))
    monkeypatch.setattr(upload_job, "engine", engine)
    assert wrote_in_one_attempt(spark, set(), 0)
    engine = SimpleNamespace(status_tracker=lambda _: None)
    monkeypatch.setattr(upload_job, "engine", engine)
    assert wrote_in_one_attempt(spark, {5}, 12)


def test_tasks_do_not_go_on_after_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    def collect() -> None:
        raise KeyboardInterrupt

    def interrupt() -> None:
        interrupted.append(True)
        raise PySparkException("the server is gone")

    nothing: Any = None
    spec: Any = SimpleNamespace(max_batch_bytes=None)
    interrupted: list[bool] = []
    spark = SimpleNamespace(interruptAll=interrupt)
    written = SimpleNamespace(collect=collect)
    rows: Any = SimpleNamespace(sparkSession=spark, mapInArrow=lambda *_: written)
    monkeypatch.setattr(upload_job, "settings", lambda *_: nullcontext())
    monkeypatch.setattr(upload_job, "shipped", lambda *_: nothing)
    with pytest.raises(KeyboardInterrupt):
        run_upload_job(rows, spec)
    assert interrupted == [True]


def test_why_spark_failed_a_job_of_other_rows_is_known() -> None:
    said = (
        "Job aborted due to stage failure: A shuffle map stage with indeterminate output was "
        "failed and retried. However, Spark cannot rollback the ResultStage 5 to re-process"
    )
    assert has_computed_other_rows(Exception(said))
    assert not has_computed_other_rows(Exception("Job aborted due to stage failure: Task 3"))
