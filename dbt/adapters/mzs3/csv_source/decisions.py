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
    case = _Case(mode, complete=complete)
    decided = joined.select(
        F.coalesce(F.col("c.object"), F.col("k.object")).alias("object"),
        *(case.now(name).alias(name) for name in OBJECT_COLUMNS[1:]),
        case.action().alias("action"),
        case.hides().alias("hides"),
        F.when(case.waits, F.col("k.known.epoch")).alias("since"),
        case.recorded().alias("recorded"),
        case.remembered().alias("remembered"),
        F.when(case.retried, F.lit(RETRIED)).otherwise(F.lit(LISTED)).alias("waits_as"),
        *case.note(),
        F.col("k.taken.etag").alias("previous"),
    )
    return decided.where(F.col("action").isNotNull())


class _Case:
    """An object as it was found, `c`, beside what the ledger knows, `k`, in columns of both."""

    def __init__(self, mode: OnOverwrite, *, complete: bool) -> None:
        self._mode = mode
        self._complete = complete
        self.state, self.shown = F.col("k.known.state"), F.col("k.shown.state")
        self.found = F.col("c.object").isNotNull()
        self.waits = is_any(self.state, WAITING_STATES)
        self.retried = is_any(self.state, (RETRIED,))
        self.is_open = is_any(self.shown, OPEN_STATES)
        self.visible = is_visible("k.")
        # A queue does not tell again of what failed, nor of what was planned with it.
        self.wanted = self.found if complete else (self.found | self.is_open)
        self.etag = self.now("etag")
        self.settled = is_any(self.state, SETTLED_STATES) & (F.col("k.known.etag") == self.etag)
        self.same = self.visible & (F.col("k.taken.etag") == self.etag)
        self.overwritten = self.wanted & ~self.settled & ~self.retried & ~self.same & self.visible

    def now(self, name: str) -> Column:
        """The object's ETag, size or time, as it was last seen."""
        last, first = ("known", "shown") if self._complete else ("shown", "known")
        known = F.coalesce(F.col(f"k.{last}.{name}"), F.col(f"k.{first}.{name}"))
        # What was to be taken again and is gone has the rows it had, under their ETag.
        kept = ~self.wanted & self.visible & ~is_any(self.state, SETTLED_STATES)
        known = F.when(kept, F.col(f"k.taken.{name}")).otherwise(known)
        return F.when(self.found, F.col(f"c.{name}")).otherwise(known)

    def action(self) -> Column:
        """What is to be done about it, NULL for nothing."""
        settles = F.when(self.is_open, F.lit(NOTE))
        return (
            F.when(~self.wanted, settles if self._complete else F.lit(None))
            .when(self.settled, settles)
            .when(self.retried, F.lit(TAKE))
            .when(self.same, settles)
            .when(self.visible, F.lit(_OVERWRITTEN[self._mode]))
            .otherwise(F.lit(TAKE))
        )

    def hides(self) -> Column:
        """Whether its rows, once taken, hide those there are."""
        return self.visible & (self.retried | F.lit(self._mode is OnOverwrite.REPLACE))

    def recorded(self) -> Column:
        """Whether the ledger has it as waiting, or as refused, as it is now."""
        refused = self.overwritten & F.lit(self._mode is OnOverwrite.FAIL)
        in_error = is_any(self.shown, (FAILED,)) & self._is_shown()
        return F.when(refused, in_error).otherwise(self._waits_so())

    def remembered(self) -> Column:
        """Whether the ledger says in any way that it is to be taken as it is now."""
        return self._waits_so() | (self.is_open & self._is_shown())

    def note(self) -> list[Column]:
        """The state and error that a note of it has, and what it repeats of the commit."""
        ignored = F.concat(
            F.lit("it was overwritten: its ETag was "),
            F.col("k.taken.etag"),
            F.lit(" and is "),
            self.etag,
            F.lit("; on_overwrite: ignore keeps the rows there are"),
        )
        stays = self.settled | (~self.found & is_any(self.state, SETTLED_STATES))
        state = (
            F.when(self.overwritten, F.lit(IGNORED))
            .when(stays, self.state)
            .when(~self.found & ~self.visible, F.lit(REMOVED))
            .otherwise(F.lit(FETCHED))
        )
        error = (
            F.when(self.overwritten, ignored)
            .when(stays, F.col("k.known.error"))
            .when(~self.found, F.lit(_GONE))
        )
        return [
            state.alias("state"),
            error.alias("error"),
            *(F.when(state == FETCHED, F.col(f"k.taken.{n}")).alias(n) for n in TAKEN_COLUMNS),
        ]

    def _waits_so(self) -> Column:
        return F.coalesce(self.waits & (F.col("k.known.etag") == self.etag), F.lit(False))

    def _is_shown(self) -> Column:
        return F.coalesce(F.col("k.shown.etag") == self.etag, F.lit(False))


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
