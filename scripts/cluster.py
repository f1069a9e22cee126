"""Spark's servers and an S3 server on this machine, until Ctrl-C: `make cluster`.

A standalone master with two workers, a Connect server, a Thrift server, and a metastore that all
share. The Python of their workers has pyarrow and boto3, and no dbt.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import tempfile
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import spark_servers
import yaml
from demo_s3 import ACCESS_KEY_ID, SECRET_ACCESS_KEY, load, s3_client, s3_server
from jinja2 import Environment
from spark_servers import WORKER_MB, WORKERS_PYTHON

PROJECT = Path(__file__).resolve().parent.parent / "sample_project"
TARGETS = ("cluster", "connect", "thrift")
"""Outputs of the sample project's profile that need servers."""


def main() -> int:
    """Start all servers, say how to reach them, and wait for Ctrl-C or SIGTERM."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    with tempfile.TemporaryDirectory(prefix="mzs3-cluster-") as folder:
        try:
            with s3_server() as endpoint:
                _run(Path(folder), endpoint)
        except KeyboardInterrupt:
            print("\nAll servers have ended; what they kept is removed.")
        except RuntimeError as exc:
            print(exc, file=sys.stderr)
            return 1
    return 0


def _end(*_: object) -> None:
    """Ends the wait, or the start; a second signal does not keep servers from being ended."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _run(folder: Path, endpoint: str) -> None:
    print("The objects of the sample project:")
    load(s3_client(endpoint))
    print("Spark's servers start …", flush=True)
    with servers(folder, TARGETS) as variables:
        _tell(folder, {**s3_variables(endpoint), **variables})
        while True:
            signal.pause()


@contextmanager
def servers(folder: Path, targets: Collection[str]) -> Iterator[dict[str, str]]:
    """Starts what these targets of the sample project need, which is nothing where there is none;
    yields the variables of its profile.

    Connect and Thrift have a Spark of their own each, as a standalone cluster gives an application
    its cores for as long as it lasts: a server that has them leaves none to others.
    """
    if not targets:
        yield {}
        return
    with ExitStack() as stack:
        start = stack.enter_context
        metastore = start(spark_servers.metastore(folder)).url
        shared = spark_servers.shared_tables(folder, metastore)
        variables = {
            "CLUSTER_METASTORE": metastore,
            "WAREHOUSE": str(folder / "warehouse"),
            "PYSPARK_PYTHON": str(WORKERS_PYTHON),
            "SPARK_LOCAL_IP": spark_servers.LOOPBACK,
        }
        if "JAVA_HOME" in os.environ:
            variables["JAVA_HOME"] = os.environ["JAVA_HOME"]
        if "cluster" in targets or "thrift" in targets:
            master = start(spark_servers.master(folder))
            for name in ("worker-1", "worker-2"):
                start(spark_servers.worker(folder, name, master.url))
            variables.update(CLUSTER_MASTER=master.url, CLUSTER_PAGE=master.page)
        if "connect" in targets:
            server = start(spark_servers.connect_server(folder, shared))
            variables.update(CLUSTER_CONNECT=server.url, CLUSTER_CONNECT_PAGE=server.page)
        if "thrift" in targets:
            server = start(spark_servers.thrift_server(folder, shared))
            variables["CLUSTER_THRIFT_PORT"] = server.url.rpartition(":")[2]
            variables["CLUSTER_THRIFT_PAGE"] = server.page
        yield variables


def s3_variables(endpoint: str) -> dict[str, str]:
    """What the sample project's profile reads of the S3 server."""
    return {
        "S3_ENDPOINT": endpoint,
        "DBT_ENV_SECRET_ACCESS_KEY_ID": ACCESS_KEY_ID,
        "DBT_ENV_SECRET_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY,
    }


def outputs(variables: dict[str, str]) -> dict[str, Any]:
    """The targets of the sample project's profile, with these values of its variables."""
    jinja = Environment(autoescape=False)
    jinja.filters["as_number"] = int
    template = jinja.from_string((PROJECT / "profiles.yml").read_text())
    profile = yaml.safe_load(template.render(env_var=lambda name, _="": variables[name]))
    found = {target: profile["flights"]["outputs"][target] for target in TARGETS}
    found["thrift"]["port"] = int(found["thrift"]["port"])
    return found


def _tell(folder: Path, variables: dict[str, str]) -> None:
    # Without YAML's anchors, so that each can be pasted alone.
    pasted = yaml.safe_dump(json.loads(json.dumps(outputs(variables))), sort_keys=False)
    exports = "\n".join(
        f"  export {name}={shlex.quote(value)}"
        for name, value in variables.items()
        if not name.endswith("PAGE")
    )
    print(
        f"""
S3                    {variables["S3_ENDPOINT"]}
standalone master     {variables["CLUSTER_MASTER"]}
  two workers of one core and {WORKER_MB} MB; page: {variables["CLUSTER_PAGE"]}
Spark Connect         {variables["CLUSTER_CONNECT"]}
  page: {variables["CLUSTER_CONNECT_PAGE"]}
Thrift                {spark_servers.LOOPBACK}:{variables["CLUSTER_THRIFT_PORT"]}
  page: {variables["CLUSTER_THRIFT_PAGE"]}
metastore             {variables["CLUSTER_METASTORE"]}
logs                  {folder}

Outputs for profiles.yml:

{pasted}
To run the sample project there:

{exports}
  cd {shlex.quote(os.path.relpath(PROJECT))}
  {shlex.quote(str(Path(sys.executable).with_name("dbt")))} build --target connect

Ctrl-C ends all servers and removes what they keep.""",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
