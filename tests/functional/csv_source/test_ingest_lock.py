"""Two runs at once on one source: the second waits, or fails clearly."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import pytest

from dbt.adapters.mzs3.csv_source.cancel import Cancellation
from dbt.adapters.mzs3.csv_source.lock import SourceLock
from dbt.adapters.mzs3.csv_source.owner import current_owner
from dbt.adapters.mzs3.errors import SourceError

pytestmark = pytest.mark.spark


@pytest.fixture
def held(lake):
    """Puts a lock in the metastore as another process would have."""
    lake.spark.sql(f"CREATE SCHEMA IF NOT EXISTS `{lake.schema}`")
    lake.put("1.csv", "id\n1\n")

    def hold(**changes):
        lock = SourceLock(lake.spark, lake.relations, "lake.orders")
        lock._me = replace(current_owner(), **changes)
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
    lake.spark.sql(str(raised.value).rpartition("with: ")[2])
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
            lake.spark.sql(f"DROP VIEW {lake.relations.lock}")

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
    with pytest.raises(SourceError, match=f"process {os.getppid()} on host {host} is ingesting"):
        lake.ingest(wait_s=0)


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
            lake.spark.sql(f"DROP VIEW {lake.relations.lock}")

    with pytest.raises(SourceError, match="was taken away"):
        lake.ingest(on_step=take_away)
    assert lake.rows("id") == []
    assert lake.ingest().rows == 1
    assert lake.rows("id") == [("1.csv", 1, "1")]
