"""Speculation: of a task that is slow a second attempt is begun, on the other worker."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest
from support.s3.faulty import Request
from support.spark.cluster_project import RUN, UNDER_WAY, Project, Roads
from support.spark.standalone import HOSTS

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(1800)]

_PATIENCE_S = 240
# A second attempt is begun as soon as a task is seen to take longer than the others.
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.0",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "50ms",
    "spark.speculation.efficiency.enabled": "false",
}


class SlowRoad:
    """On one host, the first request that shows a model under way waits until the other host has
    made its like."""

    def __init__(self, roads: Roads) -> None:
        self._condition = threading.Condition()
        self._elsewhere: Counter[str] = Counter()
        self.slow: dict[str, str] = {}
        """By model, the key of the request that waits."""
        self.raced: set[str] = set()
        for host, road in roads.workers.items():
            road.watch = partial(self._watch, host)

    def _watch(self, host: str, request: Request) -> None:
        for model in RUN:
            if UNDER_WAY[model](request):
                self._race(model, host, request.key)

    def _race(self, model: str, host: str, key: str) -> None:
        with self._condition:
            if host == HOSTS[0]:
                self._elsewhere[key] += 1
                self._condition.notify_all()
            elif model not in self.slow:
                self.slow[model] = key
                if self._condition.wait_for(lambda: self._elsewhere[key] > 0, _PATIENCE_S):
                    self.raced.add(model)


def test_two_attempts_at_once_write_and_read_everything_once(
    on_cluster: Callable[..., Project], on_local: Project, roads: Roads
) -> None:
    project = on_cluster(**SPECULATION)
    road = SlowRoad(roads)
    code, console = project.run(*RUN)
    assert road.slow.keys() == road.raced == {*RUN}, console
    assert code == 0, console
    project.require_right(*RUN)
    code, console = on_local.run("export")
    assert code == 0, console
    assert project.sums("export") == on_local.sums("export")
