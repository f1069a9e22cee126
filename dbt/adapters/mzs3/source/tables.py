"""The tables and views of a source in Spark: making them, and dropping what pins nothing yet."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.ledger.events import LEDGER_COLUMNS
from dbt.adapters.mzs3.ledger.relations import EPOCH_COLUMN, SourceRelations
from dbt.adapters.mzs3.ledger.transactions import WRITTEN_BY
from dbt.adapters.mzs3.ledger.views import create_views, foreign_views, read_views
from dbt.adapters.mzs3.source.definition import SourceDefinition
from dbt.adapters.mzs3.source.made import (
    PINNED_PROPERTY,
    MadeTables,
    generation_properties,
    kind_of,
    made_relations,
    table_properties,
)
from dbt.adapters.mzs3.spark.frames import first_row
from dbt.adapters.mzs3.spark.sql import DELTA, ICEBERG, PARQUET, quote_schema
from dbt.adapters.mzs3.spark.tables import encoded, properties_sql, read_properties

_LEDGER_DDL = ", ".join(f"`{name}` {data_type}" for name, data_type in LEDGER_COLUMNS.items())

_SESSION_CATALOG = "spark_catalog"
_CACHE = f"spark.sql.catalog.{_SESSION_CATALOG}.cache-enabled"
_OF_FORMAT: Mapping[str, Mapping[str, str]] = {
    PARQUET: {},
    # Names of columns come out of objects, and may have spaces.
    DELTA: {"delta.columnMapping.mode": "name"},
    # What is written is of one epoch each time: it need not be sorted or brought together.
    ICEBERG: {
        "write.distribution-mode": "none",
        "write.spark.fanout.enabled": "true",
    },
}
# What the narrowest column of a metastore holds; Spark cuts its own properties the same way.
PROPERTY_LENGTH = 4000

_NAME_REFUSED = "INVALID_SCHEMA_OR_RELATION_NAME"
_TAKEN_NAMES = re.compile("[A-Za-z0-9_]+")


def make_relations(
    spark: SparkSession,
    definition: SourceDefinition,
    columns: str,
    pinned: str,
    file_format: str = PARQUET,
    made: MadeTables | None = None,
) -> SourceRelations:
    """Makes all relations of the source, the pinned definition in one step with `__rows`; the
    relations with the format of their tables.

    `columns` is the schema of the rows in Spark's DDL, names quoted; `made` are the tables that
    are there. Safe to repeat after a run that died in between. Raises SourceError, with nothing
    made, if the name of a view is taken by something else, or Iceberg would show the session
    tables as they were.
    """
    source, views = definition.name, _own_views(spark, definition)
    if not reads_latest(spark, file_format):
        raise SourceError(
            f"{source}: with {_CACHE} a session reads tables of Iceberg as they were before other "
            "runs have committed; set it to false under server_side_parameters"
        )
    if made is not None and made.is_whole:
        relations = made.relations
    else:
        relations = _make_tables(spark, definition, columns, pinned, file_format)
    create_views(spark, relations, views)
    return relations


def _own_views(spark: SparkSession, definition: SourceDefinition) -> dict[str, dict[str, str]]:
    """As `read_views`. Raises SourceError if one of them is not the source's own."""
    views = read_views(spark, definition.relations)
    if strangers := foreign_views(definition.relations, views):
        raise SourceError(
            f"{definition.name}: {', '.join(strangers)} was not made by this source. Drop it, or "
            "give the source another schema or identifier"
        )
    return views


def reads_latest(spark: SparkSession, file_format: str) -> bool:
    """Whether the session reads tables of this format as other runs have left them."""
    return file_format != ICEBERG or str(spark.conf.get(_CACHE, "true")).lower() == "false"


