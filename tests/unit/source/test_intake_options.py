"""What may be said of how much a run takes, and of objects that were overwritten."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.source.fields import parse

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.source.options import Intake, OnOverwrite


def test_nothing_said_is_no_limit_and_an_overwritten_object_an_error():
    intake = parse().intake
    assert intake == Intake(OnOverwrite.FAIL, None, None)
    assert not intake.is_limited


@pytest.mark.parametrize("mode", list(OnOverwrite))
def test_what_can_be_said(mode):
    intake = parse(
        on_overwrite=mode.value, max_objects_per_run=10, max_bytes_per_run="1 GB"
    ).intake
    assert intake == Intake(mode, 10, 1 << 30)
    assert intake.is_limited


@pytest.mark.parametrize(("more", "minutes"), [({}, 10), ({"minutes_per_run": 3}, 3)])
def test_auto_takes_what_can_be_fetched_in_ten_minutes_or_as_many_as_are_said(more, minutes):
    intake = parse(max_bytes_per_run="auto", **more).intake
    assert intake == Intake(max_bytes="auto", minutes=minutes)
    assert intake.is_limited


@pytest.mark.parametrize(
    ("external", "says"),
    [
        ({"on_overwrite": "merge"},
         "external.on_overwrite must be one of fail, ignore, append, replace, not 'merge'"),
        ({"on_overwrite": ["fail"]},
         "external.on_overwrite must be one of fail, ignore, append, replace, not ['fail']"),
        ({"max_objects_per_run": 0},
         "external.max_objects_per_run must be a whole number, 1 or more, not 0"),
        ({"max_objects_per_run": True},
         "external.max_objects_per_run must be a whole number, 1 or more, not True"),
        ({"max_objects_per_run": "10"},
         "external.max_objects_per_run must be a whole number, 1 or more, not '10'"),
        ({"max_bytes_per_run": "1 gb"},
         "external.max_bytes_per_run has the unknown unit 'gb'; units are B, kB, MB, GB, TB "
         "(case-sensitive)"),
        ({"max_bytes_per_run": 0},
         "external.max_bytes_per_run must be at least 1 byte, not 0"),
        ({"max_bytes_per_run": 1.5},
         "external.max_bytes_per_run must be a number of bytes or a text such as '256MB', not "
         "1.5"),
        ({"max_bytes_per_run": "Auto", "minutes_per_run": 5},
         "external.max_bytes_per_run must be auto, a number of bytes or a text such as '256MB', "
         "not 'Auto'"),
        ({"max_bytes_per_run": "auto", "minutes_per_run": 0},
         "external.minutes_per_run must be a whole number, 1 or more, not 0"),
        ({"minutes_per_run": 5},
         "external.minutes_per_run needs max_bytes_per_run: auto beside it"),
        ({"max_bytes_per_run": "1 GB", "minutes_per_run": 5},
         "external.minutes_per_run needs max_bytes_per_run: auto beside it"),
    ],
)  # fmt: skip
def test_one_problem(external, says):
    with pytest.raises(ConfigError) as raised:
        parse(external)
    assert raised.value.problems == (says,)


def test_all_problems_at_once():
    with pytest.raises(ConfigError) as raised:
        parse(on_overwrite=5, max_objects_per_run=-1, max_bytes_per_run="many")
    assert [problem.split()[0] for problem in raised.value.problems] == [
        "external.on_overwrite",
        "external.max_objects_per_run",
        "external.max_bytes_per_run",
    ]


@given(st.none() | st.integers(1), st.none() | st.integers(1) | st.just("auto"))
def test_a_limit_is_any_of_the_three(objects, size):
    intake = Intake(max_objects=objects, max_bytes=size)
    assert intake.is_limited == ((objects, size) != (None, None))
