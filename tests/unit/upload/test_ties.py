"""Rows that are sorted by a hash: alike where it is the same, or an error."""

from __future__ import annotations

import math
import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.mzs3.upload.task import RefutedError, drop_checked_hash

OTHER_NAN = struct.unpack("<d", struct.pack("<q", 0x7FF8000000000001))[0]


def batch(hashes: list[int], values: list[Any], kind: pa.DataType) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([3] * len(hashes), pa.int32()),
            pa.array(hashes, pa.int64()),
            pa.array(values, kind),
        ],
        names=["part", "hash", "c0"],
    )


def values(*batches: pa.RecordBatch) -> list[Any]:
    return [
        row for found in drop_checked_hash(iter(batches)) for row in found.column("c0").to_pylist()
    ]


def test_the_hash_is_taken_out() -> None:
    [found] = drop_checked_hash(iter([batch([1, 2], ["a", "b"], pa.string())]))
    assert found.schema.names == ["part", "c0"]
    assert found.to_pydict() == {"part": [3, 3], "c0": ["a", "b"]}


@given(st.lists(st.integers(0, 5)), st.integers(1, 4))
def test_rows_of_one_hash_may_be_alike_in_and_across_batches(hashes: list[int], size: int) -> None:
    ordered = sorted(hashes)
    texts = [str(value) for value in ordered]
    batches = [
        batch(ordered[i : i + size], texts[i : i + size], pa.string())
        for i in range(0, len(ordered), size)
    ]
    assert values(*batches) == texts


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (pa.string(), "a", "b"),
        (pa.string(), "a", None),
        (pa.float64(), 0.0, -0.0),
        (pa.float32(), 0.0, -0.0),
    ],
    ids=str,
)
@pytest.mark.parametrize("apart", [False, True])
def test_two_that_are_not_are_an_error(kind: Any, one: Any, other: Any, apart: bool) -> None:
    first, second = batch([7, 8], [one, one], kind), batch([8], [other], kind)
    batches = (
        [first, second]
        if apart
        else [pa.Table.from_batches([first, second]).combine_chunks().to_batches()[0]]
    )
    with pytest.raises(RefutedError, match="equal hashes"):
        values(*batches)


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
def test_one_nan_is_like_another(kind: Any) -> None:
    found = values(batch([5, 5], [math.nan, OTHER_NAN], kind), batch([5], [-math.nan], kind))
    assert [math.isnan(value) for value in found] == [True] * 3


def test_an_empty_batch_is_between_no_rows() -> None:
    rows = [batch([1], ["a"], pa.string()), batch([], [], pa.string())]
    with pytest.raises(RefutedError, match="equal hashes"):
        values(*rows, batch([1], ["b"], pa.string()))
