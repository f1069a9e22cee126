"""What a source that reads a shard leaves behind, whether its read succeeds or fails."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from support.s3.opened import state_of
from support.spark.values import EVERY_TYPE, texts

from dbt.adapters.mzs3.errors import ShardError
from dbt.adapters.mzs3.shard.options import ShardSource
from dbt.adapters.mzs3.shard.read import table as read_table
from dbt.adapters.mzs3.shard.read.table import (
    TIMES,
    SourceTable,
    source_exists,
    write_empty_table,
    write_source_table,
)
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES
from dbt.adapters.mzs3.store.location import parse_location

pytestmark = pytest.mark.spark

_numbers = itertools.count()
DAY_MS = 86_400_000


@pytest.fixture
def schema() -> str:
    return f"shard_tables_{next(_numbers)}"


@pytest.fixture
def write(spark: Any, connection: Any, location: str, schema: str) -> Callable[..., None]:
    """`write(empty=…)`: the source `orders`, as of the shard's last time."""

    def run(columns: tuple[str, ...] = (), keep_ms: int = DAY_MS, empty: bool = False) -> None:
        source = ShardSource(
            "lake.orders", parse_location(location), columns=columns, keep_ms=keep_ms
        )
        put = write_empty_table if empty else write_source_table
        put(spark, SourceTable(source, connection, schema, "Orders"))

    return run


@pytest.fixture
def tables(spark: Any, schema: str) -> Callable[[], list[str]]:
    def shown() -> list[str]:
        return sorted(row["tableName"] for row in spark.sql(f"show tables in {schema}").collect())

    return shown


def damage(s3: Any, location: str) -> None:
    """Other bytes under the key of the newest batch's file."""
    place = parse_location(location)
    found = state_of(s3, place).read()
    assert found is not None
    file = found.state.batches[-1].files[0]
    s3.put_object(Bucket=place.bucket, Key=place.key(file.name), Body=b"x" * file.size)


def test_a_read_that_fails_leaves_the_rows_of_the_one_before(
    spark: Any,
    s3: Any,
    persist: Callable[..., Any],
    write: Callable[..., None],
    tables: Callable[[], list[str]],
    location: str,
    schema: str,
) -> None:
    def ids() -> list[Any]:
        return sorted(row[0] for row in spark.table(f"{schema}.orders").collect())

    persist("select id from range(3)", 10)
    write()
    assert ids() == [0, 1, 2]
    before = tables()
    persist("select id from range(5)", 20)
    damage(s3, location)
    with pytest.raises(SPARK_FAILURES, match="is not the file that the shard's state named"):
        write()
    assert ids() == [0, 1, 2]
    assert tables() == before
    write(empty=True)
    assert ids() == []


def test_another_run_leaves_a_query_the_rows_that_it_began_with(
    spark: Any,
    persist: Callable[..., Any],
    write: Callable[..., None],
    tables: Callable[[], list[str]],
    schema: str,
) -> None:
    persist("select id from range(3)", 10)
    write()
    begun = spark.newSession().table(f"{schema}.orders")
    for end in (4, 5):
        persist(f"select id from range({end})", end * 10)
        write()
    assert sorted(row[0] for row in begun.collect()) == [0, 1, 2]
    assert spark.table(f"{schema}.orders").count() == 5
    assert len(tables()) == 4
    write(keep_ms=0)
    assert len(tables()) == 2


@pytest.mark.slow
def test_the_view_is_there_at_every_moment(
    spark: Any, persist: Callable[..., Any], write: Callable[..., None], schema: str
) -> None:
    persist("select 1 as id", 10)
    write()
    # A view that is dropped and made again would not have it.
    spark.sql(f"alter view {schema}.orders set tblproperties ('mine' = '1')")
    persist("select 1 as id, 'a' as name", 20)
    write()
    assert spark.table(f"{schema}.orders").columns == ["id", "name"]
    assert ("mine", "1") in map(tuple, spark.sql(f"show tblproperties {schema}.orders").collect())


