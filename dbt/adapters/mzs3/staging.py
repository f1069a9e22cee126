"""The door between dbt's runs and S3 CSV sources: each is ingested once, before it is read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from dbt_common.exceptions import DbtRuntimeError
from dbt_common.invocation import get_invocation_id

from dbt.adapters.mzs3.csv_source.definition import TYPE
from dbt.adapters.mzs3.csv_source.freshness import read_freshness
from dbt.adapters.mzs3.csv_source.ingest import ingest
from dbt.adapters.mzs3.errors import Mzs3Error, SourceError
from dbt.adapters.mzs3.source_nodes import (
    needed_sources,
    selected_sources,
    source_definition,
    source_of,
)
from dbt.adapters.mzs3.spark.session import isolated_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class FreshnessResponse(AdapterResponse):
    """What a freshness check saw in S3: matching objects and their bytes."""

    objects: int | None = None
    bytes: int | None = None


@dataclass
class _Attempt:
    """The one attempt of an invocation at one source; whoever comes later gets its outcome."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    done: bool = False
    error: str | None = None


class _Attempts:
    """Every attempt of the running invocation; those of earlier ones are forgotten."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._invocation = ""
        self._of: dict[str, _Attempt] = {}

    def get(self, source_id: str) -> _Attempt:
        with self._guard:
            invocation = get_invocation_id()
            if invocation != self._invocation:
                self._invocation, self._of = invocation, {}
            return self._of.setdefault(source_id, _Attempt())


_attempts = _Attempts()


def stage_for_node(adapter: Any, node: Any) -> None:
    """Every S3 CSV source that the node reads is ingested: now, or earlier in this run.

    Raises DbtRuntimeError with the source's error, to every node that needs it.
    """
    manifest = adapter.get_macro_resolver()
    if manifest is None or node.resource_type == "unit_test":
        return
    for source in needed_sources(manifest, node):
        # In the node's own session: cancelling the node's connection cancels this too.
        _stage_once(adapter, source, lambda: _node_session(adapter))


def ingest_sources(adapter: Any, select: str | Iterable[str] | None) -> None:
    """Ingest the selected sources, as many at a time as the profile has threads.

    Raises DbtRuntimeError with the errors of all that failed, after all were tried.
    """
    selected = selected_sources(adapter.get_macro_resolver(), select)
    errors: list[str] = []
    sessions: list[SparkSession] = []

    def new_session() -> SparkSession:
        sessions.append(isolated_session(adapter.config.credentials.server_side_parameters))
        return sessions[-1]

    def attempt(source: Any) -> None:
        try:
            _stage_once(adapter, source, new_session)
        except DbtRuntimeError as exc:
            errors.append(str(exc.msg))

    with ThreadPoolExecutor(max_workers=max(1, adapter.config.threads)) as pool:
        try:
            list(pool.map(attempt, selected))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for session in sessions:
                session.interruptAll()
            raise
    if errors:
        raise DbtRuntimeError("\n".join(sorted(errors)))


def freshness_from_s3(
    adapter: Any, relation: Any, manifest: Any
) -> tuple[FreshnessResponse, datetime | None, datetime]:
    """The response, the newest LastModified or None, and when that was looked up; no Spark.

    Raises DbtRuntimeError for a source that is no S3 CSV source: it needs a `loaded_at_field`.
    """
    source = source_of(manifest, relation)
    if source is None:
        raise DbtRuntimeError(
            f"Could not compute freshness for source {relation}: it has no loaded_at_field, and "
            f"only S3 CSV sources (type: {TYPE}) can do without one"
        )
    try:
        connections = adapter.config.credentials.connections
        definition = source_definition(source, connections)
        found = read_freshness(definition, connections[definition.aws_connection])
    except Mzs3Error as exc:
        raise DbtRuntimeError(str(exc)) from exc
    response = FreshnessResponse(
        _message="OK", code="FRESHNESS", objects=found.objects, bytes=found.bytes
    )
    return response, found.newest, datetime.now(timezone.utc)


def _stage_once(adapter: Any, source: Any, session: Callable[[], SparkSession]) -> None:
    attempt = _attempts.get(source.unique_id)
    with attempt.lock:
        if not attempt.done:
            try:
                _stage(adapter, source, session)
            except Mzs3Error as exc:
                attempt.error = str(exc)
            attempt.done = True
    if attempt.error is not None:
        raise DbtRuntimeError(attempt.error)


def _stage(adapter: Any, source: Any, session: Callable[[], SparkSession]) -> None:
    credentials = adapter.config.credentials
    definition = source_definition(source, credentials.connections)
    if credentials.method != "session":
        raise SourceError(
            f"{definition.name}: S3 CSV sources (type: {TYPE}) need `method: session` in the "
            "profile in this version"
        )
    report = ingest(
        session(),
        definition,
        credentials.connections[definition.aws_connection],
        create_only=bool(getattr(adapter.config.args, "EMPTY", False)),
    )
    fire_event(Note(msg=report.line()))


def _node_session(adapter: Any) -> SparkSession:
    session: SparkSession = adapter.connections.get_thread_connection().handle.session
    return session
