"""Reading the ledger: its events, and what they come to for every object, as SQL.

The views and the planning of runs read the same queries. Each takes the ledger's name, or a
subquery in parentheses. An event may be there twice, as itself and as its copy in a snapshot:
no query may mind.
"""

from __future__ import annotations

OBJECT_COLUMNS = ("object", "etag", "size", "last_modified")
"""Which object an event is of, as S3 had it: its URI, ETag, bytes, and when it was modified."""

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
"""What the ledger holds of an event, beside its epoch and its phase."""


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
    """Followed by a digest: no phase of an epoch, but what is known of the source as a whole."""


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
    """The object is to be taken, once its turn comes."""
    OPEN = (*WAITING, FAILED)
    """What the source wants of the object is not done."""
    SETTLED = (FETCHED, SKIPPED, RETRACTED, IGNORED)
    """The object with this ETag is done with."""


IS_VISIBLE = "coalesce(taken.epoch >= coalesce(hidden_before, 0), false)"
"""Whether rows of an object are committed and not hidden, by the columns of `objects_sql`."""

# Of one epoch: the plan, what the run found out beside it, and how it ended.
_PLACE = """struct(CAST(epoch AS bigint) AS epoch, CASE phase
    WHEN 'plan' THEN 0 WHEN 'note' THEN 1 WHEN 'failed' THEN 2 ELSE 3 END AS phase)"""


def events_sql(ledger: str) -> str:
    """Every event, with the epoch and the phase that it had when it was written."""
    return f"""
SELECT object, etag, size, last_modified, state, `rows`, rejects, error, at, hides,
  coalesce(of_epoch, epoch) AS epoch, coalesce(of_phase, phase) AS phase
FROM {ledger}"""


def valid_events_sql(ledger: str, *, has_void: bool = True) -> str:
    """The events of epochs that are not void; `place` is their order.

    `counts` says whether the event settles something: plans and failures do not. Without
    `has_void` no epoch of `ledger` is void, which saves looking for them.
    """
    not_void = f"""AND NOT EXISTS (
  SELECT /*+ BROADCAST */ 1 FROM {ledger} AS void
  WHERE coalesce(void.of_phase, void.phase) = 'void'
    AND coalesce(void.of_epoch, void.epoch) = event.epoch
)"""
    return f"""
SELECT *, {_PLACE} AS place, phase IN ('note', 'commit') AS counts
FROM ({events_sql(ledger)}) AS event
WHERE phase IN ('plan', 'note', 'failed', 'commit') {not_void if has_void else ""}"""


def objects_sql(ledger: str, *, has_void: bool = True) -> str:
    """The state of every object by its events; what concerns no object is under NULL.

    `shown` is its latest event; `known` the latest that counts; `taken` the latest by which its
    rows came in; `hidden_before` the epoch before which its rows are hidden.
    """
    return f"""
SELECT object,
  max_by(
    struct(etag, size, last_modified, state, `rows`, rejects, error, at, place.epoch AS epoch),
    place
  ) AS shown,
  max_by(struct(etag, size, last_modified, state, error, place.epoch AS epoch), place)
    FILTER (WHERE counts) AS known,
  max_by(
    struct(etag, size, last_modified, `rows`, rejects, at, place.epoch AS epoch), place
  )
    FILTER (WHERE phase = 'commit' AND state = 'fetched') AS taken,
  max(place.epoch) FILTER (WHERE counts AND hides) AS hidden_before
FROM ({valid_events_sql(ledger, has_void=has_void)}) AS valid
GROUP BY object"""


def states_sql(ledger: str, since: str) -> str:
    """The view of the latest state of every object; `since` as for `visible_rows_sql`."""
    events = _since(ledger, since, "plan", "note", "failed", "commit", "void", "snapshot")
    return f"""
SELECT object, shown.etag, shown.size, shown.last_modified, shown.state, shown.rows,
  shown.rejects, shown.error, shown.at
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

    `rows` is the table of rows; columns are named as of `stored`. No event of an epoch before
    `since` is looked for: a snapshot of that epoch, or a later one, has what is needed of them.
    """
    events = events_sql(_since(ledger, since, "note", "commit", "void", "snapshot"))
    # Spark lists the files of a table when it plans a query if a condition on partitions alone
    # says which it needs, from the left of a query to its right; and else when it runs it. So the
    # ledger is listed first, its commits before what hides rows. `coalesce` keeps Spark from
    # adding such a condition on the rows, whose files are to be listed after both.
    # It knows of no size of a partitioned table before it runs: unless told otherwise, it would
    # shuffle all rows of a source to compare them with the few that the ledger says something of.
    joined = [f"{rows} AS stored", f"({_committed_epochs(events)}) AS decided"]
    of_row = "coalesce(stored.mz_epoch, '')"
    if has_transactions:
        # Each table is read as it was when Spark came upon its name, from left to right.
        joined, of_row = joined[::-1], "stored.mz_epoch"
    return f"""
SELECT /*+ BROADCAST(decided), BROADCAST(hiding) */ {columns} FROM {joined[0]}
JOIN {joined[1]} ON {of_row} = decided.epoch
LEFT ANTI JOIN ({_hiding(events)}) AS hiding
  ON hiding.object = stored._mz_object AND hiding.epoch > CAST(stored.mz_epoch AS bigint)
  AND hiding.epoch <= decided.upto
WHERE {condition}"""


def _committed_epochs(events: str) -> str:
    """Which epochs are committed, and `upto` which epoch the ledger knows of them, in one read.

    What hides rows is read after it, and counts only up to there: epochs are settled in the order
    of their numbers, so both are of one moment.
    """
    return f"""
SELECT explode(committed) AS epoch, upto FROM (
  SELECT collect_list(CASE WHEN is_committed AND NOT is_void THEN epoch END) AS committed,
    max(CASE WHEN NOT is_void THEN CAST(epoch AS bigint) END) AS upto
  FROM (
    SELECT epoch, bool_or(phase = 'commit') AS is_committed, bool_or(phase = 'void') AS is_void
    FROM ({events}) AS event WHERE phase IN ('note', 'commit', 'void') GROUP BY epoch
  ) AS settled
) AS known"""


def _hiding(events: str) -> str:
    """The objects whose earlier rows an epoch hides; few rows get as far as the window."""
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
