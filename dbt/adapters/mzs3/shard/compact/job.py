"""A compaction from end to end: batches into one on Spark, then what no batch names removed."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.mzs3.aws.client import s3_client
from dbt.adapters.mzs3.aws.clock import s3_now
from dbt.adapters.mzs3.aws.failures import AwsFailure, describe
from dbt.adapters.mzs3.errors import S3Error, ShardError
from dbt.adapters.mzs3.objects.prefix import Place
from dbt.adapters.mzs3.rows.plan import in_parts
from dbt.adapters.mzs3.shard.compact.killed import Aborted, abort_killed
from dbt.adapters.mzs3.shard.compact.plan import CompactionPlan, compaction_plan
from dbt.adapters.mzs3.shard.compact.request import CompactionRequest
from dbt.adapters.mzs3.shard.compact.sweep import Swept, sweep
from dbt.adapters.mzs3.shard.read.rows import Shelf, changes_in, keys_in
from dbt.adapters.mzs3.shard.rows.changes import consolidated
from dbt.adapters.mzs3.shard.rows.runs import (
    MOST_PARTS_OF_A_RUN,
    SAMPLES_OF_A_PART,
    run_bounds,
    sorted_runs,
)
from dbt.adapters.mzs3.shard.state.batch import Batch
from dbt.adapters.mzs3.shard.state.state import ShardState
from dbt.adapters.mzs3.shard.state.store import Read, StateStore, UnknownWriteError
from dbt.adapters.mzs3.shard.write.clean_up import cleaned_up
from dbt.adapters.mzs3.shard.write.commit import committing
from dbt.adapters.mzs3.shard.write.parts import part_count
from dbt.adapters.mzs3.shard.write.spec import batch_spec
from dbt.adapters.mzs3.shard.write.upload import make_visible, upload
from dbt.adapters.mzs3.spark.interrupt import interruptible
from dbt.adapters.mzs3.spark.parallelism import default_parallelism


@dataclass(frozen=True)
class Compacted:
    """What a compaction did: `old` batches became `new`, or none did; files were removed."""

    old: tuple[Batch, ...]
    new: Batch | None
    since: int
    swept: Swept
    aborted: Aborted


def compact_shard(
    spark: SparkSession,
    shelf: Shelf,
    request: CompactionRequest,
    cancelled: threading.Event | None = None,
) -> Compacted:
    """One batch for all up to a time, from which on readers find the same rows as before.

    Runs that write meanwhile lose no batch: they begin again. Files that no batch names are
    removed once they are old enough for no reader or writer to need them, and so are uploads that
    killed runs left open. Once `cancelled` is set, no job of Spark's comes to its end. Raises an
    Mzs3Error; the shard can then still be read as before.
    """
    place = Place(s3_client(shelf.connection), shelf.location)
    store = StateStore(place.client, shelf.location)
    before = store.existing()
    store.require_conditions()
    plan = compaction_plan(before.state, request)
    new = None
    try:
        if plan is not None:
            work = _Compaction(spark, shelf, place, store, request, cancelled)
            with interruptible(spark, cancelled):
                new = work.carried_out(before, plan)
        swept = sweep(place, store, request.keep_ms)
    except UnknownWriteError as exc:
        raise UnknownWriteError(
            f"{exc}. Readers find the same rows either way: run it again"
        ) from exc
    aborted = abort_killed(place, request.keep_ms)
    return Compacted(plan.old if plan else (), new, swept.state.since, swept, aborted)


@dataclass(frozen=True)
class _Compaction:
    spark: SparkSession
    shelf: Shelf
    place: Place
    store: StateStore
    request: CompactionRequest
    cancelled: threading.Event | None

    def carried_out(self, before: Read, plan: CompactionPlan) -> Batch:
        """The batch that now is in the place of the old ones."""
        new = self._written(plan)

        def change(state: ShardState) -> ShardState:
            if state.sweeps != before.state.sweeps:
                raise ShardError(
                    f"another compaction removed files of {self.place.uri} in the meantime, which "
                    "may be those of this one; run it again"
                )
            # From now on, not from when the work began, only earlier readers need the old files.
            return state.compacted(plan.old, new, plan.since, self._now())

        with committing(self.place, self.store, new.files):
            self.store.change(change)
        return new

    def _now(self) -> int:
        try:
            return s3_now(self.place.client, self.place.location)
        except AwsFailure as exc:
            doing = f"asking {self.place.uri} what time it is"
            raise S3Error(describe(exc, doing, "s3:ListBucket")) from exc

    def _written(self, plan: CompactionPlan) -> Batch:
        """The batch, in files that no state names yet."""
        sort_by = tuple(column.tag for column in plan.sort_by)
        empty = Batch(0, plan.old[-1].upper, plan.schema.id, plan.encoding, sort_by=sort_by)
        if not plan.rows:
            return empty
        columns = plan.schema.columns
        spec = batch_spec(self.shelf, columns, plan.encoding, plan.since, self.request)
        doing = f"compacting {self.place.uri}"
        with cleaned_up(self.place, spec.prefix, doing, self.cancelled) as opened:
            parts = self._parts(plan)
            opened.files = None
            uploaded = upload(self.place, parts, spec)
            opened.files = uploaded.files
            files = make_visible(self.place, uploaded.files)
        return Batch(
            empty.lower,
            empty.upper,
            empty.schema,
            empty.encoding,
            files,
            uploaded.additions,
            uploaded.retractions,
            sort_by,
        )

    def _parts(self, plan: CompactionPlan) -> DataFrame:
        """The consolidated rows as of `since`, in the parts that become files."""
        columns = plan.schema.columns
        names = [f"c{place}" for place in range(len(columns))]
        changes = changes_in(self.spark, self.shelf, plan.old, columns)
        rows = consolidated(changes, names)
        time = F.lit(plan.since).cast("bigint").alias("t")
        rows = rows.select(time, "d", *names)
        parts = self.request.parts or part_count(
            plan.most_rows, plan.old, default_parallelism(self.spark)
        )
        if not plan.sort_by:
            return in_parts(rows, parts)
        parts = min(parts, MOST_PARTS_OF_A_RUN)
        keys = [f"c{columns.index(column)}" for column in plan.sort_by]
        return sorted_runs(rows, keys, self._bounds(plan, keys, parts), parts)

    def _bounds(self, plan: CompactionPlan, keys: list[str], parts: int) -> DataFrame:
        every = max(1, plan.rows // (parts * SAMPLES_OF_A_PART))
        sample = keys_in(self.spark, self.shelf, plan.old, plan.sort_by, keys, every)
        return run_bounds(sample, keys, parts)
