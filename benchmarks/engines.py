"""How long the same work takes wherever Spark runs, as ratios.

`sample`: `dbt build` of the sample project on a standalone cluster and over Spark Connect, to a
Spark in dbt's process. `workers`: an export and an ingestion with one worker of one core, to two.
Where the system can, each gets half of a core's time: else two of them, dbt's process and the S3
server would share the two cores that many machines have, and no cluster could be twice as fast.
Run it with PYTHONPATH=scripts, where the servers are. Their start is not counted.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import demo
import spark_servers
from cluster import TARGETS, s3_variables, servers
from demo_s3 import load, s3_client, s3_server
from s3_server import serve_s3
from session import Session, median_seconds, source
from table import COLUMNS, TABLE

from dbt.adapters.mzs3.source.ingest import ingest

# More than workers, so that two of them have work until the end.
PARTS = 8
CONTROL_GROUPS = Path("/sys/fs/cgroup")


def main() -> None:
    arguments = _arguments()
    demo.forget_foreign_settings(os.environ)
    os.environ["SPARK_LOCAL_IP"] = spark_servers.LOOPBACK
    with tempfile.TemporaryDirectory(prefix="mzs3-bench-") as name:
        if arguments.what == "sample":
            sample(Path(name), arguments.targets, arguments.rounds)
        else:
            workers(Path(name), arguments.rounds, arguments.rows)


def sample(folder: Path, targets: Sequence[str], rounds: int) -> None:
    """Print the median time of `dbt build` by the target, each time with new servers."""
    seconds: dict[str, list[float]] = {target: [] for target in ("dev", *targets)}
    for turn in range(rounds):
        for target, times in seconds.items():
            times.append(_build(folder / f"{turn}-{target}", target))
    medians = {target: statistics.median(times) for target, times in seconds.items()}
    _print(f"dbt build of the sample project, medians of {rounds}", medians, "dev")


def _build(folder: Path, target: str) -> float:
    """The seconds from the start of dbt's process to its end."""
    targets = [] if target == "dev" else [target]
    with s3_server() as endpoint, servers(folder, targets) as variables:
        warehouse = {"WAREHOUSE": str(folder / "spark" / "warehouse"), demo.TARGET: target}
        variables = {**warehouse, **s3_variables(endpoint), **variables}
        with contextlib.redirect_stdout(io.StringIO()):  # they say what they do
            load(s3_client(endpoint))
            began = time.perf_counter()
            demo.dbt("--quiet build", demo.dbt_environment(os.environ, variables))
            return time.perf_counter() - began


def workers(folder: Path, rounds: int, rows: int) -> None:
    """Print the median times of an export and of an ingestion by the number of workers."""
    os.environ["PYSPARK_PYTHON"] = str(spark_servers.WORKERS_PYTHON)
    medians: dict[str, dict[str, float]] = {"export": {}, "ingestion": {}}
    with contextlib.ExitStack() as stack:
        start = stack.enter_context
        master = start(spark_servers.master(folder))
        bench = Bench(folder, master.url, rows)
        stack.callback(bench.spark.stop)
        bench.connection = start(serve_s3(bench.s3_folder))
        for count, name in ((1, "one worker"), (2, "two workers")):
            limit = start(half_of_a_core())
            limit(start(spark_servers.worker(folder, f"worker-{count}", master.url)).pid)
            bench.wait_for(count)
            ways: dict[str, Callable[[int], object]] = {
                "export": bench.export,
                "ingestion": bench.ingest,
            }
            for way, median in median_seconds(ways, rounds).items():
                medians[way][name] = median
    for way, times in medians.items():
        _print(f"{way} of {rows:,} rows, medians of {rounds}", times, "one worker")


@contextlib.contextmanager
def half_of_a_core() -> Iterator[Callable[[int], object]]:
    """Takes processes, which get half of a core's time at most, with all that they start then.

    Where control groups can't be made, which root can on Linux, it says so.
    """
    try:
        if (CONTROL_GROUPS / "cpu").is_dir():  # of the first version
            group = Path(tempfile.mkdtemp(prefix="mzs3-bench-", dir=CONTROL_GROUPS / "cpu"))
            (group / "cpu.cfs_quota_us").write_text("50000")
        else:
            group = Path(tempfile.mkdtemp(prefix="mzs3-bench-", dir=CONTROL_GROUPS))
            (group / "cpu.max").write_text("50000 100000")
    except OSError as exc:
        print(f"workers have whole cores, which they share with all others: {exc}")
        yield lambda _: None
        return
    yield lambda pid: (group / "cgroup.procs").write_text(str(pid))
    with contextlib.suppress(OSError):  # executors may be a little later to end than their worker
        group.rmdir()


class Bench(Session):
    """One Spark session on a cluster, one S3 server, and the objects that are read."""

    def __init__(self, folder: Path, master: str, rows: int) -> None:
        super().__init__(
            folder / "bench",
            **{
                "spark.master": master,
                "spark.executor.memory": "512m",
                "spark.driver.memory": "1g",
                "spark.sql.shuffle.partitions": str(PARTS),
                "spark.sql.adaptive.coalescePartitions.enabled": "false",
            },
        )
        self._query = TABLE.format(rows=rows)
        self._done = 0

    def wait_for(self, executors: int) -> None:
        """Returns once there are so many."""
        status = self.spark.sparkContext._jsc.sc().statusTracker()
        while len(status.getExecutorInfos()) <= executors:  # the driver is one of them
            time.sleep(0.1)

    def export(self, _: int) -> None:
        """Writes the objects that the next ingestion reads."""
        self._done += 1
        self.copy(self._query, f"orders-{self._done}", header=True, parts=PARTS)

    def ingest(self, _: int) -> None:
        """Reads what was exported last into a new table."""
        schema = f"raw_{self._done}"
        definition = source(schema, "orders", f"orders-{self._done}/", COLUMNS, pattern="*.csv")
        ingest(self.spark, definition, self.connection)
        self.spark.sql(f"DROP SCHEMA {schema} CASCADE")


def _print(what: str, seconds: Mapping[str, float], base: str) -> None:
    print(what)
    for name, median in seconds.items():
        print(f"{name:<20}{median:>8.2f} s {median / seconds[base]:>8.2f} x")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("sample", "workers"))
    parser.add_argument(
        "--targets", nargs="+", choices=TARGETS, default=TARGETS, help="of `sample`"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of `workers`")
    return parser.parse_args()


if __name__ == "__main__":
    main()
