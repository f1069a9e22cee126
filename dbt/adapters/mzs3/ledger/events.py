"""The events of a ledger, and SQL that makes of them the state of every object.

The views and the planning of runs share the queries. Each takes the ledger's name, or a subquery
in parentheses. An event may occur twice, as itself and as its copy in a snapshot, and must make
no difference then.
"""

from __future__ import annotations

OBJECT_COLUMNS = ("object", "etag", "size", "last_modified")
"""The object of an event, as S3 had it: its URI, ETag, bytes, and when it was modified."""

LEDGER_COLUMNS = {
    "object": "string",
    "etag": "string",
    "size": "bigint",
    "last_modified": "timestamp",
    "state": "string",
    "rows": "bigint",
    "rejects": "bigint",
    "error": "string",
    "at": "timestamp",
    "hides": "boolean",
    "of_epoch": "string",
    "of_phase": "string",
}
"""The columns of an event, beside its epoch and its phase."""


class Phase:
    """What an event says of its epoch; each phase of an epoch is a partition of the ledger."""

    PLAN = "plan"
    NOTE = "note"
    FAILED = "failed"
    COMMIT = "commit"
    VOID = "void"
    SNAPSHOT = "snapshot"
    DUE = "due"
    DONE = "done"
    LISTING = "listing"
    CLOSING = "closing"
    IDLE = "idle-"
    """Followed by a digest: no phase of an epoch, but a fact about the source as a whole."""


class State:
    """What an event says of its object."""

    LISTED = "listed"
    RETRIED = "retried"
    FAILED = "failed"
    FETCHED = "fetched"
    SKIPPED = "skipped"
    RETRACTED = "retracted"
    IGNORED = "ignored"
    REMOVED = "removed"

    WAITING = (LISTED, RETRIED)
    """The object is to be ingested, once its turn comes."""
    OPEN = (*WAITING, FAILED)
    """A run has yet to ingest the object, or to pass over it."""
    SETTLED = (FETCHED, SKIPPED, RETRACTED, IGNORED)
    """No run looks at the object with this ETag again."""


IS_VISIBLE = "coalesce(fetched.epoch >= coalesce(hidden_before, 0), false)"
"""Whether rows of an object are committed and not hidden, by the columns of `objects_sql`."""

# The order of events. Of one epoch: the plan, what the run noted beside it, and how it ended.
_POSITION = """struct(CAST(epoch AS bigint) AS epoch, CASE phase
    WHEN 'plan' THEN 0 WHEN 'note' THEN 1 WHEN 'failed' THEN 2 ELSE 3 END AS phase)"""


def events_sql(ledger: str) -> str:
    """Every event, with the epoch and the phase that it had when it was written."""
    return f"""
SELECT object, etag, size, last_modified, state, `rows`, rejects, error, at, hides,
  coalesce(of_epoch, epoch) AS epoch, coalesce(of_phase, phase) AS phase
FROM {ledger}"""


def valid_events_sql(ledger: str, *, has_void: bool = True) -> str:
    """The events of epochs that are not void; `position` is their order.

    `is_decision` is false for plans and failures, which settle nothing. Without `has_void` no
    epoch of `ledger` is void, and the query does not look for any.
    """
    not_void = f"""AND NOT EXISTS (
  SELECT /*+ BROADCAST */ 1 FROM {ledger} AS void
  WHERE coalesce(void.of_phase, void.phase) = 'void'
    AND coalesce(void.of_epoch, void.epoch) = event.epoch
)"""
    return f"""
SELECT *, {_POSITION} AS position, phase IN ('note', 'commit') AS is_decision
FROM ({events_sql(ledger)}) AS event
WHERE phase IN ('plan', 'note', 'failed', 'commit') {not_void if has_void else ""}"""


def objects_sql(ledger: str, *, has_void: bool = True) -> str:
    """The state of every object by its events; an event of no object is under NULL.

    `latest` is its latest event, `decision` the latest that is one, `fetched` the latest commit of
    its rows, and `hidden_before` the epoch before which its rows are hidden.
    """
    return f"""
SELECT object,
  max_by(
    struct(etag, size, last_modified, state, `rows`, rejects, error, at, position.epoch AS epoch),
    position
  ) AS latest,
  max_by(struct(etag, size, last_modified, state, error, position.epoch AS epoch), position)
    FILTER (WHERE is_decision) AS decision,
  max_by(struct(etag, size, last_modified, `rows`, rejects, at, position.epoch AS epoch), position)
    FILTER (WHERE phase = 'commit' AND state = 'fetched') AS fetched,
  max(position.epoch) FILTER (WHERE is_decision AND hides) AS hidden_before
FROM ({valid_events_sql(ledger, has_void=has_void)}) AS valid
GROUP BY object"""


