"""How much a run takes by what earlier ones took, and how many runs that makes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.mzs3.source.listing.plan import (
    FIRST_BYTES,
    OBJECT_BYTES,
    TIMES,
    Fetched,
    Limits,
    allowance,
    run_limits,
)
from dbt.adapters.mzs3.source.options import Intake

MB, GB, TB = 1 << 20, 1 << 30, 1 << 40
MINUTE = 60
TEN = 10 * MINUTE

loads = st.integers(OBJECT_BYTES, 100 * TB)
seconds = st.integers(1, 10**12).map(lambda micros: micros / 1e6)
epochs = st.builds(Fetched, loads, seconds)
some_epochs = st.lists(epochs, min_size=1, max_size=5)
times = st.integers(1, 100_000).map(lambda minutes: minutes * MINUTE)


@pytest.mark.parametrize(
    ("last", "load"),
    [
        ([], FIRST_BYTES),
        # As fast as all of them together.
        ([Fetched(20 * GB, TEN)], 20 * GB),
        ([Fetched(20 * GB, 2 * TEN), Fetched(10 * GB, TEN)], 10 * GB),
        # A trickle does not slow down what comes all at once.
        ([Fetched(10 * MB, 5)] * 5, FIRST_BYTES),
        ([Fetched(10 * MB, 5)] * 4 + [Fetched(GB, 60)], (40 * MB + GB) * TEN // 80),
        # Nor is what it fetched in a moment taken for granted.
        ([Fetched(10 * MB, 0.1)] * 5, FIRST_BYTES),
        ([Fetched(2 * GB, 1)], TIMES * 2 * GB),
        # What is slow is not asked for a first bite again.
        ([Fetched(10 * MB, TEN)], 10 * MB),
        ([Fetched(10 * MB, TEN / TIMES)], TIMES * 10 * MB),
        ([Fetched(OBJECT_BYTES, 10**9)], 1),
    ],
)
def test_what_a_run_takes_in_ten_minutes(last, load):
    assert allowance(last, TEN) == load


@pytest.mark.parametrize(
    ("last", "load"),
    [
        # What each run costs is most of an epoch of seconds, however short a run is to be.
        ([Fetched(OBJECT_BYTES, 7)] * 5, FIRST_BYTES),
        ([Fetched(OBJECT_BYTES, 59)] * 5, FIRST_BYTES),
        ([Fetched(OBJECT_BYTES, MINUTE)] * 5, OBJECT_BYTES),
        ([Fetched(10 * GB, 30)], 20 * GB),
    ],
)
def test_what_a_run_takes_in_a_minute(last, load):
    assert allowance(last, MINUTE) == load


@given(some_epochs, times, st.data())
def test_more_was_fetched_and_no_less_is_taken(last, time, data):
    which = data.draw(st.integers(0, len(last) - 1))
    more = [*last]
    more[which] = Fetched(last[which].load + data.draw(loads), last[which].seconds)
    assert allowance(more, time) >= allowance(last, time)


@given(some_epochs, times, st.data())
def test_it_took_longer_and_no_more_is_taken(last, time, data):
    which = data.draw(st.integers(0, len(last) - 1))
    slower = [*last]
    slower[which] = Fetched(last[which].load, last[which].seconds + data.draw(seconds))
    assert allowance(slower, time) <= allowance(last, time)


@given(some_epochs, times, times)
def test_in_more_time_no_less_is_taken(last, time, more):
    assert 1 <= allowance(last, time) <= allowance(last, time + more)


@given(some_epochs, times)
def test_no_run_takes_far_more_than_any_before_it(last, time):
    most = max(one.load for one in last)
    assert allowance(last, time) <= max(FIRST_BYTES, TIMES * most)


@given(st.integers(1, 10**5), st.integers(0, GB), st.integers(1, TB), st.integers(1, 10**4))
def test_objects_of_one_size_take_as_many_runs_as_is_said(objects, size, max_bytes, max_objects):
    limits = Limits(max_objects, max_bytes, OBJECT_BYTES)
    of_a_run = max(1, min(max_objects, max_bytes // (size + OBJECT_BYTES)))
    said, needed = limits.runs(objects, objects * size), -(-objects // of_a_run)
    assert 1 <= said <= needed <= 2 * said


@pytest.mark.parametrize(
    ("limits", "objects", "size", "runs"),
    [
        (Limits(), 1000, TB, 1),
        (Limits(max_objects=4), 9, 1, 3),
        (Limits(max_bytes=10), 9, 21, 3),
        (Limits(max_objects=2, max_bytes=10), 9, 21, 5),
        (Limits(max_bytes=10), 2, TB, 2),
        (Limits(max_bytes=2 * OBJECT_BYTES, of_object=OBJECT_BYTES), 5, 5, 3),
        (Limits(max_bytes=10), 0, 0, 0),
    ],
)
def test_how_many_runs_take_what_waits(limits, objects, size, runs):
    assert limits.runs(objects, size) == runs


@pytest.mark.parametrize("intake", [Intake(), Intake(max_objects=3), Intake(max_bytes=5)])
def test_the_ledger_is_asked_for_nothing_unless_the_source_says_so(intake):
    assert run_limits(None, intake) == Limits(intake.max_objects, intake.max_bytes)
