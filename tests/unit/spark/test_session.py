"""An executor has room on a worker that has its memory and its cores, both."""

import pytest

from dbt.adapters.mzs3.spark.session import Size, lack_of_capacity


@pytest.mark.parametrize(
    "workers",
    [
        pytest.param([], id="no worker has come yet"),
        pytest.param([Size(700, 1)], id="just enough"),
        pytest.param([Size(100, 8), Size(8000, 4)], id="one of them"),
    ],
)
def test_work_waits_where_a_worker_may_take_it(workers):
    assert lack_of_capacity(Size(700, 1), workers) is None


@pytest.mark.parametrize(
    "workers",
    [
        pytest.param([Size(699, 8)], id="too little memory"),
        pytest.param([Size(8000, 1)], id="too few cores"),
        pytest.param([Size(699, 8), Size(8000, 1)], id="neither has both"),
    ],
)
def test_what_is_asked_for_and_what_there_is_are_told(workers):
    problem = lack_of_capacity(Size(700, 2), workers)
    assert problem is not None
    assert "ask for 700 MB and 2 core(s)" in problem
    for worker in workers:
        assert f"{worker.memory} MB and {worker.cores} core(s)" in problem
