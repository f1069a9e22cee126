"""Finds out, without the lock, that a source has nothing new.

A pass of `ingest` does nothing if the relations are as they should be, no epoch is unfinished, and
all objects are settled: nothing is left to do about them. This can be seen without the lock:

- Events of an epoch never change. So if the ledger has the same phases of the same epochs before
  and after the listing, it did not change in between.
- Then the ledger and the listing show the same state, whatever other runs do.
- An object that another run ingests at that time is in an unfinished epoch, or was not settled.
  Then, as in all other cases of doubt, the pass takes the lock, and so waits for that run.

Which objects are settled follows from the phases in the ledger and from the listing. The ledger
records a digest of both, by which the next pass knows without a query that nothing is new. If the
digest matches, the ledger is not read again: what was added to it meanwhile is found by the pass
after that.
"""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.ledger.compaction import compaction_is_due
from dbt.adapters.mzs3.ledger.epochs import Epochs, unfinished_epochs
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.ledger.relations import SourceRelations
from dbt.adapters.mzs3.ledger.views import has_views
from dbt.adapters.mzs3.source.discovery import AfterAction, Discovery
from dbt.adapters.mzs3.source.executor.listing import FirstPage, first_page
from dbt.adapters.mzs3.source.listing.reconcile import unsettled_objects
from dbt.adapters.mzs3.source.listing.scan import object_frame
from dbt.adapters.mzs3.source.options import SourceDefinition
from dbt.adapters.mzs3.source.purify import contradictions
from dbt.adapters.mzs3.source.run import SourceRun
from dbt.adapters.mzs3.source.tables import read_tables, reads_latest
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES
from dbt.adapters.mzs3.store.opened import open_store

# The version of the rules in `reconcile`: raise it if they decide differently on the same facts.
_RULES = 1


def is_idle(run: SourceRun) -> bool:
    """Whether a pass would certainly find nothing to do.

    False if the listing has several pages, or if anything but S3 fails: the pass itself will then
    report the failure. Raises S3Error.
    """
    if not _has_default_intake(run.definition):
        return False
    try:
        with ThreadPoolExecutor(2) as pool:
            # In other threads, work that does not depend on the ledger.
            store = pool.submit(open_store, run.connection, run.definition.location)
            if (relations := _current_relations(run)) is None:
                return False
            views = pool.submit(has_views, run.spark, run.definition.relations)
            ledger = Ledger(run.spark, relations)
            epochs = ledger.epochs()
            if unfinished_epochs(epochs) or compaction_is_due(epochs):
                return False
            page = first_page(store.result(), run.definition.location, run.definition.pattern)
            if page.end is not None:
                return False
            digest = _digest(run.definition, epochs, page)
            if ledger.was_idle(digest):
                return views.result()
            if not (
                _all_is_settled(run, ledger, page)
                and Ledger(run.spark, relations).epochs() == epochs
                and views.result()
            ):
                return False
    except (*SPARK_FAILURES, SourceError):
        return False
    # If this record can't be written, the next pass queries again.
    with suppress(*SPARK_FAILURES):
        ledger.write_idle(digest)
    return True


def _has_default_intake(definition: SourceDefinition) -> bool:
    """Whether the source only lists its location, all of it, and keeps objects as they are."""
    return (
        definition.discovery == Discovery()
        and definition.after_commit.action is AfterAction.KEEP
        and not definition.keys_ascend
    )


def _current_relations(run: SourceRun) -> SourceRelations | None:
    """The relations, if both tables exist and name the source, the definition does not contradict
    the pinned one, and the session reads what other runs have committed; else None."""
    tables = read_tables(run.spark, run.definition)
    if tables is None or tables.pinned is None or tables.widened:
        return None
    if not (tables.has_ledger and tables.has_owner):
        return None
    pinned = tables.pinned
    if contradictions(pinned, run.definition) or not reads_latest(run.spark, pinned.file_format):
        return None
    return tables.relations


def _digest(definition: SourceDefinition, epochs: Epochs, page: FirstPage) -> str:
    """A digest, in hexadecimal digits, of all facts that decide whether objects are settled."""
    facts = (
        _RULES,
        definition.location.bucket,
        sorted((epoch, sorted(phases)) for epoch, phases in epochs.items()),
        sorted((listed.key, listed.etag) for listed in page.objects),
    )
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]


def _all_is_settled(run: SourceRun, ledger: Ledger, page: FirstPage) -> bool:
    """Whether there is nothing to do about any object that is listed or in the ledger."""
    in_ledger = ledger.objects(one_task=True)
    # One task compares the page of objects, as a shuffle takes longer.
    listed = object_frame(run, page.objects).coalesce(1)
    return bool(unsettled_objects(listed, in_ledger, run.definition.intake.on_overwrite).isEmpty())