def states_sql(ledger: str, since: str) -> str:
    """The view of the latest state of every object; `since` as for `visible_rows_sql`."""
    events = _since(ledger, since, "plan", "note", "failed", "commit", "void", "snapshot")
    return f"""
SELECT object, latest.etag, latest.size, latest.last_modified, latest.state, latest.rows,
  latest.rejects, latest.error, latest.at
FROM ({objects_sql(events)}) AS objects
WHERE object IS NOT NULL"""


def is_any_sql(state: str, states: tuple[str, ...]) -> str:
    """Whether the state, an expression, is one of these; false where there is none."""
    listed = ", ".join(f"'{one}'" for one in states)
    return f"coalesce({state} IN ({listed}), false)"


def visible_rows_sql(
    rows: str,
    ledger: str,
    columns: str,
    condition: str,
    since: str,
    has_transactions: bool = False,
) -> str:
    """The rows that are committed, not hidden, and meet the condition; all as of one moment.

    `rows` is the table of rows; columns are named as of `stored`. The query reads no event of an
    epoch before `since`, of which there is a snapshot, or a later one.
    """
    events = events_sql(_since(ledger, since, "note", "commit", "void", "snapshot"))
    # Spark lists the files of a table while it plans the query where a condition on partitions
    # alone says which it needs, from left to right; else when it runs the query. So it lists the
    # ledger first, the commits before what hides rows. `coalesce` keeps Spark from deriving such a
    # condition on the rows, whose files it must list after both.
    # Before a query runs, Spark knows no size of a partitioned table: without the hints it would
    # shuffle all rows of a source to join them with the few events.
    joined = [f"{rows} AS stored", f"({_committed_epochs(events)}) AS committed"]
    of_row = "coalesce(stored.mz_epoch, '')"
    if has_transactions:
        # Spark reads each table as it is when it resolves the name, from left to right.
        joined, of_row = joined[::-1], "stored.mz_epoch"
    return f"""
SELECT /*+ BROADCAST(committed), BROADCAST(hiding) */ {columns} FROM {joined[0]}
JOIN {joined[1]} ON {of_row} = committed.epoch
LEFT ANTI JOIN ({_hiding(events)}) AS hiding
  ON hiding.object = stored._mz_object AND hiding.epoch > CAST(stored.mz_epoch AS bigint)
  AND hiding.epoch <= committed.last_epoch
WHERE {condition}"""


def _committed_epochs(events: str) -> str:
    """The committed epochs, each with the `last_epoch` that the ledger has, in one read.

    What hides rows is read later, and counts only up to `last_epoch`: epochs are settled in the
    order of their numbers, so both reads are as of one moment.
    """
    return f"""
SELECT explode(epochs) AS epoch, last_epoch FROM (
  SELECT collect_list(CASE WHEN is_committed AND NOT is_void THEN epoch END) AS epochs,
    max(CASE WHEN NOT is_void THEN CAST(epoch AS bigint) END) AS last_epoch
  FROM (
    SELECT epoch, bool_or(phase = 'commit') AS is_committed, bool_or(phase = 'void') AS is_void
    FROM ({events}) AS event WHERE phase IN ('note', 'commit', 'void') GROUP BY epoch
  ) AS settled
) AS together"""


def _hiding(events: str) -> str:
    """The objects whose earlier rows an epoch hides; few events reach the window."""
    return f"""
SELECT object, CAST(epoch AS bigint) AS epoch FROM (
  SELECT object, epoch, hides AND phase IN ('note', 'commit') AS hides,
    bool_or(phase = 'void') OVER (PARTITION BY epoch) AS is_void
  FROM ({events}) AS event
  WHERE hides AND phase IN ('note', 'commit') OR phase = 'void'
) AS of_epochs
WHERE hides AND NOT is_void"""


def _since(ledger: str, since: str, *phases: str) -> str:
    # As texts: epochs are times in milliseconds, of thirteen digits.
    listed = ", ".join(f"'{phase}'" for phase in phases)
    return f"(SELECT * FROM {ledger} WHERE epoch >= '{since}' AND phase IN ({listed}))"
