"""Reading the ledger: its events, and what they come to for every object, as SQL.

The views of a source and the planning of its runs read the same queries, so that what a user sees
is what a run goes by. Each takes the ledger's name, or a subquery in parentheses over it. An event
may be there twice, as itself and as its copy in a snapshot: no query minds.
"""

from __future__ import annotations

OBJECT_COLUMNS = ("object", "etag", "size", "last_modified")
"""Which object an event is of, as S3 had it: its URI, ETag, bytes, and when it was modified."""

PLAN = "plan"
NOTE = "note"
FAILED = "failed"
COMMIT = "commit"
VOID = "void"
SNAPSHOT = "snapshot"
DUE = "due"
DONE = "done"
LISTING = "listing"

LISTED = "listed"
RETRIED = "retried"
FETCHED = "fetched"
SKIPPED = "skipped"
RETRACTED = "retracted"
IGNORED = "ignored"
REMOVED = "removed"

WAITING_STATES = (LISTED, RETRIED)
"""The object is to be taken, once its turn comes."""
OPEN_STATES = (*WAITING_STATES, FAILED)
"""What the source wants of the object is not done."""
SETTLED_STATES = (FETCHED, SKIPPED, RETRACTED, IGNORED)
"""The object with this ETag is done with."""

_EVENTS = """
SELECT object, etag, size, last_modified, state, `rows`, rejects, error, at, hides,
  coalesce(of_epoch, epoch) AS epoch, coalesce(of_phase, phase) AS phase
FROM {ledger}"""

# Of one epoch: the plan, what the run found out beside it, and how it ended.
_PLACE = """struct(CAST(epoch AS bigint) AS epoch, CASE phase
    WHEN 'plan' THEN 0 WHEN 'note' THEN 1 WHEN 'failed' THEN 2 ELSE 3 END AS phase)"""

_VALID = """
SELECT *, {place} AS place, phase IN ('note', 'commit') AS counts
FROM ({events}) AS event
WHERE phase IN ('plan', 'note', 'failed', 'commit')"""

_NOT_VOID = """ AND NOT EXISTS (
  SELECT /*+ BROADCAST */ 1 FROM {ledger} AS void
  WHERE coalesce(void.of_phase, void.phase) = 'void'
    AND coalesce(void.of_epoch, void.epoch) = event.epoch
)"""

_OBJECTS = """
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
FROM ({valid}) AS valid
GROUP BY object"""

_STATES = """
SELECT object, shown.etag, shown.size, shown.last_modified, shown.state, shown.rows,
  shown.rejects, shown.error, shown.at
FROM ({objects}) AS objects
WHERE object IS NOT NULL"""

# Spark knows of no size of a partitioned table before it runs: unless told otherwise, it would
# shuffle all rows of a source to compare them with the few that the ledger says something of.
_COMMITTED_EPOCHS = """
SELECT /*+ BROADCAST */ epoch FROM ({events}) AS event WHERE phase IN ('commit', 'void')
GROUP BY epoch HAVING NOT bool_or(phase = 'void')"""

# Few rows: only events that hide, and void epochs, get as far as the window.
_HIDDEN = """
SELECT object, max(CAST(epoch AS bigint)) AS before FROM (
  SELECT object, epoch, hides AND phase IN ('note', 'commit') AS hides,
    bool_or(phase = 'void') OVER (PARTITION BY epoch) AS is_void
  FROM ({events}) AS event
  WHERE hides AND phase IN ('note', 'commit') OR phase = 'void'
) AS hiding
WHERE hides AND NOT is_void
GROUP BY object"""

_VISIBLE_ROWS = """
mz_epoch IN ({committed})
AND NOT EXISTS (
  SELECT /*+ BROADCAST */ 1 FROM ({hidden}) AS hidden
  WHERE hidden.object = _mz_object AND hidden.before > CAST(mz_epoch AS bigint)
)"""


def events_sql(ledger: str) -> str:
    """Every event, with the epoch and the phase that it had when it was written."""
    return _EVENTS.format(ledger=ledger)


def valid_events_sql(ledger: str, *, has_void: bool = True) -> str:
    """The events of epochs that are not void, in `place` in the order in which they count.

    `counts` says whether the event settles something: plans and failures settle nothing. Without
    `has_void` no epoch of `ledger` is void, which saves looking for them.
    """
    valid = _VALID.format(events=events_sql(ledger), place=_PLACE)
    return valid + _NOT_VOID.format(ledger=ledger) if has_void else valid


def objects_sql(ledger: str, *, has_void: bool = True) -> str:
    """Of every object what its events come to; what concerns no object is under NULL.

    `shown` is its latest event; `known` the latest that counts; `taken` the latest by which its
    rows came in; `hidden_before` the epoch before which its rows are hidden.
    """
    return _OBJECTS.format(valid=valid_events_sql(ledger, has_void=has_void))


def states_sql(ledger: str) -> str:
    """The view of the latest state of every object."""
    return _STATES.format(objects=objects_sql(ledger))


def is_any_sql(state: str, states: tuple[str, ...]) -> str:
    """Whether the state, an expression, is one of these; false where there is none."""
    listed = ", ".join(f"'{one}'" for one in states)
    return f"coalesce({state} IN ({listed}), false)"


def is_visible_sql(prefix: str = "") -> str:
    """Whether rows of an object are committed and not hidden; from what `objects_sql` says of it,
    its columns named with the prefix."""
    return f"coalesce({prefix}taken.epoch >= coalesce({prefix}hidden_before, 0), false)"


def visible_rows_sql(ledger: str) -> str:
    """The condition on the table of rows that says whether a row is committed and not hidden."""
    events = events_sql(ledger)
    return _VISIBLE_ROWS.format(
        committed=_COMMITTED_EPOCHS.format(events=events), hidden=_HIDDEN.format(events=events)
    )
