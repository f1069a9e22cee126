"""Ctrl-C: nothing new begins, what Spark runs is stopped, and the next run makes it good."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import pytest
from support.s3.faulty import FaultyS3

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.ledger.lease import Holder, SourceLock, current_owner
from dbt.adapters.mzs3.project.source_runs import run_together

pytestmark = pytest.mark.spark

CANCELLED = "lake.orders: cancelled; nothing of this run is committed"
STEPS = ["end create", "begin fetch", "end fetch", "begin commit"]


@pytest.fixture
def proxy(s3_endpoint):
    with FaultyS3(s3_endpoint) as server:
        yield server


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_no_step_begins_once_the_run_is_cancelled(lake, step):
    lake.put("1.csv", "id\n1\n")
    cancelled, steps = threading.Event(), []

    def on_step(name):
        steps.append(name)
        if name == step:
            cancelled.set()

    with pytest.raises(SourceError) as raised:
        lake.ingest(cancelled=cancelled, on_step=on_step)
    assert str(raised.value) == CANCELLED
    after = steps[steps.index(step) + 1 :]
    assert [name for name in after if name.startswith("end")] == []
    assert not lake.spark.catalog.tableExists(lake.relations.lock)
    assert lake.ingest(wait_s=0).rows == 1
    assert lake.rows("id") == [("1.csv", 1, "1")]


def test_a_cancelled_run_waits_for_no_lock(lake):
    lake.spark.sql(f"CREATE SCHEMA `{lake.schema}`")
    lock = SourceLock(lake.spark, lake.relations, "lake.orders")
    lock.holder = Holder("another", replace(current_owner(), place="elsewhere"))
    assert lock._try() is None
    cancelled = threading.Event()
    run = SimpleNamespace(tries=0)
    tried = SourceLock._try

    def try_and_cancel(self):
        run.tries += 1
        cancelled.set()
        return tried(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SourceLock, "_try", try_and_cancel)
        with pytest.raises(SourceError, match="cancelled"):
            lake.ingest(cancelled=cancelled)
    assert run.tries == 1
    assert lake.spark.catalog.tableExists(lake.relations.lock)


def test_the_thread_of_this_process_that_has_the_source_is_waited_for_no_longer(lake):
    lake.spark.sql(f"CREATE SCHEMA `{lake.schema}`")
    cancelled = threading.Event()
    with (
        SourceLock(lake.spark, lake.relations, "lake.orders"),
        ThreadPoolExecutor(1) as pool,
    ):
        cancelled.set()
        second = pool.submit(
            replace(lake, spark=lake.spark.newSession()).ingest, cancelled=cancelled
        )
        with pytest.raises(SourceError, match="cancelled"):
            second.result(timeout=60)


@pytest.mark.slow
def test_an_object_that_hangs_is_waited_for_no_longer(lake, proxy):
    lake.put("1.csv", "id\n1\n")
    lake.ingest(create_only=True)
    good = lake.connection
    lake.connection = replace(good, endpoint=proxy.endpoint)
    cancelled, over = threading.Event(), threading.Event()
    errors = []

    def hang(request):
        if request.action == "GETObject":
            cancelled.set()
            over.wait(60)

    def task():
        try:
            lake.ingest(cancelled=cancelled)
        except SourceError as exc:
            errors.append(str(exc))
        finally:
            over.set()

    proxy.watch = hang
    run_together([task], threads=1, cancelled=cancelled, interrupt=lake.spark.interruptAll)
    assert errors == [CANCELLED]
    lake.connection = good
    assert lake.ingest(wait_s=0).rows == 1
    assert lake.rows("id") == [("1.csv", 1, "1")]
