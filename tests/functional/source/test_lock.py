"""Two runs at once on one source: the second waits, or fails clearly."""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import pytest
from pyspark.errors import AnalysisException

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.ledger import lease as source_lock
from dbt.adapters.mzs3.ledger.lease import (
    LEASE_S,
    Cancellation,
    Holder,
    LockTable,
    SourceLock,
    current_owner,
)
from dbt.adapters.mzs3.ledger.ledger_table import LedgerTable
from dbt.adapters.mzs3.source.run import unlock

pytestmark = pytest.mark.spark


@pytest.fixture
def held(lake):
    """Puts a lock in the metastore as another process would have."""
    lake.spark.sql(f"CREATE SCHEMA IF NOT EXISTS `{lake.schema}`")
    lake.put("1.csv", "id\n1\n")

    def hold(**changes):
        lock = SourceLock(lake.spark, lake.relations, "lake.orders")
        lock.holder = Holder("another", replace(current_owner(), **changes))
        assert lock._try() is None

    return hold


def ended_process():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_live_process_keeps_its_lock_and_the_error_says_how_to_get_out(lake, held):
    held(pid=os.getppid(), started="")
    with pytest.raises(SourceError, match=f"process {os.getppid()} on host") as raised:
        lake.ingest(wait_s=0)
    assert not lake.spark.catalog.tableExists(lake.relations.rows)
    assert "dbt run-operation unlock_s3_source --args '{source: lake.orders}'" in str(raised.value)
    assert unlock(lake.spark, lake.definition()).pid == os.getppid()
    assert unlock(lake.spark, lake.definition()) is None
    assert lake.ingest(wait_s=0).rows == 1


def test_another_host_keeps_its_lock_though_no_process_here_has_its_number(lake, held):
    held(pid=ended_process(), place="elsewhere", host="elsewhere")
    with pytest.raises(SourceError, match="on host elsewhere"):
        lake.ingest(wait_s=0)


def test_the_lock_of_a_dead_process_is_taken_over_and_given_back(lake, held):
    held(pid=ended_process())
    assert lake.ingest(wait_s=0).rows == 1
    assert not lake.spark.catalog.tableExists(lake.relations.lock)


def test_the_lock_of_an_earlier_process_with_the_same_number_is_taken_over(lake, held):
    held(started="before this one")
    assert lake.ingest(wait_s=0).rows == 1


def test_the_second_waits_for_the_first(lake, held):
    held(pid=os.getppid(), started="")

    @dataclass
    class GivenBackMeanwhile(Cancellation):
        waits: list[float] = field(default_factory=list)

        def wait(self, seconds):
            self.waits.append(seconds)
            lake.spark.sql(f"DROP TABLE {lake.relations.lock}")

    meanwhile = GivenBackMeanwhile("lake.orders")
    with SourceLock(lake.spark, lake.relations, "lake.orders", cancellation=meanwhile) as lock:
        lock.require()
    assert len(meanwhile.waits) == 1


@pytest.mark.parametrize("host", ["hourly-batch", "token-server.password.url"])
def test_the_lock_of_a_host_whose_name_spark_would_redact_is_known_again(
    lake, held, monkeypatch, host
):
    monkeypatch.setattr(socket, "gethostname", lambda: host)
    assert lake.ingest(wait_s=0).rows == 1
    held(pid=os.getppid(), started="")
    lake.put("2.csv", "id\n2\n")
    with pytest.raises(SourceError, match=f"process {os.getppid()} on host {host} is ingesting"):
        lake.ingest(wait_s=0)


@pytest.mark.slow
def test_of_two_threads_only_one_takes_the_objects(lake):
    lake.put("1.csv", "id\n1\n")
    other = replace(lake, spark=lake.spark.newSession())
    with ThreadPoolExecutor(2) as pool:
        reports = [run.result() for run in [pool.submit(lake.ingest), pool.submit(other.ingest)]]
    assert sorted(report.objects for report in reports) == [0, 1]
    assert lake.rows("id") == [("1.csv", 1, "1")]


def test_a_run_whose_lock_was_taken_away_commits_nothing(lake):
    lake.put("1.csv", "id\n1\n")

    def take_away(step):
        if step == "begin commit":
            lake.spark.sql(f"DROP TABLE {lake.relations.lock}")

    with pytest.raises(SourceError, match="was taken away"):
        lake.ingest(on_step=take_away)
    assert lake.rows("id") == []
    assert lake.ingest().rows == 1
    assert lake.rows("id") == [("1.csv", 1, "1")]


