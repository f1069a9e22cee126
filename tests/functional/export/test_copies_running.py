"""Exports that run are rows of mzs3_copies_running, for whoever asks meanwhile."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support import SUPPORT
from support.processes import wait_until
from support.s3.faulty import FaultyS3, Request, connection_to
from support.spark import export_over_connect

from dbt.adapters.mzs3.events import CopyEvent
from dbt.adapters.mzs3.export import progress, running_view
from dbt.adapters.mzs3.export.job import copy_to_s3
from dbt.adapters.mzs3.export.monitor import RunContext
from dbt.adapters.mzs3.export.progress import Snapshot
from dbt.adapters.mzs3.export.running_view import RunningCopy, RunningView
from dbt.adapters.mzs3.spark.engine import close, open_session
from dbt.adapters.mzs3.spark.session import isolated_session

pytestmark = pytest.mark.spark

WAIT_S = 60
SCHEMA = "copies_running"
# As the docs have it.
QUERY = f"""
select model, phase, parts_done, parts, rows, bytes, current_timestamp() - started as elapsed
from {SCHEMA}.mzs3_copies_running
where state = 'running'
"""


@pytest.fixture
def schema(spark: Any) -> Iterator[str]:
    spark.sql(f"create schema {SCHEMA}")
    yield SCHEMA
    spark.sql(f"drop schema {SCHEMA} cascade")


class Written:
    """Calls what it is given after each time that an export has written its row."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.then: Callable[[], object] = lambda: None
        for name in ("write", "make"):
            monkeypatch.setattr(RunningView, name, self._calling(getattr(RunningView, name)))

    def _calling(self, write: Callable[..., None]) -> Callable[..., None]:
        def written(view: RunningView, copies: Any) -> None:
            write(view, copies)
            self.then()

        return written


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Written:
    """Progress is told, and rows are written, many times in the shortest export."""
    monkeypatch.setattr(progress, "EVERY_S", 0.01)
    monkeypatch.setattr(running_view, "WRITE_INTERVAL_S", 0.01)
    return Written(monkeypatch)


def export(
    spark: SparkSession,
    faulty: FaultyS3,
    bucket: str,
    name: str = "export",
    tell: Callable[[CopyEvent], None] = lambda event: None,
) -> int:
    result = copy_to_s3(
        spark,
        "select id from range(1000)",
        node=f"model.test.{name}",
        options={"location": f"s3://{bucket}/{name}", "parts": 2},
        connections={"default": connection_to(faulty.endpoint)},
        as_of=1,
        context=RunContext(SCHEMA, name, "i-1", tell),
    )
    return result.rows


def hold_uploads(faulty: FaultyS3, until: threading.Event) -> threading.Event:
    """An event that is set once an upload is held."""
    held = threading.Event()

    def hold(request: Request) -> None:
        if request.action == "UploadPart":
            held.set()
            assert until.wait(WAIT_S)

    faulty.watch = hold
    return held


@pytest.mark.usefixtures("schema")
def test_another_session_sees_an_export_that_has_all_executors(
    spark: Any, spark_parameters: dict[str, str], faulty: FaultyS3, bucket: str, written: Written
) -> None:
    heard = threading.Event()
    seen: list[Any] = []

    def look() -> None:
        # Both tasks wait for S3, on both cores that Spark has. So this runs none.
        seen.extend(isolated_session(spark_parameters).sql(QUERY).collect())
        if seen and seen[-1].rows == 1000:
            heard.set()

    written.then = look
    hold_uploads(faulty, heard)
    assert export(spark, faulty, bucket) == 1000
    assert heard.is_set()
    row = next(row for row in seen if row.rows == 1000)
    size = sum(len(f"{number}\n") for number in range(1000))
    assert tuple(row)[:2] == ("model.test.export", "writing")
    assert (row.parts, row.bytes, row.elapsed.total_seconds() >= 0) == (2, size, True)
    assert spark.table(f"{SCHEMA}.mzs3_copies_running").collect() == []
    assert not any("(mzs3_copies_running)" in thread.name for thread in threading.enumerate())


@pytest.mark.usefixtures("schema")
def test_exports_that_run_at_once_are_all_seen(
    spark: Any, spark_parameters: dict[str, str], faulty: FaultyS3, bucket: str, written: Written
) -> None:
    names = ["one", "two", "three"]
    heard = threading.Event()

    def look() -> None:
        found = spark.table(f"{SCHEMA}.mzs3_copies_running").collect()
        if {row.model for row in found} == {f"model.test.{name}" for name in names}:
            heard.set()

    written.then = look
    hold_uploads(faulty, heard)
    with ThreadPoolExecutor(len(names)) as pool:
        sessions = [isolated_session(spark_parameters) for _ in names]
        rows = [
            pool.submit(export, session, faulty, bucket, name)
            for session, name in zip(sessions, names, strict=True)
        ]
        assert [one.result() for one in rows] == [1000] * 3
    assert heard.is_set()
    assert spark.table(f"{SCHEMA}.mzs3_copies_running").collect() == []


