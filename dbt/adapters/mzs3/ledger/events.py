"""The events of a ledger, and the SQL that derives the state of every object from them.

The views and the planning of runs share the queries. A query's `ledger` is the name of the ledger,
or a subquery in parentheses. An event may occur twice, as the original and as its copy in a
snapshot, which must not change the result of a query.
"""

from __future__ import annotations

OBJECT_COLUMNS = ("object", "etag", "size", "last_modified")
"""The object of an event, as S3 reported it: URI, ETag, size in bytes, modification time."""

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
"""An event's columns besides `epoch` and `phase`. `hides`: it hides its object's earlier rows."""


class Phase:
    """The phases of an epoch, each one a partition; the module `ledger` explains them."""

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
    """A prefix, followed by a digest. Not a phase of an epoch, but a record about the source."""


class State:
    """The state of an object after an event; docs/s3-csv-source/ledger.md explains the states."""

    LISTED = "listed"
    RETRIED = "retried"
    FAILED = "failed"
    FETCHED = "fetched"
    SKIPPED = "skipped"
    RETRACTED = "retracted"
    IGNORED = "ignored"
    REMOVED = "removed"

    WAITING = (LISTED, RETRIED)
    """The object is to be ingested when its turn comes."""
    OPEN = (*WAITING, FAILED)
    """A run has yet to ingest the object, or to skip it."""
    SETTLED = (FETCHED, SKIPPED, RETRACTED, IGNORED)
    """No run reads the object with this ETag again."""


IS_VISIBLE = "coalesce(fetched.epoch >= coalesce(hidden_before, 0), false)"
"""SQL condition on `objects_sql`'s columns: the object has committed rows that are not hidden."""

# SQL of an event's position: epochs in order, each with its plan, its notes, and its end.
_POSITION = """struct(CAST(epoch AS bigint) AS epoch, CASE phase
    WHEN 'plan' THEN 0 WHEN 'note' THEN 1 WHEN 'failed' THEN 2 ELSE 3 END AS phase)"""


def events_sql(ledger: str) -> str:
    """A query for all events; a copy in a snapshot has the epoch and phase of its original."""
    return f"""
SELECT object, etag, size, last_modified, state, `rows`, rejects, error, at, hides,
  coalesce(of_epoch, epoch) AS epoch, coalesce(of_phase, phase) AS phase
FROM {ledger}"""


def valid_events_sql(ledger: str, *, has_void: bool = True) -> str:
    """A query for the events of epochs that are not void; `position` is their order.

    `is_decision` is true for notes and commits, false for plans and failures. If `has_void` is
    false, no epoch of `ledger` may be void, as the query does not check for void epochs.
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
    """A query that derives the state of every object from its events; `object` may be NULL.

    `latest` is the object's latest event, `decision` its latest note or commit, `fetched` the
    latest commit of its rows, `hidden_before` the epoch before which its rows are hidden.
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
    """The query of the view of objects' latest states; for `since`, see `visible_rows_sql`."""
    events = _since(ledger, since, "plan", "note", "failed", "commit", "void", "snapshot")
    return f"""
SELECT object, latest.etag, latest.size, latest.last_modified, latest.state, latest.rows,
  latest.rejects, latest.error, latest.at
FROM ({objects_sql(events)}) AS objects
WHERE object IS NOT NULL"""


def is_any_sql(state: str, states: tuple[str, ...]) -> str:
    """SQL: whether the expression `state` is one of these states; false for NULL."""
    listed = ", ".join(f"'{name}'" for name in states)
    return f"coalesce({state} IN ({listed}), false)"


def visible_rows_sql(
    rows: str,
    ledger: str,
    columns: str,
    condition: str,
    since: str,
    has_transactions: bool = False,
) -> str:
    """A query for rows that are committed, not hidden, and meet the condition, as of one moment.

    `rows` is the table of rows, to which `columns` and `condition` refer as `stored`. The query
    reads no event of an epoch before `since`, which is "0" or the epoch of a snapshot.
    """
    events = events_sql(_since(ledger, since, "note", "commit", "void", "snapshot"))
    # Spark lists a table's files while it plans the query, from left to right, if a condition on
    # partitions alone selects them, and otherwise when it runs the query. So the ledger is listed
    # first: the commits, then the events that hide rows. The files of rows must be listed last:
    # `coalesce` keeps Spark from deriving a condition on their partitions.
    # Spark does not know a partitioned table's size before the query runs: without the hints it
    # would shuffle all rows of a source to join them with the few events.
    joined = [f"{rows} AS stored", f"({_committed_epochs(events)}) AS committed"]
    row_epoch = "coalesce(stored.mz_epoch, '')"
    if has_transactions:
        # Spark reads each table as of when it resolves the table's name, from left to right.
        joined, row_epoch = joined[::-1], "stored.mz_epoch"
    return f"""
SELECT /*+ BROADCAST(committed), BROADCAST(hiding) */ {columns} FROM {joined[0]}
JOIN {joined[1]} ON {row_epoch} = committed.epoch
LEFT ANTI JOIN ({_hiding(events)}) AS hiding
  ON hiding.object = stored._mz_object AND hiding.epoch > CAST(stored.mz_epoch AS bigint)
  AND hiding.epoch <= committed.last_epoch
WHERE {condition}"""


def _committed_epochs(events: str) -> str:
    """A query for the committed epochs and the ledger's latest epoch, `last_epoch`, in one read.

    Events that hide rows are read later, and count only up to `last_epoch`: epochs are settled in
    the order of their numbers, so both reads are as of one moment.
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
    """A query for the epochs that hide earlier rows of an object; its window gets few events."""
    return f"""
SELECT object, CAST(epoch AS bigint) AS epoch FROM (
  SELECT object, epoch, hides AND phase IN ('note', 'commit') AS hides,
    bool_or(phase = 'void') OVER (PARTITION BY epoch) AS is_void
  FROM ({events}) AS event
  WHERE hides AND phase IN ('note', 'commit') OR phase = 'void'
) AS of_epochs
WHERE hides AND NOT is_void"""


def _since(ledger: str, since: str, *phases: str) -> str:
    # Epochs can be compared as texts: all are times in milliseconds, with thirteen digits.
    listed = ", ".join(f"'{phase}'" for phase in phases)
    return f"(SELECT * FROM {ledger} WHERE epoch >= '{since}' AND phase IN ({listed}))"
