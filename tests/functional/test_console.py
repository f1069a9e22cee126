"""What users see on the console when something goes wrong: what they need, once, and no Java."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.dbt_process import finish, interrupt, start_dbt
from support.s3.faulty import FaultyS3, Request

pytestmark = [pytest.mark.spark, pytest.mark.slow]

README = Path(__file__).parents[2] / "README.md"
NOISE = ("\tat ", "at org.apache", "at java.base", "Traceback", "mzs3-error")
NOISE += ("WARN ", "Exception", "FutureWarning")

SOURCES = """
sources:
  - name: lake
    schema: raw
    tables:
      - name: orders
        external: {{type: s3_csv_source, location: 's3://{bucket}/orders/', header: [id]}}
"""
READER = "select * from {{ source('lake', 'orders') }}"
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
    # Of pandas 3 PySpark has a warning.
    "bad_pandas.py": (
        "import pandas\n\n"
        "def model(dbt, session):\n"
        "    return [session.createDataFrame(pandas.DataFrame({'n': [1]}))]\n",
        "the model returned builtins.list",
    ),
}


def readme_profile() -> dict[str, Any]:
    """The first profile that a reader of the README copies."""
    block = README.read_text().split("## Profile")[1].split("```yaml")[1].split("```")[0]
    profile: dict[str, Any] = yaml.safe_load(block)["acme"]["outputs"]["dev"]
    return profile


def set_up(folder: Path, bucket: str, profile: dict[str, Any], models: dict[str, str]) -> None:
    """A project with these models, and one source."""
    project = {"name": "acme", "version": "1.0", "profile": "acme", "config-version": 2}
    (folder / "profiles.yml").write_text(yaml.safe_dump({"acme": profile}))
    (folder / "dbt_project.yml").write_text(yaml.safe_dump(project))
    (folder / "models").mkdir()
    for name, text in {**models, "sources.yml": SOURCES.format(bucket=bucket)}.items():
        (folder / "models" / name).write_text(text)


@pytest.fixture(scope="module")
def project(
    tmp_path_factory: pytest.TempPathFactory, s3: Any, aws_connection: dict[str, str]
) -> Path:
    """A project whose profile is the README's, or `dbt init`'s, which sets nothing of Spark's."""
    folder = tmp_path_factory.mktemp("console")
    s3.create_bucket(Bucket="console")
    for name, text in (("1.csv", "id\n1\n"), ("2.csv", "id\n1,2\n")):
        s3.put_object(Bucket="console", Key=f"orders/{name}", Body=text.encode())
    connections = {"aws_connections": {"default": aws_connection}}
    bare = {"type": "mzs3", "method": "session", "schema": "analytics", "threads": 4}
    outputs = {"readme": {**readme_profile(), **connections}, "init": {**bare, **connections}}
    profile = {"target": "readme", "outputs": outputs}
    models = {name: text for name, (text, _) in MODELS.items()}
    set_up(folder, "console", profile, {**models, "bad_object.sql": READER})
    return folder


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


# One file, as Spark has two cores here and the source needs one of them.
SHARD = """
{{{{ config(materialized='persist_shard', location='s3://{bucket}/shard', parts=1) }}}}
select id from range(1000)
"""


def test_ctrl_c_says_at_the_end_what_is_left(
    tmp_path: Path, s3: Any, s3_endpoint: str, spark_parameters: dict[str, str]
) -> None:
    s3.create_bucket(Bucket="interrupted")
    s3.put_object(Bucket="interrupted", Key="orders/1.csv", Body=b"id\n1\n")
    reading, writing, interrupted = threading.Event(), threading.Event(), threading.Event()

    def hold(request: Request) -> None:
        held = {"GETObject": reading, "UploadPart": writing}.get(request.action)
        if held is not None and request.key.endswith(("1.csv", ".parquet")):
            held.set()
            interrupted.wait(60)

    with FaultyS3(s3_endpoint) as server:
        connection = {
            "endpoint": server.endpoint,
            "addressing_style": "path",
            "access_key_id": "testing",
            "secret_access_key": "testing",
        }
        output = {
            "type": "mzs3",
            "method": "session",
            "schema": "analytics",
            "threads": 2,
            "server_side_parameters": {
                **spark_parameters,
                "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
            },
            "aws_connections": {"default": connection},
        }
        models = {"reader.sql": READER, "shard.sql": SHARD.format(bucket="interrupted")}
        profile = {"target": "dev", "outputs": {"dev": output}}
        set_up(tmp_path, "interrupted", profile, models)
        server.watch = hold
        dbt = start_dbt(tmp_path, "run")
        assert reading.wait(240), finish(dbt)
        assert writing.wait(240), finish(dbt)
        console = interrupt(dbt, then=interrupted.set)
    require_clean(console)
    assert sorted(console.splitlines()[-2:]) == [
        "  lake.orders: cancelled; nothing of this run is committed",
        "  model.acme.shard: writing to s3://interrupted/shard/ was cancelled. The shard is what "
        "it was",
    ]
    assert "Uploads" not in s3.list_multipart_uploads(Bucket="interrupted")
