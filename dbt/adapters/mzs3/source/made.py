"""The tables of a source as they are: what they pin, how they are stored, and whose they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.ledger.relations import SourceRelations
from dbt.adapters.mzs3.ledger.rows_table import rows_table
from dbt.adapters.mzs3.ledger.views import with_prefix
from dbt.adapters.mzs3.source.definition import SourceDefinition
from dbt.adapters.mzs3.source.report import reset_hint
from dbt.adapters.mzs3.spark.sql import PARQUET
from dbt.adapters.mzs3.spark.tables import decoded, encoded, properties_sql, read_properties

PINNED_PROPERTY = "mzs3.pinned."
TABLE_PROPERTY = "mzs3.table."
_FORMAT, _SOURCE = "format", "source"
_GENERATION, _ROWS_GENERATION = "generation", "rows_generation"


@dataclass(frozen=True)
class MadeTables:
    """The tables of a source as they are: the definition that was pinned when they were made, None
    if the table of rows is missing; the relations with their format; and whether the ledger is
    there: a run may have died in between. `has_owner` says that they name their source, as those
    of earlier versions do not."""

    pinned: str | None
    relations: SourceRelations
    has_ledger: bool
    has_owner: bool

    @property
    def is_whole(self) -> bool:
        """Whether both tables are there."""
        return self.pinned is not None and self.has_ledger


def read_tables(spark: SparkSession, definition: SourceDefinition) -> MadeTables | None:
    """The tables of the source; None if they are not made.

    Raises SourceError if the names are taken by something else, if the tables are another
    source's, or if part of the state is lost.
    """
    source, relations = definition.name, definition.relations
    rows = relations.shown("__rows")
    found = read_properties(spark, relations.rows, "")
    if found is None:
        ledger = with_prefix(TABLE_PROPERTY, read_properties(spark, relations.ledger, "") or {})
        if _FORMAT in ledger:
            made = _stored_as(definition, ledger)
            return MadeTables(None, made, has_ledger=True, has_owner=_SOURCE in ledger)
        for name, suffix in ((relations.ledger, "__ledger"), (relations.source, "")):
            if spark.catalog.tableExists(name):
                raise lost_rows(definition, suffix)
        return None
    parts = with_prefix(PINNED_PROPERTY, found)
    if not parts:
        raise SourceError(
            f"{source}: {rows} exists and was not made by this source. Drop it, or give the "
            "source another schema or identifier"
        )
    of_table = with_prefix(TABLE_PROPERTY, found)
    made = _stored_as(definition, of_table)
    reset = reset_hint(source)
    try:
        pinned = decoded("".join(parts[number] for number in sorted(parts, key=int)))
    except ValueError as exc:
        raise SourceError(
            f"{source}: the definition that is pinned in the properties of {rows} can't be read. "
            f"Start the source afresh with: {reset}"
        ) from exc
    # A run that died before it made the ledger has left no rows either.
    has_ledger = spark.catalog.tableExists(relations.ledger)
    if not has_ledger and not rows_table(spark, made).is_empty():
        raise SourceError(
            f"{source}: {rows} holds rows, but {relations.shown('__ledger')}, which says what is "
            f"committed, does not exist. Restore it, or start the source afresh with: {reset}"
        )
    return MadeTables(pinned, made, has_ledger, has_owner=_SOURCE in of_table)


def lost_rows(definition: SourceDefinition, suffix: str = "__ledger") -> SourceError:
    """The error of a source of which there is this relation, and no table of rows."""
    shown, rows = (definition.relations.shown(one) for one in (suffix, "__rows"))
    return SourceError(
        f"{definition.name}: {shown} exists, but {rows}, which holds the source's rows, does "
        f"not. If {shown} is not this source's, give the source another schema or "
        f"identifier; else start the source afresh with: {reset_hint(definition.name)}"
    )


def made_relations(spark: SparkSession, definition: SourceDefinition) -> SourceRelations:
    """The relations with the format that their tables have, if they are there.

    Raises SourceError if they are another source's: whatever is done with a source begins here.
    """
    named = definition.relations
    found = read_properties(spark, named.rows, TABLE_PROPERTY)
    if found is None:
        found = read_properties(spark, named.ledger, TABLE_PROPERTY)
    return _stored_as(definition, found or {})


def table_properties(definition: SourceDefinition, file_format: str) -> dict[str, str]:
    """What a table of the source says of itself."""
    of_table = {_FORMAT: file_format, _SOURCE: encoded(definition.name)}
    return {f"{TABLE_PROPERTY}{key}": value for key, value in of_table.items()}


def generation_properties(relations: SourceRelations, suffix: str) -> dict[str, str]:
    """What a view in front of a table with a generation says beside that."""
    told = {_GENERATION: relations.generation}
    if suffix == "__rows" and relations.rows_generation:
        told[_ROWS_GENERATION] = relations.rows_generation
    return {f"{TABLE_PROPERTY}{key}": value for key, value in told.items()}


def own(spark: SparkSession, definition: SourceDefinition, made: MadeTables) -> None:
    """Has tables that name no source, as those of earlier versions do not, name this one."""
    if not made.has_owner:
        kind, name = kind_of(made.relations), definition.relations.rows
        given = properties_sql(TABLE_PROPERTY, {_SOURCE: encoded(definition.name)})
        spark.sql(f"ALTER {kind} {name} SET TBLPROPERTIES {given}")


def _stored_as(definition: SourceDefinition, of_table: Mapping[str, str]) -> SourceRelations:
    named = definition.relations
    generations = (of_table.get(key, "") for key in (_GENERATION, _ROWS_GENERATION))
    made = named.stored_as(of_table.get(_FORMAT, PARQUET), *generations)
    owner = decoded(of_table[_SOURCE]) if _SOURCE in of_table else definition.name
    if owner != definition.name:
        rows = named.shown("__rows")
        raise SourceError(
            f"{definition.name}: {rows} is the table of the source {owner}, and one relation is "
            f"one source's. Give {definition.name} another schema or identifier. Or, if it is "
            f"what {owner} is called now, hand the table over to it, in Spark: ALTER "
            f"{kind_of(made)} {rows} UNSET TBLPROPERTIES ('{TABLE_PROPERTY}{_SOURCE}')"
        )
    return made


def kind_of(relations: SourceRelations) -> str:
    """What has the plain name of a table of the source, as SQL calls it."""
    return "VIEW" if relations.has_transactions else "TABLE"
