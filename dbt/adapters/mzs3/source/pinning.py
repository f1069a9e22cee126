"""Pins a source's definition: what was found in S3 applies from the first commit on.

Until an epoch is committed, each run purifies anew. If the result differs from that of the run
before, it recreates the table of rows, of which none are visible yet. It keeps the ledger, which
has users' decisions and the objects that a queue has announced. Before that,

- every planned epoch is closed. So a run that has lost the lock can't commit any more; if it has
  just committed, its definition is pinned.
- the run marks that it drops tables (see `SourceLock.dropping_tables`). So a run that was taken
  for dead never drops a table in which another run has committed.

If a run dies on the way, the ledger remains without a table of rows, which the next run creates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pyspark.sql import functions as F

from dbt.adapters.mzs3.errors import ConfigError, SourceError
from dbt.adapters.mzs3.formats.read.format import RecordField
from dbt.adapters.mzs3.formats.read.object_error import HeaderProblem
from dbt.adapters.mzs3.ledger.compaction import has_commits
from dbt.adapters.mzs3.ledger.events import State
from dbt.adapters.mzs3.ledger.lease import SourceLock
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.source.executor.fetch import open_format
from dbt.adapters.mzs3.source.executor.listing import iter_pages
from dbt.adapters.mzs3.source.executor.stored_object import S3Object, read_fields
from dbt.adapters.mzs3.source.new_columns import settle
from dbt.adapters.mzs3.source.options import SourceDefinition
from dbt.adapters.mzs3.source.purify import (
    PinnedDefinition,
    contradictions,
    purify,
    require_free_names,
)
from dbt.adapters.mzs3.source.queue.inbox import VISIBILITY_S, Inbox
from dbt.adapters.mzs3.source.report import reset_hint
from dbt.adapters.mzs3.source.reset import ingested_after_reset
from dbt.adapters.mzs3.source.run import SourceRun, void_unfinished
from dbt.adapters.mzs3.source.tables import (
    SourceTables,
    drop_rows,
    lost_rows_error,
    make_relations,
    read_tables,
)
from dbt.adapters.mzs3.spark.tables import table_format
from dbt.adapters.mzs3.store.opened import open_store
from dbt.adapters.mzs3.store.store import ListedObject, Store


@dataclass(frozen=True)
class Pin:
    """The definition of all objects of a run, and the ledger. `is_first`: nothing is committed
    yet, so the next run may pin another definition."""

    definition: PinnedDefinition
    ledger: Ledger
    is_first: bool


def pin(run: SourceRun, inbox: Inbox | None, lock: SourceLock) -> Pin:
    """Pins the definition and creates the source's missing relations, under its lock.

    Raises an Mzs3Error, also if the definition is not the one that is pinned.
    """
    definition, spark = run.definition, run.spark
    tables = read_tables(spark, definition)
    ledger = Ledger(spark, tables.relations, lock) if tables and tables.has_ledger else None
    if tables is not None and ledger is not None and tables.widened:
        settle(run, ledger, tables)
        tables = read_tables(spark, definition)
    if tables is not None and ledger is not None and _has_committed(run, tables, ledger):
        if tables.pinned is None:
            lock.require()  # if it is lost, another run may have made it since
            raise lost_rows_error(definition)
        require_agreement(definition, tables.pinned)
        make_relations(spark, definition, tables.pinned, tables)
        return Pin(tables.pinned, ledger, is_first=False)
    lock.require_no_pending_drops()
    pinned = purify_now(run, inbox, ledger)
    if tables is not None:
        # The ledger has a format already.
        pinned = replace(pinned, file_format=tables.relations.file_format)
        require_format(definition, pinned.file_format)
    # Definitions are equal if they differ only in where the header was found.
    if tables is not None and tables.pinned not in (None, pinned):
        with lock.dropping_tables():
            drop_rows(spark, definition, tables.relations)
            relations = make_relations(spark, definition, pinned, None)
    else:
        relations = make_relations(spark, definition, pinned, tables)
    # A run that lost the lock may have created the table with other columns, just after it was
    # dropped here.
    if (now := read_tables(spark, definition)) is None or now.pinned != pinned:
        rows = definition.relations.display_name("__rows")
        raise SourceError(
            f"{definition.name}: another run made or dropped {rows} while this one was to make "
            "it; nothing was ingested. Run again"
        )
    # Not `ledger`: the table of rows may have another name by now.
    return Pin(pinned, Ledger(spark, relations, lock), is_first=True)


def _has_committed(run: SourceRun, tables: SourceTables, ledger: Ledger) -> bool:
    """Whether anything is committed. If not, ensures that no epoch planned so far will be."""
    if has_commits(ledger):
        return True
    if tables.pinned is not None:
        void_unfinished(run, ledger)
    return has_commits(ledger)


def purify_now(
    run: SourceRun, inbox: Inbox | None, ledger: Ledger | None = None
) -> PinnedDefinition:
    """Purifies the definition from the objects in S3. Deletes no message of its queue.

    Ignores objects that the ledger has as skipped. Raises an Mzs3Error.
    """
    definition = run.definition
    if ledger is not None and definition.discovery.queue is not None:
        _require_location(definition, ledger)
    header, origin = None, None
    if definition.header is True:
        header, origin = _discover_header(run, inbox, ledger)
    try:
        pinned = purify(definition, header)
    except ConfigError as exc:
        if origin is None:
            raise
        subject = (
            f"{exc.subject}, by the header of object {origin} (if it is none of the source's, "
            "remove it, or narrow `pattern`),"
        )
        raise ConfigError(subject, exc.problems) from exc
    file_format = table_format(run.spark, definition.file_format)
    require_free_names(definition.name, pinned)
    return replace(pinned, file_format=file_format, origin=origin)


def require_agreement(definition: SourceDefinition, pinned: PinnedDefinition) -> None:
    """Raises SourceError if the definition contradicts the pinned one."""
    if conflicts := contradictions(pinned, definition):
        differences = "".join(f"\n  - {difference}" for difference in conflicts)
        raise SourceError(
            f"{definition.name}: its definition is not the one that was pinned when it was first "
            f"ingested, {pinned.sql()}:{differences}\nRestore the definition; or, to ingest "
            f"{ingested_after_reset(definition)} under this one, drop what was made "
            f"with the old one: {reset_hint(definition.name)}"
        )


def require_format(definition: SourceDefinition, there: str) -> None:
    """Raises SourceError if the declared table format is not that of the existing tables."""
    if definition.file_format not in (None, there):
        raise SourceError(
            f"{definition.name}: file_format is declared as {definition.file_format!r}, and an "
            f"earlier run, which committed nothing, has made the tables with {there!r}. Declare "
            f"that; or, to ingest {ingested_after_reset(definition)} with another one, "
            f"drop them: {reset_hint(definition.name)}"
        )


def _require_location(definition: SourceDefinition, ledger: Ledger) -> None:
    """Raises SourceError if the ledger has objects outside the location, from a queue: they would
    be ingested without being listed."""
    uri, objects = definition.location.uri, ledger.objects().where("object IS NOT NULL")
    outside = objects.where(~F.col("object").startswith(uri)).first()
    if outside is not None:
        raise SourceError(
            f"{definition.name}: its location is declared as {uri!r}, and its ledger has objects "
            f"of another one, such as {outside['object']}. Restore the location; or, to ingest "
            f"{ingested_after_reset(definition)} under this one, drop what is known of "
            f"the old one: {reset_hint(definition.name)}"
        )


def _discover_header(
    run: SourceRun, inbox: Inbox | None, ledger: Ledger | None
) -> tuple[tuple[RecordField, ...] | None, str | None]:
    """The header of the first object that has one, and the object's URI; listed objects come
    before announced ones. Raises SourceError if a header can't be read, unless such objects are
    skipped and another object has a header."""
    definition = run.definition
    object_format = open_format(
        definition.format, definition.dialect, definition.compression, definition.reading
    )
    unread: SourceError | None = None
    for stored in readable_objects(run, inbox, ledger):
        run.cancellation.check()
        uri = stored.uri
        try:
            header = read_fields(object_format, stored, definition.name)
        except SourceError as exc:
            # The object is skipped, as it will be when it is fetched.
            if not (definition.reading.skips and isinstance(exc.__cause__, HeaderProblem)):
                raise
            unread = unread or exc
            continue
        if header is not None:
            return header, uri
    if unread is not None:
        raise unread
    if inbox is not None and not definition.discovery.bucket_scan:
        what = "is empty" if inbox.empty else "names no object that has a header"
        if inbox.only_tests:
            what = "holds nothing but S3's test event, which announces no object"
        raise SourceError(
            f"{definition.name}: the queue {inbox.queue_name} {what}, so there is none to learn "
            "the columns from. Declare the names as `header: [name, ...]`; or run again once an "
            "object was announced. Messages that a killed run had received come back within "
            f"{VISIBILITY_S} s"
        )
    return None, None


def _skipped(ledger: Ledger) -> dict[str, str]:
    """The objects that are skipped, each with the ETag of the skipped version."""
    events = ledger.objects().where(f"object IS NOT NULL AND latest.state = '{State.SKIPPED}'")
    return {row["object"]: row["etag"] for row in events.select("object", "latest.etag").collect()}


def readable_objects(
    run: SourceRun, inbox: Inbox | None, ledger: Ledger | None
) -> Iterator[S3Object]:
    """The source's objects, but for empty ones and those that the ledger has as skipped; listed
    ones come before announced ones."""
    location = run.definition.location
    skipped = _skipped(ledger) if ledger is not None else {}
    store = open_store(run.connection, location)
    for listed in _listed_objects(run, store, inbox, ledger):
        stored = S3Object(store, location, listed.key, listed.etag, listed.size)
        if stored.size and skipped.get(stored.uri) != stored.etag:
            yield stored


def _listed_objects(
    run: SourceRun, store: Store, inbox: Inbox | None, ledger: Ledger | None
) -> Iterator[ListedObject]:
    definition = run.definition
    if definition.discovery.bucket_scan:
        for page in iter_pages(store, definition.location, definition.pattern):
            yield from page
    if inbox is not None:
        inbox.receive(ledger)
        yield from inbox.present_objects
