"""How a run ends is told and recorded, and neither can harm it."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from dbt.adapters.mzs3.errors import CopyError
from dbt.adapters.mzs3.events import CopyEvent
from dbt.adapters.mzs3.export import monitor as export_monitor
from dbt.adapters.mzs3.export import running_view
from dbt.adapters.mzs3.export.export import CopyResult
from dbt.adapters.mzs3.export.history_table import RecordedRun
from dbt.adapters.mzs3.export.monitor import RunContext, RunMonitor
from dbt.adapters.mzs3.export.options import CopyOptions
from dbt.adapters.mzs3.export.progress import Snapshot
from dbt.adapters.mzs3.formats.write.parquet import ParquetFormat
from dbt.adapters.mzs3.rows.batches import RestartReason

EXPORT: Any = SimpleNamespace(
    node="model.shop.orders",
    location=SimpleNamespace(uri="s3://b/p/"),
    options=CopyOptions("s3://b/p", format=ParquetFormat(), parts=4, on_existing="overwrite"),
    as_of=17,
)
RESULT = CopyResult(
    rows=12, location="s3://b/p/", manifest="s3://b/p/_manifest.json", files=3, bytes=45, as_of=17
)


class Recorder:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.events: list[CopyEvent] = []
        self.rows: list[tuple[str, RecordedRun]] = []
        self.cancelled = threading.Event()
        self.failure: Exception | None = None
        self.no_history: Exception | None = None
        monkeypatch.setattr(export_monitor, "History", self._open)

    def _open(self, _: Any, schema: str) -> Any:
        if self.no_history is not None:
            raise self.no_history
        return SimpleNamespace(append=lambda run: self._append(schema, run))

    def _append(self, schema: str, run: RecordedRun) -> None:
        if self.failure is not None:
            raise self.failure
        self.rows.append((schema, run))

    def monitor(self, **changed: Any) -> RunMonitor:
        spark: Any = None
        context = RunContext("analytics", "orders", "i-1", self.events.append)
        return RunMonitor(spark, EXPORT, replace(context, **changed), self.cancelled)

    @property
    def names(self) -> list[str]:
        return [event.name.removeprefix("mzs3.copy.") for event in self.events]


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    return Recorder(monkeypatch)


def test_a_committed_export(recorder: Recorder) -> None:
    with recorder.monitor() as monitor:
        assert monitor.note_committed(RESULT) is RESULT
    assert recorder.names == ["started", "committed"]
    assert (
        recorder.events[-1].message
        == "analytics.orders: 12 rows, 3 files, 45 B in s3://b/p/, 0:00"
    )
    [(schema, row)] = recorder.rows
    assert schema == "analytics"
    assert row.ended >= row.started > datetime(2023, 1, 1, tzinfo=timezone.utc)
    assert row == RecordedRun(
        model="model.shop.orders",
        location="s3://b/p/",
        as_of=17,
        started=row.started,
        ended=row.ended,
        status="rows",
        format="parquet",
        on_existing="overwrite",
        invocation_id="i-1",
        rows=12,
        bytes=45,
        files=3,
        error="",
    )


def test_the_history_says_whether_comet_ran_all(recorder: Recorder) -> None:
    for others in ({}, {"Project": "collate is not supported"}):
        with recorder.monitor() as monitor:
            monitor.note_native(others)
            monitor.note_committed(RESULT)
    assert [row.native for _, row in recorder.rows] == [True, False]


def test_a_failed_export(recorder: Recorder) -> None:
    with pytest.raises(CopyError), recorder.monitor():
        raise CopyError("no room")
    assert recorder.names == ["started", "failed"]
    [(_, row)] = recorder.rows
    assert (row.status, row.error, row.rows, row.files) == ("error", "no room", None, None)


def test_a_cancelled_export(recorder: Recorder) -> None:
    with pytest.raises(CopyError), recorder.monitor():
        recorder.cancelled.set()
        raise CopyError("Spark was interrupted")
    assert recorder.names == ["started", "cancelled"]
    [(_, row)] = recorder.rows
    assert (row.status, row.error) == ("cancelled", "Spark was interrupted")


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("wide rows", "with batches for wide rows: one has more than 16 kB"),
        ("equal hashes", "sorted by all columns: different rows have the same hash"),
    ],
)
def test_a_second_beginning_is_told(recorder: Recorder, reason: RestartReason, text: str) -> None:
    with recorder.monitor() as monitor:
        monitor.begin_again(reason)
        monitor.note_committed(RESULT)
    assert recorder.names == ["started", "begins_again", "committed"]
    assert recorder.events[1].message.endswith(f"begins again, {text}")


def test_an_earlier_export_that_is_completed_first_is_told(recorder: Recorder) -> None:
    with recorder.monitor() as monitor:
        monitor.note_recovered("its export is complete now")
        monitor.note_committed(RESULT)
    assert recorder.names == ["started", "recovered", "committed"]
    assert "is complete now" in recorder.events[1].message


def test_a_cancelled_export_does_not_begin_again(recorder: Recorder) -> None:
    with pytest.raises(CopyError, match="was cancelled"), recorder.monitor() as monitor:
        recorder.cancelled.set()
        monitor.begin_again("wide rows")
    assert recorder.names == ["started", "cancelled"]


def test_there_is_no_progress_once_the_user_has_stopped_the_run(recorder: Recorder) -> None:
    seen = Snapshot("computing", 0, 4, 0, 0, None)
    with pytest.raises(CopyError), recorder.monitor() as monitor:
        monitor._tell_progress(seen)
        recorder.cancelled.set()
        monitor._tell_progress(seen)
        monitor.stop_if_cancelled()
    assert recorder.names == ["started", "progress", "cancelled"]


def test_an_interrupt_is_a_cancellation(recorder: Recorder) -> None:
    with pytest.raises(KeyboardInterrupt), recorder.monitor():
        raise KeyboardInterrupt
    assert [(row.status, row.error) for _, row in recorder.rows] == [("cancelled", "")]


def test_a_commit_that_outran_the_cancellation_is_a_commit(recorder: Recorder) -> None:
    with recorder.monitor() as monitor:
        recorder.cancelled.set()
        monitor.note_committed(RESULT)
    assert [row.status for _, row in recorder.rows] == ["rows"]


def test_a_run_that_fails_after_its_commit_is_a_commit_and_says_what_is_left(
    recorder: Recorder,
) -> None:
    with pytest.raises(CopyError), recorder.monitor() as monitor:
        monitor.note_committed(RESULT)
        raise CopyError("files of the one before it are still there")
    assert recorder.names == ["started", "committed"]
    [(_, row)] = recorder.rows
    assert (row.status, row.rows, row.bytes, row.files) == ("rows", 12, 45, 3)
    assert row.error == "files of the one before it are still there"


def test_a_history_that_cannot_be_written_is_a_warning(recorder: Recorder) -> None:
    recorder.failure = RuntimeError("no permission")
    with recorder.monitor() as monitor:
        monitor.note_committed(RESULT)
    assert recorder.names == ["started", "committed", "warning"]
    assert recorder.events[-1].message == (
        "analytics.orders: this run could not be recorded in analytics.mzs3_copy_history, "
        "and is otherwise as the log says: no permission"
    )


def test_a_history_that_cannot_be_made_is_a_warning_at_once(recorder: Recorder) -> None:
    recorder.no_history = RuntimeError("no permission")
    warned = threading.Event()

    def tell(event: CopyEvent) -> None:
        recorder.events.append(event)
        if event.name == "mzs3.copy.warning":
            warned.set()

    with recorder.monitor(tell=tell) as monitor:
        assert warned.wait(60)
        monitor.note_committed(RESULT)
    assert recorder.names == ["started", "warning", "committed"]
    assert recorder.events[1].message == (
        "analytics.orders: this run can't be recorded in analytics.mzs3_copy_history, "
        "and is otherwise as the log says: no permission"
    )


def test_a_history_is_opened_beside_the_planning_and_before_anything_can_be_interrupted(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = threading.Event()
    open_history = export_monitor.History

    def wait(spark: Any, schema: str) -> Any:
        assert planned.wait(60)
        return open_history(spark, schema)

    monkeypatch.setattr(export_monitor, "History", wait)
    engine = SimpleNamespace(driver_address=lambda _: None, tasks=lambda _: None)
    monkeypatch.setattr(export_monitor, "engine", engine)
    with recorder.monitor() as monitor:
        planned.set()
        monitor.progress()
        assert monitor._history is not None
        monitor.note_committed(RESULT)
    assert [row.status for _, row in recorder.rows] == ["rows"]


def test_a_history_is_opened_where_the_machine_has_no_thread_to_give(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with recorder.monitor() as monitor:
        monitor.note_committed(RESULT)
    assert [row.status for _, row in recorder.rows] == ["rows"]


def test_an_export_that_cannot_be_seen_is_a_warning(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running_view, "WRITE_INTERVAL_S", 0.001)
    warned = threading.Event()

    def tell(event: CopyEvent) -> None:
        recorder.events.append(event)
        if event.name == "mzs3.copy.warning":
            warned.set()

    with recorder.monitor(tell=tell) as monitor:
        assert warned.wait(60)
        monitor.note_committed(RESULT)
    assert recorder.names == ["started", "warning", "committed"]
    assert recorder.events[1].message == (
        "analytics.orders: this run can't be seen in analytics.mzs3_copies_running, and is "
        "otherwise as the log says: 'NoneType' object has no attribute 'sql'"
    )


def test_what_runs_is_noted_until_the_end_and_a_cancelled_run_warns_of_nothing(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[Any] = []
    given: list[Any] = []

    def entry(_: Any, progress: Any, warn: Any, **about: Any) -> Any:
        given.extend((about, warn, progress))
        return SimpleNamespace(
            begin=lambda: done.append("begin"),
            set_progress=done.append,
            end=lambda: done.append("end"),
        )

    monkeypatch.setattr(export_monitor, "RunningEntry", entry)
    seen = Snapshot("computing", 0, 4, 0, 0, None)
    with pytest.raises(CopyError), recorder.monitor() as monitor:
        recorder.cancelled.set()
        monitor._tell_progress(seen)
        given[1](RuntimeError("interrupted"))
        monitor.stop_if_cancelled()
    assert done == ["begin", seen, "end"]
    assert given[0] == {
        "model": "model.shop.orders",
        "location": "s3://b/p/",
        "invocation_id": "i-1",
    }
    assert given[2] == Snapshot("running", parts=4)
    assert recorder.names == ["started", "cancelled"]


def test_an_event_that_cannot_be_told_is_lost(recorder: Recorder) -> None:
    def refuse(_: CopyEvent) -> None:
        raise RuntimeError("warnings are errors here")

    with recorder.monitor(tell=refuse) as monitor:
        monitor.note_committed(RESULT)
    assert [row.status for _, row in recorder.rows] == ["rows"]


def test_without_a_schema_there_is_no_history(recorder: Recorder) -> None:
    with recorder.monitor(schema=None, identifier=None) as monitor:
        monitor.note_committed(RESULT)
    assert recorder.rows == []
    assert recorder.events[0].fields["relation"] == "model.shop.orders"
