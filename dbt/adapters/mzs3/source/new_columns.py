"""New columns: a source's pinned definition is widened by the names that objects bring.

A task meets a header with a new name. The run reads that header, and fetches its objects again by
a wider definition, which it writes under the number of its epoch before the commit. So the wider
definition is pinned exactly if the epoch is committed. Then the table and the views get the
columns. If the run dies in between, the next one does that first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import functions as F

from dbt.adapters.mzs3.errors import ConfigError, ExecutorError, SourceError
from dbt.adapters.mzs3.formats.read.columns import Column, added_places
from dbt.adapters.mzs3.formats.read.header import layout_of
from dbt.adapters.mzs3.formats.read.object_error import HEADER, HeaderProblem
from dbt.adapters.mzs3.ledger.epochs import latest
from dbt.adapters.mzs3.ledger.events import Phase
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.ledger.views import show_since
from dbt.adapters.mzs3.source.executor.fetch import format_of
from dbt.adapters.mzs3.source.executor.stored_object import S3Object, read_fields
from dbt.adapters.mzs3.source.fetch import EpochRows
from dbt.adapters.mzs3.source.purify import PinnedDefinition, require_free_names, widen
from dbt.adapters.mzs3.source.run import SourceRun, void_unfinished
from dbt.adapters.mzs3.source.tables import (
    ADOPTED_PROPERTY,
    WIDENED_PROPERTY,
    SourceTables,
    definition_properties,
    plain_name_kind,
)
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, readable
from dbt.adapters.mzs3.spark.sql import quote_identifier, quote_literal
from dbt.adapters.mzs3.spark.tables import properties_sql
from dbt.adapters.mzs3.store.opened import open_store


def wider_definition(
    run: SourceRun, pinned: PinnedDefinition, error: ExecutorError, rows: EpochRows
) -> PinnedDefinition | None:
    """The definition by which the object of the error can be read; None if it has no new names.

    `rows` could not be fetched by the pinned one. Raises an Mzs3Error if the names can't be
    columns.
    """
    definition, uri = run.definition, error.s3_object
    if error.cause != HEADER or uri is None or not definition.reading.widens:
        return None
    planned = rows.plan.where(F.col("object") == uri).first()
    if planned is None:
        return None
    location = definition.location
    key = uri.removeprefix(location.uri_of(""))
    store = open_store(run.connection, location)
    stored = S3Object(store, location, key, planned["etag"], planned["size"])
    found = read_fields(format_of(rows.spec), stored, definition.name) or ()
    try:
        wider = widen(definition, pinned, found)
    except ConfigError as exc:
        raise ConfigError(f"{exc.subject}, by the header of object {uri},", exc.problems) from exc
    if wider is None:
        return None
    require_free_names(definition.name, wider)
    match, places = definition.reading.header_match, added_places(wider.fetched())
    try:
        layout_of([one.name for one in found], wider.header or (), match, added=places)
    except HeaderProblem:  # it lacks names, or has them in another order
        return None
    added = _ddl(wider.columns[len(pinned.columns) :])
    run.tell(("say", f"{definition.name}: new in object {uri}: {added}"))
    return wider


def write_widened(run: SourceRun, ledger: Ledger, epoch: str, wider: PinnedDefinition) -> None:
    """Writes the definition that is pinned if the epoch is committed."""
    _set(run, ledger, definition_properties(wider, f"{WIDENED_PROPERTY}{epoch}."))


def add_columns(run: SourceRun, ledger: Ledger, wider: PinnedDefinition) -> None:
    """Adds the definition's columns that the table of rows lacks."""
    rows = ledger.relations.rows
    there = run.spark.table(rows).columns
    missing = [one for one in wider.columns if one.name not in there]
    if missing:
        run.spark.sql(f"ALTER TABLE {rows} ADD COLUMNS ({_ddl(missing)})")


def adopt(run: SourceRun, ledger: Ledger, epoch: str, wider: PinnedDefinition) -> None:
    """Adds the columns to the table and the views, once the epoch is committed. Safe to repeat."""
    with run.step("widen"):
        ledger.require_lock("what it committed stays, and the next run adds the new columns")
        try:
            add_columns(run, ledger, wider)
            show_since(run.spark, ledger.relations, latest(Phase.SNAPSHOT, ledger.epochs()) or "0")
            _set(run, ledger, {f"{ADOPTED_PROPERTY}{epoch}": "true"})
        except SPARK_FAILURES as exc:
            raise SourceError(
                f"{run.definition.name}: its new rows are committed, and their new columns could "
                f"not be added to its table and views, which the next run tries again: "
                f"{readable(exc)}"
            ) from exc


def settle(run: SourceRun, ledger: Ledger, tables: SourceTables) -> None:
    """Adopts each wider definition whose epoch is committed, and removes the others.

    In a format with transactions also the columns of those, which were there to be written.
    """
    void_unfinished(run, ledger)
    pinned, left = tables.pinned, dict(tables.widened)
    for epoch, wider in tables.widened.items():
        phases = ledger.epochs().get(epoch, set())
        if Phase.COMMIT in phases and Phase.VOID not in phases:
            adopt(run, ledger, epoch, wider)
            pinned = left.pop(epoch)
    assert pinned is not None
    kept = {one.name for one in pinned.columns}
    for epoch, wider in left.items():
        ledger.require_lock()
        if ledger.relations.has_transactions:
            _drop_columns(run, ledger, [one for one in wider.columns if one.name not in kept])
        _unset(run, ledger, definition_properties(wider, f"{WIDENED_PROPERTY}{epoch}."))


def _drop_columns(run: SourceRun, ledger: Ledger, columns: Sequence[Column]) -> None:
    """Drops those of the columns that the table of rows has."""
    rows = ledger.relations.rows
    there = run.spark.table(rows).columns
    names = [quote_identifier(one.name) for one in columns if one.name in there]
    if names:
        run.spark.sql(f"ALTER TABLE {rows} DROP COLUMNS ({', '.join(names)})")


def _set(run: SourceRun, ledger: Ledger, properties: dict[str, str]) -> None:
    _alter(run, ledger, f"SET TBLPROPERTIES {properties_sql('', properties)}")


def _unset(run: SourceRun, ledger: Ledger, names: Iterable[str]) -> None:
    listed = ", ".join(map(quote_literal, names))
    _alter(run, ledger, f"UNSET TBLPROPERTIES IF EXISTS ({listed})")


def _ddl(columns: Sequence[Column]) -> str:
    return ", ".join(f"{quote_identifier(one.name)} {one.data_type}" for one in columns)


def _alter(run: SourceRun, ledger: Ledger, change: str) -> None:
    """Changes what has the properties of the table of rows."""
    kind = plain_name_kind(ledger.relations)
    run.spark.sql(f"ALTER {kind} {run.definition.relations.rows} {change}")
