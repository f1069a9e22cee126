"""S3 is cut off from one worker for 30 s: its connections are reset, or hear nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from support.s3.faulty import Fault, Request
from support.spark.cluster_project import RUN, Project, Roads

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(1800)]

_CUT_S = 30


@pytest.mark.parametrize("way", ["reset", "silent"])
def test_a_worker_without_s3_keeps_no_run_from_its_end(
    way: str, on_cluster: Callable[..., Project], roads: Roads
) -> None:
    project = on_cluster()
    timers: list[threading.Timer] = []

    def cut(_: str, host: str) -> None:
        over, road = threading.Event(), roads.workers[host]
        timers.append(threading.Timer(_CUT_S, over.set))
        timers[-1].start()
        if way == "reset":
            road.fault = lambda _: None if over.is_set() else Fault.RESET
            return
        watch = road.watch

        def wait(request: Request) -> None:
            over.wait()
            watch(request)

        road.watch = wait

    happened = roads.when_under_way(cut)
    code, console = project.run(*RUN)
    for timer in timers:
        timer.join()
    assert happened == {*RUN}, console
    assert code == 0, console
    project.require_right(*RUN)
