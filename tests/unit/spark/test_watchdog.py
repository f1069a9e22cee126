"""When work counts as waiting for executors in vain, and what its failure says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator

import pytest

from dbt.adapters.mzs3.spark import interrupt
from dbt.adapters.mzs3.spark.failure import explain
from dbt.adapters.mzs3.spark.interrupt import Waiting, watch


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


Stage = tuple[int, int]


def stage(ended: int = 0, *, number: int = 1) -> Stage:
    return number, ended


class Looks:
    """Looks every second; so many seconds may pass without a task."""

    def __init__(self, patience: float = 60) -> None:
        self._clock = Clock()
        self._waiting = Waiting(patience, self._clock)

    def ended(self, seconds: int, *stages: Stage, running: int = 0) -> int | None:
        """The second in which work is ended while this is what is seen."""
        for second in range(seconds):
            self._clock.now += 1
            if self._waiting.too_long(dict(stages), running) is not None:
                return second + 1
        return None


def test_tasks_that_wait_for_long_and_of_which_none_runs_are_ended() -> None:
    looks = Looks()
    assert looks.ended(30, stage(3), running=1) is None
    assert looks.ended(1000, stage(3), stage(number=2)) == 60


def test_a_slow_task_is_waited_for_however_long_others_wait() -> None:
    assert Looks().ended(100_000, stage(), stage(number=2), running=1) is None


def test_where_nothing_waits_nothing_is_ended() -> None:
    looks = Looks()
    assert looks.ended(1000) is None
    assert looks.ended(59, stage()) is None


def test_tasks_that_ended_between_two_looks_ran() -> None:
    looks = Looks()
    assert looks.ended(50, stage()) is None
    assert looks.ended(59, stage(1)) is None
    assert looks.ended(2, stage(1)) == 2


def test_a_stage_that_appears_is_no_sign_of_an_executor() -> None:
    looks = Looks()
    assert looks.ended(50, stage()) is None
    assert looks.ended(50, stage(number=2)) == 10


def test_what_comes_after_work_that_was_ended_waits_shortly_until_a_task_ran() -> None:
    looks = Looks(patience=600)
    assert looks.ended(1000, stage()) == 600
    assert looks.ended(100) is None
    assert looks.ended(100, stage(number=2)) == 60
    assert looks.ended(1, stage(number=3), running=1) is None
    assert looks.ended(1000, stage(number=3)) == 600


class Cluster:
    """A scheduler whose one stage waits; `ended` is set once work is ended."""

    def __init__(self) -> None:
        self.ended = threading.Event()

    def waiting(self) -> dict[Hashable, int]:
        return {1: 0}

    def running(self) -> int:
        return 0

    def end_all(self) -> None:
        self.ended.set()


@pytest.fixture
def verdicts(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, tuple[float, str] | None]]:
    verdicts: dict[str, tuple[float, str] | None] = {}
    stops: list[Callable[[], None]] = []
    monkeypatch.setattr(interrupt, "_verdicts", verdicts)
    monkeypatch.setattr(interrupt, "_LOOK_S", 0.01)
    monkeypatch.setattr(interrupt.atexit, "register", stops.append)
    yield verdicts
    for stop in stops:
        stop()


@pytest.mark.parametrize(
    "text",
    [
        "Job 3 cancelled as part of cancellation of all jobs",
        "[OPERATION_CANCELED] Operation has been canceled. SQLSTATE: HY008",
    ],
)
def test_the_failure_of_what_was_ended_says_why(
    text: str, verdicts: dict[str, tuple[float, str] | None]
) -> None:
    cluster, failure = Cluster(), Exception(text)
    assert str(explain(failure)) == text
    watch("a", cluster, 1)
    watch("a", cluster, 100)
    assert len(verdicts) == 1
    assert cluster.ended.wait(60)
    assert str(explain(failure)).startswith("for 1 s there was work for executors, and none ran")
    assert str(explain(ValueError("another"))) == "another"


def test_a_failure_that_comes_long_after_is_another(
    verdicts: dict[str, tuple[float, str] | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, failure = Cluster(), Exception("[OPERATION_CANCELED] by an admin")
    monkeypatch.setattr(interrupt, "_RECENT_S", 0)
    watch("a", cluster, 1)
    assert cluster.ended.wait(60)
    assert verdicts["a"] is not None
    assert str(explain(failure)) == str(failure)


def test_without_patience_nobody_watches(verdicts: dict[str, tuple[float, str] | None]) -> None:
    watch("a", Cluster(), 0)
    assert verdicts == {}
