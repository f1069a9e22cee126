"""The calendar agrees with Python's where Python has one, and goes on beyond it."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.mzs3.types.calendar import FIRST_DAY, LAST_DAY, day_number


@given(st.dates())
def test_days_are_pythons(day: dt.date) -> None:
    assert day_number(day.year, day.month, day.day) == (day - dt.date(1970, 1, 1)).days


def test_years_that_python_does_not_know() -> None:
    assert day_number(1, 1, 1) == FIRST_DAY == day_number(0, 12, 31) + 1
    assert day_number(9999, 12, 31) == LAST_DAY == day_number(10000, 1, 1) - 1
    assert day_number(0, 2, 29)  # 1 BC is a leap year
    with pytest.raises(ValueError, match="day"):
        day_number(-3, 2, 29)
