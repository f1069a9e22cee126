"""Starting Spark: only when it is needed, in its place, and with a clear word when it can't."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

STARTED = "Spark runs"
CODE = f"""
import sys
from dbt.cli.main import dbtRunner
result = dbtRunner().invoke(sys.argv[1:])
from pyspark.sql import SparkSession
print("{STARTED}" if SparkSession._instantiatedSession else "no Spark")
sys.exit(0 if result.success else 1)
"""
SOURCES = """
sources:
  - name: lake
    schema: raw
    tables:
      - name: orders
        external: {type: s3_csv_source, location: 's3://not-looked-at/orders'}
"""
INCREMENTAL = "{{ config(materialized='incremental') }} select 1 as id"


def names_in(*folder):
    return {path.name for path in Path(*folder).iterdir()}


@pytest.mark.slow
@pytest.mark.in_process
class TestStart:
    @pytest.fixture(scope="class")
    def models(self):
        return {"sources.yml": SOURCES, "grows.sql": INCREMENTAL}

    @pytest.fixture(scope="class")
    def run(self, project, profiles_root, tmp_path_factory):
        """Runs dbt in a process of its own, with a profile that says nothing about places."""
        profile = yaml.safe_load((Path(profiles_root) / "profiles.yml").read_text())
        for target in profile["test"]["outputs"].values():
            del target["server_side_parameters"]["spark.sql.warehouse.dir"]
        folder = tmp_path_factory.mktemp("profiles")
        (folder / "profiles.yml").write_text(yaml.safe_dump(profile))

        def run(*args, **environment):
            done = subprocess.run(
                [sys.executable, "-c", CODE, *args, "--profiles-dir", str(folder)],
                cwd=project.project_root,
                env={**os.environ, **environment},
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            return done.returncode, done.stdout + done.stderr

        return run

    def test_what_asks_nothing_of_spark_does_not_start_it(self, run):
        for command in ("parse", "list", "source freshness"):
            code, output = run(*command.split())

            assert code == 0, output
            assert STARTED not in output

    def test_tables_and_metastore_are_in_one_folder_of_the_project(self, run, project):
        before = names_in(project.project_root)

        code, output = run("run")

        assert code == 0, output
        assert STARTED in output
        assert names_in(project.project_root) - before <= {".spark", "target", "logs"}
        assert names_in(project.project_root, ".spark") >= {
            "warehouse",
            "metastore_db",
            "derby.log",
            ".gitignore",
        }

    def test_without_java_the_error_says_what_is_missing(self, run, tmp_path):
        starts, java = tmp_path / "starts", tmp_path / "bin" / "java"
        java.parent.mkdir()
        java.write_text(f"#!/bin/sh\necho started >> '{starts}'\nexit 1\n")
        java.chmod(0o755)

        code, output = run("run", JAVA_HOME=str(tmp_path))

        assert code == 1
        assert "Spark 4 needs Java 17 or later" in output
        assert "Traceback" not in output
        assert starts.read_text() == "started\n"