def _make_tables(
    spark: SparkSession, definition: SourceDefinition, columns: str, pinned: str, file_format: str
) -> SourceRelations:
    """Makes the two tables, and in front of each with a generation a view with its plain name."""
    named = definition.relations
    relations = made_relations(spark, definition)
    if relations.file_format != file_format:
        relations = named.stored_as(file_format)
    elif relations.has_transactions and read_properties(spark, named.rows, "") is None:
        # What is left of those before is never theirs, nor what is still written to them.
        relations = relations.with_new_rows()
    stored = encoded(pinned)
    starts = range(0, len(stored), PROPERTY_LENGTH)
    parts = {
        f"{PINNED_PROPERTY}{n}": stored[at : at + PROPERTY_LENGTH] for n, at in enumerate(starts)
    }
    more = f", {WRITTEN_BY} string" if relations.has_transactions else ""
    # Epochs are text: not every metastore can filter partitions by a number.
    ledger = (
        f"({_LEDGER_DDL}, epoch string, phase string{more}) USING {file_format} "
        "PARTITIONED BY (epoch, phase)"
    )
    rows = (
        f"({columns}, {EPOCH_COLUMN} string) USING {file_format} PARTITIONED BY ({EPOCH_COLUMN})"
    )
    for suffix, ddl, properties in (("__rows", rows, parts), ("__ledger", ledger, {})):
        table = relations.table(suffix)
        properties = {**properties, **table_properties(definition, file_format)}
        own = properties_sql("", {**properties, **_OF_FORMAT[file_format]})
        _create_table(
            spark,
            f"CREATE TABLE IF NOT EXISTS {table} {ddl} TBLPROPERTIES {own}",
            f"{definition.name}: {relations.shown(suffix)}",
        )
        if relations.has_transactions:
            properties |= generation_properties(relations, suffix)
            spark.sql(
                f"CREATE VIEW IF NOT EXISTS {named.table(suffix)} "
                f"TBLPROPERTIES {properties_sql('', properties)} AS SELECT * FROM {table}"
            )
            # Another run may have been faster, which then has the lock.
            relations = made_relations(spark, definition)
    return relations


def drop_rows(
    spark: SparkSession, definition: SourceDefinition, relations: SourceRelations
) -> None:
    """Drops the table of rows, with what it pins and what shows its columns; not the ledger.

    Raises SourceError, with nothing dropped, if a view is somebody else's.
    """
    _own_views(spark, definition)
    named = definition.relations
    spark.sql(f"DROP VIEW IF EXISTS {relations.source}")
    spark.sql(f"DROP VIEW IF EXISTS {relations.rejects}")
    spark.sql(f"DROP {kind_of(relations)} IF EXISTS {named.rows}")
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
    """Creates the schema unless it exists, which then needs no permission to create it.

    Raises SourceError for a schema that is not in the session catalog: other catalogs have no
    partitions that are added in one step, and may have no views.
    """
    catalog, _, schema = definition.schema.rpartition(".")
    # Not `spark.catalog`, which goes by the settings of whatever session the thread used last.
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


def is_there(spark: SparkSession, definition: SourceDefinition) -> bool:
    """Whether the source has anything in Spark."""
    of = definition.relations
    names = (of.rows, of.ledger, of.objects, of.source)
    return any(spark.catalog.tableExists(name) for name in names)


def require_ledger(spark: SparkSession, definition: SourceDefinition) -> None:
    """Raises SourceError where nothing says what happened to the source's objects."""
    relations = definition.relations
    if not spark.catalog.tableExists(relations.ledger):
        raise SourceError(
            f"{definition.name}: {relations.shown('__ledger')} does not exist, so there is no "
            "object to choose"
        )


def refused_name(exc: Exception, definition: SourceDefinition) -> str | None:
    """Which name of a source the catalog refuses, and the way out; None for any other failure."""
    if not isinstance(exc, PySparkException) or exc.getCondition() != _NAME_REFUSED:
        return None
    key, name = "schema", definition.schema
    if _TAKEN_NAMES.fullmatch(name):
        key, name = "identifier", definition.identifier
    return (
        f"Spark's catalog does not take the {key} {name}: its names have letters, digits and _ "
        f"alone. Declare another {key}"
    )
