"""The door through which compiled Python jobs run: models and exports alike."""

from __future__ import annotations

import sys
from datetime import timezone
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.impl import PythonJobHelper
from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.events.base_types import EventLevel
from dbt_common.events.functions import fire_event
from dbt_common.exceptions import DbtRuntimeError, env_secrets, scrub_secrets
from dbt_common.invocation import get_invocation_id, get_invocation_started_at

from dbt.adapters.mzs3.connections import as_dbt_error
from dbt.adapters.mzs3.credentials import Mzs3Credentials
from dbt.adapters.mzs3.errors import Mzs3Error, SparkJobError
from dbt.adapters.mzs3.events import CopyEvent, CopyProgress
from dbt.adapters.mzs3.export.export import CopyResult
from dbt.adapters.mzs3.response import CopyLogEvent, copy_response
from dbt.adapters.mzs3.shard.write.job import PersistResult
from dbt.adapters.mzs3.spark.cursor import SessionConnection
from dbt.adapters.mzs3.spark.job import run_job

if TYPE_CHECKING:
    from dbt.adapters.mzs3.connections import Mzs3ConnectionManager


def run_started_ms() -> int:
    """When this invocation of dbt began, in ms since the epoch: the same for the whole run."""
    started = get_invocation_started_at().replace(tzinfo=timezone.utc)
    return int(started.timestamp() * 1000)


class SessionJobHelper(PythonJobHelper):
    """Runs a job in the session of the connection that its node holds.

    The job finds the globals `spark`, `aws_connections` (by name), `as_of` (the run's start in
    ms), `cancelled` (an Event that is set when the user cancels), `tell` (which puts an event of
    an export into dbt's log), `scrub` (which takes secrets of the environment out of a text) and
    `invocation_id`.
    """

    def __init__(
        self,
        parsed_model: dict[str, Any],
        credential: Mzs3Credentials,
        connections: Mzs3ConnectionManager,
    ) -> None:
        self._model = parsed_model
        self._credentials = credential
        self._connections = connections

    def submit(self, compiled_code: str) -> Any:
        """Run the job to its end; its `result`. Raises dbt's errors."""
        handle = self._connections.get_thread_connection().handle
        if not isinstance(handle, SessionConnection):
            raise DbtRuntimeError(
                f"{self._model['unique_id']}: Python jobs need `method: session` in the profile; "
                f"`method: {self._credentials.method}` runs SQL only in this version of dbt-mzs3"
            )
        provided = {
            "aws_connections": self._credentials.connections,
            "as_of": run_started_ms(),
            "cancelled": handle.cancelled,
            "tell": log_copy_event,
            "scrub": lambda text: scrub_secrets(text, env_secrets()),
            "invocation_id": get_invocation_id(),
        }
        node, name = str(self._model["unique_id"]), str(self._model["original_file_path"])
        remains = self._connections.remains
        try:
            handle.check_cancelled()
            # Without the white space that Jinja puts before it, the model starts on line 1, as
            # it does in its file: so the line numbers of errors are the file's.
            with remains.running(node):
                return run_job(handle.session, compiled_code.lstrip(), name, provided)
        except Mzs3Error as exc:
            if handle.cancelled.is_set():
                stopped = isinstance(exc, SparkJobError)
                remains.say(f"{node} was cancelled" if stopped else str(exc))
            raise as_dbt_error(exc) from exc


def job_response(result: Any) -> AdapterResponse:
    """What a job's `result` means to dbt."""
    if isinstance(result, AdapterResponse):
        return result
    if isinstance(result, CopyResult | PersistResult):
        return copy_response(
            rows=result.rows,
            location=result.location,
            manifest=result.manifest,
            files=result.files,
            bytes_written=result.bytes,
            as_of=result.as_of,
        )
    return AdapterResponse(_message="OK")


def log_copy_event(event: CopyEvent) -> None:
    """The event in dbt's log; on a terminal, progress has a bar."""
    message = event.message
    if isinstance(event, CopyProgress) and sys.stdout.isatty():
        message = event.message_with_bar
    fire_event(CopyLogEvent.of(event, message), level=EventLevel(event.level))
