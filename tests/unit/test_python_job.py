import threading
from types import SimpleNamespace

import pytest
from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.mzs3 import impl, python_job
from dbt.adapters.mzs3.connections import Leftovers, NodeState
from dbt.adapters.mzs3.credentials import Mzs3Credentials
from dbt.adapters.mzs3.events import Committed
from dbt.adapters.mzs3.export.export import CopyResult
from dbt.adapters.mzs3.impl import Mzs3Adapter
from dbt.adapters.mzs3.python_job import (
    JobHelper,
    job_response,
    run_started_ms,
)
from dbt.adapters.mzs3.spark.job import run_job

SESSION = {"method": "session"}
THRIFT = {"method": "thrift", "host": "spark.acme.com", "user": "dbt"}
SUBMITTING = {**THRIFT, "spark_submit": {}}


def test_an_export_is_reported_as_documented():
    result = CopyResult(
        rows=12,
        location="s3://b/p/",
        manifest="s3://b/p/_manifest.json",
        files=3,
        bytes=456,
        as_of=789,
    )

    response = job_response(result)

    assert str(response) == "COPY 12"
    assert response.to_dict(omit_none=True) == {
        "_message": "COPY 12",
        "code": "COPY",
        "rows_affected": 12,
        "location": "s3://b/p/",
        "manifest": "s3://b/p/_manifest.json",
        "files_written": 3,
        "bytes_written": 456,
        "as_of": 789,
    }


def test_a_jobs_own_response_is_kept():
    own = AdapterResponse(_message="DONE 3")

    assert job_response(own) is own


@pytest.mark.parametrize(
    ("method", "profile", "text"),
    [
        ("session", THRIFT, "model.acme.a needs more than SQL, which is all that"),
        ("session", SUBMITTING, "model.acme.a: submission_method is session, which this"),
        ("spark_submit", SESSION, "model.acme.a: submission_method is spark_submit, which"),
    ],
)
def test_a_model_that_asks_for_another_way_than_the_profiles_is_told(method, profile, text):
    handle = SimpleNamespace(cancelled=threading.Event())
    connections = SimpleNamespace(
        leftovers=Leftovers(),
        node=NodeState(),
        get_thread_connection=lambda: SimpleNamespace(handle=handle),
    )
    model = {"unique_id": "model.acme.a", "original_file_path": "models/a.py"}
    credentials = Mzs3Credentials.from_dict({"schema": "analytics", **profile})

    with pytest.raises(DbtRuntimeError) as caught:
        JobHelper(model, credentials, connections, method).submit("result = 1")

    assert str(caught.value.msg).startswith(text)


PLANTED = {"access_key_id": "planted-id", "secret_access_key": "planted-secret"}
LEAKING = """
from dbt.adapters.mzs3.errors import S3Error
told.append(scrub("planted-secret, planted-token"))
try:
    raise ValueError("planted-id")
except ValueError as exc:
    raise S3Error("no such key: planted-id") from exc
"""


def test_no_error_of_a_session_has_a_key_of_a_connection(monkeypatch):
    monkeypatch.setenv("DBT_ENV_SECRET_OF_TEST", "planted-token")
    monkeypatch.setattr(python_job.engine, "keep_plans_secret", lambda _: None)
    handle = SimpleNamespace(cancelled=threading.Event(), session=None)
    node = NodeState()
    connections = SimpleNamespace(
        leftovers=Leftovers(),
        node=node,
        get_thread_connection=lambda: SimpleNamespace(handle=handle),
    )
    model = {"unique_id": "model.acme.a", "original_file_path": "models/a.py"}
    profile = {**SESSION, "schema": "analytics", "aws_connections": {"lake": PLANTED}}
    credentials = Mzs3Credentials.from_dict(profile)
    told = []
    monkeypatch.setattr(python_job, "run_job", lambda *given: run_with(told, *given))

    with pytest.raises(DbtRuntimeError) as caught:
        JobHelper(model, credentials, connections, "session").submit(LEAKING)

    assert told == ["*****, *****"]
    assert str(caught.value.msg) == "no such key: *****"
    assert "planted-" not in str(list(map(str, causes(caught.value))))


