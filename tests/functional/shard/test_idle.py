"""A shard whose rows stay the same: after one run without changes, they are not compared again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dbt.adapters.mzs3.shard.write import job, model

pytestmark = pytest.mark.spark

ROWS = "select * from values (1, 'a'), (2, null), (2, null) as t(id, name)"


def test_the_files_of_a_shard_that_stays_the_same_are_not_read(
    persist: Callable[..., Any], rows: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [persist(ROWS, moment).rows for moment in (10, 20)] == [3, 0]
    for module in (job, model):
        monkeypatch.setattr(module, "changes_in", None)
    # In another order, and in other partitions.
    again = persist(f"select * from ({ROWS}) order by id desc", 30)
    assert (again.rows, again.files) == (0, 0)
    assert len(rows(30)) == 3
    monkeypatch.undo()
    assert persist(f"{ROWS} where id = 1", 40).rows == 2
    assert [persist(ROWS, moment).rows for moment in (50, 60, 70)] == [2, 0, 0]
    assert rows() == rows(30) == rows(10)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("select 1 as a, cast(null as int) as b", "select cast(null as int) as a, 1 as b"),
        ("select 'ab' as a, 'c' as b", "select 'a' as a, 'bc' as b"),
        ("select 0.0D as a", "select -0.0D as a"),
        ("select array(1, null) as a", "select array(null, 1) as a"),
        ("select 1 as a", "select explode(array(1, 1)) as a"),
        ("select 1 as a", "select 1 as a where false"),
    ],
)
def test_a_change_that_a_hash_could_miss_is_seen(
    persist: Callable[..., Any], first: str, second: str
) -> None:
    persist(first, 10)
    assert persist(first, 20).rows == 0
    assert persist(second, 30).rows > 0
    assert persist(second, 40).rows == 0


def test_append_adds_rows_also_where_they_are_the_shards(
    persist: Callable[..., Any], rows: Callable[..., Any]
) -> None:
    persist(ROWS, 10)
    persist(ROWS, 20)
    assert persist(ROWS, 30, mode="append").rows == 3
    assert persist(ROWS, 40).rows > 0
    assert rows(40) == rows(10)
