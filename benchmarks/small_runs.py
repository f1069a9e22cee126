"""How long small models take in a warm `dbt run`, as ratios to a table of the same rows.

One process runs a project again and again, as dbt's programmatic runner does. What a source costs
is the pass over it before the first model that reads it; of the others it is dbt's own time of the
node. First ingestions come after all others, in runs of their own, as Java compiles for a while
what they have run, beside what comes next. One more run counts what each asks of Spark's JVM and
of S3. Read the ratios and the counts.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from dbt.cli.main import dbtRunner
from forwarder import Forwarder
from py4j.java_gateway import GatewayClient  # type: ignore[import-untyped]
from pyspark.sql import SparkSession
from s3_server import serve_s3
from session import BUCKET
from table import TABLE

from dbt.adapters.mzs3 import impl
from dbt.adapters.mzs3.project.staging import stage_for_node
from dbt.adapters.mzs3.shard.state.store import StateStore
from dbt.adapters.mzs3.store.connection import AwsConnection

ENDPOINT = "MZS3_BENCH_ENDPOINT"
ROWS = "select * from {{ ref('small_rows') }}"
WAYS = {
    "table": "small_table",
    "copy_to_s3": "small_export",
    "idle source": "idle_reader",
    "idle shard": "small_shard",
    "first ingestion": "first_reader",
}
"""What is measured, by the model that does it."""
FIRST = WAYS["first ingestion"]
OTHERS = ["small_rows", *(model for model in WAYS.values() if model != FIRST)]

PROJECT = {
    "dbt_project.yml": """
name: small
profile: small
flags: {send_anonymous_usage_stats: false}
on-run-start: ["drop schema if exists first_time cascade"]
""",
    "models/sources.yml": f"""
