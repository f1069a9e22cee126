"""The tables of a source in Spark: creates them, reads what they pin, and drops them.

The properties of `__rows` hold the pinned definition, so that both are created in one step; the
properties of `__rows` and `__ledger` name their source and their format. A run that finds new
columns adds a wider definition, under the number of its epoch: it counts if that is committed, and
is then adopted. No other epoch writes it over, so that a late run changes nothing. In a format
with transactions, table names end with a generation, a suffix that each reset changes; then views
with the plain names have these properties.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.ledger.events import LEDGER_COLUMNS
from dbt.adapters.mzs3.ledger.ledger_table import WRITTEN_BY
from dbt.adapters.mzs3.ledger.relations import EPOCH_COLUMN, SourceRelations
from dbt.adapters.mzs3.ledger.rows_table import rows_table
from dbt.adapters.mzs3.ledger.views import create_views, foreign_views, read_views, with_prefix
from dbt.adapters.mzs3.source.executor.fetch import schema_ddl
from dbt.adapters.mzs3.source.options import SourceDefinition
from dbt.adapters.mzs3.source.purify import PinnedDefinition
from dbt.adapters.mzs3.source.report import reset_hint
from dbt.adapters.mzs3.spark.frames import first_row
from dbt.adapters.mzs3.spark.sql import DELTA, ICEBERG, PARQUET, quote_schema
from dbt.adapters.mzs3.spark.tables import (
    decode_property,
    encode_property,
    properties_sql,
    read_properties,
)

_LEDGER_DDL = ", ".join(f"`{name}` {data_type}" for name, data_type in LEDGER_COLUMNS.items())

_SESSION_CATALOG = "spark_catalog"
_CACHE = f"spark.sql.catalog.{_SESSION_CATALOG}.cache-enabled"
_FORMAT_PROPERTIES: Mapping[str, dict[str, str]] = {
    PARQUET: {},
    # Column names come from objects, and may have spaces.
    DELTA: {"delta.columnMapping.mode": "name"},
    # Each write is of one epoch and so of one partition, which needs no shuffle or sort.
    ICEBERG: {
        "write.distribution-mode": "none",
        "write.spark.fanout.enabled": "true",
    },
}
# The length that every metastore allows; Spark splits its own properties at it too.
PROPERTY_LENGTH = 4000

_NAME_REFUSED = "INVALID_SCHEMA_OR_RELATION_NAME"
_VALID_NAMES = re.compile("[A-Za-z0-9_]+")
PINNED_PROPERTY = "mzs3.pinned."
WIDENED_PROPERTY, ADOPTED_PROPERTY = "mzs3.widened.", "mzs3.adopted."
TABLE_PROPERTY = "mzs3.table."
_FORMAT, _SOURCE = "format", "source"
_GENERATION, _ROWS_GENERATION = "generation", "rows_generation"


@dataclass(frozen=True)
class SourceTables:
    """The existing tables of a source.

    `pinned` is the definition that they were created for, or the last wider one that was adopted;
    None if the table of rows is missing. `widened` has, by epoch, those that are not adopted.
    `has_ledger` is false if a run died before it created the ledger. `has_owner`: whether the
    tables' properties name a source. A user removes that name to hand them to a renamed source.
    """

    pinned: PinnedDefinition | None
    relations: SourceRelations
    has_ledger: bool
    has_owner: bool
    widened: Mapping[str, PinnedDefinition] = field(default_factory=dict)


def read_tables(spark: SparkSession, definition: SourceDefinition) -> SourceTables | None:
    """The tables of the source; None if there are none.

    Raises SourceError if their names are in use for something else, if the tables are another
    source's, or if part of the state is lost.
    """
    source, relations = definition.name, definition.relations
    rows = relations.display_name("__rows")
    properties = read_properties(spark, relations.rows, "")
    if properties is None:
        ledger_properties = read_properties(spark, relations.ledger, TABLE_PROPERTY) or {}
        if _FORMAT in ledger_properties:
            relations = _stored_as(definition, ledger_properties)
            has_owner = _SOURCE in ledger_properties
            return SourceTables(None, relations, has_ledger=True, has_owner=has_owner)
        for name, suffix in ((relations.ledger, "__ledger"), (relations.source, "")):
            if spark.catalog.tableExists(name):
                raise lost_rows_error(definition, suffix)
        return None
    parts = with_prefix(PINNED_PROPERTY, properties)
    if not parts:
        raise SourceError(
            f"{source}: {rows} exists and was not made by this source. Drop it, or give the "
            "source another schema or identifier"
        )
    table_properties = with_prefix(TABLE_PROPERTY, properties)
    stored = _stored_as(definition, table_properties)
    reset = reset_hint(source)
    try:
        pinned, widened = pinned_definitions(properties)
    except ValueError as exc:
        raise SourceError(
            f"{source}: the definition that is pinned in the properties of {rows} can't be read. "
            f"Start the source afresh with: {reset}"
        ) from exc
    # A run that died before it created the ledger has left no rows either.
    has_ledger = spark.catalog.tableExists(relations.ledger)
    if not has_ledger and not rows_table(spark, stored).is_empty():
        raise SourceError(
            f"{source}: {rows} holds rows, but {relations.display_name('__ledger')}, which says "
            "what is committed, does not exist. Restore it, or start the source afresh with: "
            f"{reset}"
        )
    return SourceTables(pinned, stored, has_ledger, _SOURCE in table_properties, widened)


def pinned_definitions(
    properties: Mapping[str, str],
) -> tuple[PinnedDefinition, dict[str, PinnedDefinition]]:
    """The pinned definition in a table's properties, and by epoch those that are not adopted.

    Raises ValueError.
    """
    pinned = _decoded(with_prefix(PINNED_PROPERTY, properties))
    parts = with_prefix(WIDENED_PROPERTY, properties)
    epochs = sorted({name.partition(".")[0] for name in parts}, key=int)
    widened = {epoch: _decoded(with_prefix(f"{epoch}.", parts)) for epoch in epochs}
    for adopted in sorted(with_prefix(ADOPTED_PROPERTY, properties), key=int):
        pinned = widened.pop(adopted, pinned)
    return pinned, widened


def _decoded(parts: Mapping[str, str]) -> PinnedDefinition:
    """The definition in these properties. Raises ValueError."""
    text = decode_property("".join(parts[number] for number in sorted(parts, key=int)))
    return PinnedDefinition.from_json(text)


def definition_properties(pinned: PinnedDefinition, prefix: str) -> dict[str, str]:
    """The properties with the definition; `prefix` is before the number of each."""
    encoded = encode_property(pinned.to_json())
    starts = range(0, len(encoded), PROPERTY_LENGTH)
    return {f"{prefix}{n}": encoded[at : at + PROPERTY_LENGTH] for n, at in enumerate(starts)}


def lost_rows_error(definition: SourceDefinition, suffix: str = "__ledger") -> SourceError:
    """The error of a source that has the relation with this suffix, but no table of rows."""
    shown, rows = (definition.relations.display_name(each) for each in (suffix, "__rows"))
    return SourceError(
        f"{definition.name}: {shown} exists, but {rows}, which holds the source's rows, does "
        f"not. If {shown} is not this source's, give the source another schema or "
        f"identifier; else start the source afresh with: {reset_hint(definition.name)}"
    )


def existing_relations(spark: SparkSession, definition: SourceDefinition) -> SourceRelations:
    """The source's relations, in the format of the existing tables, if there are any.

    Raises SourceError if they are another source's, so all work on a source begins with this call.
    """
    plain = definition.relations
    properties = read_properties(spark, plain.rows, TABLE_PROPERTY)
    if properties is None:
        properties = read_properties(spark, plain.ledger, TABLE_PROPERTY)
    return _stored_as(definition, properties or {})


def _with_table_prefix(values: Mapping[str, str]) -> dict[str, str]:
    return {f"{TABLE_PROPERTY}{key}": value for key, value in values.items()}


def _stored_as(
    definition: SourceDefinition, table_properties: Mapping[str, str]
) -> SourceRelations:
    """The relations with the format and the generations that the properties of a table say.

    Raises SourceError if the properties name another source.
    """
    plain = definition.relations
    generations = (table_properties.get(key, "") for key in (_GENERATION, _ROWS_GENERATION))
    stored = plain.stored_as(table_properties.get(_FORMAT, PARQUET), *generations)
    owner = definition.name
    if _SOURCE in table_properties:
        owner = decode_property(table_properties[_SOURCE])
    if owner != definition.name:
        rows = plain.display_name("__rows")
        raise SourceError(
            f"{definition.name}: {rows} is the table of the source {owner}, and one relation is "
            f"one source's. Give {definition.name} another schema or identifier. Or, if it is "
            f"what {owner} is called now, hand the table over to it, in Spark: ALTER "
            f"{plain_name_kind(stored)} {rows} UNSET TBLPROPERTIES ('{TABLE_PROPERTY}{_SOURCE}')"
        )
    return stored


def plain_name_kind(relations: SourceRelations) -> str:
    """What has the plain names of the tables of rows and of the ledger: `VIEW` or `TABLE`."""
    return "VIEW" if relations.has_transactions else "TABLE"


def make_relations(
    spark: SparkSession,
    definition: SourceDefinition,
    pinned: PinnedDefinition,
    tables: SourceTables | None,
) -> SourceRelations:
    """Creates the relations that `tables` lacks, and names the source in tables that name none.

    Creates the pinned definition together with `__rows`, in one step. Can be repeated after a run
    that died in between. Raises SourceError, with nothing created, if something else has the name
    of a view, or if the session would read outdated tables of Iceberg.
    """
    if tables is not None and tables.pinned is not None and not tables.has_owner:
        owner = properties_sql(TABLE_PROPERTY, {_SOURCE: encode_property(definition.name)})
        kind = plain_name_kind(tables.relations)
        spark.sql(f"ALTER {kind} {definition.relations.rows} SET TBLPROPERTIES {owner}")
    views = _own_views(spark, definition)
    if not reads_latest(spark, pinned.file_format):
        raise SourceError(
            f"{definition.name}: with {_CACHE} a session reads tables of Iceberg as they were "
            "before other runs have committed; set it to false under server_side_parameters"
        )
    if tables is not None and tables.pinned is not None and tables.has_ledger:
        relations = tables.relations
    else:
        relations = _make_tables(spark, definition, pinned)
    create_views(spark, relations, views)
    return relations


def _own_views(spark: SparkSession, definition: SourceDefinition) -> dict[str, dict[str, str]]:
    """The source's views, from `read_views`. Raises SourceError if one of them is not its own."""
    views = read_views(spark, definition.relations)
    if strangers := foreign_views(definition.relations, views):
        raise SourceError(
            f"{definition.name}: {', '.join(strangers)} was not made by this source. Drop it, or "
            "give the source another schema or identifier"
        )
    return views