@pytest.mark.usefixtures("schema")
def test_a_quick_export_makes_no_view(
    spark: Any, faulty: FaultyS3, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    for name in ("now", "read", "write", "make"):
        monkeypatch.setattr(RunningView, name, lambda *_, name=name: asked.append(name))
    monkeypatch.setattr(running_view, "WRITE_INTERVAL_S", float(WAIT_S))
    assert export(spark, faulty, bucket) == 1000
    assert asked == []
    assert [row.tableName for row in spark.sql(f"show tables in {SCHEMA}").collect()] == [
        "mzs3_copy_history"
    ]


@pytest.mark.usefixtures("schema")
def test_a_view_that_cannot_be_written_stops_no_export(
    spark: Any, faulty: FaultyS3, bucket: str, written: Written
) -> None:
    spark.sql(f"create view {SCHEMA}.mzs3_copies_running as select 1 as a")
    warned = threading.Event()
    told: list[CopyEvent] = []

    def tell(event: CopyEvent) -> None:
        told.append(event)
        if event.name == "mzs3.copy.warning":
            warned.set()

    hold_uploads(faulty, warned)
    assert export(spark, faulty, bucket, tell=tell) == 1000
    [warning] = [event.message for event in told if event.name == "mzs3.copy.warning"]
    assert warning.startswith(
        f"{SCHEMA}.export: this run can't be seen in {SCHEMA}.mzs3_copies_running, and is "
        "otherwise as the log says: "
    )
    assert "is not the view that dbt-mzs3 makes under this name" in warning
    assert [tuple(row) for row in spark.table(f"{SCHEMA}.mzs3_copies_running").collect()] == [(1,)]


KILLED = RunningCopy(
    run="killed",
    model="model.test.export",
    location="s3://b/\\'é\n",
    started=1_700_000_000_000,
    updated=1_700_000_010_000,
    progress=Snapshot("computing", 0, 4, None, 5_000_000_000, 1e20, 1, 2),
    invocation_id="i-0",
)


@pytest.mark.usefixtures("schema")
def test_a_dead_run_is_told_as_such_until_the_next_one_of_its_model(
    spark: Any, faulty: FaultyS3, bucket: str, written: Written
) -> None:
    view = RunningView(spark, SCHEMA)
    now = int(view.now() * 1000)
    alive = replace(KILLED, run="alive", updated=now)
    killed = replace(KILLED, updated=now - 3600 * 1000)
    view.make([killed])
    view.make([])  # another process was faster
    assert view.read() == [killed]
    # What has been dead for a day is shown no more, whether an export tidies or not.
    view.write([alive, killed, replace(KILLED, run="long ago", updated=now - 25 * 3600 * 1000)])
    assert view.read() == [alive, killed]
    states = spark.sql(f"select run, state from {view.name}").collect()
    assert {tuple(row) for row in states} == {("alive", "running"), ("killed", "dead")}

    seen = threading.Event()
    written.then = seen.set
    hold_uploads(faulty, seen)
    assert export(spark, faulty, bucket) == 1000
    assert view.read() == [alive]


@pytest.mark.slow
def test_a_killed_run_over_connect_is_told_as_dead_and_tidied(
    connect_url: str, faulty: FaultyS3, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The session sets it for its process, and tests that come later are of another Spark.
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    session = open_session(connect_url, {}, 0)
    session.sql(f"create schema {SCHEMA}")
    look = f"select model, state, tasks from {SCHEMA}.mzs3_copies_running"
    script = str(SUPPORT / "spark/export_over_connect.py")
    arguments = [connect_url, faulty.endpoint, f"s3://{bucket}/killed", SCHEMA]
    released = threading.Event()
    uploading = hold_uploads(faulty, released)
    with subprocess.Popen([sys.executable, script, *arguments]) as victim:
        try:
            assert uploading.wait(WAIT_S)
            # Its tasks have all that the server runs tasks on.
            wait_until(lambda: bool(session.sql(look).collect()))
        finally:
            victim.kill()
    try:
        wait_until(lambda: {row.state for row in session.sql(look).collect()} == {"dead"})
        released.set()
        monkeypatch.setattr(running_view, "WRITE_INTERVAL_S", export_over_connect.WRITE_INTERVAL_S)
        monkeypatch.setattr(running_view, "DEAD_AFTER_S", export_over_connect.DEAD_AFTER_S)
        told = threading.Event()
        Written(monkeypatch).then = told.set
        hold_uploads(faulty, told)
        assert export(session, faulty, bucket) == 1000
        assert session.sql(look).collect() == []
    finally:
        released.set()
        session.sql(f"drop schema {SCHEMA} cascade")
        close(session)
