"""What formats of tables ask for: no cache of old tables, views that change, a default."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from support.source.fields import parse, purify_names

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.ledger.events import visible_rows_sql
from dbt.adapters.mzs3.ledger.relations import SourceRelations
from dbt.adapters.mzs3.shard.options import parse_shard_source
from dbt.adapters.mzs3.source.purify import contradictions
from dbt.adapters.mzs3.spark.settings import with_defaults
from dbt.adapters.mzs3.spark.tables import change_view, table_format

ICEBERG = "org.apache.iceberg.spark.SparkSessionCatalog"


def test_catalogs_of_iceberg_keep_no_tables_unless_the_profile_says_so() -> None:
    session, own = "spark.sql.catalog.spark_catalog", "spark.sql.catalog.ice"
    given = {session: ICEBERG, own: ICEBERG, f"{own}.cache-enabled": "true", f"{own}.type": "x"}
    found = with_defaults(given)
    assert found[f"{session}.cache-enabled"] == "false"
    assert found[f"{own}.cache-enabled"] == "true"
    delta = with_defaults({session: "org.apache.spark.sql.delta.catalog.DeltaCatalog"})
    assert not any(key.endswith("cache-enabled") for key in delta)


def test_parameters_of_statements_are_given_in_the_way_that_delta_knows() -> None:
    key = "spark.sql.legacy.parameterSubstitution.constantsOnly"
    delta = {"spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension"}
    assert with_defaults(delta)[key] == "true"
    assert with_defaults({**delta, key: "false"})[key] == "false"
    assert key not in with_defaults({})


class Views:
    """A session with one view, which has these properties."""

    def __init__(self, **properties: str) -> None:
        self.asked: list[str] = []
        self._rows = [*properties.items()]

    def sql(self, text: str) -> SimpleNamespace:
        self.asked.append(text)
        return SimpleNamespace(collect=lambda: self._rows)


def test_a_view_of_icebergs_is_replaced_and_keeps_what_the_source_wrote_to_it() -> None:
    plain: Any = Views(form="2")
    change_view(plain, "raw.v", "SELECT 1", "mzs3.view.", {"form": "2"})
    assert plain.asked[1:] == ["ALTER VIEW raw.v AS SELECT 1"]
    theirs: Any = Views(create_engine_version="Spark 4.1.4")
    change_view(theirs, "raw.v", "SELECT 1", "mzs3.view.", {"form": "2"})
    properties = "TBLPROPERTIES ('mzs3.view.form' = '2')"
    assert theirs.asked[1:] == [f"CREATE OR REPLACE VIEW raw.v {properties} AS SELECT 1"]


@pytest.mark.parametrize(
    ("default", "declared", "used"),
    [
        ("parquet", None, "parquet"),
        ("delta", None, "delta"),
        ("orc", None, "parquet"),
        ("iceberg", "parquet", "parquet"),
    ],
)
def test_a_format_that_is_not_declared_is_sparks_own(
    default: str, declared: str | None, used: str
) -> None:
    spark: Any = SimpleNamespace(conf=SimpleNamespace(get=lambda *_: default))
    assert table_format(spark, declared) == used


def test_a_schema_may_be_in_a_catalog() -> None:
    assert SourceRelations("c.raw", "orders").lock == "`c`.`raw`.`orders__lock`"


def test_with_transactions_the_ledger_is_looked_at_before_the_rows() -> None:
    text = visible_rows_sql("the_rows", "the_ledger", "id", "true", "0", True)
    assert text.index("the_ledger") < text.index("the_rows") < text.rindex("the_ledger")


def test_an_unknown_format_is_told_with_the_other_problems() -> None:
    with pytest.raises(ConfigError) as caught:
        parse(file_format="orc", compression="z")
    assert caught.value.problems[-1] == (
        "external.file_format must be one of parquet, delta, iceberg, not 'orc'"
    )
    assert len(caught.value.problems) == 2
    external = {"type": "persist_shard", "location": "s3://b/p", "file_format": "orc"}
    with pytest.raises(ConfigError, match="file_format must be one of parquet, delta, iceberg"):
        parse_shard_source("lake.orders", external, [], ["default"])


def test_a_source_keeps_the_format_that_it_was_made_in() -> None:
    pinned = purify_names(parse(), ["id"])
    assert contradictions(pinned, parse()) == []
    delta = replace(pinned, file_format="delta")
    assert contradictions(delta, parse()) == []  # whatever Spark's default is by now
    assert contradictions(delta, parse(file_format="parquet")) == [
        "the file_format is declared as 'parquet' but was pinned as 'delta'"
    ]
