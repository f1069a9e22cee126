"""Random sequences of what may happen to a shard, against a model of it in plain Python.

3 short sequences, and with MZS3_SHARD_SEQUENCES=40 in the environment 37 more that are `long`. A
sequence is known by its number, the last part of its test's name: it is the same in every run.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest
from support.shard.sequences import STEPS, Trial

pytestmark = [pytest.mark.spark, pytest.mark.light]

SHORT = 3
COUNT = int(os.environ.get("MZS3_SHARD_SEQUENCES", SHORT))
SHORT_STEPS, LONG_STEPS = 9, 25


@pytest.mark.parametrize(
    "number",
    [
        *range(min(SHORT, COUNT)),
        *(pytest.param(number, marks=pytest.mark.long) for number in range(SHORT, COUNT)),
    ],
)
def test_a_sequence_ends_as_the_model_says(
    spark: Any, s3: Any, connection: Any, location: str, number: int
) -> None:
    chance = random.Random(number)
    trial = Trial(spark, s3, connection, location)
    drawn = chance.choices(
        [*STEPS], [*STEPS.values()], k=SHORT_STEPS if number < SHORT else LONG_STEPS
    )
    try:
        for step in ["change rows", "run", *drawn, "run", "compact"]:
            trial.do(chance, step)
    except BaseException:
        print("\n".join(trial.log))
        raise