def reads_latest(spark: SparkSession, file_format: str) -> bool:
    """Whether the session sees what other runs have written to tables of this format."""
    return file_format != ICEBERG or str(spark.conf.get(_CACHE, "true")).lower() == "false"


def _make_tables(
    spark: SparkSession, definition: SourceDefinition, pinned: PinnedDefinition
) -> SourceRelations:
    """Creates both tables; for a table with a generation also a view with its plain name."""
    plain, file_format = definition.relations, pinned.file_format
    relations = existing_relations(spark, definition)
    if relations.file_format != file_format:
        relations = plain.new_generation(file_format)
    elif relations.has_transactions and read_properties(spark, plain.rows, "") is None:
        # A new name: no remains of an earlier table or late writes to it can get into this table.
        relations = relations.with_new_rows()
    parts = definition_properties(pinned, PINNED_PROPERTY)
    writer = f", {WRITTEN_BY} string" if relations.has_transactions else ""
    # Epochs are text: not every metastore can filter partitions by a number.
    ledger = (
        f"({_LEDGER_DDL}, epoch string, phase string{writer}) USING {file_format} "
        "PARTITIONED BY (epoch, phase)"
    )
    stored = definition.reading.with_rescued(pinned.columns)
    columns = f"{schema_ddl(stored)}, {EPOCH_COLUMN} string"
    rows = f"({columns}) USING {file_format} PARTITIONED BY ({EPOCH_COLUMN})"
    common = _with_table_prefix({_FORMAT: file_format, _SOURCE: encode_property(definition.name)})
    for suffix, ddl, more in (("__rows", rows, parts), ("__ledger", ledger, {})):
        table, properties = relations.table(suffix), common | more
        clause = properties_sql("", properties | _FORMAT_PROPERTIES[file_format])
        _create_table(
            spark,
            f"CREATE TABLE IF NOT EXISTS {table} {ddl} TBLPROPERTIES {clause}",
            f"{definition.name}: {relations.display_name(suffix)}",
        )
        if relations.has_transactions:
            properties |= _with_table_prefix({_GENERATION: relations.generation})
            if suffix == "__rows" and relations.rows_generation:
                properties |= _with_table_prefix({_ROWS_GENERATION: relations.rows_generation})
            spark.sql(
                f"CREATE VIEW IF NOT EXISTS {plain.table(suffix)} "
                f"TBLPROPERTIES {properties_sql('', properties)} AS SELECT * FROM {table}"
            )
            # If this run has lost its lock, another may have created the view first: use the table
            # that the view reads.
            relations = existing_relations(spark, definition)
    return relations


