"""Random sequences of what may happen to a source, against a model of it in plain Python.

30 sequences, and with MZS3_SEQUENCES=530 in the environment 500 more that are `long`. A sequence
is known by its number, the last part of its test's name: it is the same in every run.
"""

from __future__ import annotations

import os
import random

import boto3
import pytest
from support.source.drawn_sequences import operations_of, settings_of
from support.source.sequences import dead_runs_leave_everything, run_sequence

pytestmark = [pytest.mark.spark, pytest.mark.light]

SHORT = 30
COUNT = int(os.environ.get("MZS3_SEQUENCES", SHORT))
SHORT_ROUNDS, LONG_ROUNDS = (2,), (2, 3)


@pytest.fixture(scope="module")
def sqs(aws_connection):
    return boto3.client(
        "sqs",
        endpoint_url=aws_connection["endpoint"],
        region_name=aws_connection["region"],
        aws_access_key_id=aws_connection["access_key_id"],
        aws_secret_access_key=aws_connection["secret_access_key"],
    )


@pytest.fixture(scope="module", autouse=True)
def dead_runs():
    with dead_runs_leave_everything():
        yield


@pytest.mark.parametrize(
    "number",
    [
        *range(min(SHORT, COUNT)),
        *(pytest.param(number, marks=pytest.mark.long) for number in range(SHORT, COUNT)),
    ],
)
def test_a_sequence_ends_as_the_model_says(lake, sqs, number):
    chance = random.Random(number)
    rounds = chance.choice(SHORT_ROUNDS if number < SHORT else LONG_ROUNDS)
    run_sequence(lake, sqs, settings_of(chance), operations_of(chance, rounds))
