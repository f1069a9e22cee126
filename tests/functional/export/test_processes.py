"""dbt in a process of its own: interrupted, watched for secrets, with bare workers."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.dbt_process import finish, interrupt, start_dbt
from support.s3.faulty import FaultyS3, Request

pytestmark = [pytest.mark.spark, pytest.mark.slow]


SOURCE = """
sources:
  - name: lake
    schema: raw
    tables:
      - name: a
        external: {{type: s3_csv_source, location: "s3://{bucket}/raw", header: true}}
"""


def statuses(folder: Path) -> set[str]:
    """Of all nodes of the last run."""
    results = json.loads((folder / "target" / "run_results.json").read_text())["results"]
    return {result["status"] for result in results}


def test_ctrl_c_while_uploading_leaves_nothing(
    project_folder: Path, faulty: FaultyS3, bucket: str, nothing_left: Callable[[str], None]
) -> None:
    started = threading.Event()
    interrupted = threading.Event()

    def hold_the_third_part(request: Request) -> None:
        if request.part_number == 3:
            started.set()
            interrupted.wait(60)

    faulty.watch = hold_the_third_part
    dbt = start_dbt(project_folder, "run")
    assert started.wait(240), finish(dbt)
    output = interrupt(dbt, then=interrupted.set)
    assert dbt.returncode != 0, output
    assert "[COPY" not in output
    assert output.splitlines()[-1] == (
        f"  model.acme.export: the export to s3://{bucket}/x/ was cancelled. Nothing of this "
        "export is visible, and no upload is left open"
    )
    assert output.count("was cancelled") == 1, output
    assert "Traceback" not in output
    assert "part" not in output.split("CANCEL query")[-1], output  # no progress
    nothing_left(bucket)


def text_of(path: Path) -> str:
    """Of a file that Spark's process, which ends after dbt, may have removed by now."""
    try:
        return path.read_text(errors="replace")
    except FileNotFoundError:
        return ""


def test_no_secret_is_written_anywhere(
    project_folder: Path,
    faulty: FaultyS3,
    s3: Any,
    bucket: str,
    aws_connection: dict[str, str],
) -> None:
    models = project_folder / "models"
    (models / "sources.yml").write_text(SOURCE.format(bucket=bucket))
    (models / "ingested.sql").write_text("select * from {{ source('lake', 'a') }}")
    s3.put_object(Bucket=bucket, Key="raw/1.csv", Body=b"id\n1\n")
    outputs = [finish(start_dbt(project_folder, command)) for command in ("debug", "run")]
    assert statuses(project_folder) == {"success"}, outputs[1]
    assert "lake.a: COPY 1 (1 new object" in outputs[1]
    # A failing run too: its errors are where secrets like to be.
    faulty.deny = lambda request: request.action == "UploadPart"
    for entry in s3.list_objects_v2(Bucket=bucket, Prefix="x/")["Contents"]:
        s3.delete_object(Bucket=bucket, Key=entry["Key"])
    s3.put_object(Bucket=bucket, Key="raw/2.csv", Body=b"id\n2,3\n")
    outputs.append(finish(start_dbt(project_folder, "--debug", "run")))
    assert statuses(project_folder) == {"error"}

    (project_folder / "profiles.yml").unlink()
    files = [path for path in project_folder.rglob("*") if path.is_file()]
    assert {"dbt.log", "run_results.json", "manifest.json"} <= {path.name for path in files}
    assert any(path.is_relative_to(project_folder / "events") for path in files)
    texts = [*outputs, *map(text_of, files)]
    secrets = [aws_connection[name] for name in ("secret_access_key", "session_token")]
    assert not [text for text in texts for secret in secrets if secret in text]


NO_DBT = """
import sys


class NoDbt:
    def find_spec(self, name, path=None, target=None):
        if name == "dbt" or name.startswith(("dbt.", "numpy", "pandas")):
            raise ModuleNotFoundError(f"this Python has no {name}", name=name)


sys.meta_path.insert(0, NoDbt())
"""


def test_workers_need_no_dbt(project_folder: Path, bucket: str, s3: Any) -> None:
    bare = project_folder / "bare"
    bare.mkdir()
    (bare / "sitecustomize.py").write_text(NO_DBT)
    python = bare / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{bare}:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    probe = subprocess.run([python, "-c", "import dbt"], capture_output=True, text=True)
    assert "this Python has no dbt" in probe.stderr
    dbt = start_dbt(project_folder, "run", PYSPARK_PYTHON=str(python))
    output = finish(dbt)
    assert "[COPY 30000 in " in output, output
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 2
