"""Decides what a run does about each object, from what S3 and the ledger have of it.

| the ledger has | the object in S3 | decision |
| --- | --- | --- |
| no event that counts | any | take it |
| `fetched`, `skipped`, `retracted` or `ignored` | the same ETag | nothing |
| `retried` | any | take it, in place of the present rows |
| visible rows | their ETag | nothing |
| visible rows | another ETag | what `on_overwrite` says |
| `listed`, or no visible rows | any other | take it |

An object that waits or has failed in the ledger, but is gone from S3 or left out by the pattern,
gets a note. Without it, its state would forever mean that something is to be done.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt.adapters.mzs3.ledger.events import IS_VISIBLE, OBJECT_COLUMNS, State, is_any_sql
from dbt.adapters.mzs3.source.options import OnOverwrite

TAKE = "take"
NOTE = "note"
REFUSE = "refuse"

COMMIT_COLUMNS = {"rows": "bigint", "rejects": "bigint", "at": "timestamp"}
"""The columns of a commit that a note repeats if its object stays fetched, with their types."""

# The facts that decide the action of an object.
_DECIDING = ["retried", "is_open", "was_settled", "visible", "wanted", "etag", "settled", "same"]
_NOT_TAKEN = {OnOverwrite.FAIL: REFUSE, OnOverwrite.IGNORE: NOTE}
_GONE = "it was no longer listed when its turn came: it was removed, or the pattern leaves it out"


def reconcile(
    candidates: DataFrame, objects: DataFrame, mode: OnOverwrite, *, complete: bool
) -> DataFrame:
    """One row for each object about which there is something to do.

    `candidates` has object, etag, size, last_modified, one row for each object; `objects` is what
    the ledger has. `complete` means that S3 has no other objects. Otherwise, others that wait or
    have failed are taken as the ledger last saw them. The columns are those of the candidates, and

    - `action`: `take`, `note` (write to the ledger) or `refuse` (overwritten, which is an error);
    - `hides`: whether the object's new rows hide its earlier ones;
    - `since`: the epoch in which the object was listed, NULL for a new object;
    - `recorded`: whether the ledger has exactly this state already;
    - `remembered`: whether the ledger has this version of the object as waiting or failed;
    - `waits_as`: the state for an object that is to be taken, but has to wait;
    - `state`, `error`, `rows`, `rejects`, `at`: the columns of a note;
    - `previous`: the ETag of the version whose rows are visible.
    """
    decisions = _as_columns(_decisions(mode, complete=complete))
    known_objects = with_object_facts(_joined(candidates, objects), complete=complete)
    return known_objects.selectExpr(*decisions).where("action IS NOT NULL")


def unsettled_objects(candidates: DataFrame, objects: DataFrame, mode: OnOverwrite) -> DataFrame:
    """The objects for which `reconcile` has a row, if the candidates are complete.

    Spark plans this faster, as it analyses only the expressions that decide the action.
    """
    facts = _facts(complete=True)
    deciding = _as_columns({name: facts[name] for name in _DECIDING})
    action = _decisions(mode, complete=True)["action"]
    known_objects = _joined(candidates, objects).selectExpr("*", *deciding)
    return known_objects.where(f"({action}) IS NOT NULL").select("object")


def _joined(candidates: DataFrame, objects: DataFrame) -> DataFrame:
    """Every object, with its version in S3 (`found`, `now`) and the columns of the ledger."""
    in_ledger = objects.where("object IS NOT NULL")
    both = candidates.alias("c").join(in_ledger.alias("k"), F.expr("c.object = k.object"), "full")
    return both.selectExpr(
        "coalesce(c.object, k.object) AS object",
        "c.object IS NOT NULL AS found",
        "struct(c.etag, c.size, c.last_modified) AS now",
        "k.* EXCEPT (object)",
    )


def with_object_facts(objects: DataFrame, *, complete: bool) -> DataFrame:
    """Adds the columns of `_facts`, from which the run decides about each object.

    `objects` has `found`, whether S3 has the object; `now`, a struct of its etag, size and
    last_modified there; and the columns of the ledger's objects. The facts have the columns of a
    note, except its error.
    """
    # One select, in which each column may use those before it: Spark analyses every select anew.
    return objects.selectExpr("*", *_as_columns(_facts(complete=complete)))


def _facts(*, complete: bool) -> dict[str, str]:
    """The expressions of the columns that `with_object_facts` adds."""
    last, first = ("decision", "latest") if complete else ("latest", "decision")
    # Texts, as the driver takes longer to build expressions call by call than to run them.
    return {
        "waits": is_any_sql("decision.state", State.WAITING),
        "retried": is_any_sql("decision.state", (State.RETRIED,)),
        "is_open": is_any_sql("latest.state", State.OPEN),
        "was_settled": is_any_sql("decision.state", State.SETTLED),
        "visible": IS_VISIBLE,
        # A queue announces neither a failed object again nor those that were planned with it.
        "wanted": "found" if complete else "found OR is_open",
        # An object that is gone before it is ingested again keeps its rows, and their ETag.
        **{
            name: f"""CASE
                WHEN found THEN now.{name}
                WHEN NOT wanted AND visible AND NOT was_settled THEN fetched.{name}
                ELSE coalesce({last}.{name}, {first}.{name}) END"""
            for name in OBJECT_COLUMNS[1:]
        },
        "settled": "was_settled AND decision.etag = etag",  # in this version
        "same": "visible AND fetched.etag = etag",  # the visible rows are of this version
        "waits_unchanged": "coalesce(waits AND decision.etag = etag, false)",
        "latest_unchanged": "coalesce(latest.etag = etag, false)",
        "overwritten": "wanted AND NOT settled AND NOT retried AND NOT same AND visible",
        "stays": "settled OR (NOT found AND was_settled)",  # in the state that was decided
        "state": f"""CASE
            WHEN overwritten THEN '{State.IGNORED}' WHEN stays THEN decision.state
            WHEN NOT found AND NOT visible THEN '{State.REMOVED}' ELSE '{State.FETCHED}' END""",
        **{
            name: f"CASE WHEN state = '{State.FETCHED}' THEN fetched.`{name}` END"
            for name in COMMIT_COLUMNS
        },
    }


def _decisions(mode: OnOverwrite, *, complete: bool) -> Mapping[str, str]:
    """The columns of `reconcile`, as expressions of the facts."""
    settles = f"CASE WHEN is_open THEN '{NOTE}' END"
    refused = "overwritten" if mode is OnOverwrite.FAIL else "false"
    replaced = "true" if mode is OnOverwrite.REPLACE else "false"
    return {
        **{name: f"`{name}`" for name in (*OBJECT_COLUMNS, "state", *COMMIT_COLUMNS)},
        "action": f"""CASE
            WHEN NOT wanted THEN {settles if complete else "NULL"}
            WHEN settled THEN {settles} WHEN retried THEN '{TAKE}'
            WHEN same THEN {settles} WHEN visible THEN '{_NOT_TAKEN.get(mode, TAKE)}'
            ELSE '{TAKE}' END""",
        "hides": f"visible AND (retried OR {replaced})",
        "since": "CASE WHEN waits THEN decision.epoch END",
        "recorded": f"""CASE
            WHEN {refused} THEN {is_any_sql("latest.state", (State.FAILED,))} AND latest_unchanged
            ELSE waits_unchanged END""",
        "remembered": "waits_unchanged OR (is_open AND latest_unchanged)",
        "waits_as": f"CASE WHEN retried THEN '{State.RETRIED}' ELSE '{State.LISTED}' END",
        "error": f"""CASE
            WHEN overwritten THEN concat('it was overwritten: its ETag was ', fetched.etag,
                ' and is ', etag, '; on_overwrite: ignore keeps the rows there are')
            WHEN stays THEN decision.error WHEN NOT found THEN '{_GONE}' END""",
        "previous": "fetched.etag",
    }


def _as_columns(expressions: Mapping[str, str]) -> list[str]:
    """The expressions as columns of these names."""
    return [f"{expression} AS `{name}`" for name, expression in expressions.items()]


def waiting_notes(taken: DataFrame) -> DataFrame:
    """Notes that objects to take are waiting, except where the ledger already has that."""
    nothing = {"error": "string", **COMMIT_COLUMNS}
    return taken.where("NOT recorded").selectExpr(
        *OBJECT_COLUMNS,
        "waits_as AS state",
        *(f"CAST(NULL AS {kind}) AS `{name}`" for name, kind in nothing.items()),
    )
