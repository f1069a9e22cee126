"""All workers of a cluster die while it writes or reads: the run ends, and leaves nothing open."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.faulty_s3 import FaultyS3, Request
from support.standalone import standalone_cluster

pytestmark = [pytest.mark.spark, pytest.mark.long]

BUCKET = "cluster-gone"
ROWS = "select id, repeat('x', 1000) as filler from range(0, 20000, 1, 4)"
MODELS = {
    "export": "{{ config(materialized='copy_to_s3', location='s3://%s/x', parts=4) }}" + ROWS,
    "batch": "{{ config(materialized='persist_shard', location='s3://%s/y', parts=4) }}" + ROWS,
    "ingested": "select * from {{ source('lake', 'numbers') }}",
}
SOURCES = f"""
sources:
  - name: lake
    schema: raw
    tables:
      - name: numbers
        external: {{type: s3_csv_source, location: "s3://{BUCKET}/raw", header: true}}
"""
Rule = Callable[[Request], bool]
UNDER_WAY: dict[str, Rule] = {
    "export": lambda request: request.action == "UploadPart",
    "batch": lambda request: request.action == "UploadPart",
    "ingested": lambda request: request.action == "GETObject" and request.key.endswith(".csv"),
}


@pytest.fixture
def faulty(s3_endpoint: str) -> Iterator[FaultyS3]:
    with FaultyS3(s3_endpoint) as server:
        yield server


@pytest.fixture(scope="module", autouse=True)
def bucket(s3: Any) -> None:
    s3.create_bucket(Bucket=BUCKET)
    for number in range(4):
        s3.put_object(Bucket=BUCKET, Key=f"raw/{number}.csv", Body=b"id\n1\n2\n")


def make_project(folder: Path, endpoint: str, master: str) -> None:
    output = {
        "type": "mzs3",
        "method": "session",
        "schema": "analytics",
        "executor_timeout": 10,
        "server_side_parameters": {
            "spark.master": master,
            "spark.executor.memory": "512m",
            # No job begins before all executors are there, however long they take to start.
            "spark.cores.max": "2",
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "200s",
            "spark.sql.shuffle.partitions": "4",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.log.level": "OFF",
        },
        "aws_connections": {
            "default": {
                "endpoint": endpoint,
                "addressing_style": "path",
                "access_key_id": "testing",
                "secret_access_key": "testing",
            }
        },
    }
    profile = {"acme": {"target": "dev", "outputs": {"dev": output}}}
    project = {"name": "acme", "version": "1.0", "profile": "acme", "config-version": 2}
    models = folder / "models"
    models.mkdir()
    for name, text in MODELS.items():
        (models / f"{name}.sql").write_text(text.replace("%s", BUCKET))
    (models / "sources.yml").write_text(SOURCES)
    (folder / "dbt_project.yml").write_text(yaml.safe_dump(project))
    (folder / "profiles.yml").write_text(yaml.safe_dump(profile))


@pytest.mark.parametrize("model", MODELS)
def test_a_run_whose_workers_have_all_died_ends_with_an_error(
    model: str, faulty: FaultyS3, s3: Any, tmp_path: Path
) -> None:
    lock, died = threading.Lock(), threading.Event()
    with standalone_cluster(tmp_path / "cluster") as cluster:

        def kill(request: Request) -> None:
            with lock:
                if UNDER_WAY[model](request) and not died.is_set():
                    cluster.kill_workers()
                    died.set()

        make_project(tmp_path, faulty.endpoint, cluster.master)
        faulty.watch = kill
        dbt = subprocess.run(
            [sys.executable, "-c", "from dbt.cli.main import cli; cli()", "run", "-s", model],
            cwd=tmp_path,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=400,
        )
    assert died.is_set(), dbt.stdout
    assert dbt.returncode == 1, dbt.stdout
    assert "for 10 s there was work for executors, and none ran any of it" in dbt.stdout
    assert s3.list_multipart_uploads(Bucket=BUCKET).get("Uploads", []) == []
    there = s3.list_objects_v2(Bucket=BUCKET)["Contents"]
    assert [entry["Key"] for entry in there if not entry["Key"].startswith("raw/")] == []
