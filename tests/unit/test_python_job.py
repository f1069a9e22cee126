from dbt.adapters.contracts.connection import AdapterResponse

from dbt.adapters.mzs3.export.export import CopyResult
from dbt.adapters.mzs3.python_job import job_response, run_started_ms


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


def test_a_job_without_a_result_is_ok():
    assert str(job_response(None)) == "OK"


def test_the_runs_start_does_not_move():
    assert run_started_ms() == run_started_ms()
    assert run_started_ms() > 1_700_000_000_000