def run_with(told, session, code, name, provided):
    return run_job(session, code, name, {**provided, "told": told})


def causes(error):
    while error is not None:
        yield error
        error = error.__cause__


def test_a_job_without_a_result_is_ok():
    assert str(job_response(None)) == "OK"


def test_the_runs_start_does_not_move():
    assert run_started_ms() == run_started_ms()
    assert run_started_ms() > 1_700_000_000_000


CONFIG = SimpleNamespace(model=SimpleNamespace(unique_id="model.acme.a"))
EXPORTED = CopyResult(1234, "s3://b/p/", "s3://b/p/_manifest.json", files=3, bytes=456, as_of=789)
KEPT = Committed(5, "s3://b/s/", "s3://b/s/_shard.json", files=1, bytes=456, as_of=789)


def ends(failure, committed, *, cancelled=False, warnings=()):
    """What a node fails with that fails after its commit, and what is told after Ctrl-C."""
    node = NodeState()
    node.warnings.errors.extend(warnings)
    node.committed = committed
    handle = SimpleNamespace(cancelled=threading.Event())
    if cancelled:
        handle.cancelled.set()
    connections = SimpleNamespace(
        leftovers=Leftovers(),
        node=node,
        get_thread_connection=lambda: SimpleNamespace(handle=handle),
    )
    adapter = SimpleNamespace(connections=connections)
    with pytest.raises(type(failure or DbtRuntimeError(""))) as raised:
        try:
            if failure:
                raise failure
        finally:
            Mzs3Adapter.post_model_hook(adapter, CONFIG, None)
    with pytest.raises(DbtRuntimeError) as interrupted:
        try:
            raise KeyboardInterrupt
        finally:
            connections.leftovers.raise_if_interrupted()
    return str(raised.value.args[0]), interrupted.value.msg.splitlines()[1:]


@pytest.mark.parametrize(
    ("committed", "there", "again"),
    [
        (
            EXPORTED,
            "the export is complete and stays (COPY 1234, s3://b/p",
            "exports once more",
        ),
        (KEPT, "the batch is in the shard and stays (COPY 5, s3://b/s/_s", "with mode: append"),
    ],
)
def test_what_fails_after_a_commit_says_what_is_there(committed, there, again):
    failure = CompilationError("the hook is wrong")
    ends(failure, committed)
    first, told = failure.msg.splitlines()
    assert first == "the hook is wrong"
    assert told.startswith(
        f"model.acme.a: its post-hook failed or was cut off, after the commit: {there}"
    )
    assert again in told
    _, after_ctrl_c = ends(DbtRuntimeError("cancelled"), committed, cancelled=True)
    assert after_ctrl_c == [told]


def test_a_defect_after_a_commit_has_it_beside(monkeypatch):
    logged = []
    monkeypatch.setattr(impl.logger, "error", logged.append)
    assert ends(ValueError("odd"), EXPORTED) == ("odd", [])
    assert len(logged) == 1


def test_a_warning_that_is_an_error_fails_the_node_and_says_what_is_there():
    failed, after_ctrl_c = ends(None, EXPORTED, cancelled=True, warnings=["no history"])
    assert failed.splitlines() == after_ctrl_c
    assert failed.startswith("no history\nmodel.acme.a: a warning is an error here, by --warn-err")
    assert "after the commit: the export is complete and stays (COPY 1234" in failed


def test_a_node_that_fails_by_itself_has_such_a_warning_beside():
    failure = DbtRuntimeError("as it is")
    ends(failure, None, warnings=["no history"])
    assert failure.msg == "as it is\nno history"


def test_what_fails_without_a_commit_fails_as_it_is():
    failure = DbtRuntimeError("as it is")
    ends(failure, None)
    assert failure.msg == "as it is"
