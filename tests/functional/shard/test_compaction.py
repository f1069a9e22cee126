"""Compaction: fewer files, the same rows, and nothing that anyone may need removed."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.s3.opened import state_of
from support.s3.real_stores import STORE

from dbt.adapters.mzs3.errors import ConfigError, ShardError
from dbt.adapters.mzs3.shard import compact as shard_compact
from dbt.adapters.mzs3.shard.state.state import ShardState
from dbt.adapters.mzs3.store.location import parse_location

pytestmark = pytest.mark.spark


def shard_at(s3: Any, location: str) -> ShardState:
    found = state_of(s3, parse_location(location)).read()
    assert found is not None
    return found.state


def files_of(s3: Any, location: str) -> set[str]:
    bucket, prefix = location.removeprefix("s3://").split("/")
    found = s3.list_objects_v2(Bucket=bucket, Prefix=f"{prefix}/batches/").get("Contents", [])
    return {one["Key"].removeprefix(f"{prefix}/") for one in found}


@pytest.mark.slow
def test_batches_of_all_encodings_and_schemas_become_one(
    persist: Callable[..., Any],
    rows: Callable[..., Any],
    frame: Callable[..., Any],
    compact: Callable[..., Any],
    s3: Any,
    location: str,
) -> None:
    persist("select * from values (1, 'a'), (2, 'b') as t(id, gone)", 10, encoding="codec")
    persist("select 2 as id, 3 as added", 20, on_schema_change="sync_all_columns")
    wider = "select * from values (2L, 3L), (5000000000, 7L) as t(id, n)"
    persist(wider, 30, column_renames={"added": "n"}, encoding="structured")
    persist(wider, 40, encoding="structured")
    persist("select 9L as id, 9L as n", 50, encoding="dual")
    moments = (20, 29, 30, 45, 50)
    expected = {moment: rows(moment) for moment in moments}
    running, short = frame(20), frame(20)  # have read the state, and no file yet

    done = compact(since=25)
    assert (len(done.old), done.state.since, done.new.encoding) == (2, 20, "dual")
    assert {moment: rows(moment) for moment in moments} == expected
    assert sorted((tuple(row) for row in short.collect()), key=repr) == expected[20]
    with pytest.raises(ShardError, match=r"can be read as of 20 \(.* and later"):
        rows(19)

    done = compact(since="latest", encoding="dual", keep_hours=0)
    assert (done.state.since, done.new.additions, done.new.retractions) == (50, 1, 0)
    assert rows(validate=True) == expected[50] == [(9, 9)]
    # What had just been compacted is kept for keep_hours, and no longer.
    assert files_of(s3, location) == shard_at(s3, location).file_names
    with pytest.raises(Exception, match="is not the file that the shard's state named"):
        running.collect()
    assert compact(since="latest").new is None
    assert persist("select 9L as id, 9L as n", 60).rows == 0
    with pytest.raises(ShardError, match="has been written up to 60"):
        compact(since=61)


def test_sorted_runs_are_in_order_from_file_to_file(
    persist: Callable[..., Any],
    rows: Callable[..., Any],
    compact: Callable[..., Any],
    s3: Any,
    location: str,
) -> None:
    query = "select cast(id * 7919 % 1000 as int) as a, concat('x', id % 7) as b from range(1000)"
    persist(f"{query} where id < 500", 10, mode="append", sort_by="b")
    persist(f"{query} where id >= 500 union all select null, null", 20, mode="append")
    everything = rows()
    with pytest.raises(ConfigError, match="sort_by has c, which the shard lacks; it has a, b"):
        compact(since="latest", sort_by=["c"])
    done = compact(since="latest", sort_by=["b", "a"], parts=3)
    assert [250 < file.rows < 420 for file in done.new.files] == [True] * 3
    assert done.new.sort_by == (1, 0)
    bucket, prefix = location.removeprefix("s3://").split("/")
    found: list[Any] = []
    for file in done.new.files:
        data = s3.get_object(Bucket=bucket, Key=f"{prefix}/{file.name}")["Body"].read()
        stored = pq.read_table(io.BytesIO(data)).column("k_s").combine_chunks()
        found += zip(stored.field("1").to_pylist(), stored.field("0").to_pylist(), strict=True)
    assert found[0] == (None, None)
    assert found[1:] == sorted(found[1:])
    assert rows() == everything
    again = compact(since="latest", sort_by=["b", "a"], parts=3)
    assert again.new is None


def test_a_file_of_a_crashed_run_is_removed_when_it_is_old(
    persist: Callable[..., Any], compact: Callable[..., Any], s3: Any, location: str
) -> None:
    persist("select 1 as id", 10)
    bucket, prefix = location.removeprefix("s3://").split("/")
    s3.put_object(Bucket=bucket, Key=f"{prefix}/batches/20-crashed/part-0000-0001.parquet")
    s3.put_object(Bucket=bucket, Key=f"{prefix}-of-others/batches/x")
    assert not compact().removed
    assert len(files_of(s3, location)) == 2
    assert len(compact(keep_hours=0).removed) == 1
    assert files_of(s3, location) == shard_at(s3, location).file_names
    assert s3.list_objects_v2(Bucket=bucket, Prefix=f"{prefix}-of-others")["KeyCount"] == 1


@pytest.mark.skipif(STORE is not None, reason="uploads are made old in moto alone")
def test_an_upload_of_a_killed_run_is_aborted_when_it_is_old(
    persist: Callable[..., Any], compact: Callable[..., Any], s3: Any, location: str
) -> None:
    persist("select 1 as id", 10)
    bucket, prefix = location.removeprefix("s3://").split("/")
    s3.create_multipart_upload(Bucket=bucket, Key=f"{prefix}/batches/20-killed/part")
    s3.create_multipart_upload(Bucket=bucket, Key=f"{prefix}/of others")
    assert compact().aborted == 1  # moto's are of 2010
    left = s3.list_multipart_uploads(Bucket=bucket)["Uploads"]
    assert [upload["Key"] for upload in left] == [f"{prefix}/of others"]


@pytest.mark.slow
def test_a_run_that_writes_while_files_are_removed_loses_nothing(
    persist: Callable[..., Any],
    rows: Callable[..., Any],
    compact: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    s3: Any,
    location: str,
) -> None:
    from dbt.adapters.mzs3.shard.write import job

    persist("select 1 as id", 10)
    persist("select 2 as id", 20)
    removed: list[int] = []
    write_batch = job.write_batch

    def with_compaction(*args: Any, **sizes: Any) -> Any:
        batch = write_batch(*args, **sizes)
        if not removed:
            removed.append(len(compact(keep_hours=0).removed))
        return batch

    monkeypatch.setattr(job, "write_batch", with_compaction)
    assert persist("select 3 as id", 30).rows == 2
    assert removed[0] > 0
    assert (rows(10), rows(20), rows()) == ([(1,)], [(2,)], [(3,)])
    assert files_of(s3, location) == shard_at(s3, location).file_names


def test_runs_write_while_a_compaction_does(
    persist: Callable[..., Any],
    rows: Callable[..., Any],
    compact: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    persist("select 1 as id", 10)
    persist("select 2 as id", 20)
    write_batch = shard_compact.write_batch

    def with_run(*args: Any, **sizes: Any) -> Any:
        batch = write_batch(*args, **sizes)
        persist("select 3 as id", 30)
        return batch

    monkeypatch.setattr(shard_compact, "write_batch", with_run)
    assert len(compact(since=20).old) == 2
    assert (rows(20), rows(30)) == ([(2,)], [(3,)])
