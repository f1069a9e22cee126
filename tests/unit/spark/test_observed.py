"""What Spark reports of rows that were read, or never does."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from dbt.adapters.mzs3.errors import SparkJobError
from dbt.adapters.mzs3.spark.frames import observed


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
