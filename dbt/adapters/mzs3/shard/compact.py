"""Compaction: merges batches into one, deletes files that no batch uses any more, and aborts
uploads that killed runs left open."""

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
    MAX_SORTED_PARTS,
    SAMPLES_OF_A_PART,
    consolidate,
    part_count,
    sort_across_parts,
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
    """A plan to merge the batches `old` into one, with `schema`, sorted by `sort_by`."""

    old: tuple[ShardBatch, ...]
    schema: Schema
    encoding: BatchEncoding
    sort_by: tuple[Column, ...]

    @property
    def since(self) -> int:
        """The time of the new batch: the shard can't be read as of earlier times any more."""
        return self.old[-1].moment

    @property
    def rows(self) -> int:
        """The number of changes in the old batches."""
        return sum(batch.rows for batch in self.old)

    @property
    def most_rows(self) -> int:
        """An upper bound for the number of changes in the new batch."""
        remaining = sum(batch.additions - batch.retractions for batch in self.old)
        return min(remaining, self.rows)


def compaction_plan(state: ShardState, request: CompactionRequest) -> CompactionPlan | None:
    """The plan for a request, or None if the shard is already as requested.

    Merges all batches that end at or before the request's `since`. Raises ShardError for a time
    that the shard has not reached, and ConfigError for a column that it does not have.
    """
    frontier = _frontier(state, request)
    old = tuple(batch for batch in state.batches if batch.moment <= frontier)
    if not old:
        return None
    since = old[-1].moment
    schema = state.schema_at(since)
    with_files = [batch for batch in old if batch.files]
    last = with_files[-1] if with_files else old[-1]
    encoding = request.encoding or last.encoding
    plan = CompactionPlan(old, schema, encoding, _sort_columns(schema, request, old))
    if len(old) > 1 or state.since < since:
        return plan  # even a single batch may have several changes of the same row
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
        # Only compactions set a batch's `sort_by`: the newest has the order last requested.
        by_tag = {column.tag: column for column in schema.columns}
        newest = next((batch.sort_by for batch in reversed(old) if batch.sort_by), ())
        return tuple(by_tag[tag] for tag in newest if tag in by_tag)
    problems = sort_problems(request.sort_by, [column.name for column in schema.columns])
    if problems:
        raise ConfigError(COMPACTION, problems)
    return schema.named(request.sort_by)[0]


# No run takes a week: the run of an upload that is open for longer was killed.
LONGEST_UPLOAD_MS = 7 * 24 * 60 * 60 * 1000

_ANY_TIME = 1 << 62


@dataclass(frozen=True)
class Compacted:
    """The result of a compaction: the batch `new` replaced `old`; None if nothing was merged.

    `state` is the shard's state afterwards, `removed` are the deleted files, `aborted` counts
    aborted uploads, and `problems` say which uploads could not be listed or aborted.
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
    """Merges all batches up to a time; readers as of that time or later get the same rows.

    Concurrent runs lose no batch: they retry. Then deletes files that no batch uses, and aborts
    uploads of killed runs, if they are too old for readers or writers to need them. Once
    `cancelled` is set, no Spark job finishes. Raises an Mzs3Error, after which the shard can be
    read as before.
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
    """Writes the new batch and commits it. Raises ShardError if files were deleted meanwhile."""
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
        # The time of the commit, not of the start: until now, new readers used the old files.
        return state.compacted(plan.old, new, store.now())

    with committing(store, new.files):
        store.change(change)
    return new


def compacted_rows(
    spark: SparkSession, shard: ShardLocation, plan: CompactionPlan, parts: int | None
) -> DataFrame:
    """The consolidated rows as of the plan's `since`, with one Spark partition per part."""
    columns = plan.schema.columns
    names = [f"c{place}" for place in range(len(columns))]
    changes = changes_in(spark, shard, plan.old, columns)
    time = F.lit(plan.since).cast("bigint").alias("t")
    rows = consolidate(changes, names).select(time, "d", *names)
    parts = parts or part_count(plan.most_rows, plan.old, default_parallelism(spark))
    if not plan.sort_by:
        return in_parts(rows, parts)
    parts = min(parts, MAX_SORTED_PARTS)
    keys = [f"c{columns.index(column)}" for column in plan.sort_by]
    every = max(1, plan.rows // (parts * SAMPLES_OF_A_PART))
    sample = changes_in(spark, shard, plan.old, plan.sort_by, every=every)
    return sort_across_parts(rows, keys, sample.drop("t", "d").toDF(*keys), parts)


def abort_killed(prefix: Prefix, keep_ms: int) -> tuple[int, Sequence[str]]:
    """Aborts uploads older than both `keep_ms` and a week. Returns their number and problems."""
    try:
        latest = prefix.now() - max(keep_ms, LONGEST_UPLOAD_MS)
        old = list(prefix.uploads(prefix.key(BATCHES), begun_by=latest))
    except StoreError as exc:
        doing = f"looking for uploads that killed runs left open below {prefix.uri}"
        return 0, [describe(exc, doing, "s3:ListBucketMultipartUploads")]
    problems = abort_all(prefix, old)
    return len(old) - len(problems), problems


def sweep(store: StateStore, keep_ms: int) -> tuple[ShardState, Sequence[ListedObject]]:
    """Deletes the files that no batch uses: those of compacted batches and of crashed runs.

    Returns the state afterwards, and the files. As readers may still use a file, it is kept until
    `keep_ms` after it was written and after it was retired. The state is changed before files are
    deleted: a run that is still writing loses the race, so it can't commit deleted files. Raises
    S3Error and ShardError.
    """
    prefix, state = store.prefix, store.existing().state
    used, retired = state.file_names, {file.name: file.at for file in state.retired}
    with explained(f"removing files of {prefix.uri}", "s3:ListBucket and s3:DeleteObject"):
        # With `keep_ms` 0, files of any time: S3's clock has whole seconds, so it may be behind.
        latest = prefix.now() - keep_ms if keep_ms else _ANY_TIME
        unused = {}
        for listed in prefix.objects(BATCHES):
            name = listed.key.removeprefix(prefix.location.prefix)
            if name not in used and max(listed.modified_ms, retired.get(name, 0)) <= latest:
                unused[name] = listed
        expired = {name for name, at in retired.items() if at <= latest}
        if not unused and not expired:
            return state, ()
        after = store.change(lambda state: state.after_sweep({*expired, *unused})).state
        # Another run may have committed some of the files before `change` read the state again.
        used = after.file_names
        removed = [listed for name, listed in unused.items() if name not in used]
        for failed in delete_many(prefix, [listed.key for listed in removed]).values():
            raise failed
    return after, removed
