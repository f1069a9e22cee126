"""What `validate: true` leaves: a row for each batch, and an error where encodings differ."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.s3.opened import state_of
from support.shard.files import with_structure_of_other_rows

from dbt.adapters.mzs3.errors import ShardError
from dbt.adapters.mzs3.shard.options import ShardSource
from dbt.adapters.mzs3.shard.read import rows
from dbt.adapters.mzs3.shard.read.table import SourceTable, write_source_table
from dbt.adapters.mzs3.store.location import parse_location

pytestmark = pytest.mark.spark

_numbers = itertools.count()
ORDERS = "select id, concat('order ', id) as name from range({})"
EVIDENCE = "select batch, encoding, files, compared, differences, differing from {} order by 1, 5"


@pytest.fixture
def schema() -> str:
    return f"shard_evidence_{next(_numbers)}"


@pytest.fixture
def told() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def read(
    spark: Any, connection: Any, location: str, schema: str, told: list[tuple[str, str]]
) -> Callable[..., None]:
    """`read(validate=…)`: the source `orders`, as of the shard's last time."""

    def run(*, validate: bool = True) -> None:
        source = ShardSource("lake.orders", parse_location(location), validate=validate)
        target = SourceTable(source, connection, schema, "orders", invocation_id="this run")
        write_source_table(spark, target, tell=told.append)

    return run


def spoil(s3: Any, location: str, batch: int) -> None:
    """A batch of one file whose columns have the rows the other way round."""
    place = parse_location(location)
    store = state_of(s3, place)
    before = store.existing()
    old = before.state.batches[batch]
    [file] = old.files
    key = place.key(file.name)
    data = s3.get_object(Bucket=place.bucket, Key=key)["Body"].read()
    wrong = with_structure_of_other_rows(data)
    etag = s3.put_object(Bucket=place.bucket, Key=key, Body=wrong)["ETag"]
    new = replace(old, files=(replace(file, size=len(wrong), etag=etag),))
    batches = list(before.state.batches)
    batches[batch] = new
    store.write(before, replace(before.state, batches=tuple(batches)))


@pytest.mark.light
def test_what_was_compared_and_what_differs_is_kept_for_each_batch(
    spark: Any,
    s3: Any,
    persist: Callable[..., Any],
    read: Callable[..., None],
    told: list[tuple[str, str]],
    location: str,
    schema: str,
) -> None:
    persist(ORDERS.format(5), 10, parts=1)
    persist(ORDERS.format(6), 20, parts=1, encoding="codec")
    persist(ORDERS.format(8), 30, parts=1)
    persist(ORDERS.format(8), 40, parts=1)
    read()
    kept = f"{schema}.mzs3_shard_validations"
    expected = [(10, "dual", 1, 10, 0, ""), (20, "codec", 1, 0, 0, ""), (30, "dual", 1, 4, 0, "")]
    assert [tuple(row) for row in spark.sql(EVIDENCE.format(kept)).collect()] == expected
    about = spark.sql(f"select distinct source, location, as_of, invocation_id from {kept}")
    assert [tuple(row) for row in about.collect()] == [
        ("lake.orders", f"{location}/", 40, "this run")
    ]
    levels = [level for level, _ in told]
    assert levels == ["debug"] * 3 + ["info"]
    assert told[-1][1].startswith("14 values were compared, in 2 of 3 batches, and are the same")

    spoil(s3, location, 0)
    spoil(s3, location, 2)
    persist(ORDERS.format(9), 50, parts=1)
    with pytest.raises(ShardError) as raised:
        read()
    # Of five rows the one in the middle stays where it is.
    assert "differ in 12 of 16 values" in str(raised.value)
    assert "batch 30 (1970-01-01 00:00:00.030): id (tag 0): 2, name (tag 1): 2" in str(
        raised.value
    )
    found = spark.sql(EVIDENCE.format(kept)).collect()
    assert [tuple(row) for row in found if row["differences"]] == [
        (10, "dual", 1, 10, 8, "id (tag 0): 4, name (tag 1): 4"),
        (30, "dual", 1, 4, 4, "id (tag 0): 2, name (tag 1): 2"),
    ]
    assert len(found) == 3 + 4
    assert spark.table(f"{schema}.orders").count() == 8  # those of the read before


def test_a_task_that_reads_many_files_tells_of_each(
    spark: Any,
    s3: Any,
    persist: Callable[..., Any],
    read: Callable[..., None],
    location: str,
    schema: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rows, "tasks_of", lambda sizes, _: [0] * len(sizes))
    for count in (5, 6, 9):
        persist(ORDERS.format(count), 10 * count, parts=1)
    read()
    orders = sorted(tuple(row) for row in spark.table(f"{schema}.orders").collect())
    assert orders == [(id, f"order {id}") for id in range(9)]
    found = spark.sql(EVIDENCE.format(f"{schema}.mzs3_shard_validations")).collect()
    assert [row["compared"] for row in found] == [10, 2, 6]
    spoil(s3, location, 2)
    with pytest.raises(ShardError, match=r"batch 90 \(.*\): id \(tag 0\): 2, name \(tag 1\): 2"):
        read()


def test_without_validation_there_is_no_table(
    spark: Any,
    persist: Callable[..., Any],
    read: Callable[..., None],
    told: list[Any],
    schema: str,
) -> None:
    persist(ORDERS.format(2), 10)
    read(validate=False)
    tables = [row["tableName"] for row in spark.sql(f"show tables in {schema}").collect()]
    assert not [name for name in tables if "validations" in name]
    assert told == []


def test_evidence_that_can_not_be_kept_stops_no_read(
    spark: Any,
    persist: Callable[..., Any],
    read: Callable[..., None],
    told: list[Any],
    schema: str,
) -> None:
    persist(ORDERS.format(2), 10)
    spark.sql(f"create schema {schema}")
    spark.sql(f"create view {schema}.mzs3_shard_validations as select 1 as a")
    read()
    assert spark.table(f"{schema}.orders").count() == 2
    [warning] = [text for level, text in told if level == "warn"]
    assert f"what was compared can't be kept in {schema}.mzs3_shard_validations: " in warning
    assert "is not the table that dbt-mzs3 makes under this name" in warning


@pytest.mark.parametrize("wrong", [{"where": "id = no_such"}, {"columns": ("no_such",)}])
def test_what_is_wrong_with_a_source_is_told_before_anything_is_compared(
    spark: Any,
    persist: Callable[..., Any],
    connection: Any,
    location: str,
    schema: str,
    told: list[Any],
    wrong: dict[str, Any],
) -> None:
    persist(ORDERS.format(2), 10)
    source = ShardSource("lake.orders", parse_location(location), validate=True, **wrong)
    with pytest.raises(ShardError, match="no_such"):
        write_source_table(
            spark, SourceTable(source, connection, schema, "orders"), tell=told.append
        )
    assert told == []
