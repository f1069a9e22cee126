"""What is asked of Spark in this process, and of one behind a server."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkJobInfo, SparkStageInfo
from pyspark.errors import PySparkAssertionError
from pyspark.errors.exceptions.connect import SparkConnectGrpcException

from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.spark import engine, remote
from dbt.adapters.mzs3.spark.failure import explain
from dbt.adapters.mzs3.spark.remote import RunningTasks


class Session:
    """Has settings of Spark's driver, as a session of this process."""

    def __init__(self, **settings: str) -> None:
        self.settings = {f"spark.driver.{key}": value for key, value in settings.items()}
        self.conf = self

    def get(self, key: str, default: str | None) -> str | None:
        return self.settings.get(key, default)


class RemoteSession:
    """As a client's; `stops` counts."""

    session_id = "s-1"

    def __init__(self) -> None:
        self.stops = 0
        self.client = SimpleNamespace(release_session=self.release)

    def release(self) -> None:
        raise ConnectionError

    def stop(self) -> None:
        self.stops += 1


RemoteSession.__module__ = "pyspark.sql.connect.session"


def test_the_drivers_address_is_sparks() -> None:
    sessions: list[Any] = [
        Session(host="driver", bindAddress="0.0.0.0"),
        Session(host="10.0.0.7"),
        Session(),
    ]
    found = [engine.driver_address(session) for session in sessions]
    assert found == [("driver", "0.0.0.0"), ("10.0.0.7", "10.0.0.7"), None]


class Statuses:
    """Job 1 has the stages 5 and 6, of whose first Spark knows nothing more."""

    def __init__(self, status: str, running: int) -> None:
        self.job = SparkJobInfo(1, [5, 6], status)
        self.stage = SparkStageInfo(6, 0, "collect", 2, running, 0, 0)

    def getJobIdsForTag(self, tag: str) -> list[int]:
        assert tag == "of this session"
        return [1, 2]

    def getJobInfo(self, job: int) -> SparkJobInfo | None:
        return self.job if job == 1 else None

    def getStageInfo(self, stage: int) -> SparkStageInfo | None:
        return self.stage if stage == 6 else None


@pytest.mark.parametrize(
    ("status", "tasks", "runs"), [("RUNNING", 0, True), ("FAILED", 1, True), ("FAILED", 0, False)]
)
def test_a_job_that_has_failed_may_have_tasks_that_run(
    status: str, tasks: int, runs: bool
) -> None:
    statuses = Statuses(status, tasks)
    context = SimpleNamespace(statusTracker=lambda: statuses)
    session: Any = Session()
    session._jsparkSession = SimpleNamespace(sessionJobTag=lambda: "of this session")
    session.sparkContext = SimpleNamespace(
        _jsc=SimpleNamespace(sc=lambda: context), statusTracker=lambda: statuses
    )
    assert engine.has_running_tasks(session) is runs


def test_a_server_and_a_spark_that_has_ended_tell_nothing_of_tasks() -> None:
    ended: Any = Session()
    ended.sparkContext = SimpleNamespace(_jsc=None)
    remote_session: Any = RemoteSession()
    assert engine.has_running_tasks(ended) is None
    assert engine.has_running_tasks(remote_session) is None


@pytest.mark.parametrize(
    ("reason", "attempt", "lost"),
    [
        (None, 0, False),
        (None, 1, True),
        ("Some(worker lost)", 0, True),
        ("Some(Executor killed by driver.)", 0, False),
    ],
)
def test_rows_may_be_lost_with_an_executor_or_with_a_stages_attempt(
    reason: str | None, attempt: int, lost: bool
) -> None:
    def executor(name: str, why: str | None) -> Any:
        ended = SimpleNamespace(id=lambda: name, isActive=lambda: False, removeReason=lambda: why)
        running = SimpleNamespace(id=lambda: name, isActive=lambda: True)
        return ended if why else running

    executors = [executor("0", "Some(lost long ago)"), executor("1", None)]
    jobs = [1]
    found = SimpleNamespace(size=lambda: len(executors), apply=lambda place: executors[place])
    context = SimpleNamespace(
        statusStore=lambda: SimpleNamespace(executorList=lambda _: found),
        statusTracker=lambda: SimpleNamespace(getJobIdsForTag=lambda _: jobs),
    )
    statuses = SimpleNamespace(
        # Job 1 was there before.
        getJobInfo=lambda job: SimpleNamespace(stageIds=[job]),
        getStageInfo=lambda stage: SimpleNamespace(currentAttemptId=1 if stage == 1 else attempt),
    )
    session: Any = Session()
    session._jsparkSession = SimpleNamespace(sessionJobTag=lambda: "tag")
    session.sparkContext = SimpleNamespace(
        _jsc=SimpleNamespace(sc=lambda: context), statusTracker=lambda: statuses
    )
    has_losses = engine.losses(session)
    executors[1] = executor("1", reason)
    jobs.append(2)
    assert has_losses() is lost


