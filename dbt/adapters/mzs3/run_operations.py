"""The run-operations: arguments in, log lines or an error out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.mzs3.aws.client import s3_client
from dbt.adapters.mzs3.aws.named import named_target
from dbt.adapters.mzs3.connections import as_dbt_error
from dbt.adapters.mzs3.credentials import Mzs3ConnectionMethod
from dbt.adapters.mzs3.errors import ConfigError, Mzs3Error
from dbt.adapters.mzs3.export.report.read import ReportRequest, write_report
from dbt.adapters.mzs3.export.verify_copy import verify_copy
from dbt.adapters.mzs3.shard.compact.job import compact_shard
from dbt.adapters.mzs3.shard.compact.plan import parse_compaction
from dbt.adapters.mzs3.shard.config.options import Problems
from dbt.adapters.mzs3.shard.describe import compaction, described
from dbt.adapters.mzs3.shard.read.rows import Shelf
from dbt.adapters.mzs3.shard.state.store import StateStore
from dbt.adapters.mzs3.source_operations import selection
from dbt.adapters.mzs3.staging import ingest_sources
from dbt.adapters.mzs3.validation import OPERATION, identify, validate_connection

if TYPE_CHECKING:
    from dbt.adapters.mzs3.impl import Mzs3Adapter

logger = AdapterLogger("mzs3")

_T = TypeVar("_T")


def validate(adapter: Mzs3Adapter, name: Any, location: Any, queue: Any = None) -> None:
    """Try what exports need on a prefix, and sources on a queue; fails of what is essential.

    Without either, say who the connection is.
    """
    with _operation(OPERATION, name=name, location=location):
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


def verify(adapter: Mzs3Adapter, location: Any, aws_connection: Any) -> None:
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


def report(adapter: Mzs3Adapter, schema: Any, path: Any, days: Any) -> None:
    """Write a page about the exports of the last days, from their history in the schema."""
    method = adapter.config.credentials.method
    if method != Mzs3ConnectionMethod.SESSION:
        raise DbtRuntimeError(
            "copy_report needs `method: session` in the profile, as copy_to_s3 does; "
            f"`method: {method}` runs SQL only in this version of dbt-mzs3"
        )
    with _operation("copy_report"):
        request = ReportRequest.of(schema, path, days)
    with adapter.connections.exception_handler("writing the report of exports"):
        session = adapter.connections.get_thread_connection().handle.session
        written = write_report(session, request)
    logger.info(f"  the exports of the last {days} days: {written}")


def describe_shard(adapter: Mzs3Adapter, location: Any, aws_connection: Any) -> None:
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


def compact(adapter: Mzs3Adapter, location: Any, aws_connection: Any, how: Any) -> None:
    """Make one batch of those up to a time, and remove what no batch names."""
    operation = "compact_shard"
    method = adapter.config.credentials.method
    if method != Mzs3ConnectionMethod.SESSION:
        raise DbtRuntimeError(
            f"{operation} needs `method: session` in the profile, as persist_shard does; "
            f"`method: {method}` runs SQL only in this version of dbt-mzs3"
        )
    with _operation(operation, location=location, aws_connection=aws_connection):
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
            shelf = Shelf(connection, place)
            done = _to_its_end(
                partial(compact_shard, session, shelf, request, cancelled), cancelled
            )
    for line in compaction(place.uri, done):
        logger.info(f"  {line}")


def ingest(adapter: Mzs3Adapter, select: Any) -> None:
    """Ingest the named sources, or all; fails with the errors of all that failed."""
    ingest_sources(adapter, selection("ingest_s3_sources", select))


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
