"""A snapshot says what the events before it said: of every history that an object may have."""

from __future__ import annotations

import itertools
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest

from dbt.adapters.mzs3.ledger.compaction import snapshot_events
from dbt.adapters.mzs3.ledger.events import (
    IS_VISIBLE,
    LEDGER_COLUMNS,
    objects_sql,
    visible_rows_sql,
)
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.spark.session import isolated_session

pytestmark = pytest.mark.spark

# What one epoch may say of an object: the phase of the event, the state, and whether it hides.
EVENTS: dict[str, tuple[str, str, bool | None] | None] = {
    "nothing": None,
    "ingested": ("commit", "fetched", False),
    "in place": ("commit", "fetched", True),
    "skipped": ("commit", "skipped", None),
    "retracted": ("note", "retracted", True),
    "retried": ("note", "retried", False),
    "failed": ("failed", "failed", None),
}
EPOCHS = 4
COLUMNS = {**LEDGER_COLUMNS, "epoch": "string", "phase": "string"}
DDL = ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items())
FIRST = datetime(2026, 1, 1)


class LedgerOfView(Ledger):
    """The ledger that a temporary view has the events of."""

    def __init__(self, spark: Any, view: str) -> None:
        self.spark, self.view = spark, view
        self._epochs = {str(number): {"commit"} for number in range(1, EPOCHS + 1)}

    def _valid(self) -> str:
        return self.view

    def _in(self, epochs: list[str]) -> str:
        return self.view


def event(name: str, epoch: int, what: str) -> tuple[Any, ...] | None:
    if (found := EVENTS[what]) is None:
        return None
    phase, state, hides = found
    known = {
        "object": name,
        "etag": f"etag {epoch}",
        "at": FIRST + timedelta(days=epoch),
        "state": state,
        "rows": 1 if state == "fetched" else None,
        "hides": hides,
        "epoch": str(epoch),
        "phase": phase,
    }
    return tuple(known.get(column) for column in COLUMNS)


@pytest.fixture(scope="module")
def spark(spark_parameters: dict[str, str]) -> Any:
    """A session with every history of so many epochs, in `ledger`, and its rows, in `stored`."""
    session = isolated_session(spark_parameters)
    events = [
        one
        for history in itertools.product(EVENTS, repeat=EPOCHS)
        for number, what in enumerate(history, 1)
        if (one := event(", ".join(history), number, what)) is not None
    ]
    ledger = session.createDataFrame(events, DDL).coalesce(1).cache()
    ledger.createOrReplaceTempView("ledger")
    ledger.where("phase = 'commit' AND state = 'fetched'").selectExpr(
        "object AS _mz_object", "epoch AS mz_epoch"
    ).createOrReplaceTempView("stored")
    return session


def said(spark: Any, view: str) -> tuple[Counter[Any], Counter[Any]]:
    """What runs and readers go by, as often as it is there: of each object, and of the rows."""
    visible = f"CASE WHEN {IS_VISIBLE} THEN fetched END AS visible"
    objects = spark.sql(objects_sql(view)).selectExpr("object", "latest", "decision", visible)
    rows = spark.sql(visible_rows_sql("stored", view, "_mz_object, mz_epoch", "true", "0"))
    return Counter(objects.collect()), Counter(rows.collect())


def compacted(spark: Any, upto: int) -> str:
    """A view of the ledger in which a snapshot has the place of the epochs up to that one."""
    spark.table("ledger").where(f"epoch <= '{upto}'").createOrReplaceTempView("old")
    place = {"epoch": f"'{upto}'", "phase": "'snapshot'"}
    columns = (
        f"CAST({place.get(name, f'`{name}`')} AS {kind}) AS `{name}`"
        for name, kind in COLUMNS.items()
    )
    snapshot = snapshot_events(LedgerOfView(spark, "old"), {}).selectExpr(*columns)
    after = spark.table("ledger").where(f"epoch > '{upto}'")
    snapshot.unionByName(after).coalesce(1).cache().createOrReplaceTempView("compacted")
    return "compacted"


def differing(some: Counter[Any], others: Counter[Any], name: str) -> list[str]:
    """Three of those that are not in both as often."""
    return sorted(row[name] for row in (some - others) + (others - some))[:3]


def test_a_snapshot_and_what_came_after_say_what_all_events_said(spark: Any) -> None:
    objects, rows = said(spark, "ledger")
    assert len(objects) == objects.total() == len(EVENTS) ** EPOCHS - 1
    assert 0 < len(rows) == rows.total()  # each of which was stored once
    for upto in (EPOCHS - 1, EPOCHS):
        told, seen = said(spark, compacted(spark, upto))
        told = Counter({row: n for row, n in told.items() if row["object"] is not None})
        assert differing(seen, rows, "_mz_object") == []
        assert differing(told, objects, "object") == []
