"""What reading a shard does before any file is read."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.aws.location import parse_location
from dbt.adapters.mzs3.errors import S3Error
from dbt.adapters.mzs3.shard.read import rows
from dbt.adapters.mzs3.shard.read.rows import MOST_TASKS, spread, task_count


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=60), st.integers(1, 20))
def test_tasks_have_about_as_many_bytes(sizes: list[int], most: int) -> None:
    tasks = spread(sizes, most)
    count = min(most, len(sizes))
    assert set(tasks) == set(range(count))
    held = [
        sum(s for s, t in zip(sizes, tasks, strict=True) if t == task) for task in range(count)
    ]
    assert max(held) - min(held) <= max(sizes) + len(sizes)


def test_files_have_tasks_of_their_own_while_there_are_some() -> None:
    assert sorted(spread([5, 0, 900, 5], 500)) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("sizes", "tasks"),
    [
        ([900 << 20], 1),
        ([1 << 10] * 8, 8),
        ([1 << 10] * 365, 46),
        ([90 << 20] * 20 + [1 << 10] * 8, 22),
        ([90 << 20] * 1000, MOST_TASKS),
    ],
)
def test_small_files_share_tasks(sizes: list[int], tasks: int) -> None:
    assert task_count(sizes) == tasks


def test_no_permission_may_mean_that_there_is_no_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    class Denying:
        def get_object(self, **_: Any) -> Any:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "No"}}, "GetObject")

    monkeypatch.setattr(rows, "s3_client", lambda _: Denying())
    spark: Any = None
    with pytest.raises(S3Error) as caught:
        rows.read_shard(spark, AwsConnection(), parse_location("s3://acme/orders"))
    assert str(caught.value).endswith(
        "failed: AccessDenied: No (needs s3:GetObject; or there is no such object, which S3 says "
        "only where s3:ListBucket is allowed)"
    )
