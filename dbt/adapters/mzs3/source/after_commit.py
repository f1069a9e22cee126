"""Tags, moves or deletes a source's objects in S3 once their rows are committed."""

from __future__ import annotations

from pyspark.sql import Column, Row
from pyspark.sql import functions as F

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.ledger.epochs import epochs_awaiting_after_commit
from dbt.adapters.mzs3.ledger.events import IS_VISIBLE, State, is_any_sql
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.source.discovery import EPOCH_PLACEHOLDER
from dbt.adapters.mzs3.source.executor.after_commit import (
    LEFT,
    OUTCOME_DDL,
    WAITING,
    AfterSpec,
    act_on,
)
from dbt.adapters.mzs3.source.run import SourceRun
from dbt.adapters.mzs3.spark.frames import first_row, persisted
from dbt.adapters.mzs3.spark.job import shipped
from dbt.adapters.mzs3.store.conditions import supports_conditional_delete
from dbt.adapters.mzs3.store.opened import open_store
from dbt.adapters.mzs3.store.prefix import Prefix
from dbt.adapters.mzs3.text import count_noun

EPOCHS_IN_VAIN = 3
"""After this many epochs whose objects all failed, a run leaves the others to the next run."""


def require_conditional_delete(run: SourceRun) -> None:
    """Raises SourceError if the action could destroy an object that was overwritten meanwhile.

    Call it before anything is ingested, as the error says. Only the store, if it supports If-Match
    for deletions, notices an overwrite between the last HEAD and the deletion.
    """
    definition, location = run.definition, run.definition.location
    if not supports_conditional_delete(Prefix(open_store(run.connection, location), location)):
        action = definition.after_commit.action.value
        raise SourceError(
            f"{definition.name}: the store of {location.uri} does not compare an object's ETag "
            f"before it deletes it (If-Match), without which after_commit: {action} could destroy "
            "what was put there after it was ingested; nothing was ingested. Declare "
            "after_commit: tag or keep, or use a store that does, such as Amazon S3"
        )


def act_on_committed(run: SourceRun, ledger: Ledger) -> None:
    """Applies `after_commit` to the objects of every committed epoch that is due.

    Epochs of earlier runs that died are included. Failures are warnings, and the next run tries
    again; objects that were overwritten since are skipped. Raises SourceError if the lock is lost:
    then the run that took it over decides what to do with the objects.
    """
    waiting = left = in_vain = 0
    why_waiting = why_left = None
    # The newest first, so that old epochs that always fail don't keep back newer ones.
    for epoch in reversed(epochs_awaiting_after_commit(ledger.epochs())):
        ledger.require_lock("what it committed stays, and after_commit is left to the next run")
        counts = _act(run, ledger, epoch)
        waiting, why_waiting = waiting + counts["waiting"], why_waiting or counts["why_waiting"]
        left, why_left = left + counts["left"], why_left or counts["why_left"]
        in_vain += counts["waiting"] == counts["objects"] > 0
        if in_vain == EPOCHS_IN_VAIN:
            break
    definition = run.definition
    subject = f"{definition.name}: after_commit: {definition.after_commit.action.value}"
    committed = "whose rows are committed"
    if waiting:
        run.warn(
            f"{subject} failed for {count_noun(waiting, 'object')}, {committed}: {why_waiting}. "
            "The next run tries again"
        )
    if left:
        run.warn(f"{subject} left {count_noun(left, 'object')} alone, {committed}: {why_left}")


def _act(run: SourceRun, ledger: Ledger, epoch: str) -> Row:
    """Acts on the epoch's objects. Returns how many there are, wait and are left, and why."""
    declared, location = run.definition.after_commit, run.definition.location
    spec = AfterSpec(
        connection=run.connection,
        location=location,
        action=declared.action.value,
        tags=tuple((name, text.replace(EPOCH_PLACEHOLDER, epoch)) for name, text in declared.tags),
        target=declared.target,
    )
    # Not objects that are to be ingested again (`State.OPEN`): they must still be there.
    fetched = f"fetched.epoch = {int(epoch)} AND {IS_VISIBLE}"
    is_closed = f"NOT {is_any_sql('latest.state', State.OPEN)}"
    objects = ledger.objects().where(f"{fetched} AND {is_closed}").select("object", "fetched.etag")
    tasks = int(str(run.spark.conf.get("spark.sql.shuffle.partitions")))
    results = objects.repartition(tasks).mapInArrow(shipped(act_on, spec), OUTCOME_DDL)
    with persisted(results) as outcomes:
        counts = [F.count(F.lit(1)).alias("objects"), *_counted(WAITING), *_counted(LEFT)]
        summary = first_row(outcomes.agg(*counts))
        if not summary["waiting"]:
            no_details = {name: F.lit(None) for name in ("size", "last_modified")}
            ledger.write_done(epoch, outcomes.withColumns(no_details))
    return summary


def _counted(state: str) -> list[Column]:
    """Aggregates for a state: the number of its objects, and the reason of the first of them."""
    has_state = F.col("state") == state
    reason = F.concat("object", F.lit(": "), "error") if state == LEFT else F.col("error")
    return [
        F.count_if(has_state).alias(state),
        F.min_by(reason, F.when(has_state, F.col("object"))).alias(f"why_{state}"),
    ]