sources:
- name: lake
  schema: idle
  tables:
  - name: orders
    external: {{type: s3_csv_source, location: s3://{BUCKET}/orders/}}
    columns: [{{name: id, data_type: bigint}}, {{name: city, data_type: string}}]
- name: first_time
  tables:
  - name: orders
    external: {{type: s3_csv_source, location: s3://{BUCKET}/orders/}}
    columns: [{{name: id, data_type: bigint}}, {{name: city, data_type: string}}]
""",
    "models/small_rows.sql": "{{ config(materialized='table') }}" + TABLE.format(rows=1000),
    "models/small_table.sql": "{{ config(materialized='table') }}" + ROWS,
    "models/small_export.sql": f"""{{{{ config(materialized='copy_to_s3',
    location="'s3://{BUCKET}/exports/' || mz_now()", format='csv', header=true) }}}}{ROWS}""",
    "models/small_shard.sql": f"""{{{{ config(materialized='persist_shard',
    location='s3://{BUCKET}/shard') }}}}{ROWS}""",
    "models/idle_reader.sql": """-- depends_on: {{ ref('small_rows') }}
select * from {{ source('lake', 'orders') }}""",
    "models/first_reader.sql": "select * from {{ source('first_time', 'orders') }}",
}


class Cost(NamedTuple):
    """What one of the ways took, in seconds; of all processes in `processor`."""

    seconds: float
    processor: float


def main() -> None:
    rounds = _arguments().rounds
    with tempfile.TemporaryDirectory(prefix="mzs3-bench-") as name:
        folder = Path(name)
        objects = folder / "s3" / BUCKET / "orders"
        objects.mkdir(parents=True)
        (objects / "1.csv").write_text("id,city\n1,Oslo\n2,Rome\n")
        # This server knows no conditions; with one writer none is ever needed.
        heedless = mock.patch.object(StateStore, "require_conditions")
        with serve_s3(folder / "s3") as connection, heedless:
            bench = Bench(folder / "project", connection)
            bench.run()
            for _ in range(2):  # the JVM compiles what it runs often
                bench.run_all()
            others = [bench.run(*OTHERS) for _ in range(rounds)]
            costs = [one | bench.run(FIRST) for one in others]
            counts, requests = bench.counts()
            _print(costs, counts, requests)
            SparkSession.builder.getOrCreate().stop()


class Bench:
    """A dbt project in a folder of its own, and what its runs cost."""

    def __init__(self, folder: Path, connection: AwsConnection) -> None:
        self._connection = connection
        self._arguments = ["--quiet", "run", "--project-dir", str(folder)]
        self._arguments += ["--profiles-dir", str(folder), "--threads", "1"]
        for file, text in {**PROJECT, "profiles.yml": _profile(folder, connection)}.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text)

    def run(self, *models: str, endpoint: str | None = None) -> dict[str, Cost]:
        """What each model, or the source before it, took; without any, all models run."""
        os.environ[ENDPOINT] = endpoint or self._connection.endpoint or ""
        select = ["--select", *models] if models else []
        with watched_sources() as passes, watched_nodes() as (watch, processor):
            run = dbtRunner(callbacks=[watch]).invoke([*self._arguments, *select])
        if not run.success:
            raise SystemExit(f"dbt has failed: {run.exception or 'see above'}")
        results: Any = run.result
        costs = {
            one.node.name: Cost(one.execution_time, processor[one.node.name])
            for one in results
            if one.node.resource_type == "model"
        }
        return costs | passes

    def run_all(self, endpoint: str | None = None) -> dict[str, Cost]:
        """What each of WAYS took; what they read is made before them."""
        return self.run(FIRST, endpoint=endpoint) | self.run(*OTHERS, endpoint=endpoint)

    def counts(self) -> tuple[dict[str, list[int]], dict[str, Counter[str]]]:
        """What a run asks for, by its models: calls into the JVM, jobs and SQL executions; and
        the requests to S3 of each kind."""
        asked: dict[str, list[int]] = {}
        requests: dict[str, Counter[str]] = {}
        calls = [0]
        before: list[Any] = []
        send = GatewayClient.send_command

        def counting(*arguments: Any, **options: Any) -> Any:
            calls[0] += 1
            return send(*arguments, **options)

        with Forwarder(self._connection.endpoint or "") as forwarder:

            def look() -> list[int]:
                counted, (jobs, executions) = calls[0], _jobs_and_executions()
                return [counted, jobs, executions]

            def watch(event: Any) -> None:
                name = event.info.name
                if name == "NodeStart":
                    before[:] = [dict(forwarder.requests), look()]
                    calls[0] = 0
                    before[1][0] = 0
                elif name == "NodeFinished":
                    node = event.data.node_info.node_name
                    asked[node] = [now - then for now, then in zip(look(), before[1], strict=True)]
                    requests[node] = forwarder.requests - Counter(before[0])

            # What a process finds out about a store once, it has found out about this one too.
            self.run_all(endpoint=forwarder.endpoint)
            with mock.patch.object(GatewayClient, "send_command", counting):
                for models in ([FIRST], OTHERS):
                    dbtRunner(callbacks=[watch]).invoke([*self._arguments, "--select", *models])
        return asked, requests


@contextmanager
def watched_sources() -> Iterator[dict[str, Cost]]:
    """What passes over sources cost inside the block, by the model before which they were."""
    costs: dict[str, Cost] = {}

    def timed(adapter: Any, node: Any) -> None:
        started, processor = time.perf_counter(), processor_seconds()
        stage_for_node(adapter, node)
        if node.name in (WAYS["idle source"], WAYS["first ingestion"]):
            seconds = time.perf_counter() - started
            costs[node.name] = Cost(seconds, processor_seconds() - processor)

    with mock.patch.object(impl, "stage_for_node", timed):
        yield costs


@contextmanager
def watched_nodes() -> Iterator[tuple[Callable[[Any], None], dict[str, float]]]:
    """Takes dbt's events; and the processor seconds from the start to the end of each node."""
    seconds: dict[str, float] = {}

    def watch(event: Any) -> None:
        if event.info.name in ("NodeStart", "NodeFinished"):
            node, now = event.data.node_info.node_name, processor_seconds()
            seconds[node] = now - seconds.get(node, 0.0)

    yield watch, seconds


def processor_seconds() -> float:
    """What this process and all that it has started have had of the processors so far."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        pid = int(stat.parent.name)
        parents[pid] = int(fields[1])
        ticks[pid] = sum(map(int, fields[11:15]))
    ours = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(ticks[pid] for pid in ours) / os.sysconf("SC_CLK_TCK")


def _jobs_and_executions() -> tuple[int, int]:
    """How many jobs and SQL executions Spark has begun; none before it starts."""
    session = SparkSession._instantiatedSession
    if session is None:
        return 0, 0
    scala = session.sparkContext._jsc.sc()
    scala.listenerBus().waitUntilEmpty()
    executions = session._jsparkSession.sharedState().statusStore()
    return scala.statusStore().jobsList(None).size(), executions.executionsCount()


def _profile(folder: Path, connection: AwsConnection) -> str:
    return f"""
small:
  target: bench
  outputs:
    bench:
      type: mzs3
      method: session
      schema: small
      server_side_parameters:
        spark.master: local[2]
        spark.driver.memory: 2g
        spark.sql.warehouse.dir: {folder / "warehouse"}
        spark.ui.enabled: "false"
        spark.sql.ui.retainedExecutions: "100000"
      aws_connections:
        default:
          region: {connection.region}
          endpoint: "{{{{ env_var('{ENDPOINT}') }}}}"
          addressing_style: path
          access_key_id: {connection.access_key_id}
          secret_access_key: {connection.secret_access_key}
"""


def _print(
    costs: list[dict[str, Cost]],
    counts: dict[str, list[int]],
    requests: dict[str, Counter[str]],
) -> None:
    medians = {
        way: Cost(*map(statistics.median, zip(*(run[model] for run in costs), strict=True)))
        for way, model in WAYS.items()
    }
    print(
        f"1,000 rows, medians of {len(costs)} runs; processor seconds; calls into the JVM, jobs,"
    )
    print("SQL executions, requests to S3")
    for way, model in WAYS.items():
        cost = medians[way]
        calls, jobs, executions = counts[model]
        asked = ", ".join(f"{count} {kind}" for kind, count in sorted(requests[model].items()))
        print(
            f"{way:<16}{cost.seconds:>6.2f} s {cost.seconds / medians['table'].seconds:>6.2f} x"
            f"{cost.processor:>6.2f} s{calls:>6}{jobs:>4}{executions:>4}  {asked}"
        )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    return parser.parse_args()


if __name__ == "__main__":
    main()
