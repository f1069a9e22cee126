"""A run of an export: what those learn who watch it."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException
from support.export.committing import EXPORT as EXPORTED
from support.export.committing import FILES, export, once, prefix
from support.s3.memory import MemoryS3

from dbt.adapters.mzs3.errors import CopyError, ExecutorError, LocationError
from dbt.adapters.mzs3.export import job
from dbt.adapters.mzs3.export.commit.failures import CommitError, StaleFilesError
from dbt.adapters.mzs3.export.commit.preflight import Preflight
from dbt.adapters.mzs3.export.export import CopyResult
from dbt.adapters.mzs3.export.job import ExportRun, _open_store, _with_remains
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.upload.job import Uploads

EXPORT: Any = SimpleNamespace(
    node="model.shop.orders", location=SimpleNamespace(uri="s3://b/p/"), as_of=17
)


def test_an_export_that_fails_before_its_tasks_begin_waits_for_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def cancel() -> None:
        raise CopyError("cancelled")

    nothing: Any = None
    cleaned: list[bool] = []
    reaper = SimpleNamespace(abort_stale=lambda: cleaned.append(True))
    preflight: Any = SimpleNamespace(reaper=reaper)
    monitor: Any = SimpleNamespace(stop_if_cancelled=cancel, is_cancelled=True)
    run = ExportRun(EXPORT, nothing, nothing, preflight, nothing, monitor)
    with pytest.raises(CopyError, match="was cancelled"):
        run.upload_and_commit()
    assert cleaned == [True]


def test_an_export_whose_job_failed_for_recomputed_rows_waits_for_its_tasks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nothing: Any = None
    waited: list[bool] = []
    reaper = SimpleNamespace(abort_until_idle=lambda _: waited.append(True))
    preflight: Any = SimpleNamespace(reaper=reaper)
    monitor: Any = SimpleNamespace(stop_if_cancelled=lambda: None, is_cancelled=False)
    rows: Any = SimpleNamespace(ordered=SimpleNamespace(sparkSession=None))
    exported: Any = SimpleNamespace(**vars(EXPORT), options=SimpleNamespace(on_existing="fail"))
    run = ExportRun(exported, rows, nothing, preflight, nothing, monitor)
    monkeypatch.setattr(run, "_uploads", lambda: Uploads([], "rows computed anew"))
    with pytest.raises(CopyError):
        run.upload_and_commit()
    assert waited == [True]


def test_old_files_that_stay_are_an_error_of_an_export_that_is_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> None:
        raise StaleFilesError("files of the one before it are still there")

    nothing: Any = None
    committed: list[CopyResult] = []
    monitor: Any = SimpleNamespace(note_committed=committed.append)
    run = ExportRun(EXPORT, nothing, nothing, nothing, nothing, monitor)
    file: Any = SimpleNamespace(rows=12, bytes=45)
    monkeypatch.setattr(run, "_upload", lambda: run.files.append(file))
    monkeypatch.setattr(run, "_commit", refuse)
    with pytest.raises(CopyError, match=r"^model\.shop\.orders: files of the one before it"):
        run.upload_and_commit()
    assert committed == [
        CopyResult(
            rows=12,
            location="s3://b/p/",
            manifest="s3://b/p/_manifest.json",
            files=1,
            bytes=45,
            as_of=17,
        )
    ]


def test_what_lost_attempts_left_is_aborted_while_the_location_is_claimed() -> None:
    s3 = MemoryS3()
    commit, files = export(s3, "a")
    claimed: list[bool] = []
    completing = threading.Event()
    once(s3, "CompleteMultipartUpload", FILES[0], completing.set)

    def abort_stale(keep: set[str]) -> None:
        assert keep == {file.upload_id for file in files}
        assert completing.wait(60)  # the uploads are completed meanwhile
        claimed.append("x/_committing.json" in s3.objects)

    nothing: Any = None
    planned: Any = SimpleNamespace(pending=lambda *_: commit.pending)
    reaper: Any = SimpleNamespace(abort_stale=abort_stale)
    progress: Any = SimpleNamespace(note_committing=lambda: None)
    preflight = Preflight(reaper, has_conditional_deletes=True, has_conditional_writes=True)
    run = ExportRun(planned, nothing, prefix(s3), preflight, progress, nothing, files)
    run._commit()
    assert claimed == [True]
    assert sorted(s3.objects) == sorted([*EXPORTED, "x/_committing.json"])


def test_a_defect_of_the_clean_up_beside_the_completion_takes_everything_back() -> None:
    s3 = MemoryS3()
    commit, files = export(s3, "a")

    def abort_stale(keep: set[str]) -> None:
        raise RuntimeError("not the store's")

    nothing: Any = None
    planned: Any = SimpleNamespace(pending=lambda *_: commit.pending)
    progress: Any = SimpleNamespace(note_committing=lambda: None)
    reaper: Any = SimpleNamespace(abort_stale=abort_stale)
    preflight = Preflight(reaper, has_conditional_deletes=True, has_conditional_writes=True)
    run = ExportRun(planned, nothing, prefix(s3), preflight, progress, nothing, files)
    with pytest.raises(CommitError, match="not the store's"):
        run._commit()
    assert not s3.objects


def test_a_run_that_does_not_get_the_claim_aborts_nothing_of_others() -> None:
    s3 = MemoryS3()
    export(s3, "b")[0].claim()
    commit, files = export(s3, "a")
    aborted: list[object] = []
    nothing: Any = None
    planned: Any = SimpleNamespace(pending=lambda *_: commit.pending)
    progress: Any = SimpleNamespace(note_committing=lambda: None)
    reaper: Any = SimpleNamespace(abort_stale=aborted.append)
    run = ExportRun(planned, nothing, prefix(s3), Preflight(reaper), progress, nothing, files)
    with pytest.raises(LocationError, match="another run is committing"):
        run._commit()
    assert not aborted


def test_whoever_watches_learns_that_all_begins_again() -> None:
    nothing: Any = None
    heard: list[str] = []
    monitor: Any = SimpleNamespace(begin_again=heard.append)
    progress: Any = SimpleNamespace(begin_again=lambda: heard.append("progress"))
    run = ExportRun(EXPORT, nothing, nothing, nothing, progress, monitor)
    run._begin_again("equal hashes", [])
    assert heard == ["progress", "equal hashes"]


def test_a_store_is_opened_while_the_location_is_evaluated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[str] = []
    is_open = threading.Event()
    nothing: Any = None

    def open_bucket(_: Any, location: S3Location) -> str:
        opened.append(location.bucket)
        is_open.set()
        return location.bucket

    monkeypatch.setattr(job, "borrow_store", open_bucket)
    for text, bucket in (("concat('s3://b/', x)", "b"), ("if(x, 's3://b/', 's3://c/')", "c")):
        located: Future[S3Location] = Future()
        opening = threading.Thread(target=_open_store, args=(nothing, text, located))
        opening.start()
        was_opened_before = is_open.wait(60)
        located.set_result(S3Location(bucket, "x/"))
        opening.join()
        assert was_opened_before
        assert opened == list(dict.fromkeys(["b", bucket]))
        opened.clear()
        is_open.clear()


@pytest.mark.parametrize(
    ("cancelled", "failure", "left", "said"),
    [
        (
            True,
            PySparkException("[SPARK_JOB_CANCELLED] Job 7 cancelled"),
            None,
            "was cancelled. Nothing of this export is visible, and no upload is left open",
        ),
        (True, CopyError("the run was cancelled"), "Uploads may be left", "was cancelled. Upl"),
        (
            True,
            PySparkException(str(ExecutorError("S3 denied it"))),
            None,
            "failed: S3 denied it. Nothing of this export",
        ),
        (False, PySparkException("no such row"), None, "failed: no such row. Nothing of this"),
    ],
)
def test_what_is_left_is_told_of_what_failed_and_of_what_was_stopped(
    cancelled: bool, failure: Exception, left: str | None, said: str
) -> None:
    told = str(_with_remains(EXPORT, failure, left, cancelled))
    assert told.startswith(f"model.shop.orders: the export to s3://b/p/ {said}")


def test_objects_that_may_be_of_somebody_else_are_told_after_all_the_rest() -> None:
    failure = CommitError("S3 denied it", unproven=("s3://b/p/part-0000-0001.csv",))
    told = str(_with_remains(EXPORT, failure, None, cancelled=False))
    assert "S3 denied it. No manifest names any file of this export" in told
    assert told.endswith("nothing else has written:\n  - s3://b/p/part-0000-0001.csv")
    told = str(_with_remains(EXPORT, failure, "Uploads may be left", cancelled=False))
    assert "S3 denied it. Uploads may be left. No manifest" in told
