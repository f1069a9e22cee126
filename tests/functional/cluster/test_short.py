"""Short runs on a standalone cluster and over Spark Connect; their workers have no dbt."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
from spark_servers import WORKERS_PYTHON
from support.spark.cluster_project import RUN, Project

pytestmark = pytest.mark.spark


def require_runs(project: Project) -> None:
    code, console = project.run(*RUN)
    assert code == 0, console
    project.require_right("export", "ingested")


def test_the_python_of_workers_has_no_dbt() -> None:
    missing = "import importlib.util as u; print([m for m in {} if not u.find_spec(m)])"
    names = ("dbt", "pandas", "pyspark", "pyarrow", "boto3")
    done = subprocess.run(
        [WORKERS_PYTHON, "-I", "-c", missing.format(names)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(["dbt", "pandas", "pyspark"])


@pytest.mark.light
def test_a_standalone_cluster_exports_ingests_and_writes_a_shard(
    on_cluster: Callable[..., Project],
) -> None:
    require_runs(on_cluster())


@pytest.mark.slow
def test_a_connect_server_exports_ingests_and_writes_a_shard(on_connect: Project) -> None:
    require_runs(on_connect)
