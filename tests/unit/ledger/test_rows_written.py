"""Where the rows of an epoch are, and when they become a partition; Spark is a stand-in."""

from __future__ import annotations

from contextlib import nullcontext
from types import MappingProxyType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from dbt.adapters.mzs3.errors import SourceError, SparkJobError
from dbt.adapters.mzs3.ledger import rows_table as module
from dbt.adapters.mzs3.ledger.partitions import location_of
from dbt.adapters.mzs3.ledger.relations import SourceRelations
from dbt.adapters.mzs3.ledger.rows_table import RowsTable
from dbt.adapters.mzs3.source.fetch import EpochRows
from dbt.adapters.mzs3.store.location import S3Location

TABLE = [
    ("# Detailed", "string"),
    ("Location", "int"),
    ("# Partition Information", ""),
    ("# col_name", "data_type"),
    ("epoch", "string"),
    ("", ""),
]


class Described:
    """A session whose catalog describes every table by these rows."""

    def __init__(self, *rows: tuple[str, str]) -> None:
        self.rows = [{"col_name": name, "data_type": data_type} for name, data_type in rows]
        self.asked: list[str] = []

    def sql(self, text: str) -> SimpleNamespace:
        self.asked.append(text)
        return SimpleNamespace(collect=lambda: self.rows)


def test_a_place_is_found_whatever_the_columns_are_named() -> None:
    table = Described(*TABLE, ("# Detailed Table Information", ""), ("Location", "file:/w/t/"))
    assert location_of(table, "raw.t") == "file:/w/t"
    partition = Described(
        *TABLE,
        ("# Detailed Partition Information", ""),
        ("Location", "file:/w/t/own"),
        ("# Storage Information", ""),
        ("Location", "file:/w/t"),
    )
    assert location_of(partition, "raw.t", {"epoch": "7"}) == "file:/w/t/own"
    assert partition.asked == ["DESCRIBE TABLE EXTENDED raw.t PARTITION (`epoch` = '7')"]


class Reporting:
    """Spark's report of three rows."""

    get: Any = MappingProxyType({"rows": 3})


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> Described:
    """A catalog with one table, whose rows are written somewhere else."""
    monkeypatch.setattr(module, "F", MagicMock())
    monkeypatch.setattr(module, "Observation", Reporting)
    session: Any = Described(("# Detailed Table Information", ""), ("Location", "file:/w/t"))
    session.table = MagicMock()
    return session


def rows_of(session: Described) -> MagicMock:
    """Rows that the session computes."""
    return MagicMock(sparkSession=session)


def test_a_run_that_has_lost_its_lock_adds_no_partition(catalog: Described) -> None:
    frame = rows_of(catalog)

    def require_lock() -> None:
        # Whoever has the lock by now may have made the table anew.
        assert "text('file:/w/t/mz_epoch-7')" in str(frame.mock_calls)
        raise SourceError("the lock was taken away")

    with pytest.raises(SourceError, match="the lock was taken away"):
        RowsTable(catalog, "raw.t").write(frame, "7", require_lock=require_lock)
    assert [text for text in catalog.asked if text.startswith("ALTER")] == []
    RowsTable(catalog, "raw.t").write(frame, "7", require_lock=lambda: None)
    added = "ADD IF NOT EXISTS PARTITION (`mz_epoch` = '7') LOCATION 'file:/w/t/mz_epoch-7'"
    assert catalog.asked[-1] == f"ALTER TABLE raw.t {added}"


def test_rows_of_which_spark_reports_nothing_are_no_partition(
    catalog: Described, monkeypatch: pytest.MonkeyPatch
) -> None:
    def observed(_: Any) -> None:
        raise SparkJobError("Spark did not report how many rows it has read")

    monkeypatch.setattr(module, "observed", observed)
    monkeypatch.setattr(EpochRows, "_fetched", lambda *_: nullcontext(rows_of(catalog)))
    relations = SourceRelations("raw", "orders")
    ledger: Any = SimpleNamespace(spark=catalog, relations=relations, require_lock=int)
    where = S3Location("b", "")
    spec: Any = SimpleNamespace(location=where, source="lake.orders", has_problems=False)
    with pytest.raises(SourceError) as raised:
        EpochRows(ledger, spec, "7", MagicMock(), 1, 1).write()
    assert str(raised.value) == (
        "lake.orders: Spark did not report how many rows it has read; nothing of this run is "
        "committed"
    )
    assert [text for text in catalog.asked if text.startswith("ALTER")] == []


def test_files_that_spark_is_told_to_encrypt_are_not_made_by_tasks() -> None:
    told = {"spark.hadoop.parquet.crypto.factory.class": "org.example.Keys"}
    session: Any = SimpleNamespace(conf=SimpleNamespace(get=lambda name, default: told.get(name)))
    spec: Any = SimpleNamespace(source="lake.orders")
    with pytest.raises(SourceError, match=r"lake\.orders: .* has Spark encrypt Parquet files"):
        RowsTable(session, "raw.t").rows_from(MagicMock(), spec, MagicMock())
