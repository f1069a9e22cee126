"""`dbt parse` and `dbt compile` tell what is wrong with options, where no Spark can start."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

FILES = {
    "dbt_project.yml": yaml.safe_dump(
        {"name": "acme", "version": "1.0", "profile": "acme", "model-paths": ["models"]}
    ),
    "profiles.yml": yaml.safe_dump(
        {
            "acme": {
                "target": "dev",
                "outputs": {"dev": {"type": "mzs3", "method": "session", "schema": "analytics"}},
            }
        }
    ),
    "models/exports/orders.sql": (
        "{{ config(materialized='copy_to_s3', locaton='s3://acme/x', fromat='csv') }} select 1"
    ),
    "models/kept.py": (
        "def model(dbt, session):\n"
        "    dbt.config(materialized='persist_shard', location='s3://acme/x', encodng='dual')\n"
        "    return session.table(dbt.config.get('alias'))\n"
    ),
    "models/plain.sql": "select 1 as one",
    "models/lake.yml": """
sources:
  - name: lake
    tables:
      - name: orders
        external: {type: s3_csv_source, location: s3://acme/orders, headr: true}
      - name: orders_too
        identifier: ORDERS
        external: {type: s3_csv_source, location: s3://acme/orders_too}
""",
    "models/whole.sql": "{{ config(materialized='copy_to_s3', location='s3://acme') }} select 1",
}
TOLD = (
    "model.acme.orders (models/exports/orders.sql) has 3 problems in its configuration:",
    "locaton is not an option of copy_to_s3; did you mean location?",
    "fromat is not an option of copy_to_s3; did you mean format?",
    "location is required",
    "model.acme.kept (models/kept.py) has 2 problems in its configuration:",
    "encodng is not an option of persist_shard; did you mean encoding?",
    "location s3://acme/x/ is inside s3://acme/, which model.acme.whole (models/whole.sql) owns",
    "model.acme.whole (models/whole.sql) has 1 problem in its configuration:",
    "location s3://acme/ has inside it that of model.acme.kept (models/kept.py)",
    "source lake.orders (models/lake.yml) has 2 problems in its configuration:",
    "lake.orders is a relation of source lake.orders_too (models/lake.yml) too",
    "source lake.orders_too (models/lake.yml) has 1 problem in its configuration:",
    "lake.orders is a relation of source lake.orders (models/lake.yml) too",
    "external.headr is not an option of s3_csv_source; did you mean header?",
)


@pytest.fixture(scope="module")
def dbt(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[int, str]]:
    """Runs dbt in a process that can't start a JVM; its exit code, and what it prints."""
    home = tmp_path_factory.mktemp("parsed")
    for name, text in FILES.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    no_java = {"JAVA_HOME": str(home / "no-java"), "PATH": "/usr/bin:/bin"}

    def run(*args: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-c", "from dbt.cli.main import cli; cli()", *args],
            cwd=home,
            env={**os.environ, **no_java},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert not Path(home, "metastore_db").exists()
        return done.returncode, done.stdout

    return run


@pytest.mark.slow
def test_parse_and_compile_fail_with_all_of_them(dbt: Callable[..., tuple[int, str]]) -> None:
    for command in (["parse"], ["compile"], ["compile", "--select", "plain"]):
        code, said = dbt(*command)  # the second time dbt has parsed it before
        assert code == 2
        assert [text for text in TOLD if said.count(text) != 1] == []
        assert "Traceback" not in said


def test_a_run_is_warned_before_spark_starts(dbt: Callable[..., tuple[int, str]]) -> None:
    code, said = dbt("run", "--select", "plain")
    assert [text for text in TOLD if said.count(text) != 1] == []
    # So it went on, and needed Spark.
    assert code != 0
    assert said.index("could not start its Java process") > max(map(said.index, TOLD))


@pytest.mark.light
def test_a_build_of_sources_is_told_what_ingests_them(dbt: Callable[..., tuple[int, str]]) -> None:
    code, said = dbt("build", "--resource-type", "source")
    assert code == 2
    assert "by themselves with dbt run-operation ingest_s3_sources" in said
    assert "Internal Error" not in said


@pytest.mark.slow
def test_commands_that_run_no_model_are_silent(dbt: Callable[..., tuple[int, str]]) -> None:
    code, said = dbt("list")
    assert code == 0
    assert "problem" not in said
