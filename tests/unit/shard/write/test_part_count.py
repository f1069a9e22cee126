"""How many parts so many changes get."""

from __future__ import annotations

import pytest

from dbt.adapters.mzs3.shard.rows import part_count
from dbt.adapters.mzs3.shard.state.state import BatchFile, ShardBatch

MB = 1 << 20


def batches(rows: int, size: int) -> list[ShardBatch]:
    return [
        ShardBatch(0, 1, 0, "dual"),
        ShardBatch(1, 2, 0, "dual", (BatchFile("one", size, "", rows),)),
    ]


@pytest.mark.parametrize(
    ("rows", "parts"),
    [(0, 1), (1, 1), (100_000, 1), (199_999, 1), (200_000, 2), (700_000, 7), (10**9, 8)],
)
def test_parts_have_many_rows(rows: int, parts: int) -> None:
    assert part_count(rows, batches(1000, 100_000), 8) == parts
    assert part_count(rows, [], 8) == parts


@pytest.mark.parametrize(("rows", "parts"), [(31, 1), (63, 1), (64, 2), (128, 4), (9999, 8)])
def test_parts_of_large_rows_have_many_bytes(rows: int, parts: int) -> None:
    assert part_count(rows, batches(10, 10 * MB), 8) == parts
