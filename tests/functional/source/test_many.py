"""A source of very many objects: the driver gets no more of them than it may hold."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from dbt.adapters.mzs3.ledger.compaction import compact
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.source import fetch
from dbt.adapters.mzs3.source.freshness import read_pending
from dbt.adapters.mzs3.source.operations.object_actions import ObjectAction, act
from dbt.adapters.mzs3.source.operations.status import read_status
from dbt.adapters.mzs3.spark import frames

pytestmark = [pytest.mark.spark, pytest.mark.slow]

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
A_FEW = 100  # partitions, columns and properties of tables


@pytest.fixture
def bucket(monkeypatch):
    """One of three pages, of which the driver lists one."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    made_up = importlib.import_module("made_up_client")
    with made_up.made_up_client(2500) as bucket:
        yield bucket


@pytest.fixture
def brought(lake, monkeypatch):
    """How many rows each query has brought to the driver."""
    found = []

    def counting(there):
        def bringing(frame):
            rows = there(frame)
            found.append(len(rows))
            return rows

        return bringing

    frame = type(lake.spark.range(1))
    for name in ("collect", "toArrow"):
        monkeypatch.setattr(frame, name, counting(getattr(frame, name)))
    return found


def test_no_step_of_a_run_brings_the_objects_to_the_driver(lake, bucket, brought, monkeypatch):
    for module in (frames, fetch):
        monkeypatch.setattr(module, "FEW", A_FEW - 1)
    lake.external = {"header": ["id"], "max_objects_per_run": 1000}
    report = lake.ingest()
    assert (report.objects, report.waiting_objects) == (1000, 1500)
    lake.external = {"header": ["id"], "key_order": "ascending"}
    assert lake.ingest().objects == 1500
    bucket.objects += 1500
    assert read_pending(lake.spark, lake.definition(), lake.connection)[0] == 1500
    assert lake.ingest().objects == 1500
    compact(Ledger(lake.spark, lake.relations))
    assert lake.ingest().objects == 0
    assert read_status(lake.spark, lake.definition()).objects == 4000
    act(lake.spark, lake.definition(), ObjectAction.RETRACT, ["**"])
    assert 0 < max(brought) <= A_FEW
    assert lake.spark.table(lake.relations.source).isEmpty()