def drop_rows(
    spark: SparkSession, definition: SourceDefinition, relations: SourceRelations
) -> None:
    """Drops the table of rows, with its pinned definition, and the two views that read it (the
    source and its rejects); keeps the ledger.

    Raises SourceError, with nothing dropped, if a view is somebody else's.
    """
    _own_views(spark, definition)
    plain = definition.relations
    spark.sql(f"DROP VIEW IF EXISTS {relations.source}")
    spark.sql(f"DROP VIEW IF EXISTS {relations.rejects}")
    spark.sql(f"DROP {plain_name_kind(relations)} IF EXISTS {plain.rows}")
    if relations.has_transactions:
        spark.sql(f"DROP TABLE IF EXISTS {relations.rows} PURGE")


def _create_table(spark: SparkSession, statement: str, shown: str) -> None:
    try:
        spark.sql(statement)
    except PySparkException as exc:
        if exc.getCondition() != "LOCATION_ALREADY_EXISTS":
            raise
        folder = (exc.getMessageParameters() or {})["location"].strip("'")
        raise SourceError(
            f"{shown} can't be made, as its folder {folder} is not empty. Either a run that went "
            "on after the source was reset, or its table made anew, has written there: once no "
            "run is at work on the source, remove the folder. Or the metastore does not know the "
            "table any more: then the folder has its rows, and the metastore is to be restored"
        ) from exc


