"""Killed with SIGKILL, Spark and all, at any step, and run again: every row once."""

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
# By what happens on the way: the steps at which a process is killed, one process after another.
KILLED = {
    "holding_the_lock": ["begin create"],
    "tables_made": ["end create"],
    "about_to_plan": ["begin plan"],
    "planned": ["end plan"],
    "reading_objects": ["GET"],
    "rows_written": ["end fetch"],
    "about_to_commit": ["begin commit"],
    "committed": ["end commit"],
    "plan_declared_void": ["end plan", "end void"],
    "plan_redone": ["end plan", "end fetch"],
}


class Processes:
    """Runs the script, one process at a time, all on one metastore and one S3 server."""

    def __init__(self, s3, proxy, home, aws_connection):
        self._s3 = s3
        self._proxy = proxy
        self._told = {
            "parameters": {
                "spark.master": "local[2]",
                "spark.ui.enabled": "false",
                "spark.log.level": "ERROR",
                "spark.driver.host": "127.0.0.1",
                "spark.sql.shuffle.partitions": "2",
                "spark.sql.warehouse.dir": str(home / "warehouse"),
            },
            "connection": {**aws_connection, "endpoint": proxy.endpoint},
        }

    def fill(self, schema):
        bucket = schema.replace("_", "-")
        self._s3.create_bucket(Bucket=bucket)
        for number in range(3):
            body = f"id\n{number}\n{number + 10}\n".encode()
            self._s3.put_object(Bucket=bucket, Key=f"{number}.csv", Body=body)
        return schema, bucket

    def run(self, sources, die_at):
        told = {**self._told, "sources": sources, "die_at": die_at}
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), json.dumps(told)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        if die_at == "GET":
            self._kill_at_second_get(process)
        output, errors = process.communicate(timeout=300)
        self._proxy.reset()
        if die_at is not None:
            assert process.returncode == -signal.SIGKILL, errors.decode()
            return {}
        assert process.returncode == 0, errors.decode()
        return json.loads(output.splitlines()[-1])

    def _kill_at_second_get(self, process):
        # The header is read from the first object; fetching it is the second time.
        gets = []

        def watch(request):
            if request.action == "GETObject" and request.key.endswith(".csv"):
                gets.append(request.key)
                if len(gets) == 3:
                    os.killpg(process.pid, signal.SIGKILL)

        self._proxy.watch = watch


@pytest.fixture(scope="module")
def found(s3, s3_endpoint, aws_connection, tmp_path_factory):
    with FaultyS3(s3_endpoint) as proxy:
        processes = Processes(s3, proxy, tmp_path_factory.mktemp("killed"), aws_connection)
        sources = []
        for schema, steps in KILLED.items():
            source = processes.fill(schema)
            for step in steps:
                processes.run([source], die_at=step)
            sources.append(source)
        return processes.run(sources, die_at=None)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("schema", KILLED)
def test_no_row_is_lost_and_none_doubled(found, schema):
    bucket = schema.replace("_", "-")
    assert found[schema]["rows"] == [
        [f"s3://{bucket}/{number}.csv", record, str(number + 10 * (record - 1))]
        for number in range(3)
        for record in (1, 2)
    ]
    assert found[schema]["objects"] == [0 if schema == "committed" else 3, 0]
