"""The run-operations on connections, exports and shards: they log results or raise errors."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.mzs3.credentials import require_spark
from dbt.adapters.mzs3.dbt_log import warnings_of
from dbt.adapters.mzs3.errors import Mzs3Error, ShardError
from dbt.adapters.mzs3.export.report.read import ReportRequest, write_report
from dbt.adapters.mzs3.export.verify_copy import verify_copy
from dbt.adapters.mzs3.options.values import Problems
from dbt.adapters.mzs3.runner import runner_for
from dbt.adapters.mzs3.shard.compact import compact_shard
from dbt.adapters.mzs3.shard.describe import compaction_lines, description_lines, reset_line
from dbt.adapters.mzs3.shard.options import parse_compaction
from dbt.adapters.mzs3.shard.read.column_bytes import bytes_in_files
from dbt.adapters.mzs3.shard.read.rows import ShardLocation
from dbt.adapters.mzs3.shard.state.store import StateStore, UnknownWriteError
from dbt.adapters.mzs3.source.discovery import queue_name, queue_problem
from dbt.adapters.mzs3.source.queue.permissions import check_queue
from dbt.adapters.mzs3.spark.job import Call
from dbt.adapters.mzs3.store.check import check_connection, check_permissions
from dbt.adapters.mzs3.store.connection import DEFAULT_NAME, AwsConnection
from dbt.adapters.mzs3.store.location import (
    S3Location,
    connection_problems,
    named_location,
    named_target,
)
from dbt.adapters.mzs3.store.opened import open_store
from dbt.adapters.mzs3.text import count_noun, operation_command

logger = AdapterLogger("mzs3")


def validate(adapter: Any, name: Any, location: Any, queue: Any) -> None:
    """Tests the permissions that exports need below `location`, and sources for `queue`, if these
    are given. With neither, logs the identity of the connection.

    Leaves no object. Raises DbtRuntimeError with every essential check that failed.
    """
    operation = "validate_aws_connection"
    _require_texts(operation, name=name, location=location)
    connections = adapter.config.credentials.connections
    problems = Problems(operation)
    problems.found += connection_problems(name, connections, key="name")
    place = named_location(location, problems.found) if location is not None else None
    if queue is not None and (problem := queue_problem(queue)) is not None:
        problems.found.append(f"queue {problem}")
    problems.raise_if_any()
    connection = connections[name]
    if place is None and queue is None:
        logger.info(f"  aws {name}: {check_connection(connection)}")
    checks_by_error = {}
    if place is not None:
        checks_by_error[f"exports to {location} can't work"] = check_permissions(connection, place)
    if queue is not None:
        error = f"sources can't ingest from the queue {queue_name(queue)}"
        checks_by_error[error] = check_queue(connection, queue)
    errors = []
    for error, checks in checks_by_error.items():
        for check in checks:
            logger.info(f"  {check.line}")
        failed = [check.line for check in checks if check.stops_all]
        errors += [f"{error}:", *failed] if failed else []
    if errors:
        raise DbtRuntimeError("\n".join(errors))


def verify(adapter: Any, location: Any, aws_connection: Any) -> None:
    """Compares an export with its manifest; raises DbtRuntimeError with all differences."""
    _require_texts("verify_copy", location=location, aws_connection=aws_connection)
    result = verify_copy(adapter.config.credentials.connections, aws_connection, location)
    with warnings_of("verify_copy") as warnings:
        for uri in result.unlisted:
            warnings.warn(
                f"{uri} is not in the manifest, and whoever reads the whole location reads "
                "it too; move it away, or read what the manifest names"
            )
        if result.problems:
            raise DbtRuntimeError("\n  ".join([result.summary, *result.problems]))
        logger.info(f"  {result.summary}")


def report(adapter: Any, schema: Any, path: Any, days: Any) -> None:
    """Writes a page about the exports of the last `days` days, from the history in `schema`."""
    credentials = adapter.config.credentials
    require_spark(credentials, "copy_report")
    call = Call(write_report, {"request": ReportRequest.of(schema, path, days)})
    with (
        adapter.connections.exception_handler("writing the report of exports"),
        runner_for(credentials) as runner,
    ):
        written = runner.run(call, "copy_report")
    logger.info(f"  the exports of the last {days} days: {written}")


def describe_shard(adapter: Any, location: Any, aws_connection: Any) -> None:
    """Logs a shard's columns and batches, and the bytes of each column."""
    operation = "describe_shard"
    connection, place = _shard_at(adapter, operation, location, aws_connection)
    store = StateStore(open_store(connection, place), place)
    state = store.existing().state
    for line in description_lines(place.uri, state):
        logger.info(f"  {line}")
    files = sum(len(batch.files) for batch in state.batches)
    if not files:
        return
    try:
        sizes = bytes_in_files(store.prefix, state)
    except Mzs3Error as exc:
        with warnings_of(operation) as warnings:
            warnings.warn(f"the bytes of columns are not known: {exc}")
        return
    some = f" of the newest {count_noun(sizes.files, 'file')}" if sizes.files < files else ""
    logger.info(f"  bytes by column{some}: {sizes.listed}")


