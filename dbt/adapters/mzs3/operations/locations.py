"""The run-operations on connections, exports and shards: arguments in, lines out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.mzs3.aws.check import check_connection
from dbt.adapters.mzs3.aws.client import s3_client
from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.aws.location import named_location, named_target, unknown_connection
from dbt.adapters.mzs3.aws.permissions import Check, check_permissions
from dbt.adapters.mzs3.config.values import Problems
from dbt.adapters.mzs3.connections import as_dbt_error
from dbt.adapters.mzs3.credentials import require_session
from dbt.adapters.mzs3.csv_source.config.discovery import queue_name, queue_problem
from dbt.adapters.mzs3.csv_source.queue.permissions import check_queue
from dbt.adapters.mzs3.errors import ConfigError, Mzs3Error
from dbt.adapters.mzs3.export.report.read import ReportRequest, write_report
from dbt.adapters.mzs3.export.verify_copy import verify_copy
from dbt.adapters.mzs3.shard.compact.job import compact_shard
from dbt.adapters.mzs3.shard.compact.plan import parse_compaction
from dbt.adapters.mzs3.shard.describe import compaction, described
from dbt.adapters.mzs3.shard.read.rows import ShardLocation
from dbt.adapters.mzs3.shard.state.store import StateStore

logger = AdapterLogger("mzs3")

_T = TypeVar("_T")

VALIDATE = "validate_aws_connection"


def validate(adapter: Any, name: Any, location: Any, queue: Any = None) -> None:
    """Try what exports need on a prefix, and sources on a queue; fails of what is essential.

    Without either, say who the connection is.
    """
    with _operation(VALIDATE, name=name, location=location):
        connections = adapter.config.credentials.connections
        if location is None and queue is None:
            logger.info(f"  aws {name}: {identify(connections, name)}")
        tried = validate_connection(connections, name, location, queue)
    for one in tried:
        for check in one.checks:
            logger.info(f"  {check.line}")
    errors = [one.error for one in tried if one.error is not None]
    if errors:
        raise DbtRuntimeError("\n".join(errors))


def verify(adapter: Any, location: Any, aws_connection: Any) -> None:
    """Compare an export with its manifest; fails with all that differs."""
    with _operation("verify_copy", location=location, aws_connection=aws_connection):
        connections = adapter.config.credentials.connections
        found = verify_copy(connections, aws_connection, location)
    for stranger in found.strangers:
        logger.warning(
            f"{stranger} is not in the manifest, and whoever reads the whole location reads it "
            "too; move it away, or read what the manifest names"
        )
    if found.problems:
        raise DbtRuntimeError("\n  ".join([found.summary, *found.problems]))
    logger.info(f"  {found.summary}")


def report(adapter: Any, schema: Any, path: Any, days: Any) -> None:
    """Write a page about the exports of the last days, from their history in the schema."""
    with _operation("copy_report"):
        require_session(adapter.config.credentials.method, "copy_report")
        request = ReportRequest.of(schema, path, days)
    with adapter.connections.exception_handler("writing the report of exports"):
        session = adapter.connections.get_thread_connection().handle.session
        written = write_report(session, request)
    logger.info(f"  the exports of the last {days} days: {written}")


def describe_shard(adapter: Any, location: Any, aws_connection: Any) -> None:
    """Print a shard's columns and batches."""
    operation = "describe_shard"
    with _operation(operation, location=location, aws_connection=aws_connection):
        connections = adapter.config.credentials.connections
        connection, place = named_target(
            operation, connections, "aws_connection", aws_connection, location
        )
        found = StateStore(s3_client(connection), place).existing()
    for line in described(place.uri, found.state):
        logger.info(f"  {line}")


def compact(adapter: Any, location: Any, aws_connection: Any, how: Any) -> None:
    """Make one batch of those up to a time, and remove what no batch names."""
    operation = "compact_shard"
    with _operation(operation, location=location, aws_connection=aws_connection):
        require_session(adapter.config.credentials.method, operation)
        connections = adapter.config.credentials.connections
        problems = Problems(operation)
        target = request = None
        with problems.gathered():
            target = named_target(
                operation, connections, "aws_connection", aws_connection, location
            )
        with problems.gathered():
            request = parse_compaction(how)
        problems.raise_if_any()
        if target is None or request is None:
            raise AssertionError
        connection, place = target
        with adapter.connections.exception_handler(f"compacting {place.uri}"):
            session = adapter.connections.get_thread_connection().handle.session
            cancelled = threading.Event()
            shard = ShardLocation(connection, place)
            done = _to_its_end(
                partial(compact_shard, session, shard, request, cancelled), cancelled
            )
    for line in compaction(place.uri, done):
        logger.info(f"  {line}")


def _to_its_end(work: Callable[[], _T], cancelled: threading.Event) -> _T:
    """What the work returns or raises, also after Ctrl-C: `cancelled` is set, and it cleans up."""
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(work)
        try:
            return running.result()
        except KeyboardInterrupt:
            cancelled.set()
            return running.result()


@contextmanager
def _operation(operation: str, **texts: Any) -> Iterator[None]:
    """Arguments that are given are texts; what our own errors say is told as dbt's."""
    wrong = [
        f"{name} must be a text, not {value!r}"
        for name, value in texts.items()
        if value is not None and not isinstance(value, str)
    ]
    try:
        if wrong:
            raise ConfigError(operation, wrong)
        yield
    except Mzs3Error as exc:
        raise as_dbt_error(exc) from exc


@dataclass(frozen=True)
class CheckResult:
    """What was tried in one place; `cannot` is the user's loss if something essential fails."""

    cannot: str
    checks: list[Check]

    @property
    def error(self) -> str | None:
        """The essential ones that fail, under what can't work without them; None without any."""
        failed = [check.line for check in self.checks if check.stops_all]
        return "\n".join([f"{self.cannot}:", *failed]) if failed else None


def identify(connections: Mapping[str, AwsConnection], name: str) -> str:
    """Who the connection is, and where; nothing but its credentials is tried.

    Raises ConfigError for what is no connection, and S3Error if it does not work.
    """
    if name not in connections:
        raise ConfigError(VALIDATE, [unknown_connection("name", name, connections)])
    return check_connection(connections[name])


def validate_connection(
    connections: Mapping[str, AwsConnection], name: str, location: str | None, queue: Any
) -> list[CheckResult]:
    """What the connection may do below the location, and with the queue; either may be None.

    Nothing is left there. Raises ConfigError for what is no connection, location or queue, all at
    once; and S3Error, one clear line, for what lets nothing work.
    """
    problems: list[str] = []
    if name not in connections:
        problems.append(unknown_connection("name", name, connections))
    place = None
    if location is not None:
        place = named_location(location, problems)
    if queue is not None and (problem := queue_problem(queue)) is not None:
        problems.append(f"queue {problem}")
    if problems:
        raise ConfigError(VALIDATE, problems)
    tried = []
    if place is not None:
        checks = check_permissions(connections[name], place)
        tried.append(CheckResult(f"exports to {location} can't work", checks))
    if queue is not None:
        checks = check_queue(connections[name], queue)
        tried.append(
            CheckResult(f"sources can't ingest from the queue {queue_name(queue)}", checks)
        )
    return tried
