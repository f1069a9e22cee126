"""dbt with `pyspark-client`, without Spark and without Java, on a Spark Connect server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.dbt_process import finish, start_dbt

pytestmark = [pytest.mark.spark, pytest.mark.slow]

BUCKET = "connect-client"
LOCATION = f"s3://{BUCKET}"
MODELS = {
    "doubled.sql": "select id * 2 as id from {{ source('lake', 'numbers') }}",
    "exported.sql": f"{{{{ config(materialized='copy_to_s3', location='{LOCATION}/out', parts=2)"
    " }} select id from {{ ref('doubled') }}",
    "kept.sql": f"{{{{ config(materialized='persist_shard', location='{LOCATION}/shard') }}}}"
    "select id, name from {{ ref('names') }}",
    "read_again.sql": "select id from {{ source('lake', 'kept') }} -- {{ ref('kept') }}",
    "counted.py": "def model(dbt, session):\n    return dbt.ref('doubled').groupBy().count()\n",
}
SOURCES = f"""
sources:
  - name: lake
    schema: raw
    tables:
      - name: numbers
        external: {{type: s3_csv_source, location: "{LOCATION}/raw/", header: true}}
        columns: [{{name: id, data_type: bigint}}]
      - name: kept
        external: {{type: persist_shard, location: "{LOCATION}/shard", validate: true}}
"""
# What pyspark-client does not have. The tests' own environment has it.
BLOCKED = "raise ModuleNotFoundError('no module named ' + __name__, name=__name__)\n"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `pyspark-client` alone, to go before the tests' own packages."""
    folder = tmp_path_factory.mktemp("client")
    package = "pyspark-client>=4.1,<5"  # a client of another minor version will do
    install = ["install", "--quiet", "--no-deps", "--target", str(folder), package]
    subprocess.run([sys.executable, "-m", "pip", *install], check=True)
    (folder / "py4j").mkdir()
    (folder / "py4j" / "__init__.py").write_text(BLOCKED)
    return folder


def make_project(folder: Path, target: dict[str, Any]) -> None:
    (folder / "models").mkdir()
    (folder / "seeds").mkdir()
    output = {**target, "schema": "analytics"}
    profile = {"of_client": {"target": "it", "outputs": {"it": output}}}
    (folder / "profiles.yml").write_text(yaml.safe_dump(profile))
    (folder / "dbt_project.yml").write_text("name: of_client\nprofile: of_client\n")
    (folder / "models" / "sources.yml").write_text(SOURCES)
    (folder / "seeds" / "names.csv").write_text("id,name\n1,one\n2,\n")
    for name, text in MODELS.items():
        (folder / "models" / name).write_text(text)


def dbt(folder: Path, client: Path, *arguments: str) -> tuple[int, str]:
    path = os.pathsep.join([str(client), os.environ["PYTHONPATH"]])
    nothing = {"PYTHONPATH": path, "JAVA_HOME": "/nonexistent", "PATH": "/nonexistent"}
    process = start_dbt(folder, *arguments, **nothing)
    console = finish(process)
    return process.returncode, console


def test_all_kinds_of_models_run_without_spark_and_java(
    s3: Any, client: Path, connect_url: str, dbt_profile_target: dict[str, Any], tmp_path: Path
) -> None:
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key="raw/1.csv", Body=b"id\n1\n2\n3\n")
    target = {**dbt_profile_target, "method": "connect", "host": connect_url}
    make_project(tmp_path, target)

    code, console = dbt(tmp_path, client, "build")

    assert code == 0, console
    assert "PASS=6 WARN=0 ERROR=0" in console
    assert "[COPY 3 in" in console
    assert "lake.numbers: COPY 3 (1 new object, 0 rejected)" in console
    assert "lake.kept: 4 values were compared, in 1 of 1 batches, and are the same" in console
    written = {one["Key"] for one in s3.list_objects_v2(Bucket=BUCKET, Prefix="out/")["Contents"]}
    assert "out/_manifest.json" in written


def test_a_session_in_this_process_needs_spark_itself(
    client: Path, dbt_profile_target: dict[str, Any], tmp_path: Path
) -> None:
    target = {key: value for key, value in dbt_profile_target.items() if key != "host"}
    make_project(tmp_path, {**target, "method": "session"})

    code, console = dbt(tmp_path, client, "seed")

    assert code != 0
    assert "method: session needs Spark itself" in console
    assert "Traceback" not in console
