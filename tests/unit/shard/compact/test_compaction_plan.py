"""Which batches become one, and when there is nothing to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.shard.states import batch, column

from dbt.adapters.mzs3.errors import ConfigError, ShardError
from dbt.adapters.mzs3.shard.compact import compaction_plan
from dbt.adapters.mzs3.shard.options import CompactionRequest, parse_compaction
from dbt.adapters.mzs3.shard.state.state import BatchFile, ShardState, new_shard

A, B, C = column(0, "a"), column(1, "b"), column(2, "c")


def shard() -> ShardState:
    """Batches of the times 9, 19 and 29, the last one in other columns."""
    state = new_shard([A, B]).appended(batch(0, 10, "one")).appended(batch(10, 20, "two"))
    return state.with_columns([B, C], 20).appended(batch(20, 30, "three", schema=1))


def planned(**arguments: Any) -> Any:
    return compaction_plan(shard(), CompactionRequest(**arguments))


@pytest.mark.parametrize(
    ("since", "taken", "readable_from"),
    [(9, 1, 9), (18, 1, 9), (19, 2, 19), (28, 2, 19), (29, 3, 29), ("latest", 3, 29)],
)
def test_batches_up_to_a_time_are_taken(since: Any, taken: int, readable_from: int) -> None:
    plan = planned(since=since)
    assert plan.old == shard().batches[:taken]
    assert plan.since == readable_from


def test_a_batch_has_the_columns_of_its_time() -> None:
    assert planned(since=19).schema.columns == (A, B)
    assert planned(since="latest").schema.columns == (B, C)


@pytest.mark.parametrize("since", [None, 0, 8])
def test_before_the_first_batch_there_is_nothing_to_do(since: int | None) -> None:
    assert planned(since=since) is None


def test_changes_come_to_no_more_than_the_rows_that_are_left() -> None:
    plan = planned(since=19)
    one, two = (replace(b, files=(BatchFile("f", 1, "", 9),)) for b in plan.old)
    grown = (replace(one, additions=9, retractions=0), replace(two, additions=4, retractions=5))
    assert (replace(plan, old=grown).rows, replace(plan, old=grown).most_rows) == (18, 8)
    copies = (replace(one, additions=10**9, retractions=0),)
    assert replace(plan, old=copies).most_rows == 9


def test_a_time_that_is_not_reached_is_an_error() -> None:
    with pytest.raises(
        ShardError, match=r"up to 29 .* compacted as of 30 .*earlier since, or latest"
    ):
        planned(since=30)


def test_sorted_by_columns_that_there_are() -> None:
    assert planned(since=19, sort_by=("B", "a")).sort_by == (B, A)
    with pytest.raises(ConfigError, match="sort_by has a, which the shard lacks; it has b, c"):
        planned(since="latest", sort_by=("a",))


def compacted(**how: Any) -> ShardState:
    new = replace(batch(0, 20, "new"), encoding="structured", sort_by=(1, 0))
    return shard().compacted(shard().batches[:2], replace(new, **how), now=0)


def test_what_is_compacted_is_left_alone() -> None:
    assert compaction_plan(compacted(), CompactionRequest()) is None
    assert compaction_plan(compacted(), CompactionRequest(since=5)) is None
    same = CompactionRequest(since=19, encoding="structured", sort_by=("b", "a"))
    assert compaction_plan(compacted(), same) is None
    assert compaction_plan(compacted(files=()), CompactionRequest(encoding="codec")) is None


@pytest.mark.parametrize("how", [{"encoding": "codec"}, {"sort_by": ("a",)}, {"sort_by": ()}])
def test_a_batch_is_written_again_in_another_way(how: dict[str, Any]) -> None:
    plan = compaction_plan(compacted(), CompactionRequest(**how))
    assert plan is not None
    assert len(plan.old) == 1
    assert plan.encoding == how.get("encoding", "structured")
    assert plan.sort_by == ((B, A) if "encoding" in how else (A,) if how["sort_by"] else ())


def test_what_was_sorted_last_stays_sorted_by_the_columns_that_are_left() -> None:
    plan = compaction_plan(compacted(), CompactionRequest(since="latest"))
    assert plan is not None
    # What a run has added since is not sorted, which is no wish to have nothing sorted.
    assert (plan.schema.columns, plan.sort_by) == ((B, C), (B,))
    plan = compaction_plan(compacted(), CompactionRequest(since="latest", sort_by=()))
    assert plan is not None
    assert plan.sort_by == ()
    sorted_again = replace(batch(20, 30, "three", schema=1), sort_by=(2,))
    state = replace(compacted(), batches=(compacted().batches[0], sorted_again))
    plan = compaction_plan(state, CompactionRequest(since="latest"))
    assert plan is not None
    assert plan.sort_by == (C,)


def test_arguments_of_the_run_operation() -> None:
    given = {"since": "2026-01-31", "encoding": None, "sort_by": "a", "keep_hours": 2, "parts": 3}
    found = parse_compaction(given)
    assert found == CompactionRequest(1769817600000, None, ("a",), 7_200_000, 3)
    assert parse_compaction({}) == CompactionRequest()
    with pytest.raises(ConfigError) as caught:
        parse_compaction({"since": "x", "encoding": "x", "sort_by": ["a", "A"], "keep_hours": -1})
    assert "compact_shard has 4 problems" in str(caught.value)
