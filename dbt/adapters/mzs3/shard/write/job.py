"""A complete run of a `persist_shard` model, called by the model's compiled job."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from dbt.adapters.mzs3.errors import ShardError
from dbt.adapters.mzs3.events import Committed, EventSink, copy_warning, ignore_event
from dbt.adapters.mzs3.options.values import Problems
from dbt.adapters.mzs3.shard.options import parse_shard_options
from dbt.adapters.mzs3.shard.read.rows import ShardLocation, changes_in
from dbt.adapters.mzs3.shard.rows import additions
from dbt.adapters.mzs3.shard.state.state import ShardBatch, ShardState
from dbt.adapters.mzs3.shard.state.store import (
    LostRaceError,
    StateStore,
    UnknownWriteError,
    pause,
)
from dbt.adapters.mzs3.shard.write.batch import BatchWriter, committing, write_batch
from dbt.adapters.mzs3.shard.write.diff import digest_of
from dbt.adapters.mzs3.shard.write.model import (
    ShardRun,
    changes_of,
    checked_frame,
    evolve_shard,
    model_rows,
    type_problems,
)
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES
from dbt.adapters.mzs3.spark.interrupt import interruptible
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.opened import open_store
from dbt.adapters.mzs3.text import count_noun
from dbt.adapters.mzs3.upload.destination import resolve_location

# Several attempts, as each concurrent compaction changes the state twice.
_ATTEMPTS = 8

MOST_AHEAD_MS = 10 * 60_000


def persist_shard(
    spark: SparkSession,
    query: str,
    *,
    node: str,
    options: Mapping[str, Any],
    connections: Mapping[str, AwsConnection],
    as_of: int,
    cancelled: threading.Event | None = None,
    tell: EventSink = ignore_event,
) -> Committed:
    """Appends a batch to the shard: the rows of `query` or, in mode diff, the changes to them.

    The changes have the time `as_of`, in ms since the epoch, or the shard's `upper` if that is
    later. After a lost race with another run, starts over, a few times. `tell` gets warnings. In
    the result, `manifest` is the URI of the shard's state, and `rows` counts changes. Raises an
    Mzs3Error, after which the shard is unchanged, except after an UnknownWriteError.
    """
    parsed = parse_shard_options(node, options, connections)
    problems = Problems(node)
    frame = location = None
    with problems.gathered():
        frame = checked_frame(spark, node, query)
        problems.found += type_problems(frame.schema, parsed.column_types).values()
    with problems.gathered():
        location = resolve_location(spark, node, parsed.location, as_of)
    if frame is None or location is None:  # else `evolve_shard` reports wrong `column_types`
        problems.raise_if_any()
        raise AssertionError
    shard = ShardLocation(connections[parsed.aws_connection], location)
    run = ShardRun(spark, node, frame, parsed, shard, as_of, cancelled, tell)
    for attempt in range(_ATTEMPTS):
        try:
            with interruptible(spark, cancelled):
                return _write_once(run, warns=attempt == 0)
        except UnknownWriteError as exc:
            raise UnknownWriteError(
                f"{node}: {exc}, and the batch with it: look with `dbt run-operation "
                f"describe_shard --args '{{location: {location.uri}}}'` before you run it again, "
                "as mode: append would add its rows twice"
            ) from exc
        except LostRaceError as exc:
            if attempt == _ATTEMPTS - 1:
                raise ShardError(
                    f"{node}: {_ATTEMPTS} times another run changed the shard while this one "
                    f"wrote: {exc}. The shard has nothing of this run; run it again when fewer "
                    "write to the shard"
                ) from exc
            pause(attempt)
    raise AssertionError


def _write_once(run: ShardRun, *, warns: bool) -> Committed:
    """Makes one attempt. Raises LostRaceError if another run was faster."""
    store = StateStore(open_store(run.shard.connection, run.shard.location), run.shard.location)
    before = store.read()
    state = None if before is None else before.state
    store.require_conditions()
    if warns and (text := clock_warning(run.as_of, state.upper if state else 0, store.clock)):
        _warn(run, text)
    state = evolve_shard(run, state)
    moment = max(run.as_of, state.upper)
    batch = ShardBatch(state.upper, moment + 1, state.schema.id, run.options.encoding)
    if not is_unchanged(run, state):
        # The files are not part of the shard until the commit.
        changes = partial(changes_of, run, state, moment)
        doing = f"{run.node}: writing to {store.prefix.uri}"
        writer = BatchWriter(
            run.shard.connection, store.prefix, doing, run.cancelled, run.options.sizes
        )
        batch = write_batch(writer, batch, state.schema.columns, changes)
    with committing(store, batch.files):
        after = with_digest(run, state.appended(batch), batch)
        store.write(before, after)
    changed = batch.additions + batch.retractions
    if run.cancelled and run.cancelled.is_set():
        # dbt reports the model as cancelled nevertheless.
        again = "; to run it again adds its rows twice" if run.options.mode == "append" else ""
        _warn(
            run,
            "the run was cancelled too late: its batch is part of the shard, and stays: "
            f"{count_noun(changed, 'change')}, {count_noun(len(batch.files), 'file')}{again}",
        )
    return Committed(changed, store.prefix.uri, store.uri, len(batch.files), batch.bytes, moment)


def _warn(run: ShardRun, text: str) -> None:
    uri = run.shard.location.uri
    run.tell(copy_warning(run.node, run.node, uri, f"{uri}: {text}"))


def is_unchanged(run: ShardRun, state: ShardState) -> bool:
    """Whether the model's rows have the shard's digest, so that no diff is needed."""
    if run.options.mode != "diff" or not state.digest:
        return False
    rows = model_rows(run.frame, state.schema.columns)
    try:
        return digest_of(additions(rows), rows.columns) == state.digest
    except SPARK_FAILURES:
        return False  # the diff fails in the same way, and reports that


def with_digest(run: ShardRun, after: ShardState, batch: ShardBatch) -> ShardState:
    """The state with a digest of its rows, if this run has found them unchanged.

    The digest is of the shard's files, as a model's query may return different rows each time.
    """
    if run.options.mode != "diff" or batch.files or after.digest:
        return after
    columns = after.schema.columns
    stored = changes_in(run.spark, run.shard, after.batches, columns)
    try:
        digest = digest_of(stored, [f"c{place}" for place in range(len(columns))])
    except SPARK_FAILURES:
        return after
    return replace(after, digest=digest)


def clock_warning(as_of: int, upper: int, s3_time: int | None) -> str | None:
    """A warning if the clock of this host, or of the last batch's host, is ahead of S3's; or None.

    Times are in ms since the epoch; `upper` is the shard's.
    """
    if s3_time is None:
        return None
    ahead, last_ahead = as_of - s3_time, upper - s3_time
    if ahead > MOST_AHEAD_MS:
        return (
            f"the clock of this host is {ahead // 60_000} minutes ahead of S3's: the "
            "changes of this run get that time, and those of later runs no earlier one; set the "
            "clock"
        )
    if last_ahead > MOST_AHEAD_MS:
        return (
            f"the last batch of the shard is of a time {last_ahead // 60_000} minutes ahead "
            "of S3's clock, as the clock of the host that wrote it was; until that time has come, "
            "the changes of each run are 1 ms after those of the one before, not of its own time"
        )
    return None
