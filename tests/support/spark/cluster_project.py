"""A dbt project for clusters: an export, a source and a shard, what they hold, and its runs."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import spark_servers
import yaml

from support.dbt_process import finish, start_dbt
from support.s3.faulty import FaultyS3, Request

ROWS = 20_000
OBJECTS = 8
IDS = 500
"""Of each object of the source."""
_RUN_S = 900
SECRET_ACCESS_KEY = "mzs3-cluster-secret-51e0c7a9"

# Some MB for each part, so that a task has an upload under way when something befalls it.
QUERY = f"select id, repeat('x', 1000) as filler from range(0, {ROWS}, 1, 4)"
_EXPORT = "{{ config(location='s3://%s/FOLDER', parts=4, on_existing='overwrite') }} "
MODELS = {
    "export": _EXPORT.replace("FOLDER", "export") + QUERY,
    "batch": (
        "{{ config(materialized='persist_shard', location='s3://%s/shard', parts=4) }} " + QUERY
    ),
    "ingested": (
        _EXPORT.replace("FOLDER", "ingested") + "select id from {{ source('lake', 'numbers') }}"
    ),
    "read_again": (
        _EXPORT.replace("FOLDER", "read-again") + "select id from {{ source('history', 'batch') }}"
    ),
}
RUN = ("export", "ingested", "batch")
"""Without `read_again`, which has what the shard of `batch` holds."""
EXPECTED = {
    "export": Counter(range(ROWS)),
    "ingested": Counter(range(OBJECTS * IDS)),
    "read_again": Counter(range(ROWS)),
}
SOURCES = """
sources:
  - name: lake
    schema: "{{ target.schema }}"
    tables:
      - {name: numbers, external: {type: s3_csv_source, location: "s3://%s/raw/"}}
  - name: history
    schema: "{{ target.schema }}_history"
    tables:
      - name: batch
        external: {type: persist_shard, location: "s3://%s/shard", as_of: latest}
        columns: [{name: id}]
