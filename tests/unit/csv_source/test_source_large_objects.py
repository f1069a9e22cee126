"""Which objects are cut, and what is known of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timezone

import pytest

from dbt.adapters.mzs3.csv_source.large_objects import _utc


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "America/New_York")
        time.tzset()
        yield
    time.tzset()


def test_times_are_the_same_wherever_the_driver_is(new_york: None) -> None:
    # As Spark hands a timestamp to Python.
    collected = datetime.fromtimestamp(1_767_312_000)
    assert _utc(collected) == datetime(2026, 1, 2, tzinfo=timezone.utc)
