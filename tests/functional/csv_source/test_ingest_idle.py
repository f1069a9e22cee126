"""A source with nothing new: no lock is taken, unless there is any doubt."""

from __future__ import annotations

import threading

import pytest

from dbt.adapters.mzs3.csv_source import idle, tables
from dbt.adapters.mzs3.csv_source.executor.listing import first_page
from dbt.adapters.mzs3.csv_source.ledger.lock import SourceLock
from dbt.adapters.mzs3.csv_source.operations.object_actions import ObjectAction, act
from dbt.adapters.mzs3.csv_source.tables import has_current_views
from dbt.adapters.mzs3.errors import SourceError

pytestmark = pytest.mark.spark


@pytest.fixture
def ingested(lake):
    """The source, which has ingested one object."""
    lake.put("1.csv", "id\n1\n")
    assert lake.ingest().rows == 1
    return lake


def test_a_run_on_a_source_with_nothing_new_waits_for_nobody(ingested):
    with SourceLock(ingested.spark, ingested.relations, "lake.orders"):
        report = ingested.ingest(wait_s=0)
        assert (report.objects, report.rows) == (0, 0)
        ingested.put("2.csv", "id\n2\n")
        with pytest.raises(SourceError, match="another thread of this process"):
            ingested.ingest(wait_s=0)
    assert ingested.ingest().rows == 1


def test_a_run_on_a_source_with_nothing_new_takes_no_step(ingested):
    steps = []
    ingested.ingest(on_step=steps.append)
    assert steps == []


def test_what_is_put_on_record_meanwhile_is_seen(ingested, monkeypatch):
    def listed(*arguments):
        monkeypatch.undo()
        act(ingested.spark, ingested.definition(), ObjectAction.RETRY, ["orders/1.csv"])
        return first_page(*arguments)

    monkeypatch.setattr(idle, "first_page", listed)
    assert ingested.ingest().objects == 1


@pytest.mark.parametrize("suffix", ["", "__objects", "__rejects"])
def test_a_view_that_is_gone_is_made_again(ingested, suffix):
    ingested.spark.sql(f"DROP VIEW `{ingested.schema}`.`orders{suffix}`")
    assert ingested.ingest().objects == 0
    assert ingested.spark.catalog.tableExists(f"`{ingested.schema}`.`orders{suffix}`")


def test_a_view_of_somebody_else_is_an_error(ingested):
    view = f"`{ingested.schema}`.`orders`"
    ingested.spark.sql(f"DROP VIEW {view}")
    ingested.spark.sql(f"CREATE VIEW {view} AS SELECT 1 AS id")
    with pytest.raises(SourceError, match="was not made by this source"):
        ingested.ingest()


def test_the_views_are_looked_at_by_one_statement(ingested, monkeypatch):
    monkeypatch.setattr(tables, "read_views", None)
    assert has_current_views(ingested.spark, ingested.relations)


def test_views_are_looked_at_while_the_location_is_listed(ingested, monkeypatch):
    listed, looked = threading.Event(), []

    def listing(*arguments):
        listed.set()
        return first_page(*arguments)

    def looking(*arguments):
        looked.append(listed.wait(60))
        return has_current_views(*arguments)

    monkeypatch.setattr(idle, "first_page", listing)
    monkeypatch.setattr(idle, "has_current_views", looking)
    steps = []
    ingested.ingest(on_step=steps.append)
    assert (looked, steps) == ([True], [])