"""
UNDER_WAY: dict[str, Callable[[Request], bool]] = {
    "export": lambda request: request.action == "UploadPart" and "/export/" in request.key,
    "ingested": lambda request: request.action == "GETObject" and "/raw/" in request.key,
    "batch": lambda request: request.action == "UploadPart" and "/shard/" in request.key,
}
"""Of each model, whether a request shows that its tasks are in the midst of their work."""

# Little is computed: to generate and compile code takes longer than it saves.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
# Of a driver in dbt's process.
LOCAL = {
    **INTERPRETED,
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.log.level": "OFF",
    # The metastore goes with the test: it need not wait for the disk.
    "spark.driver.extraJavaOptions": "-Dderby.system.durability=test",
}
# No job begins before all executors are there, however long they take to start.
CLUSTER = {
    **LOCAL,
    "spark.executor.memory": "512m",
    # As short as they live, Java's second compiler costs more than it gains.
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "200s",
    "spark.locality.wait": "0s",
    # A block that is gone is told of at once.
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "100ms",
}


@dataclass(frozen=True)
class Roads:
    """The proxies before one S3 server: that of dbt, and those of the executors of each host."""

    driver: FaultyS3
    workers: Mapping[str, FaultyS3]

    @property
    def environments(self) -> dict[str, dict[str, str]]:
        """What the executors of each host have in their environment."""
        return {host: {"AWS_ENDPOINT_URL": road.endpoint} for host, road in self.workers.items()}

    def reset(self) -> None:
        """Nothing befalls requests any more."""
        for road in (self.driver, *self.workers.values()):
            road.reset()

    def when_under_way(
        self, then: Callable[[str, str], object], models: Sequence[str] = RUN
    ) -> set[str]:
        """Calls `then(model, host)` once for each model, at the first request of an executor that
        shows it under way, before that is forwarded. Returns the models of which it was called,
        which grow."""
        lock, done = threading.Lock(), set[str]()

        def watch(host: str, request: Request) -> None:
            for model in models:
                with lock:
                    if model not in done and UNDER_WAY[model](request):
                        done.add(model)
                        then(model, host)

        for host, road in self.workers.items():
            road.watch = partial(watch, host)
        return done


@contextlib.contextmanager
def start_connect(
    folder: Path,
    endpoint: str,
    settings: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[spark_servers.Server]:
    """A Connect server whose workers find S3 at the endpoint."""
    settings = {
        **INTERPRETED,
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        **(settings or {}),
    }
    environment = {"AWS_ENDPOINT_URL": endpoint, **(environment or {})}
    with spark_servers.connect_server(folder, settings, environment) as server:
        yield server


class Project:
    """A project in a folder of its own with a bucket of its own, for one profile's output.

    The connection has no endpoint: each process finds it in its environment, `AWS_ENDPOINT_URL`.
    """

    def __init__(
        self, folder: Path, s3: Any, bucket: str, endpoint: str, output: dict[str, Any]
    ) -> None:
        self.folder = folder
        self.s3 = s3
        self.bucket = bucket
        self._environment = {
            "AWS_ENDPOINT_URL": endpoint,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": str(spark_servers.WORKERS_PYTHON),
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        }
        s3.create_bucket(Bucket=bucket)
        for number in range(OBJECTS):
            ids = range(number * IDS, (number + 1) * IDS)
            body = "".join(f"{line}\n" for line in ("id", *ids)).encode()
            s3.put_object(Bucket=bucket, Key=f"raw/{number}.csv", Body=body)
        (folder / "models").mkdir(parents=True)
        for name, text in MODELS.items():
            (folder / "models" / f"{name}.sql").write_text(text.replace("%s", bucket))
        (folder / "models" / "sources.yml").write_text(SOURCES.replace("%s", bucket))
        project = {
            "name": "acme",
            "version": "1.0",
            "profile": "acme",
            "config-version": 2,
            "models": {"+materialized": "copy_to_s3"},
        }
        connection = {
            "region": "us-east-1",
            "addressing_style": "path",
            "access_key_id": "testing",
            "secret_access_key": SECRET_ACCESS_KEY,
        }
        output = {
            "type": "mzs3",
            "schema": bucket.replace("-", "_"),
            "threads": 1,
            "executor_timeout": 200,
            "aws_connections": {"default": connection},
            **output,
        }
        (folder / "dbt_project.yml").write_text(yaml.safe_dump(project))
        self._output: dict[str, Any] = {}
        self.use(**output)

    def use(self, **output: Any) -> None:
        """Changes these keys of the profile's output."""
        self._output.update(output)
        profile = {"acme": {"target": "dev", "outputs": {"dev": self._output}}}
        (self.folder / "profiles.yml").write_text(yaml.safe_dump(profile))

    def start(self, *arguments: str) -> Any:
        """dbt in a process of its own."""
        return start_dbt(self.folder, *arguments, **self._environment)

    def run(self, *models: str, flags: Sequence[str] = ()) -> tuple[int, str]:
        """The exit code of `dbt run`, and its console."""
        process = self.start(*flags, "run", "--select", *models)
        try:
            console = finish(process, _RUN_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        return process.returncode, console

    def sums(self, model: str) -> list[str]:
        """The SHA-256 of each file of an export, as its manifest has them."""
        return [entry["meta"]["sha256"] for entry in self._manifest(model)["entries"]]

    def ids(self, model: str) -> Counter[int]:
        """How often the files of an export have each id."""
        found: Counter[int] = Counter()
        for entry in self._manifest(model)["entries"]:
            key = entry["url"].split("/", 3)[3]
            body = self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read().decode()
            found.update(int(line.split(",", 1)[0]) for line in body.splitlines())
        return found

    def open_uploads(self) -> list[str]:
        """Their keys."""
        found = self.s3.list_multipart_uploads(Bucket=self.bucket).get("Uploads", [])
        return [upload["Key"] for upload in found]

    def visible(self) -> list[str]:
        """The keys of all objects that are not the source's."""
        found = self.s3.list_objects_v2(Bucket=self.bucket)["Contents"]
        return [entry["Key"] for entry in found if not entry["Key"].startswith("raw/")]

    def require_right(self, *models: str) -> None:
        """All that these write is there, once, and nothing is left open."""
        if "batch" in models:
            code, console = self.run("read_again")
            assert code == 0, console
        for model in ("read_again" if model == "batch" else model for model in models):
            found = self.ids(model)
            lost = sorted((EXPECTED[model] - found).elements())
            doubled = sorted((found - EXPECTED[model]).elements())
            assert (model, lost, doubled) == (model, [], [])
        assert self.open_uploads() == []

    def _manifest(self, model: str) -> dict[str, Any]:
        key = f"{model.replace('_', '-')}/_manifest.json"
        body = self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        manifest: dict[str, Any] = json.loads(body)
        return manifest
