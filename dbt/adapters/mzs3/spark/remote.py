"""Spark behind a Spark Connect server: sessions there, and what it tells of their tasks."""

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
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.util import is_remote_only

from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.spark.failure import GONE, explain, readable
from dbt.adapters.mzs3.spark.interrupt import at_once, watch
from dbt.adapters.mzs3.spark.job import ship_executor_code
from dbt.adapters.mzs3.spark.session import quieten_pyspark
from dbt.adapters.mzs3.spark.settings import DEFAULTS
from dbt.adapters.mzs3.spark.tables import arrow_frame

if TYPE_CHECKING:
    from pyspark import StatusTracker
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.shell.progress import StageInfo

# Narrower than PySpark's own, whose errors quote what they don't take, and so a token.
_ADDRESS = re.compile(r"sc://(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::\d+)?(?=/|\Z)")
_REST = re.compile(r"/?(?:(?<=/)(?:;[\w.-]+=[^\s;=/?#]*)+)?")

# Warnings for the console: of what is an error soon, and of what we ask for on purpose.
_TELLS_NOTHING = (
    r"\[RETRIES_EXCEEDED\]",
    "The SQL config 'spark.sql.parser.escapedStringLiterals' has been deprecated",
    "WARN WindowExpression: No Partition Defined",
)
# A server logs a plan whose analysis it finds in its cache, at DEBUG, with the functions in it.
_PLAN_CACHE = "spark.connect.session.planCache.enabled"
# After about 10 s without an answer, where the client's own policy waits for 10 minutes.
_RETRIES = {"max_retries": 6, "max_backoff": 2000, "max_server_retry_delay": 5000}
# For all that a server answers without work. Work that it does may take its time.
_ANSWER_S = 30.0

# With this set, PySpark makes columns for Spark Connect, and starts no Spark in this process.
_MODE, _OURS = "SPARK_CONNECT_MODE_ENABLED", "of dbt-mzs3"

_lock = threading.Lock()
# Of each open session, by its id.
_running: dict[str, RunningTasks] = {}


class RunningTasks:
    """What the server tells of the tasks that a session runs; for any thread."""

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
        """Takes what the client hears of an operation, as a ProgressHandler of PySpark."""
        with self._lock:
            if done:
                self._operations.pop(operation_id, None)
            else:
                work = self._not_skipped([*(stages or ())], inflight_tasks)
                self._operations[operation_id] = (work, inflight_tasks)

    def tasks(self) -> tuple[int, int] | None:
        """How many tasks have ended, and how many there are so far; None where none is known."""
        stages = [stage for operation, _ in self._heard() for stage in operation]
        if not stages:
            return None
        ended = sum(stage.num_completed_tasks for stage in stages)
        return ended, sum(stage.num_tasks for stage in stages)

    def waiting(self) -> dict[Hashable, int]:
        """How many tasks have ended of each stage that is not finished."""
        return {
            stage.stage_id: stage.num_completed_tasks
            for stages, _ in self._heard()
            for stage in stages
            if not stage.done
        }

    def running(self) -> int:
        """How many tasks run."""
        return sum(inflight for _, inflight in self._heard())

    def _not_skipped(self, stages: list[StageInfo], inflight_tasks: int) -> list[StageInfo]:
        """Without those that Spark skips, which the server lists as it does those that wait.

        Stages begin in the order of their numbers: one of which no task has ended is skipped once
        a later one has begun, unless tasks run that can be of no other.
        """
        self._begun |= {one.stage_id for one in stages if one.done or one.num_completed_tasks}
        last = max((one.stage_id for one in stages if one.stage_id in self._begun), default=-1)
        work = [one for one in stages if one.stage_id > last or one.stage_id in self._begun]
        if inflight_tasks and all(one.done for one in work):
            self._begun |= {one.stage_id for one in stages}
            return stages
        return work

    def _heard(self) -> list[tuple[list[StageInfo], int]]:
        with self._lock:
            return [*self._operations.values()]


