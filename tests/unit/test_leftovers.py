"""What an interrupted run says at its end, and what says nothing."""

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.mzs3.connections import Leftovers


def ended_by(failure, leftovers):
    try:
        raise failure
    finally:
        leftovers.raise_if_interrupted()


def test_every_text_is_told_once_and_what_still_runs():
    leftovers = Leftovers()
    leftovers.add("an export was cancelled")
    leftovers.add("an export was cancelled")
    with leftovers.running("model.a.b"):
        pass
    with leftovers.running("model.a.c"), pytest.raises(DbtRuntimeError) as raised:
        ended_by(KeyboardInterrupt(), leftovers)
    assert raised.value.msg.splitlines() == [
        "interrupted by the user",
        "an export was cancelled",
        "model.a.c was cut off before it had ended",
    ]


def test_a_run_that_was_not_interrupted_ends_as_it_ends():
    leftovers = Leftovers()
    leftovers.raise_if_interrupted()
    with pytest.raises(ValueError, match="as it was"):
        ended_by(ValueError("as it was"), leftovers)
