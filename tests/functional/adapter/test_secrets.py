"""No secret of the profile is anywhere but in the profile."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

SECRETS = {
    "access_key_id": "AKIASHOULDNOTSHOW001",
    "secret_access_key": "should-not-show-secret-key",
    "session_token": "should-not-show-session-token",
}
EXPORT = """
{{ config(materialized='copy_to_s3', location='s3://secrets/export') }}
select id, 'x' as name from range(10)
"""
FAILING_EXPORT = """
{{ config(materialized='copy_to_s3', location='s3://no-such-bucket/export') }}
select id from range(10)
"""
SHOWS_ITS_TARGET = "select '{{ target | tojson | replace(\"'\", '') }}' as target"
PYTHON = """
def model(dbt, session):
    return session.createDataFrame([(repr(aws_connections),)], "shown string")
"""


@pytest.mark.slow
class TestSecrets:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "export.sql": EXPORT,
            "failing_export.sql": FAILING_EXPORT,
            "shows_its_target.sql": SHOWS_ITS_TARGET,
            "python_model.py": PYTHON,
        }

    @pytest.fixture(scope="class")
    def ran(self, project, profiles_root, s3, tmp_path_factory):
        """Everything that a run in a process of its own leaves behind: its folders and output."""
        s3.create_bucket(Bucket="secrets")
        folder = tmp_path_factory.mktemp("secrets")
        for name in ("events", "profiles"):
            (folder / name).mkdir()
        profile = yaml.safe_load((Path(profiles_root) / "profiles.yml").read_text())
        for target in profile["test"]["outputs"].values():
            target["aws_connections"]["default"].update(SECRETS)
            target["server_side_parameters"].update(
                {
                    "spark.sql.warehouse.dir": str(folder / "spark" / "warehouse"),
                    "spark.eventLog.enabled": "true",
                    "spark.eventLog.dir": str(folder / "events"),
                    "spark.eventLog.compress": "false",
                }
            )
        (folder / "profiles" / "profiles.yml").write_text(yaml.safe_dump(profile))
        code = (
            "import sys; from dbt.cli.main import dbtRunner; dbt = dbtRunner();"
            "dbt.invoke(['--debug', 'debug', *sys.argv[1:]]);"
            "dbt.invoke(['--debug', 'build', *sys.argv[1:]]);"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, "--profiles-dir", str(folder / "profiles")],
            cwd=project.project_root,
            env={**os.environ, "DBT_LOG_PATH": "logs"},
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
        root = Path(project.project_root)
        written = {
            path: path.read_text(errors="replace")
            for place in (root / "target", root / "logs", folder / "events")
            for path in place.rglob("*")
            if path.is_file()
        }
        return {**written, Path("stdout"): done.stdout, Path("stderr"): done.stderr}

    def test_the_run_did_what_it_should(self, ran):
        assert "COPY 10 in" in ran[Path("stdout")]
        assert "aws default: arn:aws" in ran[Path("stdout")]
        assert "no-such-bucket" in ran[Path("stdout")]

    @pytest.mark.in_process
    def test_logs_artifacts_jobs_and_spark_events_are_among_what_is_searched(self, ran):
        names = {path.name for path in ran}

        assert {"manifest.json", "run_results.json", "dbt.log", "export.sql"} <= names
        assert any("SparkListenerApplicationStart" in text for text in ran.values())

    @pytest.mark.parametrize("kind", SECRETS)
    def test_no_secret_is_anywhere(self, ran, kind):
        assert [path for path, text in ran.items() if SECRETS[kind] in text] == []
