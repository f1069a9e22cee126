"""What users decide about objects of a source: take again, leave out, take out again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dbt.adapters.mzs3.csv_source.events import (
    COMMIT,
    FETCHED,
    OBJECT_COLUMNS,
    OPEN_STATES,
    REMOVED,
    RETRACTED,
    RETRIED,
    SKIPPED,
    is_visible_sql,
)
from dbt.adapters.mzs3.csv_source.ledger import Ledger, next_epoch, unfinished_epochs
from dbt.adapters.mzs3.csv_source.lock import WAIT_S
from dbt.adapters.mzs3.csv_source.operation import changing, relations_of, require_ledger
from dbt.adapters.mzs3.csv_source.selection import read_wanted, select_objects
from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.spark.persisted import persisted
from dbt.adapters.mzs3.text import counted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from dbt.adapters.mzs3.csv_source.definition import SourceDefinition

_MAX_TOLD = 10


class Action(Enum):
    """A decision about objects, by the name of its run-operation."""

    RETRY = "retry_s3_objects"
    SKIP = "skip_s3_objects"
    RETRACT = "retract_s3_objects"


_STATES = {Action.RETRY: RETRIED, Action.SKIP: SKIPPED, Action.RETRACT: RETRACTED}


@dataclass(frozen=True)
class Acted:
    """What was decided: of how many objects; `rows` that are no longer visible."""

    source: str
    action: Action
    objects: int
    rows: int

    def line(self) -> str:
        """The line of the log."""
        done = {
            Action.RETRY: "to be taken again by the next run",
            Action.SKIP: "skipped",
            Action.RETRACT: f"retracted, {self.rows} rows taken out",
        }
        return f"{self.source}: {counted(self.objects, 'object')} {done[self.action]}"


def act(
    spark: SparkSession,
    definition: SourceDefinition,
    action: Action,
    names: Sequence[str],
    *,
    wait_s: float = WAIT_S,
) -> Acted:
    """The decision about the named objects is in the ledger, in one step, and counts at once.

    Retry: the next run takes them, in place of the rows they have. Skip: what has failed or waits
    is not taken as it is now; rows from before stay. Retract: their rows are out, and they are not
    taken again as they are now. Raises a Mzs3Error, with nothing changed, if a name is of no
    object or the decision makes no sense for it; and one that says so, if the lock was lost as it
    was written.
    """
    wanted = read_wanted(action.value, names, definition.location)
    name, relations = definition.name, relations_of(definition)
    with changing(spark, definition, wait_s=wait_s) as lock:
        require_ledger(spark, relations, name)
        ledger = Ledger(spark, relations, lock)
        for dead in unfinished_epochs(ledger.epochs()):
            ledger.write_void(dead)
        objects = ledger.objects().where(F.col("object").isNotNull())
        with persisted(select_objects(name, objects, wanted)) as selected:
            _require_sense(name, action, selected)
            fitting = selected.where(_fits(action))
            rows = _visible_rows(ledger, fitting) if action is Action.RETRACT else 0
            with persisted(_events(action, fitting)) as events:
                count = events.count()
                lock.require()
                ledger.write_note(next_epoch(ledger.epochs()), events)
            # Who took it meanwhile may have compacted, and looks at nothing from before that.
            lock.require("the decision may not count, as s3_source_status shows")
    return Acted(name, action, count, rows)


def _fits(action: Action) -> Column:
    """Whether the decision changes anything about an object."""
    if action is Action.SKIP:
        return F.col("shown.state").isin(*OPEN_STATES)
    if action is Action.RETRACT:
        return F.expr(is_visible_sql())
    # What is not there can't be taken; what never was has no ETag to be taken by.
    there = F.expr(is_visible_sql()) | (F.col("shown.state") != REMOVED)
    return there & F.col("shown.etag").isNotNull()


def _require_sense(source: str, action: Action, selected: DataFrame) -> None:
    """Raise SourceError if an object is named, or all are matched, for which there is none."""
    unfit = selected.where(~_fits(action)).select("object", "shown.state", "named")
    named = unfit.where("named").orderBy("object").limit(_MAX_TOLD).collect()
    if named:
        lines = [f"{source}: {_unfit_text(action, row['object'], row['state'])}" for row in named]
        raise SourceError("\n".join(lines))
    if selected.where(_fits(action)).first() is None:
        first = unfit.orderBy("object").first()
        raise SourceError(
            f"{source}: there is nothing to do for any of these objects: "
            f"{_unfit_text(action, first['object'], first['state'])}"
        )


def _unfit_text(action: Action, name: str, state: str) -> str:
    if action is Action.RETRACT:
        return f"{name} is {state} and has no rows to take out"
    if action is Action.RETRY:
        return f"{name} is {state} and has no rows; the next run takes it if it is back"
    hint = "; retract_s3_objects takes its rows out" if state == FETCHED else ""
    return f"{name} is {state}: neither has it failed nor does it wait{hint}"


def _events(action: Action, objects: DataFrame) -> DataFrame:
    # What was wrong with an object stays on record when it is skipped.
    error = F.col("shown.error") if action is Action.SKIP else F.lit(None)
    return objects.select(
        "object",
        *(f"shown.{name}" for name in OBJECT_COLUMNS[1:]),
        F.lit(_STATES[action]).alias("state"),
        error.cast("string").alias("error"),
        F.lit(action is Action.RETRACT).alias("hides"),
    )


def _visible_rows(ledger: Ledger, objects: DataFrame) -> int:
    hidden_before = F.coalesce(F.col("hidden_before"), F.lit(0))
    found = (
        ledger.events()
        .where((F.col("phase") == COMMIT) & (F.col("state") == FETCHED))
        .select("object", "rows", F.col("place.epoch").alias("taken_in"))
        .join(objects.select("object", hidden_before.alias("hidden_before")), "object")
        .where(F.col("taken_in") >= F.col("hidden_before"))
        .agg(F.coalesce(F.sum("rows"), F.lit(0)).alias("rows"))
        .first()
    )
    return int(found["rows"])
