"""Relations, their columns, and functions in Spark's catalogs, which dbt calls databases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.relation import Path, RelationType
from dbt.adapters.spark.column import SparkColumn
from dbt.adapters.spark.impl import SparkAdapter
from dbt.adapters.spark.relation import SparkRelation
from dbt_common.exceptions import DbtDatabaseError

from dbt.adapters.mzs3.project.sources import functions_of, schema_of
from dbt.adapters.mzs3.types.table import type_named

if TYPE_CHECKING:
    import agate

_OF_ICEBERG = "table_type=ICEBERG"
_ROWS = "stats:rows:"


@dataclass(frozen=True, eq=False, repr=False)
class Mzs3Relation(SparkRelation):
    """A relation of Spark. Its database becomes a part of its schema (`catalog.schema`). As users
    may also write that as the schema, a relation has the same name in both cases."""

    def __post_init__(self) -> None:
        if self.path.database and self.path.schema:
            path = Path(None, schema_of(self.path), self.path.identifier)
            object.__setattr__(self, "path", path)

    @classmethod
    def create_from(cls, quoting: Any, relation_config: Any, **kwargs: Any) -> Mzs3Relation:
        """The relation of a node; without its database if that is Spark's default catalog."""
        relation: Mzs3Relation = super().create_from(quoting, relation_config, **kwargs)
        credentials = getattr(quoting, "credentials", None)
        if credentials and relation_config.database == credentials.default_catalog:
            relation = relation.replace_path(schema=relation_config.schema)
        return relation


class CatalogAdapter(SparkAdapter):
    """dbt-spark's adapter, with databases, functions, and SQL's names for the types of columns."""

    Relation = Mzs3Relation

    def schema_in(self, database: str | None, schema: str) -> str:
        """The schema as relations have it: with its catalog, unless that is Spark's default."""
        # Macros may pass an undefined variable as the database.
        is_default = not database or database == self.config.credentials.default_catalog
        return schema_of(Path(None if is_default else database, schema))

    def get_relation(
        self, database: str | None, schema: str, identifier: str
    ) -> BaseRelation | None:
        """The relation, or None if it does not exist."""
        relation: BaseRelation | None = super().get_relation(
            None, self.schema_in(database, schema), identifier
        )
        return relation

    def functions_in(self, schema_relation: BaseRelation) -> Iterator[BaseRelation]:
        """The project's functions that exist in the schema."""
        functions = functions_of(self.get_macro_resolver()).values()
        schema = str(schema_relation.schema)
        in_schema = [x for x in functions if self.schema_in(x.database, x.schema) == schema]
        if not in_schema:
            return
        names = {function.alias.lower(): function.alias for function in in_schema}
        try:
            _, table = self.execute(f"show user functions in {schema}", fetch=True)
        except DbtDatabaseError as exc:
            if "SCHEMA_NOT_FOUND" in str(exc.msg):
                return
            raise
        for row in table.rows:
            if name := names.get(str(row[0]).split(".")[-1].strip("`").lower()):
                yield self.Relation.create(
                    schema=schema, identifier=name, type=RelationType.Function
                )

    def list_relations_without_caching(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        """The schema's tables and views, without the session's temporary views."""
        listed = super().list_relations_without_caching(schema_relation)
        relations = [relation for relation in listed if relation.schema]
        schema = str(schema_relation.schema)
        for number, relation in enumerate(relations):
            # In the session catalog, Spark reports Iceberg tables as Hive tables.
            if relation.is_table and _OF_ICEBERG in (relation.information or ""):
                relations[number] = relation = relation.replace(is_iceberg=True)
            if "." in schema:  # Spark leaves out the catalog
                relations[number] = relation.replace_path(schema=schema)
        names = {str(relation.identifier).lower() for relation in relations}
        # dbt expects one relation for a name, and can replace a function without its relation.
        functions = self.functions_in(schema_relation)
        relations += [each for each in functions if str(each.identifier).lower() not in names]
        return relations

    def parse_columns_from_information(self, relation: BaseRelation) -> list[SparkColumn]:
        """The columns, numbered from 1, with the types' names in SQL: `bigint`, not `long`."""
        columns: list[SparkColumn] = super().parse_columns_from_information(relation)
        for number, column in enumerate(columns, start=1):
            column.column_index = number
            row = type_named(column.dtype)
            column.dtype = row.name if row else column.dtype
        return columns

    def _get_columns_for_catalog(self, relation: BaseRelation) -> Iterable[dict[str, Any]]:
        """The columns as in dbt-spark, without row counts of 0, which may mean unknown."""
        for column in super()._get_columns_for_catalog(relation):
            is_known = column.get(f"{_ROWS}value") != 0
            yield {key: value for key, value in column.items() if is_known or _ROWS not in key}

    def get_filtered_catalog(
        self, relation_configs: Any, used_schemas: Any, relations: Any = None
    ) -> tuple[agate.Table, list[Exception]]:
        """The columns of the relations, with the database separate from the schema; repeated for
        each database and schema that nodes use for the same relation."""
        table, failures = super().get_filtered_catalog(relation_configs, used_schemas, relations)
        manifest = self.get_macro_resolver()
        names_of: defaultdict[tuple[str, str], set[tuple[str | None, str]]] = defaultdict(set)
        for node in [*manifest.nodes.values(), *manifest.sources.values()]:
            schema = self.schema_in(node.database, node.schema)
            key = (schema.lower(), node.identifier.lower())
            names_of[key].add((node.database, node.schema) if node.database else (None, schema))
        return _renamed(table, names_of), failures


def _renamed(
    table: agate.Table, names_of: Mapping[tuple[str, str], Iterable[tuple[str | None, str]]]
) -> agate.Table:
    import agate

    if not {"table_database", "table_schema", "table_name"} <= {*table.column_names}:
        return table  # without rows
    types = dict(zip(table.column_names, table.column_types, strict=True))
    types["table_database"] = agate.Text()
    rows = []
    for row in table.rows:
        schema, name = row["table_schema"], row["table_name"]
        for database, short in names_of.get((schema.lower(), name.lower()), [(None, schema)]):
            names = {"table_database": database, "table_schema": short if database else schema}
            rows.append([*{**row.dict(), **names}.values()])
    return agate.Table(rows, [*types], [*types.values()])
