"""A source's `where`: the rows are those for which Spark finds it true, and less is fetched."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from support.s3.faulty import FaultyS3
from support.s3.opened import state_of

from dbt.adapters.mzs3.errors import ShardError
from dbt.adapters.mzs3.shard.options import ShardSource
from dbt.adapters.mzs3.shard.read.column_bytes import Fetching, bytes_in_files
from dbt.adapters.mzs3.shard.read.rows import read_shard
from dbt.adapters.mzs3.shard.read.table import SourceTable, write_source_table
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES
from dbt.adapters.mzs3.store.client import s3_client
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import parse_location

pytestmark = pytest.mark.spark

_numbers = itertools.count()

ROWS = """
select id, cast(id as int) as n, concat('s', lpad(id, 4, '0')) as s,
  cast(id / 4 as decimal(12, 2)) as x, date_add(date'2026-01-01', cast(id as int)) as day,
  timestamp_seconds(1767225600 + id * 3600) as at,
  timestamp_ntz'2026-01-01 00:00:00' + make_dt_interval(0, cast(id as int)) as ntz,
  if(id % 7 = 0 or id between 100 and 180, null, id) as few,
  if(id % 10 = 0, double('NaN'), double(id)) as f, named_struct('a', id) as st{}
from range({}, {})
"""
# Each with whether statistics tell of some row groups that they have no such row; None: of few.
CONDITIONS: dict[str, bool | None] = {
    "n >= 290": True,
    "n < 3 and day > '2026-01-01'": True,
    "N = 7 AND `S` <> 'x'": True,
    "s between 's0010' and 's0019'": True,
    "x = 12.5": True,
    "x > 74.99 and x in (1, 74.75, 1000)": True,
    "-5 < n and 5 > n": True,
    "day >= date'2026-10-25'": True,
    "day in ('2026-01-05', '2026-1-6')": True,
    # In the session's time zone, which that of the second one is not.
    "at >= '2026-01-03 12:00:00' and at < timestamp'2026-01-03 18:00:00Z'": True,
    "at = timestamp'2026-01-03 12:00:00 Europe/Berlin'": True,
    "ntz <= '2026-01-01 05:00:00' or false and n = 1": False,
    "ntz <= '2026-01-01 05:00:00'": True,
    "few is null": None,
    "few is not null and n > 290": True,
    "few = 30": True,
    "n = 5 or n = 290": False,
    "not n > 5": False,
    "(st.a > 280 and n > 285)": True,
    "f > 297": False,
    "n % 2 = 0 and n < 10": True,
    "lower(s) = 's0007'": False,
    "extra = 50 and n < 20": True,
    "extra is null": None,
    "n > 10 and n < 5": True,
    "rn = 1": True,
}


@pytest.fixture
def shard(persist: Callable[..., Any]) -> None:
    """Rows that came and went, in batches of every encoding, with a column that came later."""
    how: dict[str, Any] = {"sort_by": "id", "max_file_size": 40_000}
    first = ROWS.format(", id as q", 0, 100)
    persist(first, 10, encoding="codec", **how)
    persist(ROWS.format(", id as q", 20, 200), 20, encoding="dual", **how)
    more = {"column_defaults": {"extra": "50"}, "column_renames": {"q": "rn"}}
    added = ", id as rn, if(id < 200, 50, if(id % 3 = 0, null, cast(id as int))) as extra"
    persist(
        f"{ROWS.format(added, 0, 300)} where id <> 45", 30, encoding="structured", **more, **how
    )


@pytest.fixture
def in_berlin(spark: Any) -> Iterator[None]:
    zone = "spark.sql.session.timeZone"
    before = spark.conf.get(zone)
    spark.conf.set(zone, "Europe/Berlin")
    yield
    spark.conf.set(zone, before)


def sorted_rows(frame: Any) -> list[str]:
    """The rows as Python shows them, in which a NaN is what another one is."""
    return sorted(repr(tuple(row)) for row in frame.collect())


@pytest.mark.slow
@pytest.mark.usefixtures("shard", "in_berlin")
def test_the_rows_are_those_for_which_spark_finds_it_true(frame: Callable[..., Any]) -> None:
    # Not in Spark's cache, which skips NaNs by statistics that have none.
    every = frame().localCheckpoint()
    for condition, skips in CONDITIONS.items():
        fetching = Fetching()
        found = sorted_rows(frame(where=condition, fetching=fetching))
        assert found == sorted_rows(every.where(condition)), condition
        if skips is not None:
            assert bool(fetching.found().skipped) == skips, condition
    fewer = frame(names=["s"], where="n < 5 and few is not null")
    assert sorted_rows(fewer) == [f"('s000{n}',)" for n in (1, 2, 3, 4)]


def test_what_statistics_exclude_is_not_fetched(
    spark: Any,
    persist: Callable[..., Any],
    connection: AwsConnection,
    s3_endpoint: str,
    location: str,
) -> None:
    query = (
        "select id, concat(sha2(string(id), 512), sha2(string(-id), 512)) as s from range(20000)"
    )
    persist(query, 10, sort_by="id", max_file_size=2_000_000, parts=1)
    with FaultyS3(s3_endpoint) as proxy:
        there = replace(connection, endpoint=proxy.endpoint)

        def sent(where: str | None) -> tuple[int, Any]:
            proxy.reset()
            fetching = Fetching()
            place = parse_location(location)
            frame = read_shard(spark, there, place, where=where, fetching=fetching)
            frame.write.format("noop").mode("overwrite").save()
            found = fetching.found()
            # But for the state, the bytes that are told are those that S3 has sent.
            assert 0 < proxy.sent - sum(found.bytes.values()) < 10_000
            return proxy.sent, found

        whole, everything = sent(None)
        fewer, found = sent("id < 500")
        none, nothing = sent("id > 1000000")
    assert everything.skipped == 0
    assert 0 < found.skipped < found.groups
    assert nothing.skipped == nothing.groups == everything.groups
    assert set(nothing.bytes) == {"(others)"}
    assert none < fewer < whole / 3
    assert found.bytes["s"] < everything.bytes["s"] / 3


def test_bytes_are_counted_by_column(
    spark: Any, persist: Callable[..., Any], connection: AwsConnection, location: str
) -> None:
    query = "select id, xxhash64(id) as a, sha2(string(id), 512) as b from range(30000)"
    persist(query, 10, encoding="dual")
    persist(f"{query} where id <> 7", 20, encoding="structured")
    place = parse_location(location)
    fetching = Fetching()
    read_shard(spark, connection, place, names=["a"], fetching=fetching).count()
    store = state_of(s3_client(connection), place)
    in_files = bytes_in_files(store.prefix, store.existing().state)
    found = fetching.found()
    assert found.bytes["a"] == in_files.bytes["a"]
    assert set(found.bytes) == {"a", "(others)"}
    assert set(in_files.bytes) == {"id", "a", "b", "(messages)", "(others)"}
    assert (found.files, found.files) == (in_files.files, 3)


def test_a_condition_is_evaluated_for_rows_that_are_there_alone(
    persist: Callable[..., Any], rows: Callable[..., Any]
) -> None:
    persist("select id, if(id = 3, 'n/a', string(id)) as s from range(5)", 10)
    persist("select id, string(id) as s from range(5)", 20)
    where = "cast(s as int) > 2 and id < 9"
    assert rows(where=where) == [(3, "3"), (4, "4")]
    with pytest.raises(SPARK_FAILURES, match="CAST_INVALID_INPUT"):
        rows(10, where=where)


def test_what_is_no_condition_is_told_before_anything_is_read(
    persist: Callable[..., Any], frame: Callable[..., Any]
) -> None:
    persist("select 1 as id, 'x' as s", 10)
    for condition, said in {
        "no_such = 1": "names no column that the shard has at that time",
        "id = no_such": "`no_such` cannot be resolved",
        "id": "is not a boolean|FILTER_NOT_BOOLEAN|must be.*BOOLEAN|BOOLEAN",
        "sum(id) > 1": "INVALID_WHERE_CONDITION",
        "id > 1; drop table x": "PARSE_SYNTAX_ERROR",
        "id >": "PARSE_SYNTAX_ERROR",
    }.items():
        with pytest.raises(ShardError, match=said) as caught:
            frame(where=condition)
        assert "it may name id, s" in str(caught.value)


@pytest.fixture
def adaptive(spark: Any) -> Iterator[None]:
    """As Spark is set by itself."""
    name = "spark.sql.adaptive.enabled"
    before = spark.conf.get(name)
    spark.conf.set(name, "true")
    yield
    spark.conf.set(name, before)


@pytest.mark.usefixtures("adaptive")
@pytest.mark.parametrize("where", ["id = null", "id < 0", "id is null and id is not null"])
def test_a_read_without_rows_needs_no_count_of_its_bytes(
    spark: Any, persist: Callable[..., Any], connection: AwsConnection, location: str, where: str
) -> None:
    persist("select id, string(id) as s from range(5)", 10)
    persist("select id, string(id) as s from range(2, 7)", 20)
    source = ShardSource("lake.orders", parse_location(location), where=where)
    schema = f"shard_where_{next(_numbers)}"
    # Spark may drop the metric with all that it finds to be empty.
    write_source_table(spark, SourceTable(source, connection, schema, "orders"))
    assert spark.table(f"{schema}.orders").count() == 0


def test_a_column_that_the_shard_lacks_is_unknown_whatever_its_name(
    persist: Callable[..., Any], frame: Callable[..., Any]
) -> None:
    persist("select 1 as amount", 10)
    with pytest.raises(ShardError, match="`id` cannot be resolved"):
        frame(where="amount > 10 and id > 5")
