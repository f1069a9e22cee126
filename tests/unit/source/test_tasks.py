"""How many tasks fetch the objects of an epoch."""

import pytest

from dbt.adapters.mzs3.source.fetch import task_count

MB = 1024 * 1024


@pytest.mark.parametrize(
    ("objects", "size", "tasks"),
    [
        (0, 0, 1),
        (1, 400 * MB, 1),
        (8, 400 * MB, 8),
        (3, 3000, 2),
        (10_000, 10_000_000, 8),
        (1_000, 1_000_000, 3),
        (1_000_000, 1000 * MB, 200),
        (1000, 100_000 * MB, 782),
    ],
)
def test_small_objects_share_tasks_and_large_ones_have_their_own(objects, size, tasks):
    assert task_count(objects, size, parallelism=200, cores=2) == tasks


def test_small_objects_use_the_cores_there_are():
    tasks = [task_count(10_000, 10_000_000, parallelism=200, cores=n) for n in (1, 8, 20, 100)]
    assert tasks == [8, 11, 23, 43]
