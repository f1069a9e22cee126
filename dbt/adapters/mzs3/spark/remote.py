"""Sessions on a Spark Connect server, and the progress of their tasks."""

from __future__ import annotations

import atexit
import importlib
import os
import re
import threading
import warnings
from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.util import is_remote_only

from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.secrets import HIDDEN
from dbt.adapters.mzs3.spark.failure import GONE, explain
from dbt.adapters.mzs3.spark.interrupt import at_once, watch
from dbt.adapters.mzs3.spark.job import ship_executor_code
from dbt.adapters.mzs3.spark.session import quieten_pyspark
from dbt.adapters.mzs3.spark.settings import DEFAULTS

if TYPE_CHECKING:
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.session import SparkSession as ConnectSession
    from pyspark.sql.connect.shell.progress import ProgressHandler, StageInfo

# Stricter than PySpark, whose errors quote the URL, including a token in it.
_ADDRESS = re.compile(r"sc://(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::\d+)?(?=/|\Z)")
_REST = re.compile(r"/?(?:(?<=/)(?:;[\w.-]+=[^\s;=/?#]*)+)?")

# Warnings that an error follows anyway, or that are about something we do on purpose.
_IGNORED_WARNINGS = (
    r"\[RETRIES_EXCEEDED\]",
    "The SQL config 'spark.sql.parser.escapedStringLiterals' has been deprecated",
    "WARN WindowExpression: No Partition Defined",
)
# Retries for about 10 s without a response; PySpark's default is 10 minutes.
_RETRIES = {"max_retries": 6, "max_backoff": 2000, "max_server_retry_delay": 5000}
# The timeout of requests that need no work on the server; others have none.
_ANSWER_S = 30.0

# While this variable is set, PySpark creates columns for Spark Connect, and no local Spark.
_MODE, _OURS = "SPARK_CONNECT_MODE_ENABLED", "of dbt-mzs3"

_lock = threading.Lock()
# The tasks of each open session, by its id.
_running: dict[str, RunningTasks] = {}


