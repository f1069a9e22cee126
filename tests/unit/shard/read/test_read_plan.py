"""What reading a shard does before any file is read."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest import mock

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st
from support.s3.opened import bucket_of

from dbt.adapters.mzs3.errors import S3Error
from dbt.adapters.mzs3.shard.read import rows
from dbt.adapters.mzs3.shard.read.rows import MOST_TASKS, ShardLocation, balanced_tasks, tasks_of
from dbt.adapters.mzs3.shard.state.state import BatchFile
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import parse_location

KB, MB = 1 << 10, 1 << 20


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=60), st.integers(1, 20))
def test_tasks_have_about_as_much_to_do(costs: list[int], most: int) -> None:
    tasks = balanced_tasks(costs, most)
    count = min(most, len(costs))
    assert set(tasks) == set(range(count))
    held = [
        sum(c for c, t in zip(costs, tasks, strict=True) if t == task) for task in range(count)
    ]
    assert max(held) - min(held) <= max(costs)


def test_files_have_tasks_of_their_own_while_there_are_some() -> None:
    assert sorted(balanced_tasks([5, 1, 900, 5], 500)) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("sizes", "cores", "tasks", "most_files"),
    [
        ([900 * MB], 2, 1, 1),
        ([0] * 365, 2, 46, 8),
        ([10 * KB] * 365, 100, 100, 4),
        ([10 * KB] * 60, 100, 60, 1),
        ([10 * KB] * 20, 2, 4, 5),
        ([10 * KB] * 130, 16, 32, 5),
        ([90 * MB] * 20 + [10 * KB] * 8, 2, 22, 4),
        ([MB] * 15 + [10 * KB] * 100, 2, 16, 8),
        ([90 * MB] * 1000, 2, MOST_TASKS, 2),
        ([10 * KB] * 20_000, 2, MOST_TASKS, 40),
    ],
)
def test_small_files_share_tasks(
    sizes: list[int], cores: int, tasks: int, most_files: int
) -> None:
    files = Counter(tasks_of(sizes, cores))
    assert (len(files), max(files.values())) == (tasks, most_files)


@pytest.mark.parametrize(
    ("is_remote", "files", "partitions"), [(True, 8, 8), (True, 9, 7), (False, 8, 7)]
)
def test_connect_is_asked_for_its_cores_where_there_are_many_files(
    is_remote: bool, files: int, partitions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = mock.Mock()
    cores = mock.Mock(return_value=7)
    monkeypatch.setattr(rows, "arrow_frame", lambda *_: frame)
    monkeypatch.setattr(rows, "default_parallelism", cores)
    monkeypatch.setattr(rows, "is_remote", lambda _: is_remote)
    shard = ShardLocation(AwsConnection(), parse_location("s3://bucket/shard"))
    found = [BatchFile(f"file{place}", 10 * KB, "etag", 1) for place in range(files)]
    spark: Any = None
    rows.in_tasks(spark, shard, found)
    assert frame.repartitionById.call_args.args[0] == partitions
    assert cores.called == (partitions == 7)


def test_no_permission_may_mean_that_there_is_no_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    class Denying:
        def get_object(self, **_: Any) -> Any:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "No"}}, "GetObject")

    monkeypatch.setattr(rows, "open_store", lambda _, at: bucket_of(Denying(), at.bucket))
    spark: Any = None
    with pytest.raises(S3Error) as caught:
        rows.read_shard(spark, AwsConnection(), parse_location("s3://acme/orders"))
    assert str(caught.value).endswith(
        "failed: AccessDenied: No (needs s3:GetObject; or there is no such object, which S3 says "
        "only where s3:ListBucket is allowed)"
    )