class Clock:
    """Time that passes only when it is told to."""

    now = 0.0

    def __call__(self):
        return self.now


@dataclass
class Waiting(Cancellation):
    """What happens each time somebody waits for the lock; the clock goes on meanwhile."""

    clock: Clock = field(default_factory=Clock)
    happens: list = field(default_factory=list)

    def wait(self, seconds):
        self.clock.now += seconds
        if self.happens:
            self.happens.pop(0)()


def lock_of(lake, waiting):
    return SourceLock(
        lake.spark, lake.relations, "lake.orders", cancellation=waiting, clock=waiting.clock
    )


def test_the_lock_of_a_host_of_which_nothing_is_seen_is_taken_over(lake, held):
    held(place="elsewhere", host="elsewhere")
    waiting = Waiting("lake.orders")
    renewals = itertools.count(1)

    def pass_by():
        waiting.clock.now += LEASE_S / 2

    def renew():
        pass_by()
        LockTable(lake.spark, lake.relations).renew("another", next(renewals))

    # It is at work, twice; then nothing more is seen of it.
    waiting.happens = [renew, renew, pass_by, pass_by]
    with lock_of(lake, waiting) as lock:
        lock.require()
        assert waiting.clock.now >= 2 * LEASE_S
    tables = [
        row["tableName"] for row in lake.spark.sql(f"SHOW TABLES IN {lake.schema}").collect()
    ]
    assert not [name for name in tables if "lock" in name]


def test_a_holder_shows_that_it_is_at_work(lake, held, monkeypatch):
    monkeypatch.setattr(source_lock, "RENEW_S", 0.01)
    seen = threading.Event()
    renew = LockTable.renew

    def told(self, token, number):
        renew(self, token, number)
        if number == 2:
            seen.set()

    monkeypatch.setattr(LockTable, "renew", told)
    with SourceLock(lake.spark, lake.relations, "lake.orders") as lock:
        assert seen.wait(120)
        assert LockTable(lake.spark, lake.relations).last_renewal(lock.holder.token) is not None
    assert LockTable(lake.spark, lake.relations).last_renewal(lock.holder.token) is None


def test_two_that_take_the_lock_in_the_same_instant_do_not_fail(lake, held, monkeypatch):
    # The session's catalog sees no lock yet, and the metastore has one by then.
    create = LockTable.create

    def late(self, holder):
        create(LockTable(lake.spark, lake.relations), holder)
        raise AnalysisException("[_LEGACY_ERROR_TEMP_3065] AlreadyExistsException: Table")

    monkeypatch.setattr(LockTable, "create", late)
    lock = SourceLock(lake.spark, lake.relations, "lake.orders")
    assert lock._try() is None  # the answer was lost
    assert SourceLock(lake.spark, lake.relations, "lake.orders")._create() is False
    monkeypatch.setattr(LockTable, "holder", lambda self: None)  # given back since
    assert SourceLock(lake.spark, lake.relations, "lake.orders")._create() is False


def test_of_many_that_take_the_lock_in_the_same_instant_one_has_it(lake, held):
    count = 8
    together = threading.Barrier(count)

    def take(session):
        lock = SourceLock(session, lake.relations, "lake.orders")
        together.wait(120)
        return lock._create()

    with ThreadPoolExecutor(count) as pool:
        runs = [pool.submit(take, lake.spark.newSession()) for _ in range(count)]
        assert sum(run.result() for run in runs) == 1


@pytest.mark.slow
def test_of_two_that_decide_an_epoch_the_second_sees_what_the_first_did(lake):
    lake.put("1.csv", "id\n1\n")
    lake.ingest()
    table = LedgerTable(lake.spark, lake.relations)
    events = lake.spark.table(lake.relations.ledger).drop("epoch", "phase").limit(1)
    folder = table.stage("7", events)
    assert table.folder("7", "commit") is None
    assert table.publish("7", "commit", folder)
    assert table.folder("7", "commit") == folder
    assert table.publish("7", "commit", folder)  # it took effect, and the answer was lost
    assert not table.publish("7", "commit", "events-of-another")
    assert not table.close("7", "commit")
    assert table.close("8", "commit")
    assert table.close("8", "commit")
    assert not table.publish("8", "commit", folder)
