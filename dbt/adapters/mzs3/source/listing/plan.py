"""Which objects an epoch ingests: those in S3's listing that the ledger does not have.

How many a run takes is declared, or, with `auto`, as many as earlier runs would fetch in the time
for a run. The ledger has what each of the last epochs fetched, and when it was planned and
committed. A run takes at most ten times what one of them took: the time of a short epoch shows the
fixed cost of a run rather than the speed of reading. If none was long, as in a new source, a run
takes what any cluster should manage, and the next one can estimate from it.
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
    NOTE,
    REFUSE,
    TAKE,
    TAKEN_COLUMNS,
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
_NOTE_COLUMNS = (*OBJECT_COLUMNS, "state", "error", *TAKEN_COLUMNS)
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
    before the plan, None if there are none. `full_since` is when a full listing began that the
    ledger is to record at the end, else None.
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
    """The matching objects that a run ingests; listed once, and at most one page by the driver.

    `announced` are objects from a queue, with the columns of the listing; they are added to it, or
    replace it if the source does not list. The limits allow at least `least` objects.
    """
    definition = run.definition
    after, full_since = listing_start(ledger, definition)
    candidates, at_hand = _candidates(run, ledger, after, announced)
    known = objects_after(after, definition.location, ledger.objects(), announced)
    mode = definition.intake.on_overwrite
    with ExitStack() as stack:
        if definition.intake.is_limited and not at_hand:
            # Spark drops persisted frames that read the ledger once a note is written.
            candidates = stack.enter_context(persisted(candidates))
        decided = reconcile(candidates, known, mode, complete=definition.discovery.bucket_scan)
        decided, on_driver = stack.enter_context(reusable_rows(decided, few=at_hand))
        found = totals(decided, _TOTALS, few=on_driver)
        # Spark may compute the listing again: even then no refused object is ingested.
        if found["refused"]:
            yield _refusal(definition, decided, found)
        else:
            yield _taken(run, ledger, decided, found, on_driver, least, full_since)


def _candidates(
    run: SourceRun, ledger: Ledger, after: str | None, announced: DataFrame | None
) -> tuple[DataFrame, bool]:
    """Every object once, in its newest version; and whether the driver has the whole listing."""
    listed, at_hand = listed_objects(run, after=after, ledger=ledger)
    if announced is None:
        return listed, at_hand
    if not run.definition.discovery.bucket_scan:
        return announced, at_hand
    last = F.max_by(F.struct("etag", "size", "last_modified"), "last_modified")
    both = listed.unionByName(announced).groupBy("object").agg(last.alias("last"))
    return both.select("object", "last.*"), at_hand


def _taken(
    run: SourceRun,
    ledger: Ledger,
    decided: DataFrame,
    found: Any,
    on_driver: bool,
    least: int,
    full_since: int | None,
) -> TakeObjects:
    intake = run.definition.intake
    everything = taken = decided.where(_IS_NEW)
    notes = decided.where(f"action = '{NOTE}'").select(*_NOTE_COLUMNS)
    all_notes = notes if found["notes"] else None
    some = found
    if found["objects"] and intake.is_limited:
        taken = first_in_turn(everything, run_limits(ledger, intake), least)
        sums = ("count(*) AS objects", "coalesce(sum(size), 0) AS bytes")
        some = totals(taken, sums, few=on_driver)
        if some["objects"] < found["objects"]:
            # All of them, so that objects that fail now keep their turn before the later ones.
            all_notes = notes.unionByName(waiting_notes(everything).select(*_NOTE_COLUMNS))
    return TakeObjects(
        frame=taken.select(*_PLAN_COLUMNS),
        objects=some["objects"],
        bytes=some["bytes"],
        on_driver=on_driver,
        waiting_objects=found["objects"] - some["objects"],
        waiting_bytes=found["bytes"] - some["bytes"],
        notes=all_notes,
        full_since=full_since,
    )


def _refusal(definition: SourceDefinition, decided: DataFrame, found: Any) -> Refusal:
    refused = decided.where(f"action = '{REFUSE}'")
    was = F.lit("it was overwritten after it was ingested: its ETag was ")
    error = F.concat(was, F.col("previous"), F.lit(" and is "), F.col("etag")).alias("error")
    notes = None
    if found["unremembered"] and not definition.discovery.bucket_scan:
        # Messages of new objects may expire before the user has dealt with the refused ones.
        notes = waiting_notes(decided.where(f"{_IS_NEW} AND NOT remembered"))
    first, source = found["first"], definition.name
    name = first["object"]
    more = f" (and {found['refused'] - 1} more)" if found["refused"] > 1 else ""
    text = (
        f"{source}: object {name}{more} was overwritten after it was ingested: its ETag was "
        f"{first['previous']} and is {first['etag']} now. With on_overwrite: fail the source "
        "stays in error until you put the earlier object back; or take the new content in place "
        f"of the old rows with: {objects_hint('retry_s3_objects', source, [name])}; or keep the "
        f"old rows with: {objects_hint('skip_s3_objects', source, [name])}"
    )
    failed = refused.select(*OBJECT_COLUMNS, error) if found["unrecorded"] else None
    return Refusal(text, failed, notes, found["objects"], found["bytes"])


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
        """About how many runs ingest so many objects, of `size` bytes in all."""
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
    """The load that a run can fetch in so many seconds, estimated from the last epochs."""
    took = sum(one.seconds for one in last)
    load = int(sum(one.load for one in last) * seconds / took) if took > 0 else 0
    load = min(load, TIMES * max((one.load for one in last), default=0))
    is_known = any(one.seconds >= max(seconds / TIMES, LONG_SECONDS) for one in last)
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
    """The objects within the limits: those that were listed first come first, then by key.

    At least `least` objects, whatever the limits are; if it is more than 1, empty ones come last.
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
