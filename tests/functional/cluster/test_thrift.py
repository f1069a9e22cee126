"""A project on a Thrift server: what is more than SQL runs by spark-submit, as in a session."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from support.dbt_process import finish, interrupt
from support.s3.faulty import Request
from support.spark.cluster_project import SECRET_ACCESS_KEY, Project, Roads

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(1800)]

PYTHON_MODEL = """
def model(dbt, session):
    dbt.config(materialized="table")
    print("the model has printed")
    return dbt.ref("taken").groupBy().count()
"""
INCREMENTAL = """
def model(dbt, session):
    dbt.config(materialized="incremental", incremental_strategy="append")
    return dbt.ref("taken").limit(1)
"""
TAKEN = "{{ config(materialized='table') }} select id from {{ source('lake', 'numbers') }}"
COUNTED = "{{ config(materialized='table') }} select sum(count) as n from {{ ref('counted') }}"
SECRET_SETTING = "mzs3-setting-secret-9c3b"
EXPORTS = ("export", "ingested", "read_again")
MODELS = (*EXPORTS, "batch", "taken", "counted", "of_counted", "added")
AGAIN = ("batch", "taken", "added")
"""Whose second run differs from the first."""


@pytest.fixture
def on_thrift(on_thrift: Callable[..., Project]) -> Callable[..., Project]:
    """As `on_thrift`, with what these tests run."""
    return lambda *master, **settings: with_models(on_thrift(*master, **settings))


def with_models(project: Project) -> Project:
    models = project.folder / "models"
    (models / "taken.sql").write_text(TAKEN)
    (models / "counted.py").write_text(PYTHON_MODEL)
    (models / "added.py").write_text(INCREMENTAL)
    (models / "of_counted.sql").write_text(COUNTED)
    after = "-- depends_on: {{ ref('batch') }}\n"
    (models / "read_again.sql").write_text(after + (models / "read_again.sql").read_text())
    return project


def run(project: Project, *arguments: str, code: int = 0) -> str:
    """The console of dbt, which starts Spark for many of its nodes."""
    process = project.start(*arguments)
    try:
        console, _ = process.communicate(timeout=1200)
    finally:
        process.kill()  # and what it has started ends by itself
    assert process.returncode == code, console
    return str(console)


class Onlooker:
    """Looks at the command lines and the environments of all processes, again and again."""

    def __init__(self) -> None:
        self.seen: set[bytes] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Onlooker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.1):
            for name in ("cmdline", "environ"):
                for file in Path("/proc").glob(f"[0-9]*/{name}"):
                    with contextlib.suppress(OSError):
                        self.seen.add(file.read_bytes())


def test_two_runs_give_what_a_session_gives(
    on_thrift: Callable[..., Project], on_local: Project, tmp_path: Path
) -> None:
    (tmp_path / "events").mkdir()
    there = on_thrift(
        **{
            "spark.hadoop.acme.password": SECRET_SETTING,
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": str(tmp_path / "events"),
        },
    )
    with_models(on_local)
    run(on_local, "run")
    with Onlooker() as onlooker:
        first = run(there, "--debug", "run", "--select", *MODELS)
    second = run(there, "run", "--select", *AGAIN)

    assert f"PASS={len(MODELS)} WARN=0 ERROR=0" in first
    assert first.count("[COPY 20000 in ") == 3
    assert f"PASS={len(AGAIN)} WARN=0 ERROR=0" in second
    assert second.count("[COPY 0 in ") == 1
    assert "lake.numbers: COPY 4000 (8 new objects, 0 rejected)" in first
    assert "lake.numbers: COPY 0 (0 new objects, 0 rejected)" in second
    for model in EXPORTS:
        assert there.sums(model) == on_local.sums(model)
        there.require_right(model)

    commands = [one for one in onlooker.seen if b"dbt_mzs3_job.py" in one]
    assert len(commands) >= 2  # that of spark-submit, and that of the driver
    secrets = [SECRET_ACCESS_KEY.encode(), SECRET_SETTING.encode()]
    assert not [one for one in onlooker.seen for secret in secrets if secret in one]
    files = [
        path for path in tmp_path.rglob("*") if path.is_file() and path.name != "profiles.yml"
    ]
    assert any(b"SparkListenerApplicationStart" in path.read_bytes() for path in files)
    assert any(b"the model has printed" in path.read_bytes() for path in files)
    assert not [path for path in files for secret in secrets if secret in path.read_bytes()]


def test_ctrl_c_ends_the_job_and_leaves_no_upload(
    on_thrift: Callable[..., Project], roads: Roads
) -> None:
    there = on_thrift("local[2]")
    started, interrupted = threading.Event(), threading.Event()

    def hold(request: Request) -> None:
        if request.action == "UploadPart":
            started.set()
            interrupted.wait(60)

    roads.driver.watch = hold
    process = there.start("run", "--select", "export")
    assert started.wait(240), finish(process)
    jobs = [one for one in psutil.process_iter() if is_job_of(one, process.pid)]
    console = interrupt(process, then=interrupted.set)

    assert process.returncode != 0
    assert "Nothing of this export is visible, and no upload is left open" in console
    assert "Traceback" not in console
    assert len(jobs) == 2
    assert psutil.wait_procs(jobs, timeout=60)[1] == []
    assert there.open_uploads() == []
    assert there.visible() == []


def test_a_job_whose_dbt_was_killed_ends_and_leaves_no_upload(
    on_thrift: Callable[..., Project], roads: Roads
) -> None:
    there = on_thrift("local[2]")
    started, killed = threading.Event(), threading.Event()

    def hold(request: Request) -> None:
        if request.action == "UploadPart":
            started.set()
            killed.wait(60)

    roads.driver.watch = hold
    process = there.start("run", "--select", "export")
    assert started.wait(240), finish(process)
    jobs = [one for one in psutil.process_iter() if is_job_of(one, process.pid)]
    os.kill(process.pid, signal.SIGKILL)
    finish(process)
    killed.set()

    assert len(jobs) == 2
    assert psutil.wait_procs(jobs, timeout=90)[1] == []
    assert there.open_uploads() == []
    assert there.visible() == []


def is_job_of(process: psutil.Process, dbt: int) -> bool:
    """Whether it is spark-submit or its driver, below this process of dbt."""
    with contextlib.suppress(psutil.Error):
        is_below = dbt in [parent.pid for parent in process.parents()]
        return is_below and any("dbt_mzs3_job.py" in word for word in process.cmdline())
    return False


def test_operations_on_sources_exports_and_shards_run_as_jobs(
    on_thrift: Callable[..., Project],
) -> None:
    there = on_thrift("local[2]")
    run(there, "run", "--select", "batch", "taken")

    def operation(name: str, arguments: str = "{}") -> str:
        return run(there, "run-operation", name, "--args", arguments)

    assert "lake.numbers  ok" in operation("s3_source_status").replace("   ", " ")
    assert "lake.numbers (pinned):" in operation("purify_s3_sources")
    one = "{source: lake.numbers, objects: [raw/0.csv]}"
    assert "1 object retracted, 500 rows taken out" in operation("retract_s3_objects", one)
    compacted = operation("compact_shard", f"{{location: s3://{there.bucket}/shard}}")
    assert f"s3://{there.bucket}/shard/" in compacted
    assert "copy_report.html" in operation("copy_report")
    sure = "{source: lake.numbers, confirm: true}"
    assert "reset; the next run ingests every object again" in operation("reset_s3_source", sure)


def test_debug_tells_whether_jobs_see_what_the_server_has(
    on_thrift: Callable[..., Project],
) -> None:
    there = on_thrift("local[2]")
    assert "spark-submit: a job ran, and sees the server's " in run(there, "debug")
    in_memory = {"spark.sql.catalogImplementation": "in-memory"}
    elsewhere = on_thrift("local[2]", **in_memory)
    run(there, "run", "--select", "taken")

    console = run(elsewhere, "debug", code=1)

    assert "they have another metastore; spark_submit.conf must name the server's" in console


@pytest.mark.parametrize(
    ("master", "text", "why"),
    [
        ("nowhere", "the job of spark-submit ended without an answer", "Master must either be"),
        ("spark:/nowhere", "the job's Spark could not start: ", "Could not parse Master URL"),
    ],
)
def test_a_job_that_cannot_start_is_one_error(
    on_thrift: Callable[..., Project], master: str, text: str, why: str
) -> None:
    there = on_thrift(master)
    console = run(there, "run", "--select", "export", code=1)

    assert f"model.acme.export: {text}" in console
    assert why in console
    assert "Traceback" not in console


def test_without_spark_submit_in_the_profile_the_error_says_what_to_add(
    on_thrift: Callable[..., Project],
) -> None:
    there = on_thrift("local[2]")
    there.use(spark_submit=None)
    console = run(there, "run", "--select", "export", "ingested", "counted", code=1)

    assert "model.acme.export needs more than SQL" in console
    assert "lake.numbers needs more than SQL" in console
