"""The README's examples, as a newcomer runs them: each in the file that its first line names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.dbt_process import finish, start_dbt

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"```(?:yaml|sql)\n((?:#|--) ([\w/]+\.\w+).*?)```", re.DOTALL)
PREPARED = re.compile(r"<<'PYTHON'\n(.*?)\nPYTHON", re.DOTALL)


def examples() -> dict[str, str]:
    return {name: text for text, name in NAMED.findall((ROOT / "README.md").read_text())}


def test_the_examples_run_as_they_are_written(tmp_path: Path, s3_endpoint: str) -> None:
    s3 = {
        "AWS_ENDPOINT_URL": s3_endpoint,
        "AWS_ACCESS_KEY_ID": "any",
        "AWS_SECRET_ACCESS_KEY": "any",
    }
    [prepare] = PREPARED.findall((ROOT / "docs" / "start.md").read_text())
    subprocess.run([sys.executable, "-c", prepare], env={**os.environ, **s3}, check=True)
    for name, text in examples().items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    console = finish(start_dbt(tmp_path, "run", **s3))
    assert "lake.orders: COPY 2 (1 new object, 0 rejected)" in console, console
    for kind, model in (("copy_to_s3", "orders_export"), ("persist_shard", "orders_history")):
        made = rf"OK created sql {kind} model analytics\.{model} \.* *\[COPY 2 in"
        assert re.search(made, console), console

    query = "select * from {{ ref('orders_read_again') }}"
    console = finish(start_dbt(tmp_path, "show", "--inline", query, **s3))
    assert re.search(r"\|\s*1 \|\s*9\.50? \|", console), console
