"""The demo: flights from CSV objects in S3, through dbt models in Spark, back to S3 as CSV.

Run it with `make demo`, which prepares the environment and Java. Everything stays on this
machine: S3 is moto's server on the loopback interface, Spark runs inside dbt's process. A target
of the sample project's profile that needs other servers gets them for as long as the demo lasts.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import NoReturn

from cluster import TARGETS, s3_variables, servers
from demo_data import exported_flights
from demo_exports import (
    DemoFailed,
    Export,
    as_of_shard,
    read_exports,
    require_growth,
    require_rows,
)
from demo_s3 import EXPORTS_BUCKET, load, s3_client, s3_server

ROOT = Path(__file__).resolve().parent.parent
PROJECT = ROOT / "sample_project"
WORK = ROOT / ".demo"
DBT = Path(sys.executable).with_name("dbt")

SHARD = f"s3://{EXPORTS_BUCKET}/shards/planes_flown"
TARGET = "DBT_TARGET"
NATIVE = "native"
COMET_JAR = Path(sys.prefix) / "comet.jar"  # where `make` puts it
# Settings of the caller's own work, which would point dbt, Spark or boto3 elsewhere.
FOREIGN_SETTINGS = ("AWS_", "DBT_", "HADOOP_", "HIVE_", "PYSPARK_", "SPARK_")


def main() -> int:
    """Run the demo; 0 if every step did what it should."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", nargs="?", choices=(*TARGETS, NATIVE), help="where Spark runs")
    target = parser.parse_args().target
    signal.signal(signal.SIGTERM, _terminated)
    forget_foreign_settings(os.environ)
    _start_clean()
    try:
        targets = [target] if target in TARGETS else []
        with s3_server() as endpoint, servers(WORK / "servers", targets) as variables:
            environment = dbt_environment(os.environ, {**s3_variables(endpoint), **variables})
            _run(endpoint, environment if target is None else {**environment, TARGET: target})
    except DemoFailed as exc:
        print(f"\nThe demo failed: {exc}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped; nothing is left running.", file=sys.stderr)
        return 130
    return 0


def _run(endpoint: str, environment: Mapping[str, str]) -> None:
    client = s3_client(endpoint)
    print(f"Java is {os.environ.get('JAVA_HOME', 'what the PATH has')}; S3 is moto at {endpoint}")
    _title("Load CSV objects into S3")
    loaded = load(client)
    _title("Check the profile: Spark, and the AWS connection")
    dbt("debug", environment)
    _title("How fresh are the sources? From S3's own timestamps, without Spark")
    dbt("source freshness", environment)
    _title("Ingest the sources, build and test the models, export two of them, begin a shard")
    dbt("build", environment)
    _title("What is in S3 now")
    exports = read_exports(client, PROJECT / "target" / "run_results.json", WORK / "exports")
    check(exports, loaded)
    show(exports)
    _title("Two more runs of the shard, and a model that reads it at two moments")
    first = as_of_shard(PROJECT / "target" / "run_results.json", "planes_flown")
    dbt("run --select planes_flown --vars", environment, '{"through_month": 8}')
    now = f'{{"through_month": 12, "planes_flown_as_of": {first}}}'
    dbt("run --select planes_flown fleet_growth --vars", environment, now)
    dbt("show --inline", environment, "select * from {{ ref('fleet_growth') }}")
    require_growth(Path(environment["WAREHOUSE"]))
    dbt("run-operation describe_shard --args", environment, f"{{location: {SHARD}}}")
    _where_next()


def _start_clean() -> None:
    """S3 starts empty, so what an earlier demo ingested from it must go as well."""
    shutil.rmtree(WORK, ignore_errors=True)
    shutil.rmtree(PROJECT / "target", ignore_errors=True)
    WORK.mkdir()


def forget_foreign_settings(environment: MutableMapping[str, str]) -> None:
    """Remove what would point boto3, Spark or dbt away from this demo; no proxy to loopback."""
    for name in [name for name in environment if name.startswith(FOREIGN_SETTINGS)]:
        del environment[name]
    environment["NO_PROXY"] = environment["no_proxy"] = "127.0.0.1"


def dbt_environment(
    environment: Mapping[str, str], variables: Mapping[str, str]
) -> dict[str, str]:
    """The environment with what the project's profile reads, and this Python for the workers."""
    return {
        **environment,
        "PATH": f"{DBT.parent}{os.pathsep}{environment.get('PATH', os.defpath)}",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        "WAREHOUSE": str(WORK / "spark" / "warehouse"),
        "COMET_JAR": str(COMET_JAR),
        **variables,
    }


def dbt(command: str, environment: Mapping[str, str], *last: str) -> None:
    """Run dbt in the sample project, with these words last; DemoFailed if it reports a failure."""
    words = [*command.split(), *last]
    if TARGET in environment:
        words += ["--target", environment[TARGET]]
    print(f"$ dbt {shlex.join(words)}", flush=True)
    process = subprocess.Popen([DBT, *words], cwd=PROJECT, env=dict(environment))
    try:
        code = process.wait()
    except BaseException as exc:
        _stop(process, told_already=isinstance(exc, KeyboardInterrupt))
        raise
    if code != 0:
        raise DemoFailed(f"`dbt {command}` ended with {code}; its log is {PROJECT}/logs/dbt.log")


def _stop(process: subprocess.Popen[bytes], *, told_already: bool) -> None:
    """Let dbt cancel its queries and abort its uploads; a Ctrl-C has reached it by itself."""
    if not told_already:
        process.send_signal(signal.SIGINT)
    try:
        process.wait(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def check(exports: list[Export], loaded: Mapping[str, int]) -> None:
    """Raise DemoFailed unless both exports are there, with every flight that was loaded."""
    rows = {export.name: export.rows for export in exports}
    if rows.keys() != {"flights_export", "daily_delays_export"}:
        raise DemoFailed(f"two exports were expected, not {sorted(rows) or 'none'}")
    if rows["flights_export"] != loaded["flights"]:
        raise DemoFailed(
            f"{loaded['flights']} flights were loaded, {rows['flights_export']} were exported"
        )
    require_rows(next(e for e in exports if e.name == "flights_export"), exported_flights())


def show(exports: list[Export]) -> None:
    """List the exported objects, and the first lines of one."""
    for export in exports:
        print(f"{export.name}: {export.rows:,} rows")
        for file in export.files:
            print(f"  {file.url} {file.rows:>9,} rows {file.path.stat().st_size:>12,} bytes")
    sample = next(file for export in exports for file in export.files if "daily" in file.url)
    print(f"\nThe first lines of {sample.url}:")
    with sample.path.open() as lines:
        for _ in range(6):
            print("  " + next(lines).rstrip())


def _where_next() -> None:
    _title("Where to look next")
    print(
        "sample_project/                 the project: start with models/sources.yml and exports/\n"
        "sample_project/models/shards/   the history of a model, and reading it at two moments\n"
        "sample_project/target/          run_results.json has the rows and location of each COPY\n"
        ".demo/exports/                  the exported files and their manifests\n"
        "README.md, docs/                what to write into a project of your own, every option"
    )


def _title(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n== {text}", flush=True)


def _terminated(*_: object) -> NoReturn:
    raise SystemExit(128 + signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
