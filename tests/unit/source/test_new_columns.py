"""What is left of runs whose new columns were not committed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyspark.errors import PySparkException
from support.source.fields import parse

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.formats.read.columns import Column
from dbt.adapters.mzs3.ledger.events import Phase
from dbt.adapters.mzs3.ledger.relations import SourceRelations
from dbt.adapters.mzs3.source import new_columns
from dbt.adapters.mzs3.source.new_columns import adopt, settle
from dbt.adapters.mzs3.source.purify import PinnedDefinition
from dbt.adapters.mzs3.source.run import SourceRun
from dbt.adapters.mzs3.source.tables import SourceTables


class Spark:
    """Notes statements; the table of rows has these columns."""

    def __init__(self, *columns: str) -> None:
        self.columns = [*columns]
        self.statements: list[str] = []

    def table(self, _: str) -> Spark:
        return self

    def sql(self, text: str) -> None:
        if "refused" in text:
            raise PySparkException("no right to do that")
        self.statements.append(text)


def pinned(*names: str, data_type: str = "string") -> PinnedDefinition:
    columns = tuple(Column(name, data_type, is_added=name != "id") for name in names)
    return PinnedDefinition(names, columns, {"format": "csv"})


def of(spark: Spark, phases: dict[str, set[str]]) -> tuple[SourceRun, SimpleNamespace]:
    relations = SourceRelations("raw", "orders", "delta", "_1", "_2")
    ledger = SimpleNamespace(
        epochs=lambda: phases, relations=relations, require_lock=lambda *_: None
    )
    return SourceRun(spark, parse(), None), ledger


def test_columns_of_a_dead_run_are_dropped_but_those_that_a_commit_has_brought(monkeypatch):
    monkeypatch.setattr(new_columns, "show_since", lambda *_: None)
    spark = Spark("id", "y", "z", "_mz_object")
    run, ledger = of(
        spark, {"5": {Phase.PLAN, Phase.COMMIT, Phase.VOID}, "6": {Phase.PLAN, Phase.COMMIT}}
    )
    waiting = {"5": pinned("id", "y", "z", "w"), "6": pinned("id", "z", data_type="int")}
    settle(run, ledger, SourceTables(pinned("id"), ledger.relations, True, True, waiting))
    adopted, dropped, unset = spark.statements
    assert adopted.startswith("ALTER VIEW") and "'mzs3.adopted.6' = 'true'" in adopted
    assert dropped.endswith(" DROP COLUMNS (`y`)")
    assert "UNSET TBLPROPERTIES IF EXISTS ('mzs3.widened.5.0')" in unset


def test_what_the_catalog_refuses_is_told_as_what_it_is():
    run, ledger = of(Spark("id"), {})
    with pytest.raises(SourceError) as raised:
        adopt(run, ledger, "6", pinned("id", "refused"))
    assert str(raised.value) == (
        "lake.orders: its new rows are committed, and their new columns could not be added to its "
        "table and views, which the next run tries again: no right to do that"
    )