class _OwnTasks:
    """The tasks of all sessions of this process, for the watchdog.

    What others run on the same server is not seen: work that waits behind theirs waits.
    """

    def waiting(self) -> dict[Hashable, int]:
        return {stage: ended for one in _sessions() for stage, ended in one.waiting().items()}

    def running(self) -> int:
        return sum(one.running() for one in _sessions())

    def end_all(self) -> None:
        at_once(one.session.interruptAll for one in _sessions())


def _sessions() -> list[RunningTasks]:
    with _lock:
        return [*_running.values()]


class RemoteEngine:
    """Spark behind a server that this process only sends queries to."""

    writes_files = False

    def close(self, session: SparkSession) -> None:
        """Stop the session, so that nothing of it is left on the server."""
        _close([session.session_id])

    def keep_plans_secret(self, session: SparkSession) -> None:
        """By having the server keep no analysed plans for the session."""
        try:
            if session.conf.isModifiable(_PLAN_CACHE):
                session.conf.set(_PLAN_CACHE, "false")
        except PySparkException as exc:  # the server is gone
            raise readable(exc) from exc

    def driver_address(self, session: SparkSession) -> None:
        """None: workers can't be expected to reach the clients of the driver."""

    def tasks(self, session: SparkSession) -> tuple[int, int] | None:
        """As the server has told."""
        running = _running.get(session.session_id)
        return running.tasks() if running else None

    def status_tracker(self, session: SparkSession) -> StatusTracker | None:
        """None: the server does not tell."""
        return None

    def rows_written(self, frame: DataFrame) -> None:
        """Not known: the server does not tell."""

    def default_parallelism(self, session: SparkSession) -> int:
        """By a query of one row."""
        # The one row of a range is always in its last partition.
        [row] = session.range(1).select(F.spark_partition_id()).collect()
        return int(row[0]) + 1

    def write_parquet(self, session: SparkSession, folder: str, rows: pa.Table) -> None:
        """By a job of one task."""
        arrow_frame(session, rows).coalesce(1).write.parquet(folder)


def open_session(
    server: str, parameters: Mapping[str, str], executor_timeout: int
) -> SparkSession:
    """As `engine.open_session`, on a server."""
    if problem := url_problem(server):
        raise SparkJobError(problem)
    address = shown_server(server)
    quieten_pyspark()
    try:
        _import_client()
        from pyspark.sql.connect.session import SparkSession as RemoteSession

        builder = _channel_builder(server)
        os.environ.setdefault(_MODE, _OURS)  # as SparkSession.builder.remote does
        session: SparkSession = RemoteSession.builder.channelBuilder(builder).create()
    except ImportError as exc:
        raise SparkJobError(
            "method: connect needs the packages of Spark Connect's client, and one is missing: "
            f"{str(exc).splitlines()[0]}; run pip install 'pyspark[connect]' where pyspark is "
            "installed, else pip install 'dbt-mzs3[connect]'"
        ) from exc
    except (PySparkException, ValueError):  # they may quote what stands beside a token
        raise SparkJobError(
            f"{address} could not be opened as `host` says: its port is 65535 at most, and what "
            "follows the ; has the keys and values of Spark Connect's connection string"
        ) from None
    for message in _TELLS_NOTHING:
        warnings.filterwarnings("ignore", message=message)
    tasks = RunningTasks(session)
    with _lock:
        _running[session.session_id] = tasks
    try:
        _retry(session, **_RETRIES)
        session.registerProgressHandler(tasks)
        _configure(session, {**DEFAULTS, **parameters})
    except BaseException as exc:
        _close([session.session_id])
        if not isinstance(exc, PySparkException):
            raise
        said = str(explain(exc))
        raise SparkJobError(f"{address}: {said}{_tls(builder) if said == GONE else ''}") from exc
    watch("connect", _OwnTasks(), executor_timeout)
    ship_executor_code()
    return session


