"""What a run does about each object, from what was found in S3 and what the ledger knows of it.

| the ledger knows | the object now | becomes |
| --- | --- | --- |
| nothing, or nothing that counts | any | taken |
| it is fetched, skipped, retracted or ignored | the same ETag | nothing |
| it is to be taken again (`retried`) | any | taken, in place of the rows there are |
| rows of it are visible | their ETag | nothing |
| rows of it are visible | another ETag | what `on_overwrite` says |
| it is listed; or none of its rows are visible | any other | taken |

What was listed, or failed, and is neither there nor wanted any more is settled with a note, so
that no state says for ever that something is to be done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from dbt.adapters.mzs3.csv_source.config.intake import Intake, OnOverwrite
from dbt.adapters.mzs3.csv_source.events import (
    FAILED,
    FETCHED,
    IGNORED,
    LISTED,
    OBJECT_COLUMNS,
    OPEN_STATES,
    REMOVED,
    RETRIED,
    SETTLED_STATES,
    WAITING_STATES,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TAKE = "take"
NOTE = "note"
REFUSE = "refuse"

TAKEN_COLUMNS = {"rows": "bigint", "rejects": "bigint", "at": "timestamp"}
"""What a note by which an object stays fetched repeats of the commit, with their types."""

_OVERWRITTEN = {
    OnOverwrite.FAIL: REFUSE,
    OnOverwrite.IGNORE: NOTE,
    OnOverwrite.APPEND: TAKE,
    OnOverwrite.REPLACE: TAKE,
}
_GONE = "it was no longer listed when its turn came: it was removed, or the pattern leaves it out"


def decide(
    candidates: DataFrame, objects: DataFrame, mode: OnOverwrite, *, complete: bool
) -> DataFrame:
    """One row for each object about which there is something to do.

    `candidates` has object, etag, size, last_modified, one row for each object; `objects` is what
    the ledger knows. `complete` says that there is no object but the candidates: else what the
    ledger has waiting, or failed, is taken as it was last seen. The columns are those of the
    candidates, and

    - `action`: `take`, `note` (to be put into the ledger) or `refuse` (overwritten, and that is
      an error);
    - `hides`: whether the object's rows hide those it has;
    - `since`: the epoch in which the object was listed, NULL for one that is new;
    - `recorded`: whether the ledger has this very state already;
    - `remembered`: whether the ledger says in any way that it is to be taken as it is now;
    - `waits_as`: the state of an object to take that has to wait;
    - `state`, `error`, `rows`, `rejects`, `at`: of a note;
    - `previous`: the ETag of the rows that are visible.
    """
    joined = candidates.alias("c").join(
        objects.where(F.col("object").isNotNull()).alias("k"),
        F.col("c.object") == F.col("k.object"),
        "full",
    )
    found = F.col("c.object").isNotNull()
    state, shown = F.col("k.known.state"), F.col("k.shown.state")
    waits = is_any(state, WAITING_STATES)
    visible = is_visible("k.")
    # A queue does not tell again of what failed, nor of what was planned with it.
    wanted = found if complete else (found | is_any(shown, OPEN_STATES))
    last, first = ("known", "shown") if complete else ("shown", "known")

    # What was to be taken again and is gone has the rows it had, under their ETag.
    kept = ~wanted & visible & ~is_any(state, SETTLED_STATES)

    def now(name: str) -> Column:
        known = F.coalesce(F.col(f"k.{last}.{name}"), F.col(f"k.{first}.{name}"))
        known = F.when(kept, F.col(f"k.taken.{name}")).otherwise(known)
        return F.when(found, F.col(f"c.{name}")).otherwise(known)

    etag = now("etag")
    settled = is_any(state, SETTLED_STATES) & (F.col("k.known.etag") == etag)
    same = visible & (F.col("k.taken.etag") == etag)
    retried = is_any(state, (RETRIED,))
    is_open = F.when(is_any(shown, OPEN_STATES), F.lit(NOTE))
    gone = is_open if complete else F.lit(None)
    action = (
        F.when(~wanted, gone)
        .when(settled, is_open)
        .when(retried, F.lit(TAKE))
        .when(same, is_open)
        .when(visible, F.lit(_OVERWRITTEN[mode]))
        .otherwise(F.lit(TAKE))
    )
    overwritten = wanted & ~settled & ~retried & ~same & visible
    replaces = retried | F.lit(mode is OnOverwrite.REPLACE)
    refused = overwritten & F.lit(mode is OnOverwrite.FAIL)
    same_shown = F.coalesce(F.col("k.shown.etag") == etag, F.lit(False))
    in_error = is_any(shown, (FAILED,)) & same_shown
    waits_so = F.coalesce(waits & (F.col("k.known.etag") == etag), F.lit(False))
    recorded = F.when(refused, in_error).otherwise(waits_so)
    decided = joined.select(
        F.coalesce(F.col("c.object"), F.col("k.object")).alias("object"),
        etag.alias("etag"),
        now("size").alias("size"),
        now("last_modified").alias("last_modified"),
        action.alias("action"),
        (visible & replaces).alias("hides"),
        F.when(waits, F.col("k.known.epoch")).alias("since"),
        recorded.alias("recorded"),
        (waits_so | (is_any(shown, OPEN_STATES) & same_shown)).alias("remembered"),
        F.when(retried, F.lit(RETRIED)).otherwise(F.lit(LISTED)).alias("waits_as"),
        *_note(found, state, settled, overwritten, visible, etag),
        F.col("k.taken.etag").alias("previous"),
    )
    return decided.where(F.col("action").isNotNull())


def is_any(state: Column, states: tuple[str, ...]) -> Column:
    """Whether the state is one of these; false where there is none."""
    return F.coalesce(state.isin(*states), F.lit(False))


def is_visible(prefix: str = "") -> Column:
    """Whether rows of the object are committed and not hidden; from what the ledger knows."""
    hidden_before = F.coalesce(F.col(f"{prefix}hidden_before"), F.lit(0))
    return F.coalesce(F.col(f"{prefix}taken.epoch") >= hidden_before, F.lit(False))


def chosen(taken: DataFrame, intake: Intake) -> DataFrame:
    """Those of the objects to take whose turn it is: the longest listed first, by their keys."""
    order = (F.col("since").asc_nulls_last(), F.col("object"))
    if intake.max_objects is not None:
        taken = taken.orderBy(*order).limit(intake.max_objects)
    if intake.max_bytes is not None:
        so_far = Window.orderBy(*order).rowsBetween(Window.unboundedPreceding, 0)
        fits = F.sum("size").over(so_far) <= intake.max_bytes
        first = F.count(F.lit(1)).over(so_far) == 1
        taken = taken.withColumn("fits", fits | first).where("fits").drop("fits")
    return taken


def waiting_notes(taken: DataFrame) -> DataFrame:
    """Notes by which objects to take that are not in the ledger as waiting come to be."""
    return taken.where(~F.col("recorded")).select(
        *OBJECT_COLUMNS,
        F.col("waits_as").alias("state"),
        F.lit(None).cast("string").alias("error"),
        *(F.lit(None).cast(kind).alias(name) for name, kind in TAKEN_COLUMNS.items()),
    )


def _note(
    found: Column,
    state: Column,
    settled: Column,
    overwritten: Column,
    visible: Column,
    etag: Column,
) -> list[Column]:
    """The state and error that a note of the object has, and what it repeats of the commit."""
    previous = F.col("k.taken.etag")
    ignored = F.concat(
        F.lit("it was overwritten: its ETag was "),
        previous,
        F.lit(" and is "),
        etag,
        F.lit("; on_overwrite: ignore keeps the rows there are"),
    )
    stays = settled | (~found & is_any(state, SETTLED_STATES))
    new_state = (
        F.when(overwritten, F.lit(IGNORED))
        .when(stays, state)
        .when(~found & ~visible, F.lit(REMOVED))
        .otherwise(F.lit(FETCHED))
    )
    error = (
        F.when(overwritten, ignored).when(stays, F.col("k.known.error")).when(~found, F.lit(_GONE))
    )
    return [
        new_state.alias("state"),
        error.alias("error"),
        *(F.when(new_state == FETCHED, F.col(f"k.taken.{n}")).alias(n) for n in TAKEN_COLUMNS),
    ]
