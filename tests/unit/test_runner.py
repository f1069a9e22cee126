"""Where calls run: with `spark_submit` in the profile, by a script in the place of Spark's."""

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from support.spark import submitted

from dbt.adapters.mzs3 import runner
from dbt.adapters.mzs3.credentials import Mzs3Credentials
from dbt.adapters.mzs3.errors import SourceError, SparkJobError
from dbt.adapters.mzs3.runner import runner_for, submit_plan
from dbt.adapters.mzs3.spark import interrupt
from dbt.adapters.mzs3.spark.job import Call

PROFILE = {"method": "thrift", "host": "spark.acme.com", "user": "dbt", "schema": "analytics"}
KEYS = {"access_key_id": "AKIATHEKEY", "secret_access_key": "the-secret-key"}


def credentials(**keys):
    return Mzs3Credentials.from_dict({**PROFILE, **keys})


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_HOME", str(submitted.make_spark_home(tmp_path)))
    return tmp_path


def test_one_job_makes_all_calls_of_a_runner(home):
    given = credentials(server_side_parameters={"spark.a": "1"}, spark_submit={})
    call = Call(submitted.tells, {"texts": []}, ("tell",))

    with runner_for(given) as runner, ThreadPoolExecutor() as pool:
        runs = [pool.submit(runner.run, call, f"lake.{name}") for name in ("orders", "items")]
        results = {run.result() for run in runs}

    [(parameter, timeout, _)] = results
    assert (parameter, timeout) == ("1", 600)
    assert (
        "spark\\u002eapp\\u002ename=dbt\\u002dmzs3\\u0020lake"
        in submitted.seen(home)["properties"]
    )


def test_no_job_is_submitted_without_a_call(home):
    with runner_for(credentials(spark_submit={})) as runner:
        runner.interrupt()

    assert not (home / "bin" / "seen.json").exists()


def test_interrupting_a_runner_reaches_its_job(home):
    with runner_for(credentials(spark_submit={})) as runner:
        call = Call(submitted.until_interrupted, {}, ("tell",))
        done = runner.run(call, "lake.orders", tell=lambda _: runner.interrupt())

    assert done == "interrupted"


def test_a_server_that_is_silent_keeps_no_other_session_from_being_interrupted(monkeypatch):
    monkeypatch.setattr(interrupt, "_ANSWER_S", 0.1)
    answered, reached = threading.Event(), threading.Event()
    runner = runner_for(credentials(method="session", host=None))
    asked = (lambda: answered.wait(60), reached.set)
    runner._sessions = [SimpleNamespace(interruptAll=one) for one in asked]
    runner.interrupt()
    assert reached.wait(60)
    answered.set()


def test_a_profile_for_sql_alone_makes_no_calls():
    with (
        runner_for(credentials()) as runner,
        pytest.raises(SparkJobError, match=r"lake\.orders needs more than SQL, which is all that"),
    ):
        runner.run(Call(submitted.where_from, {}), "lake.orders")


def test_all_secrets_of_the_profile_are_kept_out_of_logs(monkeypatch):
    monkeypatch.setenv("DBT_ENV_SECRET_TOKEN", "the-token")
    conf = {"spark.hadoop.fs.s3a.access.key": "the-other-key", "spark.executor.cores": "2"}

    plan = submit_plan(
        credentials(
            aws_connections={"lake": KEYS},
            server_side_parameters={"spark.acme.password": "the-password"},
            spark_submit={"conf": conf},
        ),
        "a job",
    )

    assert {"the-token", "the-other-key", "the-password", *KEYS.values()} <= set(plan.secrets)
    assert "2" not in plan.secrets


def test_no_error_of_a_call_in_a_session_has_a_key_of_a_connection(monkeypatch):
    given = credentials(method="session", host=None, aws_connections={"lake": KEYS})
    session = SimpleNamespace()
    for module, name in ((runner, "session_of"), (runner.engine, "close")):
        monkeypatch.setattr(module, name, lambda _: session)
    monkeypatch.setattr(runner.engine, "keep_plans_secret", lambda _: None)

    with pytest.raises(SourceError) as raised, runner_for(given) as its:
        its.run(Call(refuse, {}), "lake.orders")

    assert str(raised.value) == "lake.orders: no such key: *****"
    assert raised.value.s3_object == "s3://b/k"


def refuse(_):
    raise SourceError("lake.orders: no such key: AKIATHEKEY", "s3://b/k")


def test_settings_of_jobs_win_over_those_of_the_server():
    plan = submit_plan(
        credentials(
            server_side_parameters={"spark.a": "1", "spark.b": "1"},
            spark_submit={"conf": {"spark.b": "2"}},
        ),
        "a job",
    )

    assert plan.session.parameters == {"spark.a": "1", "spark.b": "2"}
    assert plan.settings["spark.app.name"] == "a job"