def _configure(session: SparkSession, parameters: Mapping[str, str]) -> None:
    """Sets those that can be set at run time, by two requests where PySpark makes two for each."""
    from pyspark.sql.connect.proto import ConfigRequest, KeyValue

    asked = ConfigRequest.IsModifiable(keys=[*parameters])
    answer = session.client.config(ConfigRequest.Operation(is_modifiable=asked))
    can = [key for key, modifiable in answer.pairs if modifiable == "true"]
    pairs = [KeyValue(key=key, value=parameters[key]) for key in can]
    answer = session.client.config(ConfigRequest.Operation(set=ConfigRequest.Set(pairs=pairs)))
    for warning in answer.warnings:
        warnings.warn(warning, stacklevel=2)


def _tls(builder: DefaultChannelBuilder) -> str:
    if not builder.secure or (builder.host == "localhost" and not builder.use_ssl):
        return ". dbt does not speak TLS to it: where it does, `host` needs use_ssl=true"
    return (
        ". dbt speaks TLS to it, as it does with use_ssl=true, and with a token to all but "
        "localhost: it must too, with a certificate that this machine trusts"
    )


def _channel_builder(server: str) -> DefaultChannelBuilder:
    """PySpark's, with bounds on how long a server may be silent."""
    from grpc import UnaryUnaryClientInterceptor
    from pyspark.sql.connect.client import DefaultChannelBuilder

    class Deadline(UnaryUnaryClientInterceptor):
        def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
            if not details.method.endswith("/AnalyzePlan"):
                details = details._replace(timeout=_ANSWER_S)
            return continuation(details, request)

    builder = DefaultChannelBuilder(server)
    builder.add_interceptor(Deadline())
    if not hasattr(builder, "keepalive_enabled"):  # in 4.1, whose server takes no more pings
        builder.setChannelOption("grpc.keepalive_time_ms", 301_000)
        builder.setChannelOption("grpc.keepalive_timeout_ms", 20_000)
    return builder


def url_problem(url: str) -> str | None:
    """Why a text is not the URL of a server, without the text, which may hold a token; else
    None."""
    if (address := _ADDRESS.match(url)) is None:
        wrong = "an address has no user and no ?, and a / before the first ;"
    elif _REST.fullmatch(url, address.end()) is None:
        wrong = "what follows the address is ;key=value, with values percent-encoded: / as %2F"
        wrong += " and = as %3D"
    else:
        return None
    return (
        "method: connect needs host: sc://HOST:PORT, with what the server needs behind it, such "
        f"as sc://HOST:PORT/;use_ssl=true;token=TOKEN; {wrong}"
    )


def shown_server(url: str) -> str:
    """The address in the URL of a server, without what follows it, such as a token."""
    address = _ADDRESS.match(url)
    return address[0] if address else "sc://***"


def _import_client() -> None:
    with _lock:
        homeless = is_remote_only() and "SPARK_HOME" not in os.environ
        if homeless:  # which makes pyspark-client 4.2 end the process when it is imported
            os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
        try:
            importlib.import_module("pyspark.sql.connect.session")
        finally:
            if homeless:
                del os.environ["SPARK_HOME"]


def _retry(session: SparkSession, **limits: Any) -> None:
    """Bounds how often the client asks a server anew that does not answer."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    # PySpark has no public setting for it; a client that is built otherwise keeps its own.
    with suppress(AttributeError, TypeError):
        session.client.set_retry_policies([DefaultPolicy(**limits)])


def _close(ids: Iterable[str]) -> None:
    with _lock:
        known = [_running.pop(one, None) for one in ids]
    at_once(partial(_end, one.session) for one in known if one is not None)


def allow_local_spark() -> None:
    """PySpark may have a Spark in this process, unless a session is open on a server.

    For whoever is about to start one: the end of a session would come in the way of the next.
    """
    with _lock:
        if not _running and os.environ.get(_MODE) == _OURS:
            del os.environ[_MODE]


def _end(session: SparkSession) -> None:
    _retry(session, **{**_RETRIES, "max_retries": 2})  # a server that is gone holds no session
    try:
        session.client.release_session()
    finally:  # not by `stop`, which has others wait until the server has answered
        session.release_session_on_close = False
        session.stop()


atexit.register(lambda: _close([*_running]))