def compact(adapter: Any, location: Any, aws_connection: Any, how: Any) -> None:
    """Merges the batches up to a time into one batch; removes files that no batch names."""
    operation = "compact_shard"
    _require_texts(operation, location=location, aws_connection=aws_connection)
    credentials = adapter.config.credentials
    require_spark(credentials, operation)
    problems = Problems(operation)
    with problems.gathered():
        connection, location = named_target(
            operation, credentials.connections, aws_connection, location
        )
    with problems.gathered():
        request = parse_compaction(how)
    problems.raise_if_any()
    what = {"shard": ShardLocation(connection, location), "request": request}
    call, cancelled = Call(compact_shard, what, takes=("cancelled",)), threading.Event()
    with (
        adapter.connections.exception_handler(f"compacting {location.uri}"),
        runner_for(credentials) as runner,
        ThreadPoolExecutor(1) as pool,
    ):
        running = pool.submit(runner.run, call, operation, cancelled=cancelled)
        try:
            done = running.result()
        except KeyboardInterrupt:
            cancelled.set()  # makes the call clean up, unless it has finished
            done = running.result()
    for line in compaction_lines(location.uri, done):
        logger.info(f"  {line}")


def reset_shard(adapter: Any, location: Any, aws_connection: Any, confirm: Any) -> None:
    """Resets a shard: the next run of its model writes all rows."""
    connection, place = _shard_at(adapter, "reset_shard", location, aws_connection)
    if confirm is not True:
        arguments = f"location: {location}"
        if aws_connection != DEFAULT_NAME:
            arguments += f", aws_connection: {aws_connection}"
        raise ShardError(
            f"{place.uri}: reset_shard takes away all times that can be read of the shard, and "
            "the next run of its model writes all rows. If that is what you want, say so: "
            + operation_command("reset_shard", f"{arguments}, confirm: true")
        )
    try:
        before = StateStore(open_store(connection, place), place).reset()
    except UnknownWriteError as exc:
        raise UnknownWriteError(
            f"{exc}: look with describe_shard before you run it again"
        ) from exc
    logger.info(f"  {reset_line(place.uri, before)}")


def _shard_at(
    adapter: Any, operation: str, location: Any, aws_connection: Any
) -> tuple[AwsConnection, S3Location]:
    """The shard that the arguments name; raises ConfigError for wrong arguments."""
    _require_texts(operation, location=location, aws_connection=aws_connection)
    connections = adapter.config.credentials.connections
    return named_target(operation, connections, aws_connection, location)


def _require_texts(operation: str, **arguments: Any) -> None:
    """Raises ConfigError with every given argument that is not a text."""
    wrong = [
        f"{name} must be a text, not {value!r}"
        for name, value in arguments.items()
        if value is not None and not isinstance(value, str)
    ]
    Problems(operation, wrong).raise_if_any()
