"""A compaction from end to end: batches merged, then files removed that no batch names."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.mzs3.aws.client import s3_client, s3_now
from dbt.adapters.mzs3.aws.failures import AwsFailure, describe
from dbt.adapters.mzs3.errors import S3Error, ShardError
from dbt.adapters.mzs3.objects.prefix import Prefix, abort_all, map_concurrently
from dbt.adapters.mzs3.rows.plan import in_parts
from dbt.adapters.mzs3.shard.compact.plan import CompactionPlan, CompactionRequest, compaction_plan
from dbt.adapters.mzs3.shard.read.rows import ShardLocation, changes_in
from dbt.adapters.mzs3.shard.rows.changes import consolidated
from dbt.adapters.mzs3.shard.rows.parts import (
    MOST_PARTS_OF_A_RUN,
    SAMPLES_OF_A_PART,
    part_count,
    sorted_runs,
)
from dbt.adapters.mzs3.shard.state.state import ShardBatch, ShardState
from dbt.adapters.mzs3.shard.state.store import Read, StateStore, UnknownWriteError
from dbt.adapters.mzs3.shard.write.batch import BATCHES, committing, write_batch
from dbt.adapters.mzs3.spark.interrupt import interruptible
from dbt.adapters.mzs3.spark.settings import default_parallelism

# Of a run that is not killed, no upload is open for a week.
LONGEST_UPLOAD_MS = 7 * 24 * 60 * 60 * 1000

_NEWEST = 1 << 62


@dataclass(frozen=True)
class Compacted:
    """The result of a compaction: `new` replaces the batches `old`, or is None without any."""

    old: tuple[ShardBatch, ...]
    new: ShardBatch | None
    since: int
    swept: Swept
    aborted: Aborted


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
    prefix = Prefix(s3_client(shard.connection), shard.location)
    store = StateStore(prefix.client, shard.location)
    before = store.existing()
    store.require_conditions()
    plan = compaction_plan(before.state, request)
    new = None
    try:
        if plan is not None:
            work = _Compaction(spark, shard, prefix, store, request, cancelled)
            with interruptible(spark, cancelled):
                new = work.carried_out(before, plan)
        swept = sweep(prefix, store, request.keep_ms)
    except UnknownWriteError as exc:
        raise UnknownWriteError(
            f"{exc}. Readers find the same rows either way: run it again"
        ) from exc
    aborted = abort_killed(prefix, request.keep_ms)
    return Compacted(plan.old if plan else (), new, swept.state.since, swept, aborted)


@dataclass(frozen=True)
class _Compaction:
    spark: SparkSession
    shard: ShardLocation
    prefix: Prefix
    store: StateStore
    request: CompactionRequest
    cancelled: threading.Event | None

    def carried_out(self, before: Read, plan: CompactionPlan) -> ShardBatch:
        """The batch that has replaced the old ones."""
        new = self._written(plan)

        def change(state: ShardState) -> ShardState:
            if state.sweeps != before.state.sweeps:
                raise ShardError(
                    f"another compaction removed files of {self.prefix.uri} in the meantime, "
                    "which may be those of this one; run it again"
                )
            # From now on, not from when the work began, only earlier readers need the old files.
            return state.compacted(plan.old, new, plan.since, self._now())

        with committing(self.prefix, self.store, new.files):
            self.store.change(change)
        return new

    def _now(self) -> int:
        try:
            return s3_now(self.prefix.client, self.prefix.location)
        except AwsFailure as exc:
            doing = f"asking {self.prefix.uri} what time it is"
            raise S3Error(describe(exc, doing, "s3:ListBucket")) from exc

    def _written(self, plan: CompactionPlan) -> ShardBatch:
        """The new batch; its files are objects that no state names yet."""
        sort_by = tuple(column.tag for column in plan.sort_by)
        batch = ShardBatch(0, plan.old[-1].upper, plan.schema.id, plan.encoding, sort_by=sort_by)
        if not plan.rows:
            return batch
        return write_batch(
            self.shard,
            self.prefix,
            batch,
            plan.schema.columns,
            partial(self._parts, plan),
            f"compacting {self.prefix.uri}",
            self.cancelled,
            max_file_size=self.request.max_file_size,
        )

    def _parts(self, plan: CompactionPlan) -> DataFrame:
        """The consolidated rows as of `since`, partitioned as files are."""
        columns = plan.schema.columns
        names = [f"c{place}" for place in range(len(columns))]
        changes = changes_in(self.spark, self.shard, plan.old, columns)
        time = F.lit(plan.since).cast("bigint").alias("t")
        rows = consolidated(changes, names).select(time, "d", *names)
        parts = self.request.parts or part_count(
            plan.most_rows, plan.old, default_parallelism(self.spark)
        )
        if not plan.sort_by:
            return in_parts(rows, parts)
        parts = min(parts, MOST_PARTS_OF_A_RUN)
        keys = [f"c{columns.index(column)}" for column in plan.sort_by]
        every = max(1, plan.rows // (parts * SAMPLES_OF_A_PART))
        sample = changes_in(self.spark, self.shard, plan.old, plan.sort_by, every=every)
        return sorted_runs(rows, keys, sample.drop("t", "d").toDF(*keys), parts)


@dataclass(frozen=True)
class Aborted:
    """The number of uploads that were aborted, and what failed."""

    uploads: int = 0
    problems: tuple[str, ...] = ()


def abort_killed(prefix: Prefix, keep_ms: int) -> Aborted:
    """Abort the uploads of batches that were begun `keep_ms` ago, and no less than a week ago.

    Failures are reported, not raised: the compaction is done without.
    """
    try:
        oldest = s3_now(prefix.client, prefix.location) - max(keep_ms, LONGEST_UPLOAD_MS)
        old = list(prefix.uploads(prefix.key(BATCHES), begun_by=oldest))
    except AwsFailure as exc:
        doing = f"looking for uploads that killed runs left open below {prefix.uri}"
        return Aborted(0, (describe(exc, doing, "s3:ListBucketMultipartUploads"),))
    problems = abort_all(prefix, old)
    return Aborted(len(old) - len(problems), tuple(problems))


@dataclass(frozen=True)
class Swept:
    """The number of files that were removed, their bytes, and the state afterwards."""

    files: int
    bytes: int
    state: ShardState


def sweep(prefix: Prefix, store: StateStore, keep_ms: int) -> Swept:
    """Remove the files that no batch names, left by compactions and by runs that crashed.

    A file is kept for `keep_ms` after it was written or, of a compacted batch, replaced, as
    readers may still use it. A file of a run that is still writing is never lost, however long
    that takes: the state is changed before anything is removed, so that the run begins again.
    Raises S3Error, ShardError.
    """
    state = store.existing().state
    named, retired = state.file_names, {file.name: file.at for file in state.retired}
    try:
        # S3's clock is read in seconds: whoever keeps nothing means what is new as well.
        oldest = s3_now(prefix.client, prefix.location) - keep_ms if keep_ms else _NEWEST
        there = {
            found.key.removeprefix(prefix.location.prefix): found
            for found in prefix.objects(BATCHES)
        }
        doomed = {
            name: found
            for name, found in there.items()
            if name not in named and max(found.modified, retired.get(name, 0)) <= oldest
        }
        past = {name for name, at in retired.items() if at <= oldest}
        if not doomed and not past:
            return Swept(0, 0, state)
        after = store.change(lambda state: state.swept({*past, *doomed})).state
        # What was committed between the two reads of the state is the shard's now.
        named = after.file_names
        removed = [found for name, found in doomed.items() if name not in named]
        map_concurrently(removed, lambda found: prefix.delete(found.key))
    except AwsFailure as exc:
        needed = "s3:ListBucket and s3:DeleteObject"
        raise S3Error(describe(exc, f"removing files of {prefix.uri}", needed)) from exc
    return Swept(len(removed), sum(found.size for found in removed), after)
