"""`dbt source freshness` from S3's own timestamps, without a JVM."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

SOURCES = """
sources:
  - name: lake
    schema: raw
    tables:
      - name: orders
        external: {type: s3_csv_source, location: s3://fresh-lake/orders/, pattern: '*.csv'}
        freshness: {warn_after: {count: 1, period: day}}
      - name: nothing_there
        external: {type: s3_csv_source, location: s3://fresh-lake/nothing/}
        freshness: {error_after: {count: 1, period: day}}
      - name: a_table
        freshness: {warn_after: {count: 1, period: day}}
"""


@pytest.fixture
def dbt_without_java(tmp_path, dbt_profile_target):
    """Runs dbt in a new process that can't start a JVM."""
    target = {**dbt_profile_target, "schema": "analytics"}
    profiles = {"acme": {"target": "dev", "outputs": {"dev": target}}}
    (tmp_path / "profiles.yml").write_text(yaml.safe_dump(profiles))
    project = {"name": "acme", "version": "1.0", "profile": "acme", "model-paths": ["models"]}
    (tmp_path / "dbt_project.yml").write_text(yaml.safe_dump(project))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "sources.yml").write_text(SOURCES)
    (tmp_path / "models" / "one.sql").write_text("select 1 as one")

    def run(*args):
        environment = {
            **os.environ,
            "JAVA_HOME": str(tmp_path / "no-java"),
            "PATH": "/usr/bin:/bin",
        }
        return subprocess.run(
            [sys.executable, "-c", "from dbt.cli.main import cli; cli()", *args],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run


def test_freshness_is_the_newest_object_and_needs_no_jvm(s3, dbt_without_java, tmp_path):
    s3.create_bucket(Bucket="fresh-lake")
    for name in ("1.csv", "2.csv", "3.txt"):
        s3.put_object(Bucket="fresh-lake", Key=f"orders/{name}", Body=b"id\n1\n")
    newest = s3.head_object(Bucket="fresh-lake", Key="orders/2.csv")["LastModified"]

    done = dbt_without_java("source", "freshness")
    assert done.returncode == 1, done.stdout  # the empty source is stale, the table has no field
    written = json.loads(Path(tmp_path / "target" / "sources.json").read_text())["results"]
    results = {result["unique_id"].rpartition(".")[2]: result for result in written}

    assert results["orders"]["status"] == "pass"
    assert results["orders"]["max_loaded_at"][:19] == newest.isoformat()[:19]
    assert results["orders"]["adapter_response"]["objects"] == 2
    assert results["orders"]["adapter_response"]["bytes"] == 10
    assert results["nothing_there"]["status"] == "error"
    assert results["nothing_there"]["max_loaded_at"].startswith("0001-01-01")
    assert "it has no loaded_at_field" in done.stdout
    # The same process would have failed had it needed Spark.
    assert "could not start its Java process" in dbt_without_java("run").stdout