def make_schema(spark: SparkSession, definition: SourceDefinition) -> None:
    """Creates the schema if it is missing; else no permission to create schemas is needed.

    Raises SourceError if the schema is not in the session catalog: other catalogs can't add a
    partition in one step, and may not support views.
    """
    catalog, _, schema = definition.schema.rpartition(".")
    # Not `spark.catalog`, which uses the settings of the session that the thread used last.
    catalog = catalog or first_row(spark.sql("SHOW CURRENT NAMESPACE"))["catalog"]
    if catalog != _SESSION_CATALOG:
        raise SourceError(
            f"{definition.name}: the schema {schema} is in the catalog {catalog}, which can't have"
            f" a source's views: declare schema: {_SESSION_CATALOG}.{schema}, whose tables can be "
            "of Iceberg too"
        )
    schema = quote_schema(definition.schema)
    if not spark.catalog.databaseExists(schema):
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")


def exists_in_spark(spark: SparkSession, definition: SourceDefinition) -> bool:
    """Whether the source has anything in Spark."""
    plain = definition.relations
    names = (plain.rows, plain.ledger, plain.objects, plain.source)
    return any(spark.catalog.tableExists(name) for name in names)


def require_ledger(spark: SparkSession, definition: SourceDefinition) -> None:
    """Raises SourceError if the source has no ledger."""
    relations = definition.relations
    if not spark.catalog.tableExists(relations.ledger):
        raise SourceError(
            f"{definition.name}: {relations.display_name('__ledger')} does not exist, so there is "
            "no object to choose"
        )


def refused_name(exc: Exception, definition: SourceDefinition) -> str | None:
    """Which name of a source the catalog refuses, and what to do; None for any other failure."""
    if not isinstance(exc, PySparkException) or exc.getCondition() != _NAME_REFUSED:
        return None
    key, name = "schema", definition.schema
    if _VALID_NAMES.fullmatch(name):
        key, name = "identifier", definition.identifier
    return (
        f"Spark's catalog does not take the {key} {name}: its names have letters, digits and _ "
        f"alone. Declare another {key}"
    )
