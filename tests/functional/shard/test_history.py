"""Runs of a model write what changed, and every moment can be read again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import time
from typing import Any

import pytest
from pyspark.sql import types as T
from support.s3.opened import state_of
from support.spark.values import EVERY_TYPE, texts

from dbt.adapters.mzs3.errors import ConfigError, ShardError
from dbt.adapters.mzs3.shard.state.columns import ddl_of
from dbt.adapters.mzs3.shard.write import job
from dbt.adapters.mzs3.shard.write.batch import write_batch
from dbt.adapters.mzs3.store.location import parse_location
from dbt.adapters.mzs3.store.prefix import Prefix

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("encoding", ["dual", "structured", "codec"])
def test_each_run_writes_what_changed(
    persist: Callable[..., Any], rows: Callable[..., Any], encoding: str
) -> None:
    first = "select * from values (1, 'a'), (2, 'b'), (2, 'b'), (3, null) as t(id, name)"
    second = "select * from values (1, 'a'), (2, 'b'), (3, 'c'), (4, null) as t(id, name)"
    assert persist(first, 10, encoding=encoding).rows == 4
    assert persist(second, 20, encoding=encoding).rows == 4
    again = persist(second, 30, encoding=encoding)
    assert (again.rows, again.files) == (0, 0)
    assert rows(10) == [(1, "a"), (2, "b"), (2, "b"), (3, None)]
    assert rows(19) == rows(10)
    assert rows(20) == [(1, "a"), (2, "b"), (3, "c"), (4, None)]
    assert rows() == rows(20)
    assert rows(names=["name"]) == [("a",), ("b",), ("c",), (None,)]
    with pytest.raises(ShardError, match="written up to 30"):
        rows(31)


def test_append_adds_every_row(persist: Callable[..., Any], rows: Callable[..., Any]) -> None:
    for moment in (10, 20):
        assert persist("select 1 as id", moment, mode="append").rows == 1
    assert rows(10) == [(1,)]
    assert rows() == [(1,), (1,)]


def test_drop_b_add_b_default_50_delete_where_b_is_5(
    persist: Callable[..., Any], rows: Callable[..., Any]
) -> None:
    persist("select 'hello' as a, 5 as b", 10)
    persist("select 'hello' as a", 20, on_schema_change="sync_all_columns")
    added = "select * from values ('hello', 50) as t(a, b)"
    # What was there before has the default, so that nothing has changed.
    assert persist(added, 30, column_defaults={"b": 50}).rows == 0
    assert rows() == [("hello", 50)]
    assert persist(f"{added} where b <> 5", 40).rows == 0
    assert rows() == [("hello", 50)]
    assert rows(10) == [("hello", 5)]
    assert rows(20) == [("hello",)]


def test_a_column_of_times_has_its_default(
    spark: Any,
    request: pytest.FixtureRequest,
    persist: Callable[..., Any],
    rows: Callable[..., Any],
) -> None:
    request.addfinalizer(lambda: spark.conf.unset("spark.sql.timeType.enabled"))
    spark.conf.set("spark.sql.timeType.enabled", "true")
    persist("select 1 as id", 10)
    noon = "time '12:00:00.000001'"
    assert persist(f"select 1 as id, {noon} as at", 20, column_defaults={"at": noon}).rows == 0
    assert rows() == [(1, time(12, 0, 0, 1))]


def test_a_column_is_renamed_and_widened_in_place(
    persist: Callable[..., Any], rows: Callable[..., Any]
) -> None:
    persist("select 1 as id, 2 as amount", 10)
    result = persist("select 1 as id, 2L as price", 20, column_renames={"amount": "price"})
    assert result.rows == 0
    assert rows() == [(1, 2)]
    with pytest.raises(ConfigError, match="does not hold all of its values"):
        persist("select 1 as id, 'x' as price", 30)


def test_encodings_may_change_from_batch_to_batch(
    persist: Callable[..., Any], rows: Callable[..., Any]
) -> None:
    for number, encoding in enumerate(("codec", "dual", "structured"), start=1):
        query = f"select id, id * 0.5d as half from range({number})"
        assert persist(query, number * 10, encoding=encoding).rows == 1
    for number in (1, 2, 3):
        assert rows(number * 10, validate=True) == [(i, i * 0.5) for i in range(number)]


def test_a_run_that_loses_a_race_begins_again(
    persist: Callable[..., Any],
    rows: Callable[..., Any],
    s3: Any,
    location: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    persist("select 1 as id", 10)
    theirs: list[Any] = []

    def raced(*args: Any, **sizes: Any) -> Any:
        batch = write_batch(*args, **sizes)
        if not theirs:
            theirs.append(None)
            persist("select 2 as id", 20)
        return batch

    monkeypatch.setattr(job, "write_batch", raced)
    ours = persist("select 3 as id", 20)
    assert (ours.rows, ours.as_of) == (2, 21)
    assert (rows(10), rows(20), rows(21)) == ([(1,)], [(2,)], [(3,)])
    bucket = location.removeprefix("s3://").split("/")[0]
    keys = [found["Key"] for found in s3.list_objects_v2(Bucket=bucket)["Contents"]]
    named = state_of(s3, parse_location(location)).read()
    assert named is not None
    files = {f"orders/{file.name}" for one in named.state.batches for file in one.files}
    assert set(keys) == {*files, "orders/_shard.json"}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["append", "diff"])
@pytest.mark.parametrize("first", [False, True])
def test_two_runs_at_once_lose_no_batch(
    persist: Callable[..., Any],
    rows: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    first: bool,
) -> None:
    before = [] if first else [(0,)]
    if before:
        persist("select 0 as id", 5)
    together, met = threading.Barrier(2), threading.local()

    def at_once(*args: Any, **sizes: Any) -> Any:
        batch = write_batch(*args, **sizes)
        if not hasattr(met, "other"):
            met.other = together.wait(300)
        return batch

    put, one_at_a_time = Prefix.write, threading.Lock()

    def put_alone(*request: Any, **condition: Any) -> Any:
        with one_at_a_time:  # moto looks at the condition first and writes then, S3 at once
            return put(*request, **condition)

    monkeypatch.setattr(job, "write_batch", at_once)
    monkeypatch.setattr(Prefix, "write", put_alone)
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(persist, f"select {number} as id", 10, mode=mode) for number in (1, 2)]
    assert sorted(run.result().as_of for run in runs) == [10, 11]
    ids = {run.result().as_of: [(number,)] for number, run in zip((1, 2), runs, strict=True)}
    if before:
        assert rows(5) == before
    if mode == "append":
        assert rows(10) == before + ids[10]
        assert rows() == [*before, (1,), (2,)]
    else:
        assert rows(10) == ids[10]
        assert rows() == ids[11]


@pytest.mark.parametrize("encoding", ["dual", "codec"])
def test_every_type_comes_back_and_is_no_change(
    spark: Any, persist: Callable[..., Any], frame: Callable[..., Any], encoding: str
) -> None:
    assert persist(EVERY_TYPE, 10, encoding=encoding).rows == 2
    assert persist(EVERY_TYPE, 20, encoding=encoding).rows == 0
    expected, found = spark.sql(EVERY_TYPE), frame(validate=True)
    assert texts(found) == texts(expected)
    kinds = [kind.replace("void", "string") for _, kind in expected.dtypes]
    assert [kind for _, kind in found.dtypes] == kinds


@pytest.mark.parametrize("encoding", ["dual", "codec"])
def test_calendar_intervals_come_back(
    spark: Any, persist: Callable[..., Any], frame: Callable[..., Any], encoding: str
) -> None:
    most = "make_interval(0, 0, 0, 0, {0}1000000000, 0, 0) * 2.5"
    query = f"""
        select make_interval(0, -14, 0, 3, 25, 0, 5.000006) as i, {most.format("")} as j
        union all select null, {most.format("-")}
        union all select make_interval(0, 0, 0, 0, 0, 0, -0.000001), make_interval(0, 0, 0, -40)"""
    assert persist(query, 10, encoding=encoding).rows == 3
    assert persist(query, 20, encoding=encoding).rows == 0
    assert texts(frame(validate=True)) == texts(spark.sql(query))


@pytest.mark.parametrize(
    "ddl",
    [
        "decimal(10,2)",
        "struct<>",
        "struct<`a:b,<`:int,```x`:map<string,array<decimal(3,0)>>>",
        "interval day to second",
        "interval year",
        "interval",
        "time(3)",
        "timestamp_ntz",
        "variant",
    ],
)
def test_ddl_is_read_back(spark: Any, ddl: str) -> None:
    assert ddl_of(T.DataType.fromDDL(ddl)) == ddl