class RunningTasks:
    """The progress of a session's tasks, as reported by the server; thread-safe."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self._lock = threading.Lock()
        self._operations: dict[str | None, tuple[list[StageInfo], int]] = {}
        self._begun: set[int] = set()

    def __call__(
        self,
        stages: Iterable[StageInfo] | None,
        inflight_tasks: int,
        operation_id: str | None,
        done: bool,
    ) -> None:
        """Called by PySpark, as a ProgressHandler, with the progress of an operation."""
        with self._lock:
            if done:
                self._operations.pop(operation_id, None)
            else:
                work = self._not_skipped([*(stages or ())], inflight_tasks)
                self._operations[operation_id] = (work, inflight_tasks)

    def tasks(self) -> tuple[int, int] | None:
        """How many tasks have ended, and how many there are so far; None if unknown."""
        stages = [stage for operation, _ in self._reported() for stage in operation]
        ended = sum(stage.num_completed_tasks for stage in stages)
        return (ended, sum(stage.num_tasks for stage in stages)) if stages else None

    def waiting(self) -> dict[Hashable, int]:
        """How many tasks of each unfinished stage have ended (see Scheduler)."""
        return {
            stage.stage_id: stage.num_completed_tasks
            for stages, _ in self._reported()
            for stage in stages
            if not stage.done
        }

    def running(self) -> int:
        """How many tasks run (see Scheduler)."""
        return sum(inflight for _, inflight in self._reported())

    def _not_skipped(self, stages: list[StageInfo], inflight_tasks: int) -> list[StageInfo]:
        """The stages except skipped ones, which the server reports like waiting ones.

        Stages begin in the order of their numbers. Thus a stage without ended tasks was skipped if
        a later stage has begun, unless a task runs that can't belong to any other stage.
        """
        self._begun |= {each.stage_id for each in stages if each.done or each.num_completed_tasks}
        last = max((each.stage_id for each in stages if each.stage_id in self._begun), default=-1)
        work = [each for each in stages if each.stage_id > last or each.stage_id in self._begun]
        if inflight_tasks and all(each.done for each in work):
            self._begun |= {each.stage_id for each in stages}
            return stages
        return work

    def _reported(self) -> list[tuple[list[StageInfo], int]]:
        with self._lock:
            return [*self._operations.values()]


class _OwnTasks:
    """The tasks of all sessions of this process, as a Scheduler. Work counts as waiting even if it
    waits for the tasks of other processes on the same server."""

    def waiting(self) -> dict[Hashable, int]:
        return {stage: n for tasks in _all_tasks() for stage, n in tasks.waiting().items()}

    def running(self) -> int:
        return sum(tasks.running() for tasks in _all_tasks())

    def end_all(self) -> None:
        at_once(tasks.session.interruptAll for tasks in _all_tasks())


def _all_tasks() -> list[RunningTasks]:
    with _lock:
        return [*_running.values()]


def open_session(
    server: str, parameters: Mapping[str, str], executor_timeout: int
) -> SparkSession:
    """Opens a session on a server: see `engine.open_session`."""
    if problem := url_problem(server):
        raise SparkJobError(problem)
    address = server_address(server)
    quieten_pyspark()
    try:
        _import_client()
        from pyspark.sql.connect.session import SparkSession as ConnectSession

        builder = _channel_builder(server)
        os.environ.setdefault(_MODE, _OURS)  # like SparkSession.builder.remote
        created = ConnectSession.builder.channelBuilder(builder).create()
    except ImportError as exc:
        raise SparkJobError(
            "method: connect needs the packages of Spark Connect's client, and one is missing: "
            f"{str(exc).splitlines()[0]}; run pip install 'pyspark[connect]' where pyspark is "
            "installed, else pip install 'dbt-mzs3[connect]'"
        ) from exc
    except (PySparkException, ValueError):  # their texts may quote the token
        raise SparkJobError(
            f"{address} could not be opened as `host` says: its port is 65535 at most, and what "
            "follows the ; has the keys and values of Spark Connect's connection string"
        ) from None
    for message in _IGNORED_WARNINGS:
        warnings.filterwarnings("ignore", message=message)
    session = cast(SparkSession, created)
    tasks = RunningTasks(session)
    with _lock:
        _running[created.session_id] = tasks
    try:
        _limit_retries(session, **_RETRIES)
        session.registerProgressHandler(cast("ProgressHandler", tasks))
        _configure(session, {**DEFAULTS, **parameters})
    except BaseException as exc:
        close(session)
        if not isinstance(exc, PySparkException):
            raise
        reason = str(explain(exc))
        hint = _tls_hint(builder) if reason == GONE else ""
        raise SparkJobError(f"{address}: {reason}{hint}") from exc
    watch("connect", _OwnTasks(), executor_timeout)
    ship_executor_code()
    return session


def _configure(session: SparkSession, parameters: Mapping[str, str]) -> None:
    """Sets the parameters that can be set at run time, with two requests; PySpark would make two
    for each parameter."""
    from pyspark.sql.connect.proto import ConfigRequest, KeyValue

    request = ConfigRequest.IsModifiable(keys=[*parameters])
    answer = session.client.config(ConfigRequest.Operation(is_modifiable=request))
    modifiable_keys = [key for key, modifiable in answer.pairs if modifiable == "true"]
    pairs = [KeyValue(key=key, value=parameters[key]) for key in modifiable_keys]
    answer = session.client.config(ConfigRequest.Operation(set=ConfigRequest.Set(pairs=pairs)))
    for warning in answer.warnings:
        warnings.warn(warning, stacklevel=2)


def _tls_hint(builder: DefaultChannelBuilder) -> str:
    if not builder.secure or (builder.host == "localhost" and not builder.use_ssl):
        return ". dbt does not speak TLS to it: where it does, `host` needs use_ssl=true"
    return (
        ". dbt speaks TLS to it, as it does with use_ssl=true, and with a token to all but "
        "localhost: it must too, with a certificate that this machine trusts"
    )


def _channel_builder(server: str) -> DefaultChannelBuilder:
    """PySpark's channel builder, with timeouts for a server that does not respond."""
    from grpc import UnaryUnaryClientInterceptor
    from pyspark.sql.connect.client import DefaultChannelBuilder

    class Deadline(UnaryUnaryClientInterceptor):
        def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
            if not details.method.endswith("/AnalyzePlan"):
                details = details._replace(timeout=_ANSWER_S)
            return continuation(details, request)

    builder = DefaultChannelBuilder(server)
    builder.add_interceptor(Deadline())
    if not hasattr(builder, "keepalive_enabled"):  # 4.1, whose server refuses more frequent pings
        builder.setChannelOption("grpc.keepalive_time_ms", 301_000)
        builder.setChannelOption("grpc.keepalive_timeout_ms", 20_000)
    return builder


