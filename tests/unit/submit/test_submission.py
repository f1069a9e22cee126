"""Jobs by spark-submit, with a script in its place that starts the driver without Spark."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.processes import session_members, wait_for_end
from support.spark import submitted

from dbt.adapters.mzs3.errors import Mzs3Error, SparkJobError
from dbt.adapters.mzs3.spark.job import Call
from dbt.adapters.mzs3.submit import process
from dbt.adapters.mzs3.submit.driver import serve
from dbt.adapters.mzs3.submit.messages import Cancel, Request, SessionSettings
from dbt.adapters.mzs3.submit.options import SubmitOptions
from dbt.adapters.mzs3.submit.process import Submission, SubmitPlan

SECRET = "the-secret"
BOTH = ("cancelled", "tell")
OPTIONS = SubmitOptions(
    master="spark://host:7077",
    conf={"spark.hadoop.javax.jdo.option.ConnectionPassword": SECRET, "spark.b": "x=\n\\é"},
    py_files=("/of/the/user.zip",),
)


@pytest.fixture
def home(tmp_path, monkeypatch):
    made = submitted.make_spark_home(tmp_path)
    monkeypatch.setenv("SPARK_HOME", str(made))
    monkeypatch.setenv("DBT_ENV_SECRET_KEY", "the-secret-of-the-environment")
    return made


def plan(options=OPTIONS, **changes):
    session = SessionSettings({"spark.a": "1"}, 60)
    return SubmitPlan(
        options, settings={"spark.app.name": "dbt"}, session=session, secrets=[SECRET], **changes
    )


def done(submission, function, takes=(), tell=lambda what: None, cancelled=None, **arguments):
    work = Call(function, arguments, takes)
    return submission.run(work, cancelled or threading.Event(), tell, subject="model.a")


def test_work_is_done_with_the_session_and_tells_what_happens(home):
    told = []

    with Submission(plan()) as job:
        got = done(job, submitted.tells, ("tell",), told.append, texts=["one", "two"])

    assert got[:2] == ("1", 60)
    assert told == ["one", "two"]


def test_one_driver_does_all_that_is_asked_at_the_same_time(home):
    both = threading.Barrier(2)
    drivers = []

    def wait(driver):
        drivers.append(driver)
        both.wait(60)
        cancelled.set()

    cancelled = threading.Event()
    with Submission(plan()) as job, ThreadPoolExecutor() as pool:
        runs = [
            pool.submit(done, job, submitted.until_cancelled, BOTH, wait, cancelled)
            for _ in range(2)
        ]
        errors = [str(run.exception()) for run in runs]

    assert errors == ["the export was cancelled; no upload is left open"] * 2
    assert len(set(drivers)) == 1


def test_the_driver_has_our_code_from_the_archive_and_needs_no_dbt(home):
    with Submission(plan()) as job:
        file, has_dbt = done(job, submitted.where_from)

    assert "dbt_mzs3.zip/dbt/adapters/mzs3/" in file
    assert not has_dbt


def test_secrets_are_in_the_private_file_alone(home):
    with Submission(plan()) as job:
        done(job, submitted.where_from)
        folder = Path(submitted.seen(home)["arguments"][-1]).parent
        assert folder.exists()
        assert not (folder / "spark.properties").exists()  # Spark has read it
    seen = submitted.seen(home)

    assert SECRET not in repr((seen["arguments"], seen["environment"]))
    assert "the-secret-of-the-environment" not in repr(seen)
    assert seen["properties"].splitlines()[1].endswith("=the\\u002dsecret")
    assert seen["modes"] == ["0o700", "0o600"]
    assert not folder.exists()


def test_spark_submit_gets_what_the_profile_says(home):
    with Submission(plan()) as job:
        done(job, submitted.where_from)
    seen = submitted.seen(home)

    arguments = seen["arguments"]
    assert arguments[:4] == ["--master", "spark://host:7077", "--deploy-mode", "client"]
    assert arguments[arguments.index("--py-files") + 1].endswith(".zip,/of/the/user.zip")
    assert seen["properties"].splitlines()[::2] == [
        "spark\\u002eapp\\u002ename=dbt",
        "spark\\u002eb=x\\u003d\\u000a\\u005c\\u00e9",
    ]


@pytest.mark.parametrize(
    ("kind", "of", "text"),
    [
        ("Spark", SparkJobError, "Spark said *****"),
        ("config", Mzs3Error, "model.a has 1 problem in its configuration:\n  - parts is wrong"),
        ("other", Mzs3Error, "KeyError: 'unexpected'. This is a defect, please report"),
    ],
)
def test_an_error_is_the_works_own_without_secrets(home, kind, of, text):
    with Submission(plan()) as job, pytest.raises(Mzs3Error) as caught:
        done(job, submitted.fails, kind=kind)

    assert type(caught.value) is of
    assert str(caught.value).startswith(text)
    assert "Traceback" in str(caught.value.__cause__)
    assert SECRET not in str(caught.value.__cause__)


def test_a_result_that_cannot_be_sent_is_an_error_and_no_silence(home):
    with Submission(plan()) as job, pytest.raises(Mzs3Error, match="pickle"):
        done(job, submitted.cannot_be_sent)


def test_an_answer_that_cannot_be_read_is_an_error_and_no_silence(home):
    with Submission(plan()) as job, pytest.raises(SparkJobError) as caught:
        done(job, submitted.cannot_be_read)

    assert "its answer can't be read: ValueError" in str(caught.value)


def test_a_cancel_that_overtakes_its_request_does_no_harm(home):
    with Submission(plan()) as job:
        job._send(Cancel(0))
        file, _ = done(job, submitted.where_from)

    assert "dbt_mzs3.zip" in file


def test_ctrl_c_in_the_thread_that_waits_cancels_the_work(home):
    def interrupt(driver):
        raise KeyboardInterrupt

    left = home / "left"
    with pytest.raises(KeyboardInterrupt), Submission(plan()) as job:
        done(job, submitted.until_cancelled, BOTH, interrupt, then=str(left))

    assert left.read_text() == "put in order"


def test_a_driver_that_starts_after_dbt_was_killed_removes_the_settings(tmp_path):
    folder = tmp_path / "of-the-job"
    folder.mkdir()
    (folder / "spark.properties").write_text("spark.a=the-secret")
    with socket.socket(socket.AF_UNIX) as nobody:
        nobody.bind(str(folder / "socket"))

    serve(str(folder / "socket"), submitted.FakeSession)

    assert not folder.exists()


def test_no_repr_has_a_secret(home):
    given = Call(submitted.fails, {"key": SECRET})

    assert SECRET not in repr((plan(), given, Request(0, given, "model.a")))


def test_cancelled_work_puts_things_in_order_and_its_process_ends(home):
    cancelled = threading.Event()
    drivers = []

    def cancel(driver):
        drivers.append(driver)
        cancelled.set()

    with Submission(plan()) as job, pytest.raises(SparkJobError, match="no upload is left open"):
        done(job, submitted.until_cancelled, BOTH, cancel, cancelled)

    assert session_members(submitted.seen(home)["process"]) == []
    wait_for_end(drivers, 0)


def test_what_was_committed_before_it_could_be_cancelled_is_the_result(home):
    cancelled = threading.Event()

    with Submission(plan()) as job:
        got = done(
            job,
            submitted.commits_late,
            BOTH,
            lambda _: cancelled.set(),
            cancelled,
        )

    assert got == "committed"


def test_a_job_that_has_not_begun_is_cancelled_at_once(home, monkeypatch):
    monkeypatch.setenv("FAKE_SUBMIT", "hangs")
    cancelled = threading.Event()
    cancelled.set()

    with Submission(plan()) as job, pytest.raises(SparkJobError, match=r"model\.a: cancelled"):
        done(job, submitted.where_from, cancelled=cancelled)


def test_cancelled_work_that_does_not_end_is_killed(home, monkeypatch):
    monkeypatch.setattr(process, "GRACE_S", 0.3)
    cancelled = threading.Event()
    drivers = []

    def cancel(driver):
        drivers.append(driver)
        cancelled.set()

    with (
        Submission(plan()) as job,
        pytest.raises(SparkJobError, match=r"model\.a: cancelled"),
    ):
        done(job, submitted.never_ends, ("tell",), cancel, cancelled)

    wait_for_end(drivers, 0)


def test_a_job_that_takes_too_long_is_ended_and_says_what_is_left(home, monkeypatch):
    ahead = [0.0]
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + ahead[0])
    monkeypatch.setattr(process, "time", clock)

    def let_time_pass(driver):
        ahead[0] = 700.0

    with (
        Submission(plan(SubmitOptions(timeout=600))) as job,
        pytest.raises(SparkJobError) as caught,
    ):
        done(job, submitted.until_cancelled, BOTH, let_time_pass)

    first, second = str(caught.value).splitlines()
    assert first.startswith("model.a: it did not end in 600 seconds, spark_submit.timeout of the")
    assert second == "the export was cancelled; no upload is left open"


def test_a_driver_that_dies_is_one_error_with_the_end_of_its_log(home):
    with Submission(plan()) as job, pytest.raises(SparkJobError) as caught:
        done(job, submitted.dies)

    head, *lines = str(caught.value).splitlines()
    assert head.startswith("model.a: the job of spark-submit ended without an answer, with exit")
    assert "code 7" in head
    assert lines == [f"  line {number} of *****" for number in range(10, 30)]


def test_a_spark_submit_that_fails_is_one_error_with_what_it_said(home, monkeypatch):
    monkeypatch.setenv("FAKE_SUBMIT", "fails")

    with Submission(plan()) as job, pytest.raises(SparkJobError) as caught:
        done(job, submitted.where_from)

    assert str(caught.value).splitlines()[1:] == [
        "  first line",
        "  no such master, key is *****",
    ]


def test_a_spark_that_does_not_start_is_one_error_about_the_work(home, monkeypatch):
    monkeypatch.setenv("FAKE_SUBMIT", "has no master")

    with Submission(plan()) as job, pytest.raises(SparkJobError) as caught:
        done(job, submitted.where_from)

    assert str(caught.value) == "model.a: the job's Spark could not start: no such master"


_PARENT = """
import sys, threading
from support.spark import submitted
from unit.submit.test_submission import done, plan
from dbt.adapters.mzs3.submit.process import Submission

with Submission(plan()) as job:
    tell = lambda driver: print(driver, flush=True)
    done(job, submitted.until_cancelled, ("cancelled", "tell"), tell, then=sys.argv[1])
"""


def test_work_is_cancelled_when_the_process_that_waits_for_it_is_killed(home):
    left = home / "left"
    tests = str(Path(__file__).parents[2])
    path = os.pathsep.join([tests, os.environ["PYTHONPATH"]])
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(left)],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    driver = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()

    wait_for_end([driver], 60)

    assert left.read_text() == "put in order"
    assert not Path(submitted.seen(home)["arguments"][-1]).parent.exists()


def test_without_spark_submit_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))

    with pytest.raises(SparkJobError, match=r"SPARK_HOME, which is .*, has none: install pyspark"):
        Submission(plan()).__enter__()
