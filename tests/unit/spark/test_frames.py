"""What Spark keeps is given back, and what it never reports is not waited for."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.spark.frames import observed, persisted


class Frame:
    def __init__(self) -> None:
        self.held = 0

    def persist(self) -> Frame:
        self.held += 1
        return self

    def unpersist(self) -> None:
        self.held -= 1


def test_a_frame_is_held_and_let_go_of_after_an_error_too() -> None:
    frame: Any = Frame()
    with pytest.raises(RuntimeError), persisted(frame) as held:
        assert held is frame
        assert frame.held == 1
        raise RuntimeError
    assert frame.held == 0


class Silent:
    """A report that never comes; whether somebody waits for it."""

    def __init__(self) -> None:
        self.is_asked = threading.Event()

    @property
    def get(self) -> Any:
        self.is_asked.set()
        threading.Event().wait()


class Refused:
    """A report that Spark refuses."""

    @property
    def get(self) -> Any:
        raise PySparkException("refused")


def test_what_spark_reports_is_waited_for() -> None:
    reporting: Any = SimpleNamespace(get={"rows": 3})
    assert observed(reporting) == {"rows": 3}


def test_a_report_that_never_comes_is_not_waited_for() -> None:
    silent: Any = Silent()
    with pytest.raises(SparkJobError, match=r"larger spark\.scheduler\.listenerbus"):
        observed(silent, wait_s=0)
    assert silent.is_asked.wait(60)


def test_a_report_that_spark_refuses_is_an_error() -> None:
    refused: Any = Refused()
    with pytest.raises(PySparkException, match="refused"):
        observed(refused)