def url_problem(url: str) -> str | None:
    """Why a text is not a server's URL, or None. Omits the text, which may contain a token."""
    wrong = "an address has no user and no ?, and a / before the first ;"
    if (address := _ADDRESS.match(url)) is not None:
        if _REST.fullmatch(url, address.end()) is not None:
            return None
        wrong = (
            "what follows the address is ;key=value, with values percent-encoded: / as %2F and = "
            "as %3D"
        )
    return (
        "method: connect needs host: sc://HOST:PORT, with what the server needs behind it, such "
        f"as sc://HOST:PORT/;use_ssl=true;token=TOKEN; {wrong}"
    )


def server_address(url: str) -> str:
    """The URL of a server without its options, such as a token."""
    address = _ADDRESS.match(url)
    return address[0] if address else f"sc://{HIDDEN}"


def _import_client() -> None:
    with _lock:
        homeless = is_remote_only() and "SPARK_HOME" not in os.environ
        if homeless:  # else the import of pyspark-client 4.2 would end this process
            os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
        try:
            importlib.import_module("pyspark.sql.connect.session")
        finally:
            if homeless:
                del os.environ["SPARK_HOME"]


def _limit_retries(session: SparkSession, **limits: Any) -> None:
    """Limits the client's retries of requests to a server that does not respond."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    # PySpark has no public setting for this; a client with other classes keeps its own limits.
    with suppress(AttributeError, TypeError):
        session.client.set_retry_policies([DefaultPolicy(**limits)])


def close(*sessions: SparkSession) -> None:
    """Closes these sessions, also on the server; safe to repeat."""
    with _lock:
        open_sessions = [one for one in sessions if _running.pop(_connect(one).session_id, None)]
    at_once(partial(_end, session) for session in open_sessions)


def tasks_of(session: SparkSession) -> tuple[int, int] | None:
    """How many tasks of a session have ended, and how many there are so far; None if unknown."""
    running = _running.get(_connect(session).session_id)
    return running.tasks() if running else None


def _connect(session: SparkSession) -> ConnectSession:
    """The session with its real type, which is unrelated to the type of a local session."""
    return cast("ConnectSession", session)


def allow_local_spark() -> None:
    """Lets PySpark start a Spark in this process, unless a session is open on a server. Call this
    before the start, not when a session closes: another thread may be opening one then."""
    with _lock:
        if not _running and os.environ.get(_MODE) == _OURS:
            del os.environ[_MODE]


def _end(session: SparkSession) -> None:
    # With few retries: a server that is gone has no session to drop.
    _limit_retries(session, **{**_RETRIES, "max_retries": 2})
    try:
        session.client.release_session()
    finally:  # release first: `stop` would make other threads wait for the server's response
        _connect(session).release_session_on_close = False
        session.stop()


atexit.register(lambda: close(*(tasks.session for tasks in _all_tasks())))
