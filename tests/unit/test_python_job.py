import threading
from types import SimpleNamespace

import pytest
from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.mzs3.connections import Remains
from dbt.adapters.mzs3.credentials import Mzs3Credentials
from dbt.adapters.mzs3.export.export import CopyResult
from dbt.adapters.mzs3.python_job import (
    SessionJobHelper,
    SubmitJobHelper,
    job_response,
    run_started_ms,
)

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
    ("helper", "profile", "text"),
    [
        (
            SessionJobHelper,
            THRIFT,
            "model.acme.a needs more than SQL, which is all that",
        ),
        (SessionJobHelper, SUBMITTING, "model.acme.a: submission_method is session, which this"),
        (
            SubmitJobHelper,
            SESSION,
            "model.acme.a: submission_method is spark_submit, which",
        ),
    ],
)
def test_a_model_that_asks_for_another_way_than_the_profiles_is_told(helper, profile, text):
    handle = SimpleNamespace(cancelled=threading.Event())
    connections = SimpleNamespace(
        remains=Remains(), get_thread_connection=lambda: SimpleNamespace(handle=handle)
    )
    model = {"unique_id": "model.acme.a", "original_file_path": "models/a.py"}
    credentials = Mzs3Credentials.from_dict({"schema": "analytics", **profile})

    with pytest.raises(DbtRuntimeError) as caught:
        helper(model, credentials, connections).submit("result = 1")

    assert str(caught.value.msg).startswith(text)


def test_a_job_without_a_result_is_ok():
    assert str(job_response(None)) == "OK"


def test_the_runs_start_does_not_move():
    assert run_started_ms() == run_started_ms()
    assert run_started_ms() > 1_700_000_000_000
