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

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt.adapters.mzs3.ledger.events import IS_VISIBLE, OBJECT_COLUMNS, State, is_any_sql
from dbt.adapters.mzs3.source.options import OnOverwrite

TAKE = "take"
NOTE = "note"
REFUSE = "refuse"

TAKEN_COLUMNS = {"rows": "bigint", "rejects": "bigint", "at": "timestamp"}
"""What a note by which an object stays fetched repeats of the commit, with their types."""

# The facts by which the action of an object is decided.
_DECIDING = ["retried", "is_open", "was_settled", "visible", "wanted", "etag", "settled", "same"]
_NOT_TAKEN = {OnOverwrite.FAIL: REFUSE, OnOverwrite.IGNORE: NOTE}
_GONE = "it was no longer listed when its turn came: it was removed, or the pattern leaves it out"


def reconcile(
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
    decisions = _named(_decisions(mode, complete=complete))
    found = with_facts(_found(candidates, objects), complete=complete)
    return found.selectExpr(*decisions).where("action IS NOT NULL")


def unsettled_objects(candidates: DataFrame, objects: DataFrame, mode: OnOverwrite) -> DataFrame:
    """The objects of which `reconcile` has a row, if there is none but the candidates.

    It is planned faster, as Spark analyses no expression that decides nothing.
    """
    facts = _facts(complete=True)
    deciding = _named({name: facts[name] for name in _DECIDING})
    action = _decisions(mode, complete=True)["action"]
    found = _found(candidates, objects).selectExpr("*", *deciding)
    return found.where(f"({action}) IS NOT NULL").select("object")


def _found(candidates: DataFrame, objects: DataFrame) -> DataFrame:
    """What is found of each object, and what the ledger knows of it."""
    known = objects.where("object IS NOT NULL")
    both = candidates.alias("c").join(known.alias("k"), F.expr("c.object = k.object"), "full")
    return both.selectExpr(
        "coalesce(c.object, k.object) AS object",
        "c.object IS NOT NULL AS found",
        "struct(c.etag, c.size, c.last_modified) AS now",
        "k.* EXCEPT (object)",
    )


def with_facts(objects: DataFrame, *, complete: bool) -> DataFrame:
    """The objects with what follows from what was found of them, and what the ledger knows.

    The columns that count are `found`, whether S3 has the object; `now`, a struct of its etag,
    size and last_modified there; and those of the ledger's objects. Among the new ones are those
    of a note but for its error.
    """
    # In one select, where each may name those before it: Spark analyses every select anew.
    return objects.selectExpr("*", *_named(_facts(complete=complete)))


def _facts(*, complete: bool) -> dict[str, str]:
    """The columns of `with_facts`."""
    last, first = ("decision", "latest") if complete else ("latest", "decision")
    # As texts: an expression that is built call by call costs Spark's driver more than it does
    # to run.
    return {
        "waits": is_any_sql("decision.state", State.WAITING),
        "retried": is_any_sql("decision.state", (State.RETRIED,)),
        "is_open": is_any_sql("latest.state", State.OPEN),
        "was_settled": is_any_sql("decision.state", State.SETTLED),
        "visible": IS_VISIBLE,
        # A queue does not tell again of what failed, nor of what was planned with it.
        "wanted": "found" if complete else "found OR is_open",
        # What was to be taken again and is gone has the rows it had, under their ETag.
        **{
            name: f"""CASE
                WHEN found THEN now.{name}
                WHEN NOT wanted AND visible AND NOT was_settled THEN fetched.{name}
                ELSE coalesce({last}.{name}, {first}.{name}) END"""
            for name in OBJECT_COLUMNS[1:]
        },
        "settled": "was_settled AND decision.etag = etag",
        "same": "visible AND fetched.etag = etag",
        "waits_so": "coalesce(waits AND decision.etag = etag, false)",
        "shown_so": "coalesce(latest.etag = etag, false)",
        "overwritten": "wanted AND NOT settled AND NOT retried AND NOT same AND visible",
        "stays": "settled OR (NOT found AND was_settled)",
        "state": f"""CASE
            WHEN overwritten THEN '{State.IGNORED}' WHEN stays THEN decision.state
            WHEN NOT found AND NOT visible THEN '{State.REMOVED}' ELSE '{State.FETCHED}' END""",
        **{
            name: f"CASE WHEN state = '{State.FETCHED}' THEN fetched.`{name}` END"
            for name in TAKEN_COLUMNS
        },
    }


def _decisions(mode: OnOverwrite, *, complete: bool) -> Mapping[str, str]:
    """The columns of `reconcile`, by the facts."""
    settles = f"CASE WHEN is_open THEN '{NOTE}' END"
    refused = "overwritten" if mode is OnOverwrite.FAIL else "false"
    replaced = "true" if mode is OnOverwrite.REPLACE else "false"
    return {
        **{name: f"`{name}`" for name in (*OBJECT_COLUMNS, "state", *TAKEN_COLUMNS)},
        "action": f"""CASE
            WHEN NOT wanted THEN {settles if complete else "NULL"}
            WHEN settled THEN {settles} WHEN retried THEN '{TAKE}'
            WHEN same THEN {settles} WHEN visible THEN '{_NOT_TAKEN.get(mode, TAKE)}'
            ELSE '{TAKE}' END""",
        "hides": f"visible AND (retried OR {replaced})",
        "since": "CASE WHEN waits THEN decision.epoch END",
        "recorded": f"""CASE
            WHEN {refused} THEN {is_any_sql("latest.state", (State.FAILED,))} AND shown_so
            ELSE waits_so END""",
        "remembered": "waits_so OR (is_open AND shown_so)",
        "waits_as": f"CASE WHEN retried THEN '{State.RETRIED}' ELSE '{State.LISTED}' END",
        "error": f"""CASE
            WHEN overwritten THEN concat('it was overwritten: its ETag was ', fetched.etag,
                ' and is ', etag, '; on_overwrite: ignore keeps the rows there are')
            WHEN stays THEN decision.error WHEN NOT found THEN '{_GONE}' END""",
        "previous": "fetched.etag",
    }


def _named(expressions: Mapping[str, str]) -> list[str]:
    """The expressions as columns of these names."""
    return [f"{expression} AS `{name}`" for name, expression in expressions.items()]


def waiting_notes(taken: DataFrame) -> DataFrame:
    """Notes by which the ledger has objects to take as waiting, of those that it has not so."""
    nothing = {"error": "string", **TAKEN_COLUMNS}
    return taken.where("NOT recorded").selectExpr(
        *OBJECT_COLUMNS,
        "waits_as AS state",
        *(f"CAST(NULL AS {kind}) AS `{name}`" for name, kind in nothing.items()),
    )
