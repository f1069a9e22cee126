"""Killed with SIGKILL, Spark and all, at every step in turn, and run again: every row once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from faulty_s3 import FaultyS3

pytestmark = pytest.mark.spark

SCRIPT = Path(__file__).parent / "ingest_until.py"
BUCKET = "killed"
# Each process finds what the one before it left: after `end plan` that is an epoch to declare
# void, each time, before its objects are listed anew.
KILLED_AT = [
    "begin create",
    "end create",
    "end plan",
    "end void",
    "second GET",
    "end fetch",
    "end commit",
]


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
    }
    connection = {**aws_connection, "endpoint": proxy.endpoint}

    def run(die_at):
        told = {"parameters": parameters, "connection": connection, "bucket": BUCKET}
        return subprocess.Popen(
            [sys.executable, str(SCRIPT), json.dumps({**told, "die_at": die_at})],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    return run


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


@pytest.mark.timeout(1200)
def test_no_row_is_lost_and_none_doubled(s3, proxy, start):
    s3.create_bucket(Bucket=BUCKET)
    for number in range(3):
        body = f"id\n{number}\n{number + 10}\n".encode()
        s3.put_object(Bucket=BUCKET, Key=f"{number}.csv", Body=body)

    for step in KILLED_AT:
        process = start(die_at=step)
        if step == "second GET":
            kill_at_second_get(proxy, process)
        _, errors = process.communicate(timeout=300)
        proxy.reset()
        assert process.returncode == -signal.SIGKILL, f"{step} was not reached: {errors.decode()}"

    last = start(die_at=None)
    output, errors = last.communicate(timeout=300)
    assert last.returncode == 0, errors.decode()
    found = json.loads(output.splitlines()[-1])
    assert found["objects"] == [0, 0]
    assert found["rows"] == [
        [f"s3://{BUCKET}/{number}.csv", record, str(number + 10 * (record - 1))]
        for number in range(3)
        for record in (1, 2)
    ]
