"""What users see on the console when something goes wrong: what they need, once, and no Java."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt_process import finish, start_dbt

pytestmark = pytest.mark.spark

README = Path(__file__).parents[2] / "README.md"
NOISE = ("\tat ", "at org.apache", "at java.base", "Traceback", "mzs3-error", "WARN ", "Exception")

SOURCES = """
sources:
  - name: lake
    schema: raw
    tables:
      - name: orders
        external: {type: s3_csv_source, location: 's3://console/orders/', header: true}
"""
BAD_OBJECT = "lake.orders: object s3://console/orders/2.csv, line 2, byte 3: expected 1 column"
# Each model, and what is said of it.
MODELS = {
    "bad_export.sql": (
        "{{ config(materialized='copy_to_s3', location='s3://console/out', parts=2) }}"
        " select id, cast(unhex('ff') as string) as note from range(4)",
        "column note holds text that is not valid UTF-8",
    ),
    "bad_query.sql": (
        "{{ config(materialized='copy_to_s3', location='s3://console/out2') }}"
        " select raise_error('no such export') as n from range(4)",
        "[USER_RAISED_EXCEPTION] no such export",
    ),
    "bad_shard.sql": (
        "{{ config(materialized='persist_shard', location='s3://console/shard') }}"
        " select cast(raise_error('no such shard') as int) as n from range(4)",
        "[USER_RAISED_EXCEPTION] no such shard",
    ),
    "bad_table.sql": (
        "{{ config(materialized='table') }} select raise_error('no such row') as n from range(4)",
        "[USER_RAISED_EXCEPTION] no such row",
    ),
    "bad_view.sql": ("select no_such_column from (select 1 as id)", "UNRESOLVED_COLUMN"),
    "bad_python.py": (
        "def model(dbt, session):\n"
        "    from pyspark.sql import functions as F\n"
        "    return session.range(4).select(F.udf(lambda n: 1 // n, 'int')('id').alias('n'))\n",
        "ZeroDivisionError: integer division or modulo by zero",
    ),
}


def readme_profile() -> dict[str, Any]:
    """The first profile that a reader of the README copies."""
    block = README.read_text().split("## Profile")[1].split("```yaml")[1].split("```")[0]
    profile: dict[str, Any] = yaml.safe_load(block)["acme"]["outputs"]["dev"]
    return profile


@pytest.fixture(scope="module")
def project(
    tmp_path_factory: pytest.TempPathFactory, s3: Any, aws_connection: dict[str, str]
) -> Iterator[Path]:
    """A project whose profile is the README's, or `dbt init`'s, which sets nothing of Spark's."""
    folder = tmp_path_factory.mktemp("console")
    s3.create_bucket(Bucket="console")
    for name, text in (("1.csv", "id\n1\n"), ("2.csv", "id\n1,2\n")):
        s3.put_object(Bucket="console", Key=f"orders/{name}", Body=text.encode())
    connections = {"aws_connections": {"default": aws_connection}}
    bare = {"type": "mzs3", "method": "session", "schema": "analytics", "threads": 4}
    outputs = {"readme": {**readme_profile(), **connections}, "init": {**bare, **connections}}
    profile = {"acme": {"target": "readme", "outputs": outputs}}
    project = {"name": "acme", "version": "1.0", "profile": "acme", "config-version": 2}
    (folder / "profiles.yml").write_text(yaml.safe_dump(profile))
    (folder / "dbt_project.yml").write_text(yaml.safe_dump(project))
    models = folder / "models"
    models.mkdir()
    (models / "sources.yml").write_text(SOURCES)
    (models / "bad_object.sql").write_text("select * from {{ source('lake', 'orders') }}")
    for name, (text, _) in MODELS.items():
        (models / name).write_text(text)
    yield folder


def require_clean(console: str) -> None:
    assert [line for line in console.splitlines() if any(sign in line for sign in NOISE)] == []


def test_one_bad_object_is_told_of_in_few_lines(project: Path) -> None:
    console = finish(start_dbt(project, "build", "-s", "bad_object"))

    require_clean(console)
    assert console.count(BAD_OBJECT) == 1, console
    assert len(console.splitlines()) < 25, console
    # Nothing of what Spark says is lost.
    assert "mzs3-error" in (project / "logs" / "spark.log").read_text()


def test_every_error_is_told_once_and_clean(project: Path) -> None:
    arguments = ("build", "--target", "init", "--exclude", "bad_object", "--log-path", "elsewhere")
    console = finish(start_dbt(project, *arguments))

    results = json.loads((project / "target" / "run_results.json").read_text())["results"]
    assert {result["status"] for result in results} == {"error"}, console
    require_clean(console)
    counts = {name: console.count(error) for name, (_, error) in MODELS.items()}
    assert counts == dict.fromkeys(MODELS, 1), console
    assert "Exception" in (project / "elsewhere" / "spark.log").read_text()
