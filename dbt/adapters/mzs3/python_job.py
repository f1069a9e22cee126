"""Runs compiled Python jobs for dbt, and converts their results to dbt's responses."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timezone
from functools import partial
from typing import Any

from dbt.adapters.base.impl import PythonJobHelper
from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.invocation import get_invocation_id, get_invocation_started_at

from dbt.adapters.mzs3.connections import Mzs3ConnectionManager, ReadingResponse, as_dbt_error
from dbt.adapters.mzs3.credentials import SPARK_SUBMIT, Mzs3Credentials, require_spark
from dbt.adapters.mzs3.errors import Mzs3Error, SparkJobError
from dbt.adapters.mzs3.events import Committed
from dbt.adapters.mzs3.export.export import CopyResult
from dbt.adapters.mzs3.runner import runner_for
from dbt.adapters.mzs3.secrets import hide_in_error, hide_secrets
from dbt.adapters.mzs3.spark import engine
from dbt.adapters.mzs3.spark.cursor import CANCELLED
from dbt.adapters.mzs3.spark.job import Call, run_job
from dbt.adapters.mzs3.submit.driver import run_submitted


def run_started_ms() -> int:
    """The start of this invocation of dbt in ms since the epoch."""
    started = get_invocation_started_at().replace(tzinfo=timezone.utc)
    return int(started.timestamp() * 1000)


@dataclass
class JobHelper(PythonJobHelper):
    """Runs the job of this thread's node, in the session of its connection or with
    `spark-submit`."""

    model: dict[str, Any]
    credentials: Mzs3Credentials
    connections: Mzs3ConnectionManager
    submission_method: str

    def submit(self, compiled_code: str) -> Any:
        """Runs the job. Returns its variable `result`. Raises dbt's errors."""
        node = str(self.model["unique_id"])
        handle = self.connections.get_thread_connection().handle
        leftovers = self.connections.leftovers
        try:
            require_spark(self.credentials, node)
            if self.submission_method != (of_profile := self.credentials.submission_method):
                raise SparkJobError(
                    f"{node}: submission_method is {self.submission_method}, which this profile "
                    f"does not have: leave it out, and it is {of_profile}"
                )
            if handle.cancelled.is_set():
                raise SparkJobError(CANCELLED)
            with leftovers.running(node):
                # Without Jinja's leading white space, line numbers in errors are the file's.
                return self._run(node, compiled_code.lstrip(), handle)
        except Mzs3Error as exc:
            hide_in_error(self.credentials.secrets, exc)
            if handle.cancelled.is_set():
                stopped = isinstance(exc, SparkJobError)
                leftovers.add(f"{node} was cancelled" if stopped else str(exc))
            raise as_dbt_error(exc) from exc

    def _run(self, node: str, code: str, handle: Any) -> Any:
        file, tell = str(self.model["original_file_path"]), self.connections.node.warnings.tell
        secrets = self.credentials.secrets
        provided = {  # compiled_job.py describes them
            "aws_connections": self.credentials.connections,
            "as_of": run_started_ms(),
            "invocation_id": get_invocation_id(),
        }
        if self.submission_method == SPARK_SUBMIT:
            arguments = {"code": code, "name": file, "secrets": tuple(secrets), **provided}
            call = Call(run_submitted, arguments, takes=("cancelled", "tell"))
            with runner_for(self.credentials) as runner:
                return runner.run(call, node, cancelled=handle.cancelled, tell=tell)
        more = {
            "cancelled": handle.cancelled,
            "tell": tell,
            "scrub": partial(hide_secrets, secrets),
        }
        engine.keep_plans_secret(handle.session)
        return run_job(handle.session, code, file, {**provided, **more})


@dataclass
class CopyResponse(ReadingResponse):
    """The response for a committed export, in `adapter_response` of run_results.json.

    `location` and `manifest` are S3 URIs, `as_of` is the run's start in ms since the epoch.
    """

    location: str | None = None
    manifest: str | None = None
    files_written: int | None = None
    bytes_written: int | None = None
    as_of: int | None = None


def job_response(result: Any) -> AdapterResponse:
    """dbt's response for the `result` of a job."""
    if isinstance(result, AdapterResponse):
        return result
    if isinstance(result, Committed):
        return CopyResponse(
            _message=f"COPY {result.rows}",
            code="COPY",
            rows_affected=result.rows,
            location=result.location,
            manifest=result.manifest,
            files_written=result.files,
            bytes_written=result.bytes,
            as_of=result.as_of,
        )
    return ReadingResponse(_message="OK")


def notice_of_commit(node: str, why: str, result: Committed) -> str:
    """The error text of a node that fails after its commit: what was committed, what to do."""
    if isinstance(result, CopyResult):
        state, again = "the export is complete and stays", "exports once more"
    else:
        state = "the batch is in the shard and stays"
        again = "writes what has changed since, or all rows with mode: append"
    return (
        f"{node}: {why}, after the commit: {state} (COPY {result.rows}, {result.manifest}). A new "
        f"run of the model {again}"
    )
