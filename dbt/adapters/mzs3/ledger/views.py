"""The views of a source that users query: their SQL, and how they are created and changed."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from dbt.adapters.mzs3.formats.read.columns import PROBLEM_COLUMN
from dbt.adapters.mzs3.ledger.events import states_sql, visible_rows_sql
from dbt.adapters.mzs3.ledger.relations import EPOCH_COLUMN, SourceRelations
from dbt.adapters.mzs3.spark.sql import quote_literal, quote_schema
from dbt.adapters.mzs3.spark.tables import change_view, properties_sql, read_properties

_PROPERTY = "mzs3.view."
# Marks a view as created by the source.
_OWN_VIEW = {"made_by": "dbt-mzs3"}
# The line with a view's properties in the output of SHOW TABLE EXTENDED.
_SHOWN_PROPERTIES = re.compile(r"^Table Properties: \[(.*)\]$", re.MULTILINE)

# A problem without a raw text is not a rejected record, but why an object was skipped.
_IS_REJECT = f"stored.{PROBLEM_COLUMN}.raw IS NOT NULL"
_REJECTS = "stored.`_mz_object` AS object, stored.`_mz_record` AS record, " + ", ".join(
    f"stored.{PROBLEM_COLUMN}.`{name}`" for name in ("line", "byte", "raw", "column", "error")
)

Properties = dict[str, str]


def read_views(spark: SparkSession, relations: SourceRelations) -> dict[str, Properties]:
    """The properties that the source has set, for each relation with the name of a view."""
    by_view = {name: read_properties(spark, name, _PROPERTY) for name in _suffixes(relations)}
    return {name: properties for name, properties in by_view.items() if properties is not None}


def foreign_views(relations: SourceRelations, views: Mapping[str, Properties]) -> list[str]:
    """The names, for messages, of the relations in `views` that the source has not created."""
    suffixes = _suffixes(relations)
    return [relations.display_name(suffixes[name]) for name, values in views.items() if not values]


def create_views(
    spark: SparkSession, relations: SourceRelations, existing: Collection[str]
) -> None:
    """Creates the views that are not in `existing`."""
    properties = properties_sql(_PROPERTY, _OWN_VIEW)
    for name, text in _queries(relations).items():
        if name not in existing:
            spark.sql(f"CREATE VIEW IF NOT EXISTS {name} TBLPROPERTIES {properties} AS {text}")


def has_views(spark: SparkSession, relations: SourceRelations) -> bool:
    """Whether all views of the source exist."""
    names = [f"{relations.identifier}{suffix}".lower() for suffix in _suffixes(relations).values()]
    listed = _shown_properties(spark, relations.schema, names)
    if all(listed.get(name) for name in names):
        return True
    # Some catalogs do not list all of their views, or not to every user.
    views = read_views(spark, relations)
    return len(views) == len(names) and all(views.values())


def show_since(spark: SparkSession, relations: SourceRelations, epoch: str) -> None:
    """Changes each view, in one step, to read no event before this epoch, which has a snapshot.

    A view shows the same rows from any snapshot on, so some views may start at an earlier one.
    """
    for name, text in _queries(relations, epoch).items():
        change_view(spark, name, text, _PROPERTY, _OWN_VIEW)


def with_prefix(prefix: str, properties: Mapping[str, str]) -> Properties:
    """The properties whose names start with the prefix, by the name without the prefix."""
    ours = {key: value for key, value in properties.items() if key.startswith(prefix)}
    return {key.removeprefix(prefix): value for key, value in ours.items()}


def _suffixes(relations: SourceRelations) -> dict[str, str]:
    """The suffix of each view's name, by the view's name in SQL."""
    return {
        relations.source: "",
        relations.objects: "__objects",
        relations.rejects: "__rejects",
    }


def _shown_properties(
    spark: SparkSession, schema: str, names: Sequence[str]
) -> dict[str, Properties]:
    """The source's own properties of its views, by the view's name in lower case. One statement
    reads the properties of all views."""
    pattern = quote_literal("|".join(names))
    try:
        rows = spark.sql(f"SHOW TABLE EXTENDED IN {quote_schema(schema)} LIKE {pattern}").collect()
    except AnalysisException:
        return {}
    listed = {}
    for row in rows:
        line = None if row["isTemporary"] else _SHOWN_PROPERTIES.search(row["information"])
        pairs = line[1].split(", ") if line else []
        properties = dict(pair.partition("=")[::2] for pair in pairs)
        listed[row["tableName"].lower()] = with_prefix(_PROPERTY, properties)
    return listed


def _queries(relations: SourceRelations, since: str = "0") -> dict[str, str]:
    """The SQL query of each view; none reads an event of an epoch before `since`."""
    ledger, rows, transacts = relations.ledger, relations.rows, relations.has_transactions
    committed = f"stored.* EXCEPT ({EPOCH_COLUMN}, {PROBLEM_COLUMN})"
    is_row = f"stored.{PROBLEM_COLUMN} IS NULL"
    return {
        relations.objects: states_sql(ledger, since),
        relations.rejects: visible_rows_sql(rows, ledger, _REJECTS, _IS_REJECT, since, transacts),
        relations.source: visible_rows_sql(rows, ledger, committed, is_row, since, transacts),
    }
