"""A cluster that can't take executors of the size that is asked for is told of at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from spark_servers import WORKER_MB
from support.spark.cluster_project import Project
from support.spark.standalone import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(1800)]


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        ({"spark.executor.memory": "2g"}, "2048 MB and 1 core(s)"),
        ({"spark.executor.cores": "2"}, "512 MB and 2 core(s)"),
    ],
)
def test_an_executor_that_fits_no_worker_is_an_error_before_anything_is_done(
    settings: dict[str, str], asked: str, on_cluster: Callable[..., Project], cluster: Cluster
) -> None:
    # Else Spark itself waits for executors before it takes any work.
    wait = {"spark.scheduler.minRegisteredResourcesRatio": "0"}
    project = on_cluster(**wait, **settings)
    code, console = project.run("export")
    assert code != 0
    assert (
        f"no worker of {cluster.master} can take an executor: spark.executor.memory and "
        f"spark.executor.cores ask for {asked}, and a worker has {WORKER_MB} MB and 1 core(s)"
    ) in console
    assert "Traceback" not in console
    assert "there was work for executors" not in console