@pytest.mark.slow
def test_tables_that_nobody_can_need_are_dropped(
    spark: Any,
    persist: Callable[..., Any],
    write: Callable[..., None],
    tables: Callable[[], list[str]],
    schema: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    persist("select 1 as id", 10)
    write()
    [first] = [name for name in tables() if name != "orders"]
    killed, running = (
        "orders__shard_1700000000000_00c0ffee",
        "orders__shard_9900000000000_00c0ffee",
    )
    others = "orders__shard_of_others"
    for name in (killed, running, others):
        spark.sql(f"create table {schema}.{name} (id int) using parquet")
    now = read_table.now_ms()
    # Of a table that the view has read longest it can't be told when it was read last.
    for hours, gone in ((0, set()), (23, set()), (25, {killed, first})):
        monkeypatch.setattr(read_table, "now_ms", lambda hours=hours: now + hours * 3_600_000)
        before = set(tables())
        write()
        assert before - set(tables()) == gone
    assert {running, others, "orders"} < set(tables())


@pytest.mark.slow
@pytest.mark.parametrize("seen", [True, False])
def test_a_run_that_stalls_does_not_bring_older_rows_back(
    seen: bool,
    spark: Any,
    persist: Callable[..., Any],
    write: Callable[..., None],
    tables: Callable[[], list[str]],
    schema: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    persist("select id from range(3)", 10)
    if seen:
        write()
    read, others = read_table.read_shard, []

    def stalls(*given: Any, **how: Any) -> Any:
        found = read(*given, **how)
        if not others:
            others.append("reads")
            persist("select id from range(5)", 20)
            write()
            others.append(tables())
        return found

    monkeypatch.setattr(read_table, "read_shard", stalls)
    write()
    assert spark.table(f"{schema}.orders").count() == 5
    assert tables() == others[1]  # of its own nothing is left
    write()
    assert tables() > others[1]


def test_a_clock_that_was_ahead_hides_no_rows(
    spark: Any,
    persist: Callable[..., Any],
    write: Callable[..., None],
    schema: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    persist("select id from range(3)", 10)
    now = read_table.now_ms()
    with monkeypatch.context() as patch:
        patch.setattr(read_table, "now_ms", lambda: now + 3_600_000)
        write()
    persist("select id from range(5)", 20)
    write()
    assert spark.table(f"{schema}.orders").count() == 5


@pytest.mark.slow
@pytest.mark.parametrize("written", [True, False])
def test_no_rows_come_in_the_place_of_those_that_are_there_meanwhile(
    written: bool,
    spark: Any,
    connection: Any,
    persist: Callable[..., Any],
    write: Callable[..., None],
    location: str,
    schema: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    persist("select id from range(3)", 10)

    def missing(*_: Any) -> bool:
        """As another process sees it right before this one reads the shard."""
        write()
        return False

    monkeypatch.setattr(read_table, "source_exists", missing)
    where = parse_location(location if written else f"{location}-to-be")
    source = ShardSource("lake.orders", where)
    target = SourceTable(source, connection, schema, "Orders", [("id", "bigint")])
    refresh = partial(read_table.refresh_source, spark, target)
    refresh(is_empty=False, if_missing=True)
    assert spark.table(f"{schema}.orders").count() == 3
    refresh(is_empty=True, if_missing=False)
    assert spark.table(f"{schema}.orders").count() == 0


def test_what_others_made_is_not_replaced(
    spark: Any,
    connection: Any,
    persist: Callable[..., Any],
    write: Callable[..., None],
    location: str,
    schema: str,
) -> None:
    persist("select 1 as id", 10)
    spark.sql(f"create schema {schema}")
    spark.sql(f"create table {schema}.orders using parquet as select 'mine' as id")
    with pytest.raises(ShardError, match=r"Orders was not made by this source\. Drop it"):
        write()
    assert [tuple(row) for row in spark.table(f"{schema}.orders").collect()] == [("mine",)]
    source = ShardSource("lake.orders", parse_location(f"{location}-to-be"))
    target = SourceTable(source, connection, schema, "Orders", [("id", "int")])
    with pytest.raises(ShardError, match=r"Orders was not made by this source\. Drop it"):
        write_empty_table(spark, target)
    assert [tuple(row) for row in spark.table(f"{schema}.orders").collect()] == [("mine",)]


def test_a_source_without_a_shard_has_its_rows_once_there_is_one(
    spark: Any,
    connection: Any,
    persist: Callable[..., Any],
    write: Callable[..., None],
    tables: Callable[[], list[str]],
    location: str,
    schema: str,
) -> None:
    source = ShardSource("lake.orders", parse_location(f"{location}-to-be"))
    target = SourceTable(source, connection, schema, "Orders", [("id", "int")])
    assert not source_exists(spark, schema, "Orders")
    for _ in range(2):
        write_empty_table(spark, target)
    assert source_exists(spark, schema, "Orders")
    assert spark.table(f"{schema}.orders").collect() == []
    persist("select 1 as id", 10)
    write()
    assert [tuple(row) for row in spark.table(f"{schema}.orders").collect()] == [(1,)]
    assert len(tables()) == 4


def test_a_table_that_the_view_may_have_read_stays_for_a_while(
    persist: Callable[..., Any],
    write: Callable[..., None],
    tables: Callable[[], list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ShardError("no")

    persist("select 1 as id", 10)
    with monkeypatch.context() as patch:
        patch.setattr(read_table.TableReplacement, "point_view", fail)
        with pytest.raises(ShardError, match="no"):
            write()
    [left] = tables()
    write()
    assert left in tables()
    now = read_table.now_ms()
    monkeypatch.setattr(read_table, "now_ms", lambda: now + DAY_MS)
    write()
    assert left not in tables()


def test_a_source_has_every_type(
    spark: Any,
    persist: Callable[..., Any],
    write: Callable[..., None],
    schema: str,
    request: pytest.FixtureRequest,
) -> None:
    persist(EVERY_TYPE, 10)
    with pytest.raises(ShardError, match=r"times only with .* without h \(time\(6\)\)$"):
        write()
    request.addfinalizer(lambda: spark.conf.unset(TIMES))
    spark.conf.set(TIMES, "true")
    write()
    expected, found = spark.sql(EVERY_TYPE), spark.table(f"{schema}.orders")
    assert [kind for _, kind in found.dtypes] == [
        kind.replace("void", "string") for _, kind in expected.dtypes
    ]
    assert texts(found) == texts(expected)


def test_columns_that_no_table_can_have_are_told(
    persist: Callable[..., Any], write: Callable[..., None]
) -> None:
    query = "select 1 as id, array(make_interval(1)) as later, named_struct() as `no fields`"
    persist(query, 10)
    with pytest.raises(ShardError, match=r"later \(array<interval>\), no fields \(struct<>\)$"):
        write()
    write(columns=("id",))
