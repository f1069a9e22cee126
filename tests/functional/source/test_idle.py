"""A source with nothing new: no lock is taken, unless there is any doubt."""

from __future__ import annotations

import threading

import pytest
from pyspark.errors import AnalysisException

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.ledger import views
from dbt.adapters.mzs3.ledger.compaction import compact
from dbt.adapters.mzs3.ledger.lease import SourceLock
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.ledger.views import has_views
from dbt.adapters.mzs3.source import idle
from dbt.adapters.mzs3.source.executor.listing import first_page
from dbt.adapters.mzs3.source.operations.object_actions import ObjectAction, act
from dbt.adapters.mzs3.source.reset import reset_source

pytestmark = [pytest.mark.spark, pytest.mark.light]


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


@pytest.fixture
def asked(monkeypatch):
    """What passes have asked the ledger for by a query, one entry each time."""
    queries = []

    def asking(run, ledger, page):
        queries.append(len(page.objects))
        return all_is_settled(run, ledger, page)

    all_is_settled = idle._all_is_settled
    monkeypatch.setattr(idle, "_all_is_settled", asking)
    return queries


def on_record(lake):
    """How often it is on record that there was nothing new."""
    shown = lake.spark.sql(f"SHOW PARTITIONS {lake.made.ledger}").collect()
    return sum(row["partition"].startswith("epoch=0/phase=idle-") for row in shown)


def test_that_nothing_is_new_is_found_out_once_as_long_as_all_stays_the_same(ingested, asked):
    for _ in range(3):
        assert ingested.ingest().objects == 0
    assert (asked, on_record(ingested)) == ([1], 1)
    ingested.put("2.csv", "id\n2\n")
    assert ingested.ingest().rows == 1
    for _ in range(2):
        assert ingested.ingest().objects == 0
    # Once for the new object, and once for the new epoch.
    assert (asked, on_record(ingested)) == ([1, 2, 2], 1)
    # As it was before, and yet with another epoch.
    ingested.remove("2.csv")
    assert ingested.ingest().objects == 0
    assert (asked, on_record(ingested)) == ([1, 2, 2, 1], 1)
    with pytest.raises(SourceError, match="was overwritten"):
        ingested.put("1.csv", "id\n3\n")
        ingested.ingest()
    ingested.external = {"on_overwrite": "replace"}
    assert ingested.ingest().rows == 1
    assert ingested.rows("id") == [("1.csv", 1, "3"), ("2.csv", 1, "2")]


def test_two_passes_may_find_out_the_same_at_once(ingested, monkeypatch):
    write_idle = Ledger.write_idle

    def after_another(ledger, digest):
        write_idle(Ledger(ingested.spark, ingested.made), digest)
        write_idle(ledger, digest)

    monkeypatch.setattr(Ledger, "write_idle", after_another)
    assert ingested.ingest().objects == 0
    assert on_record(ingested) == 1


def test_what_is_put_on_record_while_an_idle_source_is_listed_is_not_lost(ingested, monkeypatch):
    ingested.ingest()
    assert on_record(ingested) == 1

    def listed(*arguments):
        monkeypatch.undo()
        act(ingested.spark, ingested.definition(), ObjectAction.RETRY, ["orders/1.csv"])
        return first_page(*arguments)

    monkeypatch.setattr(idle, "first_page", listed)
    assert [ingested.ingest().objects for _ in range(3)] == [0, 1, 0]


def test_what_an_idle_pass_puts_on_record_late_is_nothing_to_what_a_reset_has_made(ingested):
    assert on_record(ingested) == 0
    ledger = Ledger(ingested.spark, ingested.made)
    reset_source(ingested.spark, ingested.definition())
    assert ingested.ingest().rows == 1
    ledger.write_idle("0" * 32)
    ingested.put("2.csv", "id\n2\n")
    assert [ingested.ingest().objects for _ in range(2)] == [1, 0]
    assert on_record(ingested) == 1


def test_what_is_known_of_an_idle_source_is_no_epoch(ingested):
    before = Ledger(ingested.spark, ingested.made).epochs()
    states = ingested.states()
    ingested.ingest()
    assert on_record(ingested) == 1
    ledger = Ledger(ingested.spark, ingested.made)
    assert (ledger.epochs(), ingested.states()) == (before, states)
    ledger.write_note(ledger.events().limit(0))
    compact(ledger)
    assert ingested.states() == states
    assert ingested.ingest().objects == 0


def test_a_run_on_an_idle_source_that_may_put_nothing_on_record_ends_well(ingested, monkeypatch):
    def refused(*_):
        raise AnalysisException("not allowed")

    monkeypatch.setattr(Ledger, "write_idle", refused)
    for _ in range(2):
        assert ingested.ingest().objects == 0
    assert on_record(ingested) == 0


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
    monkeypatch.setattr(views, "read_views", None)
    assert has_views(ingested.spark, ingested.relations)


def test_views_are_looked_at_while_the_location_is_listed(ingested, monkeypatch):
    listed, looked = threading.Event(), []

    def listing(*arguments):
        listed.set()
        return first_page(*arguments)

    def looking(*arguments):
        looked.append(listed.wait(60))
        return has_views(*arguments)

    monkeypatch.setattr(idle, "first_page", listing)
    monkeypatch.setattr(idle, "has_views", looking)
    steps = []
    ingested.ingest(on_step=steps.append)
    assert (looked, steps) == ([True], [])
