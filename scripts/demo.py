"""The demo: flights from CSV objects in S3, through dbt models in Spark, back to S3 as CSV.

Run it with `make demo`, which prepares the environment and Java. Everything stays on this
machine: S3 is moto's server on the loopback interface, Spark runs inside dbt's process.
"""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import boto3
from demo_data import csv_objects, exported_flights
from demo_exports import (
    DemoFailed,
    Export,
    as_of_shard,
    read_exports,
    require_growth,
    require_rows,
)
from moto.server import ThreadedMotoServer

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

ROOT = Path(__file__).resolve().parent.parent
PROJECT = ROOT / "sample_project"
WORK = ROOT / ".demo"
DBT = Path(sys.executable).with_name("dbt")

RAW_BUCKET, EXPORTS_BUCKET = "acme-raw", "acme-exports"
SHARD = f"s3://{EXPORTS_BUCKET}/shards/planes_flown"
ACCESS_KEY_ID, SECRET_ACCESS_KEY = "demo-key-id", "demo-secret-key"  # moto takes any
# Settings of the caller's own work, which would point dbt, Spark or boto3 elsewhere.
FOREIGN_SETTINGS = ("AWS_", "DBT_", "HADOOP_", "HIVE_", "PYSPARK_", "SPARK_")


def main() -> int:
    """Run the demo; 0 if every step did what it should."""
    signal.signal(signal.SIGTERM, _terminated)
    forget_foreign_settings(os.environ)
    _start_clean()
    try:
        with s3_server() as endpoint:
            _run(endpoint)
    except DemoFailed as exc:
        print(f"\nThe demo failed: {exc}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped; nothing is left running.", file=sys.stderr)
        return 130
    return 0


def _run(endpoint: str) -> None:
    client = s3_client(endpoint)
    environment = dbt_environment(os.environ, endpoint)
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


@contextmanager
def s3_server() -> Iterator[str]:
    """moto's S3 on a free port of the loopback interface, in a thread; yields its address."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def s3_client(endpoint: str) -> S3Client:
    """A client of the server at this address, whatever the caller's AWS settings are."""
    return boto3.Session().client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=ACCESS_KEY_ID,
        aws_secret_access_key=SECRET_ACCESS_KEY,
    )


def forget_foreign_settings(environment: MutableMapping[str, str]) -> None:
    """Remove what would point boto3, Spark or dbt away from this demo; no proxy to loopback."""
    for name in [name for name in environment if name.startswith(FOREIGN_SETTINGS)]:
        del environment[name]
    environment["NO_PROXY"] = environment["no_proxy"] = "127.0.0.1"


def dbt_environment(environment: Mapping[str, str], endpoint: str) -> dict[str, str]:
    """The environment with what the project's profile reads, and this Python for the workers."""
    return {
        **environment,
        "PATH": f"{DBT.parent}{os.pathsep}{environment.get('PATH', os.defpath)}",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        "S3_ENDPOINT": endpoint,
        "WAREHOUSE": str(WORK / "spark" / "warehouse"),
        "DBT_ENV_SECRET_ACCESS_KEY_ID": ACCESS_KEY_ID,
        "DBT_ENV_SECRET_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY,
    }


def load(client: S3Client) -> dict[str, int]:
    """Create the buckets and upload every object; the number of rows of each table."""
    for bucket in (RAW_BUCKET, EXPORTS_BUCKET):
        client.create_bucket(Bucket=bucket)
    rows: dict[str, int] = {}
    for key, content in csv_objects():
        client.put_object(Bucket=RAW_BUCKET, Key=key, Body=content)
        count = content.count(b"\n") - 1  # no field of this data holds a newline
        table = key.partition("/")[0]
        rows[table] = rows.get(table, 0) + count
        print(f"  s3://{RAW_BUCKET}/{key:<22} {count:>7,} rows {len(content):>11,} bytes")
    return rows


def dbt(command: str, environment: Mapping[str, str], *last: str) -> None:
    """Run dbt in the sample project, with these words last; DemoFailed if it reports a failure."""
    words = [*command.split(), *last]
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