def test_the_default_parallelism_is_the_schedulers_unless_the_session_sets_it() -> None:
    session: Any = Session()
    session.sparkContext = SimpleNamespace(defaultParallelism=8)
    assert engine.default_parallelism(session) == 8
    session.settings["spark.sql.leafNodeDefaultParallelism"] = "3"
    assert engine.default_parallelism(session) == 3


def test_a_session_knows_its_engine() -> None:
    local: Any = Session()
    served: Any = RemoteSession()
    assert not engine.is_remote(local)
    assert engine.is_remote(served)
    assert engine.driver_address(served) is None
    assert engine.tasks(served) is None


def stage(number: int, tasks: int, ended: int, *, done: bool = False) -> Any:
    return SimpleNamespace(stage_id=number, num_tasks=tasks, num_completed_tasks=ended, done=done)


def test_tasks_are_those_of_what_runs_now() -> None:
    session: Any = RemoteSession()
    running = RunningTasks(session)
    assert running.tasks() is None
    told = [stage(1, 4, 4, done=True), stage(2, 8, 3)]
    running(stages=told, inflight_tasks=2, operation_id="a", done=False)
    running(stages=[stage(3, 2, 0)], inflight_tasks=0, operation_id="b", done=False)
    assert running.tasks() == (7, 14)
    assert (running.waiting(), running.running()) == ({2: 3, 3: 0}, 2)
    running(stages=told, inflight_tasks=0, operation_id="a", done=True)
    running(stages=None, inflight_tasks=0, operation_id="b", done=True)
    assert running.tasks() is None
    assert running.waiting() == {}


def told(*stages: Any, inflight: int = 0, running: RunningTasks | None = None) -> RunningTasks:
    session: Any = RemoteSession()
    running = running or RunningTasks(session)
    running(stages=stages, inflight_tasks=inflight, operation_id="a", done=False)
    return running


def test_a_stage_that_is_skipped_is_no_work() -> None:
    """The server lists it like the others, and never says that it is done."""
    while_one_runs = told(stage(1, 4, 0), stage(2, 8, 3), stage(3, 1, 0))
    assert while_one_runs.tasks() == (3, 9)
    assert while_one_runs.waiting() == {2: 3, 3: 0}
    all_ended = told(stage(1, 4, 0), stage(2, 8, 8, done=True), stage(3, 1, 1, done=True))
    assert all_ended.tasks() == (9, 9)
    assert all_ended.waiting() == {}


def test_a_stage_that_lost_its_executors_waits() -> None:
    begun = told(stage(1, 4, 2), stage(2, 8, 8, done=True), stage(3, 1, 0))
    assert begun.waiting() == {1: 2, 3: 0}
    assert told(stage(1, 4, 0), stage(2, 8, 0)).waiting() == {1: 0, 2: 0}
    slow = told(stage(1, 4, 0), stage(2, 8, 8, done=True), inflight=4)
    assert slow.waiting() == {1: 0}
    later = told(stage(1, 4, 0), stage(2, 8, 8, done=True), running=slow)
    assert later.waiting() == {1: 0}


class Settings(SimpleNamespace):
    """Of a server that knows some settings; `made` has those that were changed."""

    def isModifiable(self, key: str) -> bool:
        return key in self.known

    def set(self, key: str, value: str) -> None:
        self.made[key] = value


def test_a_server_that_keeps_plans_keeps_none_with_keys() -> None:
    cache = "spark.connect.session.planCache.enabled"
    for known, made in (({cache}, {cache: "false"}), (set(), {})):
        session: Any = RemoteSession()
        session.conf = Settings(known=known, made={})
        engine.keep_plans_secret(session)
        assert session.conf.made == made


def test_a_session_is_given_back_once(monkeypatch: pytest.MonkeyPatch) -> None:
    session: Any = RemoteSession()
    monkeypatch.setitem(remote._running, session.session_id, RunningTasks(session))
    engine.close(session)
    engine.close(session)
    assert session.stops == 1


@pytest.mark.parametrize(
    ("condition", "code", "said"),
    [
        (None, "UNAVAILABLE", "does not answer"),
        (None, "UNAUTHENTICATED", "refused the token"),
        ("INVALID_HANDLE.SESSION_NOT_FOUND", "INTERNAL", "was started anew"),
        ("RESPONSE_ALREADY_RECEIVED", "INTERNAL", "was started anew"),
        ("NO_ACTIVE_SESSION", "UNKNOWN", "was started anew"),
        (None, "INTERNAL", "division by zero"),
    ],
)
def test_a_server_that_fails_is_told_apart_from_work_that_does(
    condition: str | None, code: str, said: str
) -> None:
    grpc = pytest.importorskip("grpc")
    failure = SparkConnectGrpcException(
        "division by zero", errorClass=condition, grpc_status_code=grpc.StatusCode[code]
    )
    error = explain(failure)
    assert isinstance(error, SparkJobError)
    assert said in str(error)


def test_a_server_with_another_session_was_started_anew() -> None:
    said = "Received incorrect server side session identifier for request. Please (a != b)"
    assert "was started anew" in str(explain(PySparkAssertionError(said)))
