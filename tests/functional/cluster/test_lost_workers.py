"""Workers of a cluster die while it writes or reads: one, or all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from support.spark.cluster_project import RUN, Project, Roads
from support.spark.standalone import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(1800)]


def test_a_run_goes_on_without_the_worker_that_died(
    on_cluster: Callable[..., Project], cluster: Cluster, roads: Roads
) -> None:
    project = on_cluster()
    revivals: list[threading.Thread] = []

    def kill(_: str, host: str) -> None:
        cluster.kill_worker(host)
        revivals.append(threading.Thread(target=cluster.revive))
        revivals[-1].start()

    died = roads.when_under_way(kill)
    code, console = project.run(*RUN)
    for revival in revivals:
        revival.join()
    assert died == {*RUN}, console
    assert code == 0, console
    project.require_right(*RUN)


def test_a_run_whose_workers_have_all_died_ends_with_an_error(
    on_cluster: Callable[..., Project], cluster: Cluster, roads: Roads
) -> None:
    project = on_cluster()
    project.use(executor_timeout=10)
    for model in RUN:
        died = roads.when_under_way(lambda *_: cluster.kill_workers(), [model])
        code, console = project.run(model)
        assert died == {model}, console
        assert code == 1, console
        assert "for 10 s there was work for executors, and none ran any of it" in console
        assert (project.open_uploads(), project.visible()) == ([], [])
        cluster.revive()
    project.use(executor_timeout=200)
    code, console = project.run(*RUN)
    assert code == 0, console
    project.require_right(*RUN)
