"""Compaction: one batch in the place of many; files that no batch names are removed, and uploads
that killed runs left open are aborted."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.mzs3.errors import ConfigError, ShardError
from dbt.adapters.mzs3.rows.plan import in_parts
from dbt.adapters.mzs3.shard.options import COMPACTION, LATEST, CompactionRequest, sort_problems
from dbt.adapters.mzs3.shard.read.rows import ShardLocation, changes_in
from dbt.adapters.mzs3.shard.rows import (
    MOST_PARTS_OF_A_RUN,
    SAMPLES_OF_A_PART,
    consolidate,
    part_count,
    sort_runs,
)
from dbt.adapters.mzs3.shard.state.state import Schema, ShardBatch, ShardState
from dbt.adapters.mzs3.shard.state.store import StateStore, UnknownWriteError
from dbt.adapters.mzs3.shard.types import BatchEncoding, Column
from dbt.adapters.mzs3.shard.write.batch import BATCHES, BatchWriter, committing, write_batch
from dbt.adapters.mzs3.spark.frames import default_parallelism
from dbt.adapters.mzs3.spark.interrupt import interruptible
from dbt.adapters.mzs3.store.failures import StoreError, describe, explained
from dbt.adapters.mzs3.store.opened import open_store
from dbt.adapters.mzs3.store.prefix import Prefix, abort_all, delete_many
from dbt.adapters.mzs3.store.store import ListedObject
from dbt.adapters.mzs3.text import moment_text


@dataclass(frozen=True)
class CompactionPlan:
    """The batches `old` become one, in the columns of `schema`, sorted by some of them."""

    old: tuple[ShardBatch, ...]
    schema: Schema
    encoding: BatchEncoding
    sort_by: tuple[Column, ...]

    @property
    def since(self) -> int:
        """The time of the new batch: readers as of earlier ones find nothing any more."""
        return self.old[-1].moment

    @property
    def rows(self) -> int:
        """The number of changes in the old batches."""
        return sum(batch.rows for batch in self.old)

    @property
    def most_rows(self) -> int:
        """An upper bound of the changes in the new batch."""
        there = sum(batch.additions - batch.retractions for batch in self.old)
        return min(there, self.rows)


def compaction_plan(state: ShardState, request: CompactionRequest) -> CompactionPlan | None:
    """What to do, or None if the shard is already as requested.

    All batches that end at or before the request's `since` are merged. Raises ShardError for a
    time that the shard has not reached, ConfigError for a column that it does not have.
    """
    frontier = _frontier(state, request)
    old = tuple(batch for batch in state.batches if batch.moment <= frontier)
    if not old:
        return None
    since = old[-1].moment
    schema = state.schema_at(since)
    written = [batch for batch in old if batch.files]
    last = written[-1] if written else old[-1]
    encoding = request.encoding or last.encoding
    plan = CompactionPlan(old, schema, encoding, _sort_columns(schema, request, old))
    if len(old) > 1 or state.since < since:
        return plan  # what one run has written may repeat rows
    [batch] = old
    as_planned = schema.id, encoding, tuple(column.tag for column in plan.sort_by)
    is_done = (batch.schema, batch.encoding, batch.sort_by) == as_planned or not batch.files
    return None if is_done else plan


def _frontier(state: ShardState, request: CompactionRequest) -> int:
    if request.since == LATEST:
        return state.upper - 1
    if request.since is None:
        return state.since
    if int(request.since) >= state.upper:
        raise ShardError(
            f"the shard has been written up to {moment_text(state.upper - 1)}; it can't be "
            f"compacted as of {moment_text(int(request.since))}, which may still change. Give an "
            f"earlier since, or {LATEST}"
        )
    return max(int(request.since), state.since)


def _sort_columns(
    schema: Schema, request: CompactionRequest, old: tuple[ShardBatch, ...]
) -> tuple[Column, ...]:
    if request.sort_by is None:
        # Only compactions sort from file to file, and what runs have added since is no choice.
        by_tag = {column.tag: column for column in schema.columns}
        newest = next((batch.sort_by for batch in reversed(old) if batch.sort_by), ())
        return tuple(by_tag[tag] for tag in newest if tag in by_tag)
    problems = sort_problems(request.sort_by, [column.name for column in schema.columns])
    if problems:
        raise ConfigError(COMPACTION, problems)
    return schema.named(request.sort_by)[0]


# No run takes a week: a run that has an upload open for longer was killed.
LONGEST_UPLOAD_MS = 7 * 24 * 60 * 60 * 1000

_NEWEST = 1 << 62


@dataclass(frozen=True)
class Compacted:
    """The result of a compaction: `new` replaces the batches `old`, or is None without any.

    `state` is the shard's afterwards, `removed` are files that no batch names, `aborted` counts
    uploads, and `problems` say which uploads could not be listed or aborted.
    """

    old: tuple[ShardBatch, ...]
    new: ShardBatch | None
    state: ShardState
    removed: Sequence[ListedObject]
    aborted: int
    problems: Sequence[str]


def compact_shard(
    spark: SparkSession,
    shard: ShardLocation,
    request: CompactionRequest,
    cancelled: threading.Event | None = None,
) -> Compacted:
    """Merge all batches up to a time; readers from that time on find the same rows as before.

    Concurrent runs lose no batch: they begin again. Files that no batch names, and uploads that
    killed runs left open, are removed once they are so old that no reader or writer needs them.
    Once `cancelled` is set, no Spark job finishes. Raises an Mzs3Error; the shard can then still
    be read as before.
    """
    store = StateStore(open_store(shard.connection, shard.location), shard.location)
    before = store.existing()
    store.require_conditions()
    plan = compaction_plan(before.state, request)
    new = None
    try:
        if plan is not None:
            doing, sizes = f"compacting {store.prefix.uri}", request.sizes
            writer = BatchWriter(shard.connection, store.prefix, doing, cancelled, sizes)
            sweeps = before.state.sweeps
            with interruptible(spark, cancelled):
                new = _merge_batches(spark, store, plan, sweeps, writer, request.parts)
        state, removed = sweep(store, request.keep_ms)
    except UnknownWriteError as exc:
        raise UnknownWriteError(
            f"{exc}. Readers find the same rows either way: run it again"
        ) from exc
    aborted, problems = abort_killed(store.prefix, request.keep_ms)
    return Compacted(plan.old if plan else (), new, state, removed, aborted, problems)


def _merge_batches(
    spark: SparkSession,
    store: StateStore,
    plan: CompactionPlan,
    sweeps: int,
    writer: BatchWriter,
    parts: int | None,
) -> ShardBatch:
    """Write the new batch and put it in the place of the old ones, if none was removed since."""
    sort_by = tuple(column.tag for column in plan.sort_by)
    new = ShardBatch(0, plan.old[-1].upper, plan.schema.id, plan.encoding, sort_by=sort_by)
    if plan.rows:
        shard = ShardLocation(writer.connection, store.prefix.location)
        rows = partial(compacted_rows, spark, shard, plan, parts)
        new = write_batch(writer, new, plan.schema.columns, rows)

    def change(state: ShardState) -> ShardState:
        if state.sweeps != sweeps:
            raise ShardError(
                f"another compaction removed files of {store.prefix.uri} in the meantime, "
                "which may be those of this one, or the shard was reset; run it again"
            )
        # From now on, not from when the work began, only earlier readers need the old files.
        return state.compacted(plan.old, new, store.now())

    with committing(store, new.files):
        store.change(change)
    return new


def compacted_rows(
    spark: SparkSession, shard: ShardLocation, plan: CompactionPlan, parts: int | None
) -> DataFrame:
    """The consolidated rows as of `since`, partitioned as files are."""
    columns = plan.schema.columns
    names = [f"c{place}" for place in range(len(columns))]
    changes = changes_in(spark, shard, plan.old, columns)
    time = F.lit(plan.since).cast("bigint").alias("t")
    rows = consolidate(changes, names).select(time, "d", *names)
    parts = parts or part_count(plan.most_rows, plan.old, default_parallelism(spark))
    if not plan.sort_by:
        return in_parts(rows, parts)
    parts = min(parts, MOST_PARTS_OF_A_RUN)
    keys = [f"c{columns.index(column)}" for column in plan.sort_by]
    every = max(1, plan.rows // (parts * SAMPLES_OF_A_PART))
    sample = changes_in(spark, shard, plan.old, plan.sort_by, every=every)
    return sort_runs(rows, keys, sample.drop("t", "d").toDF(*keys), parts)


def abort_killed(prefix: Prefix, keep_ms: int) -> tuple[int, Sequence[str]]:
    """Abort uploads older than `keep_ms` and a week; returns their number, and what failed."""
    try:
        oldest = prefix.now() - max(keep_ms, LONGEST_UPLOAD_MS)
        old = list(prefix.uploads(prefix.key(BATCHES), begun_by=oldest))
    except StoreError as exc:
        doing = f"looking for uploads that killed runs left open below {prefix.uri}"
        return 0, [describe(exc, doing, "s3:ListBucketMultipartUploads")]
    problems = abort_all(prefix, old)
    return len(old) - len(problems), problems


def sweep(store: StateStore, keep_ms: int) -> tuple[ShardState, Sequence[ListedObject]]:
    """Remove the files that no batch names, left by compactions and by runs that crashed.

    Returns the state afterwards, and the files. A file is kept for `keep_ms` after it was written
    or, of a compacted batch, replaced, as readers may still use it. A run that is still writing
    loses none that it commits: the state is changed before anything is removed, so that the run
    begins again. Raises S3Error, ShardError.
    """
    prefix, state = store.prefix, store.existing().state
    named, retired = state.file_names, {file.name: file.at for file in state.retired}
    with explained(f"removing files of {prefix.uri}", "s3:ListBucket and s3:DeleteObject"):
        # S3's clock is read in seconds: whoever keeps nothing means what is new as well.
        oldest = prefix.now() - keep_ms if keep_ms else _NEWEST
        doomed = {}
        for found in prefix.objects(BATCHES):
            name = found.key.removeprefix(prefix.location.prefix)
            if name not in named and max(found.modified_ms, retired.get(name, 0)) <= oldest:
                doomed[name] = found
        expired = {name for name, at in retired.items() if at <= oldest}
        if not doomed and not expired:
            return state, ()
        after = store.change(lambda state: state.swept({*expired, *doomed})).state
        # What was committed between the two reads of the state is the shard's now.
        named = after.file_names
        removed = [found for name, found in doomed.items() if name not in named]
        for failed in delete_many(prefix, [found.key for found in removed]).values():
            raise failed
    return after, removed
