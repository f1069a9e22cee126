"""Killed with SIGKILL, Spark and all, and run again: every row once.

While objects are read, and `slow` after the commit. `long`, as they take minutes: at seven steps,
and at 20 random moments of 300 objects.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
from support import SUPPORT
from support.s3.faulty import FaultyS3
from support.spark.table_formats import not_in_own_catalog, table_parameters

pytestmark = [pytest.mark.spark, not_in_own_catalog, pytest.mark.timeout(1200)]

SCRIPT = SUPPORT / "source/ingest_until.py"
KILLED_AGAIN = ["second GET", "end fetch", "end commit"]
# Each process finds what the one before it left: after `end plan` that is an epoch to declare
# void, each time, before its objects are listed anew.
KILLED_AT_ALL = [
    "begin create",
    "end create",
    "end plan",
    "end void",
    "second GET",
    "end fetch",
    "end commit",
]
KILLS = 20
OBJECTS = 300
DEADLINE_S = 300


@pytest.fixture
def start(tmp_path, proxy, aws_connection):
    """Starts the script in a process group of its own; all share one metastore."""
    parameters = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
        "spark.sql.codegen.wholeStage": "false",
        **table_parameters(tmp_path),
    }
    connection = {**aws_connection, "endpoint": proxy.endpoint}
    started = []

    def run(bucket, sources=("raw",), **how):
        told = {"parameters": parameters, "connection": connection, "bucket": bucket, **how}
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), json.dumps({**told, "sources": list(sources)})],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture
def proxy(s3_endpoint):
    with FaultyS3(s3_endpoint) as server:
        yield server


def kill_at_second_get(proxy, process):
    """While objects are read: one is, the next is asked for."""
    gets = []

    def watch(request):
        if request.action == "GETObject" and request.key.endswith(".csv"):
            gets.append(request.key)
            if len(gets) == 2:
                os.killpg(process.pid, signal.SIGKILL)

    proxy.watch = watch


def put(s3, bucket, numbers):
    """Objects of two rows each."""
    for number in numbers:
        body = f"id\n{number}\n{number + 1000}\n".encode()
        s3.put_object(Bucket=bucket, Key=f"{number:03}.csv", Body=body)


def rows_of(bucket, numbers):
    return [
        [f"s3://{bucket}/{number:03}.csv", record, str(number + 1000 * (record - 1))]
        for number in numbers
        for record in (1, 2)
    ]


def ended(process):
    """What the last source of a process that was not killed came to."""
    output, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, errors
    return json.loads(output.splitlines()[-1])


@pytest.mark.parametrize(
    ("bucket", "steps", "left"),
    [
        pytest.param("killed-reading", ["second GET"], 30, marks=pytest.mark.slow),
        pytest.param("killed-again", KILLED_AGAIN, 27, marks=pytest.mark.slow),
        pytest.param("killed-at-all", KILLED_AT_ALL, 27, marks=pytest.mark.long),
    ],
)
def test_no_row_is_lost_and_none_doubled(s3, proxy, start, bucket, steps, left):
    s3.create_bucket(Bucket=bucket)
    put(s3, bucket, range(3))

    for step in steps:
        process = start(bucket, die_at=step)
        if step == "second GET":
            kill_at_second_get(proxy, process)
        _, errors = process.communicate(timeout=DEADLINE_S)
        proxy.reset()
        assert process.returncode == -signal.SIGKILL, f"{step} was not reached: {errors}"

    put(s3, bucket, range(3, 30))
    found = ended(start(bucket))
    assert found["objects"] == [left, 0]
    assert found["rows"] == rows_of(bucket, range(30))


@pytest.mark.slow
def test_a_second_run_at_the_same_time_takes_nothing(s3, start):
    """It has no place in the metastore, or finds the first one's lock; here after a kill."""
    bucket = "two-at-once"
    s3.create_bucket(Bucket=bucket)
    put(s3, bucket, range(3))
    killed = start(bucket, die_at="end commit")
    _, errors = killed.communicate(timeout=DEADLINE_S)
    assert killed.returncode == -signal.SIGKILL, errors
    put(s3, bucket, range(3, 30))
    first = start(bucket, hold_at="end plan")
    assert first.stdout.readline() == "end plan\n", first.communicate()
    second = start(bucket)
    _, errors = second.communicate(timeout=DEADLINE_S)
    assert second.returncode != 0
    assert "Derby serves one at a time" in errors or "is ingesting this source" in errors, errors
    first.stdin.write("\n")
    found = ended(first)
    assert found["objects"] == [27, 0]
    assert found["rows"] == rows_of(bucket, range(30))


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_no_row_is_lost_and_none_doubled_whenever_it_is_killed(s3, start):
    bucket = "killed-often"
    s3.create_bucket(Bucket=bucket)
    put(s3, bucket, range(OBJECTS))
    seed = int(os.environ.get("MZS3_KILLS_SEED") or time.time())
    chance = random.Random(seed)
    print(f"MZS3_KILLS_SEED={seed}")

    whole = start(bucket, ["raw", "undisturbed"], waits=True)
    duration = undisturbed(whole)
    before = "raw"
    for kill in range(KILLS):
        # It finishes what the one before it left, before it is killed itself.
        source = f"raw_{kill}"
        share = (kill + chance.random()) / KILLS
        victim = start(bucket, [before, source], waits=True)
        finished = json.loads(line_of(victim))
        assert finished["rows"] == rows_of(bucket, range(OBJECTS)), f"after kill {kill - 1}"
        print(f"the run after it took {finished['objects']}")
        assert line_of(victim) == "ready\n"
        victim.stdin.write("\n")
        victim.stdin.flush()
        try:
            victim.wait(duration * share)
        except subprocess.TimeoutExpired:
            os.killpg(victim.pid, signal.SIGKILL)
        victim.communicate(timeout=DEADLINE_S)
        was_killed = "killed" if victim.returncode == -signal.SIGKILL else "had ended"
        print(f"kill {kill}, {duration * share:.2f} s of {duration:.2f} s: {was_killed}; ", end="")
        before = source
    found = ended(start(bucket, [before]))
    print(f"the run after it took {found['objects']}")
    assert found["rows"] == rows_of(bucket, range(OBJECTS))


def line_of(process):
    """The next line that a process says; where it has died instead, why."""
    line = process.stdout.readline()
    assert line, process.communicate(timeout=DEADLINE_S)[1]
    return line


def undisturbed(process):
    """How long a process takes for the first run of its last source, in seconds."""
    line_of(process)
    found = ended(process)  # which sends it off, too
    assert found["objects"] == [OBJECTS, 0]
    return found["seconds"][0]
