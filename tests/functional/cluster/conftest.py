"""One standalone cluster for all tests, each of whose workers has a road to S3 of its own."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import spark_servers
from support.s3.faulty import FaultyS3
from support.spark.cluster_project import CLUSTER, LOCAL, Project, Roads, start_connect
from support.spark.standalone import HOSTS, Cluster, standalone_cluster

_numbers = itertools.count()


@pytest.fixture(scope="session")
def all_roads(s3_endpoint: str) -> Iterator[Roads]:
    with contextlib.ExitStack() as stack:
        driver, *workers = [stack.enter_context(FaultyS3(s3_endpoint)) for _ in ("driver", *HOSTS)]
        yield Roads(driver, dict(zip(HOSTS, workers, strict=True)))


@pytest.fixture
def roads(all_roads: Roads) -> Iterator[Roads]:
    """Nothing befalls requests yet."""
    all_roads.reset()
    yield all_roads
    all_roads.reset()


@pytest.fixture(scope="session")
def one_cluster(all_roads: Roads, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with standalone_cluster(folder, all_roads.environments) as cluster:
        yield cluster


@pytest.fixture
def cluster(one_cluster: Cluster) -> Cluster:
    """Both of its workers live."""
    one_cluster.revive()
    return one_cluster


@pytest.fixture(scope="session")
def connect(
    all_roads: Roads, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[spark_servers.Server]:
    """A Connect server with a Spark of its own."""
    with start_connect(tmp_path_factory.mktemp("connect"), all_roads.driver.endpoint) as server:
        yield server


@pytest.fixture
def project(tmp_path: Path, roads: Roads, s3: Any) -> Callable[..., Project]:
    """`project(output)`: a new project with a bucket of its own."""

    def make(output: dict[str, Any]) -> Project:
        number = next(_numbers)
        folder = tmp_path / f"project-{number}"
        return Project(folder, s3, f"cluster-{number}", roads.driver.endpoint, output)

    return make


@pytest.fixture
def on_cluster(
    cluster: Cluster, project: Callable[..., Project], tmp_path: Path
) -> Callable[..., Project]:
    """`on_cluster(**settings)`: a project whose driver is in dbt's process."""

    def make(**settings: str) -> Project:
        parameters = {**CLUSTER, "spark.master": cluster.master, **settings}
        return project({"method": "session", "server_side_parameters": parameters})

    return make


@pytest.fixture
def on_connect(connect: spark_servers.Server, project: Callable[..., Project]) -> Project:
    return project({"method": "connect", "host": connect.url})


@pytest.fixture(scope="session")
def shared_tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The settings of all Sparks with one metastore and one folder of tables."""
    folder = tmp_path_factory.mktemp("shared")
    with spark_servers.metastore(folder) as metastore:
        yield spark_servers.shared_tables(folder, metastore.url)


@pytest.fixture(scope="session")
def thrift(
    shared_tables: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[spark_servers.Server]:
    """A Thrift server with a Spark of its own."""
    folder = tmp_path_factory.mktemp("thrift")
    with spark_servers.thrift_server(folder, shared_tables) as server:
        yield server


@pytest.fixture
def on_thrift(
    thrift: spark_servers.Server,
    shared_tables: dict[str, str],
    project: Callable[..., Project],
    request: pytest.FixtureRequest,
) -> Callable[..., Project]:
    """`on_thrift(master, **settings)`: a project whose jobs run there, by default on the
    standalone cluster."""

    def make(master: str | None = None, **settings: str) -> Project:
        host, port = thrift.url.split(":")
        conf = {**(LOCAL if master else CLUSTER), **shared_tables, **settings}
        submit = {"master": master or request.getfixturevalue("cluster").master, "conf": conf}
        server = {"host": host, "port": int(port), "user": "dbt", "poll_interval": 1}
        return project({"method": "thrift", **server, "spark_submit": submit})

    return make


@pytest.fixture
def on_local(project: Callable[..., Project]) -> Project:
    parameters = {**LOCAL, "spark.master": "local[2]"}
    return project({"method": "session", "server_side_parameters": parameters})
