"""How much one run takes: as declared, or what earlier runs would fetch in the time for a run.

How fast objects are fetched is in the ledger: of the last epochs, what each took, and when it was
planned and committed. What one of them took is trusted for ten times as much, and no further: a
short epoch tells more of what every run costs than of how fast it reads. Where none was long, as
in a new source, a run takes what any cluster should manage, and the next one knows more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from dbt.adapters.mzs3.ledger.events import Phase, State
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.source.config import Intake

OBJECT_BYTES = 128 * 1024
"""To ask for an object takes about as long as to read so many bytes."""
FIRST_BYTES = 1024 * 1024 * 1024
"""The load of a run while no epoch was long enough to tell more."""
LAST_EPOCHS = 5
TIMES = 10
"""A run takes so many times what one epoch took, at most; one that was so many times shorter than
a run may be tells nothing by itself."""
LONG_SECONDS = 60
"""Nor does one that was shorter than this: what every run costs may have taken most of it."""

_TOOK = (
    f"count_if(phase = '{Phase.COMMIT}') AS objects",
    "coalesce(sum(size) FILTER "
    f"(WHERE phase = '{Phase.COMMIT}' AND state = '{State.FETCHED}'), 0) AS bytes",
    f"unix_micros(min(at) FILTER (WHERE phase = '{Phase.COMMIT}')) "
    f"- unix_micros(max(at) FILTER (WHERE phase = '{Phase.PLAN}')) AS micros",
)


@dataclass(frozen=True)
class Fetched:
    """What an epoch took: bytes, with `OBJECT_BYTES` more for each object; in how many seconds."""

    load: int
    seconds: float


@dataclass(frozen=True)
class Limits:
    """What a run takes at most, None for no limit; one object at least.

    An object counts as `of_object` bytes more than it has.
    """

    max_objects: int | None = None
    max_bytes: int | None = None
    of_object: int = 0

    def runs(self, objects: int, size: int) -> int:
        """About how many runs take so many objects, of that many bytes in all."""
        needed = 1
        if self.max_objects is not None:
            needed = -(-objects // self.max_objects)
        if self.max_bytes is not None:
            needed = max(needed, -(-(size + objects * self.of_object) // self.max_bytes))
        return min(objects, needed)


def run_limits(ledger: Ledger, intake: Intake) -> Limits:
    """What a run takes at most as the ledger is now, which is read only if the source says so."""
    if intake.minutes is None:
        return Limits(intake.max_objects, intake.max_bytes)
    load = allowance(_last_epochs(ledger), 60 * intake.minutes)
    return Limits(intake.max_objects, load, OBJECT_BYTES)


def allowance(last: Sequence[Fetched], seconds: int) -> int:
    """The load that a run is to take so many seconds for, by what the last epochs took."""
    took = sum(one.seconds for one in last)
    load = int(sum(one.load for one in last) * seconds / took) if took > 0 else 0
    load = min(load, TIMES * max((one.load for one in last), default=0))
    is_known = any(one.seconds >= max(seconds / TIMES, LONG_SECONDS) for one in last)
    return max(load, 1 if is_known else FIRST_BYTES)


def _last_epochs(ledger: Ledger) -> list[Fetched]:
    """What the last committed epochs took, by the clock of Spark's driver."""
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


def chosen(taken: DataFrame, limits: Limits, least: int = 1) -> DataFrame:
    """Those of the objects to take whose turn it is: the longest listed first, by their keys.

    So many at least, whatever the limits are; then empty ones have their turn last.
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
