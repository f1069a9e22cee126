"""Joining small batches."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.mzs3.upload.task import coalesce_batches


def batch(values: list[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"a": pa.array(values, pa.string())})


@given(st.lists(st.lists(st.sampled_from(["", "a", "b" * 1000]), max_size=3), max_size=20))
def test_the_rows_stay_and_their_order(lists: list[list[str]]) -> None:
    found = [v for b in coalesce_batches(map(batch, lists)) for v in b.column(0).to_pylist()]
    assert found == [value for values in lists for value in values]


def test_small_batches_are_joined_up_to_sixteen_thousand_rows() -> None:
    sizes = [b.num_rows for b in coalesce_batches(batch(["a"] * 4096) for _ in range(9))]
    assert sizes == [16_384, 16_384, 4_096]


def test_a_large_batch_comes_as_it_is_and_after_those_before_it() -> None:
    large = batch(["x" * (5 << 20)])
    found = list(coalesce_batches(iter([batch(["a"]), batch(["b"]), large, batch(["c"])])))
    assert [b.num_rows for b in found] == [2, 1, 1]
    assert found[1] is large


def test_batches_of_much_text_are_not_held_back() -> None:
    wide = batch(["x" * (3 << 20)])
    asked: list[int] = []

    def three() -> Iterator[pa.RecordBatch]:
        for number in range(3):
            asked.append(number)
            yield wide

    found = coalesce_batches(three())
    assert next(found).num_rows == 2
    assert asked == [0, 1]
