"""Which objects an epoch ingests: those in S3's listing that the ledger does not have.

How many a run takes is declared, or, with `auto`, estimated: as many as it can fetch in its time,
if it is as fast as the last epochs. The ledger has what each of these fetched, and when it was
planned and committed. A run takes at most ten times what one of them took, as the time of a short
epoch is mostly the fixed cost of a run. If all were short, as in a new source, a run takes an
amount that any cluster should manage, and the next run can estimate from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from dbt.adapters.mzs3.ledger.events import OBJECT_COLUMNS, Phase, State
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.source.listing.reconcile import (
    COMMIT_COLUMNS,
    NOTE,
    REFUSE,
    TAKE,
    reconcile,
    waiting_notes,
)
from dbt.adapters.mzs3.source.listing.scan import listed_objects, listing_start, objects_after
from dbt.adapters.mzs3.source.options import Intake, SourceDefinition
from dbt.adapters.mzs3.source.report import objects_hint
from dbt.adapters.mzs3.source.run import SourceRun
from dbt.adapters.mzs3.spark.frames import persisted, reusable_rows, totals

OBJECT_BYTES = 128 * 1024
"""A request for an object takes about as long as reading this many bytes."""
FIRST_BYTES = 1024 * 1024 * 1024
"""What a run may take at least, as long as no epoch was long enough for an estimate."""
LAST_EPOCHS = 5
TIMES = 10
"""A run takes at most this many times what one epoch took. An epoch that took less than a run's
time divided by this is too short for an estimate of its own."""
LONG_SECONDS = 60
"""An epoch shorter than this is too short, too: its time may be mostly the fixed cost of a run."""

_TOOK = (
    f"count_if(phase = '{Phase.COMMIT}') AS objects",
    "coalesce(sum(size) FILTER "
    f"(WHERE phase = '{Phase.COMMIT}' AND state = '{State.FETCHED}'), 0) AS bytes",
    f"unix_micros(min(at) FILTER (WHERE phase = '{Phase.COMMIT}')) "
    f"- unix_micros(max(at) FILTER (WHERE phase = '{Phase.PLAN}')) AS micros",
)

_PLAN_COLUMNS = (*OBJECT_COLUMNS, "hides")
_NOTE_COLUMNS = (*OBJECT_COLUMNS, "state", "error", *COMMIT_COLUMNS)
_IS_NEW = f"action = '{TAKE}'"
_REFUSED = f"CASE WHEN action = '{REFUSE}' THEN struct(object, previous, etag) END"
_TOTALS = (
    f"count_if({_IS_NEW}) AS objects",
    f"coalesce(sum(CASE WHEN {_IS_NEW} THEN size END), 0) AS bytes",
    f"count_if(action = '{NOTE}') AS notes",
    f"count({_REFUSED}) AS refused",
    f"count_if(action = '{REFUSE}' AND NOT recorded) AS unrecorded",
    f"count_if({_IS_NEW} AND NOT remembered) AS unremembered",
    f"min({_REFUSED}) AS first",
)


@dataclass(frozen=True)
class TakeObjects:
    """The objects of one epoch, with the plan's columns; and how many are left to later runs.

    `on_driver`: the objects are few, and in the driver's memory. `notes` are written to the ledger
    before the plan, None if there are none. `full_since` is the start of a full listing, which the
    ledger is to record at the end; None for other listings.
    """

    frame: DataFrame
    objects: int
    bytes: int
    on_driver: bool
    waiting_objects: int
    waiting_bytes: int
    notes: DataFrame | None
    full_since: int | None


@dataclass(frozen=True)
class Refusal:
    """Nothing is ingested, as objects were overwritten after they were ingested.

    `error` is for the user. `failed` are events of the overwritten objects, with the column
    `error`, None if the ledger has them. `notes` are written to the ledger, None if there are
    none. `objects` and `bytes` count the new objects.
    """

    error: str
    failed: DataFrame | None
    notes: DataFrame | None
    objects: int
    bytes: int


@contextmanager
def new_objects(
    run: SourceRun, ledger: Ledger, announced: DataFrame | None = None, *, least: int = 1
) -> Iterator[TakeObjects | Refusal]:
    """The matching objects that a run ingests. They are listed once, the first page by the driver.

    `announced` are objects from a queue, with the columns of the listing; they are added to it, or
    replace it if the source does not list. The limits allow at least `least` objects.
    """
    definition = run.definition
    after, full_since = listing_start(ledger, definition)
    candidates, all_on_driver = _candidates(run, ledger, after, announced)
    in_ledger = objects_after(after, definition.location, ledger.objects(), announced)
    mode = definition.intake.on_overwrite
    with ExitStack() as stack:
        if definition.intake.is_limited and not all_on_driver:
            # Beside `decided`: a note makes Spark drop persisted frames that read the ledger.
            candidates = stack.enter_context(persisted(candidates))
        decided = reconcile(candidates, in_ledger, mode, complete=definition.discovery.bucket_scan)
        decided, on_driver = stack.enter_context(reusable_rows(decided, few=all_on_driver))
        counts = totals(decided, _TOTALS, few=on_driver)
        # Spark may compute the listing again: even then no refused object is ingested.
        if counts["refused"]:
            yield _refusal(definition, decided, counts)
        else:
            yield _taken(run, ledger, decided, counts, on_driver, least, full_since)


def _candidates(
    run: SourceRun, ledger: Ledger, after: str | None, announced: DataFrame | None
) -> tuple[DataFrame, bool]:
    """Every object once, in its newest version; and whether the driver has the whole listing."""
    listed, all_on_driver = listed_objects(run, after=after, ledger=ledger)
    if announced is None:
        return listed, all_on_driver
    if not run.definition.discovery.bucket_scan:
        return announced, all_on_driver
    last = F.max_by(F.struct("etag", "size", "last_modified"), "last_modified")
    all_versions = listed.unionByName(announced).groupBy("object").agg(last.alias("last"))
    return all_versions.select("object", "last.*"), all_on_driver


def _taken(
    run: SourceRun,
    ledger: Ledger,
    decided: DataFrame,
    counts: Any,
    on_driver: bool,
    least: int,
    full_since: int | None,
) -> TakeObjects:
    intake = run.definition.intake
    all_new = taken = decided.where(_IS_NEW)
    notes = decided.where(f"action = '{NOTE}'").select(*_NOTE_COLUMNS)
    all_notes = notes if counts["notes"] else None
    taken_counts = counts
    if counts["objects"] and intake.is_limited:
        taken = first_in_turn(all_new, run_limits(ledger, intake), least)
        sums = ("count(*) AS objects", "coalesce(sum(size), 0) AS bytes")
        taken_counts = totals(taken, sums, few=on_driver)
        if taken_counts["objects"] < counts["objects"]:
            # Notes for all, so that objects that fail now keep their turn before the later ones.
            all_notes = notes.unionByName(waiting_notes(all_new).select(*_NOTE_COLUMNS))
    return TakeObjects(
        frame=taken.select(*_PLAN_COLUMNS),
        objects=taken_counts["objects"],
        bytes=taken_counts["bytes"],
        on_driver=on_driver,
        waiting_objects=counts["objects"] - taken_counts["objects"],
        waiting_bytes=counts["bytes"] - taken_counts["bytes"],
        notes=all_notes,
        full_since=full_since,
    )


def _refusal(definition: SourceDefinition, decided: DataFrame, counts: Any) -> Refusal:
    refused = decided.where(f"action = '{REFUSE}'")
    was = F.lit("it was overwritten after it was ingested: its ETag was ")
    error = F.concat(was, F.col("previous"), F.lit(" and is "), F.col("etag")).alias("error")
    notes = None
    if counts["unremembered"] and not definition.discovery.bucket_scan:
        # Messages of new objects may expire before the user has dealt with the refused ones.
        notes = waiting_notes(decided.where(f"{_IS_NEW} AND NOT remembered"))
    first, source = counts["first"], definition.name
    name = first["object"]
    more = f" (and {counts['refused'] - 1} more)" if counts["refused"] > 1 else ""
    text = (
        f"{source}: object {name}{more} was overwritten after it was ingested: its ETag was "
        f"{first['previous']} and is {first['etag']} now. With on_overwrite: fail the source "
        "stays in error until you put the earlier object back; or take the new content in place "
        f"of the old rows with: {objects_hint('retry_s3_objects', source, [name])}; or keep the "
        f"old rows with: {objects_hint('skip_s3_objects', source, [name])}"
    )
    failed = refused.select(*OBJECT_COLUMNS, error) if counts["unrecorded"] else None
    return Refusal(text, failed, notes, counts["objects"], counts["bytes"])


@dataclass(frozen=True)
class Fetched:
    """What an epoch fetched: bytes, plus `OBJECT_BYTES` for each object; and its seconds."""

    load: int
    seconds: float


@dataclass(frozen=True)
class Limits:
    """The most that a run takes, None for no limit; it always takes at least one object.

    Each object counts as `of_object` bytes more than its size.
    """

    max_objects: int | None = None
    max_bytes: int | None = None
    of_object: int = 0

    def runs(self, objects: int, size: int) -> int:
        """About how many runs it takes to ingest this many objects, of `size` bytes in all."""
        needed = 1
        if self.max_objects is not None:
            needed = -(-objects // self.max_objects)
        if self.max_bytes is not None:
            needed = max(needed, -(-(size + objects * self.of_object) // self.max_bytes))
        return min(objects, needed)


def run_limits(ledger: Ledger, intake: Intake) -> Limits:
    """The limits of a run, for which the ledger is read only with `max_bytes_per_run: auto`."""
    if isinstance(intake.max_bytes, str):  # `auto`
        load = allowance(_last_epochs(ledger), 60 * intake.minutes)
        return Limits(intake.max_objects, load, OBJECT_BYTES)
    return Limits(intake.max_objects, intake.max_bytes)


def allowance(last: Sequence[Fetched], seconds: int) -> int:
    """The load that a run can fetch in this many seconds, estimated from the last epochs."""
    took = sum(epoch.seconds for epoch in last)
    load = int(sum(epoch.load for epoch in last) * seconds / took) if took > 0 else 0
    load = min(load, TIMES * max((epoch.load for epoch in last), default=0))
    is_known = any(epoch.seconds >= max(seconds / TIMES, LONG_SECONDS) for epoch in last)
    return max(load, 1 if is_known else FIRST_BYTES)


def _last_epochs(ledger: Ledger) -> list[Fetched]:
    """What the last committed epochs fetched, and in which time by the clock of Spark's driver."""
    committed = (
        epoch
        for epoch, phases in ledger.epochs().items()
        if {Phase.PLAN, Phase.COMMIT} <= phases and Phase.VOID not in phases
    )
    if not (last := sorted(committed, key=int)[-LAST_EPOCHS:]):
        return []
    events = ledger.spark.table(ledger.relations.ledger).where(
        F.col("epoch").isin(last) & F.col("phase").isin(Phase.PLAN, Phase.COMMIT)
    )
    took = events.groupBy("epoch").agg(*map(F.expr, _TOOK)).where("micros > 0").collect()
    return [
        Fetched(row["bytes"] + row["objects"] * OBJECT_BYTES, row["micros"] / 1e6) for row in took
    ]


def first_in_turn(taken: DataFrame, limits: Limits, least: int = 1) -> DataFrame:
    """The objects within the limits, in the order in which they were first listed, then by key.

    At least `least` objects, whatever the limits; if it is more than 1, empty ones come last.
    """
    order = [F.col("since").asc_nulls_last(), F.col("object")]
    if least > 1:
        order.insert(0, F.col("size") == 0)
    if limits.max_objects is not None:
        taken = taken.orderBy(*order).limit(max(least, limits.max_objects))
    if limits.max_bytes is not None:
        so_far = Window.orderBy(*order).rowsBetween(Window.unboundedPreceding, 0)
        load = F.sum(F.col("size") + F.lit(limits.of_object)).over(so_far)
        first = F.count(F.lit(1)).over(so_far) <= least
        fits = (load <= limits.max_bytes) | first
        taken = taken.withColumn("fits", fits).where("fits").drop("fits")
    return taken
