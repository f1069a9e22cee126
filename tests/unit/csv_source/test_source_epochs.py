import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.mzs3.csv_source.ledger import epochs_due, next_epoch, unfinished_epoch


def test_the_first_epoch_is_now():
    before = time.time_ns() // 1_000_000
    assert before <= int(next_epoch({})) <= time.time_ns() // 1_000_000


@given(st.sets(st.integers(min_value=1, max_value=10**15), min_size=1))
def test_an_epoch_is_later_than_all_on_record_whatever_the_clock_says(known):
    assert int(next_epoch({str(epoch): {"plan"} for epoch in known})) > max(known)


@pytest.mark.parametrize(
    ("epochs", "unfinished"),
    [
        ({}, None),
        ({"5": {"plan"}}, "5"),
        ({"5": {"plan", "commit"}}, None),
        ({"5": {"plan", "failed"}}, None),
        ({"5": {"plan", "void"}}, None),
        ({"5": {"plan"}, "6": {"plan", "commit"}}, None),
        ({"10": {"plan"}, "9": {"plan", "commit"}}, "10"),
        ({"5": {"plan", "due"}}, "5"),
        ({"5": {"plan", "due", "commit"}, "6": {"note"}}, None),
    ],
)
def test_only_the_last_epoch_can_be_unfinished(epochs, unfinished):
    assert unfinished_epoch(epochs) == unfinished


def test_what_is_due_is_committed_and_not_done_and_in_order():
    assert epochs_due(
        {
            "10": {"plan", "due", "commit"},
            "9": {"plan", "due", "commit"},
            "8": {"plan", "due", "commit", "done"},
            "7": {"plan", "commit"},
            "6": {"plan", "due", "void"},
            "5": {"plan", "due", "commit", "void"},
            "4": {"note"},
        }
    ) == ["9", "10"]
