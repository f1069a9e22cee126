"""Exports and ingestion beside what users would pick instead: the same rows, one S3 server.

For exports that is Spark's own writer over s3a and DuckDB's `COPY`, all from the same Parquet
files on the local disk. For ingestion it is Spark's own reader over s3a and DuckDB's `read_csv`,
all from the same CSV objects, each into a table of its own on the local disk. All run in one
process and in turn, against MinIO on this machine: read the ratios. The processor time is that of
all processes, and beside it that without the server's, which moves least when the machine has
other work: what each way costs itself, as on a cluster the server has processors of its own.
With `--native` it is exports alone, and Spark's with Comet and without.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median

import duckdb
import pyspark
from memory import processor_seconds
from s3_server import serve_minio
from session import BUCKET, COMET, Session, seconds_in_turn, source
from table import COLUMNS, TABLE

from dbt.adapters.mzs3.source.ingest import ingest
from dbt.adapters.mzs3.store.client import s3_client
from dbt.adapters.mzs3.store.connection import AwsConnection

CORES = 2  # of DuckDB too; Session has as many
FLOOR, S3A, OURS, DUCKDB = "df.write to a folder", "Spark over s3a", "copy_to_s3", "DuckDB"
SERVER = b"minio"  # in its command
# Of each way the seconds of each round, the processor seconds of all, and those of the server.
Measured = dict[str, tuple[list[float], list[float], list[float]]]
# What is compared of all rows: how many values each column has, and that they are in place.
COUNTS = f"SELECT sum(id), sum(price), {', '.join(f'count({name})' for name in COLUMNS)} FROM "


def main() -> None:
    arguments = _arguments()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    print(f"load before: {os.getloadavg()[0]:.1f}")
    with (
        tempfile.TemporaryDirectory(prefix="mzs3-bench-") as name,
        serve_minio(Path(name, "minio")) as connection,
    ):
        peers = Peers(Path(name), connection, **(COMET if arguments.native else {}))
        peers.compare(arguments.rows, arguments.rounds)
        peers.spark.stop()


class Peers(Session):
    """One Spark session with s3a, one DuckDB with httpfs, and the server that both know."""

    def __init__(self, folder: Path, connection: AwsConnection, **settings: str) -> None:
        [hadoop] = Path(pyspark.__file__).parent.glob("jars/hadoop-client-api-*.jar")
        version = hadoop.stem.rpartition("-")[2]
        packages = {"spark.jars.packages": f"org.apache.hadoop:hadoop-aws:{version}"}
        super().__init__(folder, **packages, **settings)
        self.connection = connection
        self.written = folder / "written"
        self.s3 = s3_client(connection)
        self.s3.create_bucket(Bucket=BUCKET)
        # Set now, as what Spark is started with is an argument of its process.
        for key, value in {
            "endpoint": connection.endpoint,
            "endpoint.region": connection.region,
            "path.style.access": "true",
            "access.key": connection.access_key_id,
            "secret.key": connection.secret_access_key,
            "committer.name": "magic",
        }.items():
            self.spark.conf.set(f"fs.s3a.{key}", str(value))
        self.duck = _duckdb(folder / "duck.db", connection)

    def compare(self, rows: int, rounds: int) -> None:
        """Print who exports and who ingests how fast."""
        stored = str(self.folder / "table")
        table = self.spark.sql(TABLE.format(rows=rows))
        table.write.parquet(stored)
        self.query = f"select * from parquet.`{stored}`"
        self.stored = f"read_parquet('{stored}/*.parquet')"
        self.expected = self._counts(self.stored)
        table.write.csv(f"s3a://{BUCKET}/objects", header=True, escape='"')
        self._require_magic("objects")
        objects = f"read_csv('s3://{BUCKET}/objects/*.csv', header = true, {_dialect()})"
        found = self.s3.list_objects_v2(Bucket=BUCKET, Prefix="objects/part-")["Contents"]
        size = sum(entry["Size"] for entry in found)
        print(f"{rows:,} rows, {size / 1e6:,.0f} MB in {len(found)} CSV objects, {rounds} rounds")
        for kind in ("csv", "parquet"):
            _tell(f"export as {kind}", self.exports(kind, rounds))
        if not self.has_comet:
            _tell("ingestion", self.ingestions(objects, rounds))

    def exports(self, kind: str, rounds: int) -> Measured:
        """The seconds of each way to write the stored rows as `csv` or `parquet`."""
        target = f"{BUCKET}/written"
        duck_options = "csv, HEADER false" if kind == "csv" else kind
        copy = f"COPY (FROM {self.stored}) TO 's3://{target}/all.{kind}' (FORMAT {duck_options})"
        ways: dict[str, Callable[[int], object]] = {
            FLOOR: lambda _: self._write(kind, str(self.written)),
            S3A: lambda _: self._write(kind, f"s3a://{target}"),
            OURS: lambda _: self.copy(self.query, "written", format=kind),
        }
        ways = {**self.with_comet(ways), DUCKDB: lambda _: self.duck.execute(copy)}

        def check(way: str) -> None:
            files = f"{self.written if way.startswith(FLOOR) else f's3://{target}'}/*.{kind}"
            options = f", header = false, {_dialect()}" if kind == "csv" else ""
            self._require_rows(way, self._counts(f"read_{kind}('{files}'{options})"))
            if way.startswith(S3A) and kind == "csv":
                self._require_magic("written")
            shutil.rmtree(self.written, ignore_errors=True)
            self._empty("written/")

        return _measure(ways, rounds, check)

    def ingestions(self, objects: str, rounds: int) -> Measured:
        """The seconds of each way to read the CSV objects into a table of its own."""
        orders = source("raw", "orders", "objects/", COLUMNS, pattern="*.csv")
        ways: dict[str, Callable[[int], object]] = {
            S3A: lambda _: self._read(f"s3a://{BUCKET}/objects", "raw.orders"),
            "s3_csv_source": lambda _: ingest(self.spark, orders, self.connection),
            DUCKDB: lambda _: self.duck.execute(f"CREATE TABLE orders AS FROM {objects}"),
        }

        def check(way: str) -> None:
            if way == DUCKDB:
                found = self._counts("orders")
                self.duck.execute("DROP TABLE orders")
            else:
                [found] = self.spark.sql(f"{COUNTS} raw.orders").collect()
                self.spark.sql("DROP SCHEMA raw CASCADE")
            self._require_rows(way, found)

        return _measure(ways, rounds, check)

    def _write(self, kind: str, path: str) -> None:
        options = {"escape": '"'} if kind == "csv" else {}
        self.spark.sql(self.query).write.options(**options).format(kind).save(path)

    def _read(self, files: str, table: str) -> None:
        reader = self.spark.read.options(header=True, multiLine=True, escape='"')
        schema = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
        self.spark.sql("CREATE SCHEMA raw")
        reader.schema(schema).csv(files).write.format("parquet").saveAsTable(table)

    def _counts(self, relation: str) -> tuple[object, ...] | None:
        return self.duck.execute(COUNTS + relation).fetchone()

    def _require_rows(self, way: str, found: Sequence[object] | None) -> None:
        if found is None or tuple(found) != self.expected:
            raise SystemExit(f"{way} has other rows: {found} instead of {self.expected}")

    def _require_magic(self, prefix: str) -> None:
        """Ends with an error if s3a has written below the prefix by another committer."""
        summary = self.s3.get_object(Bucket=BUCKET, Key=f"{prefix}/_SUCCESS")["Body"].read()
        if not summary or json.loads(summary)["committer"] != "magic":
            raise SystemExit(f"s3a did not write by the magic committer: {summary[:200]!r}")

    def _empty(self, prefix: str) -> None:
        for page in self.s3.get_paginator("list_objects_v2").paginate(
            Bucket=BUCKET, Prefix=prefix
        ):
            for entry in page.get("Contents", []):
                self.s3.delete_object(Bucket=BUCKET, Key=entry["Key"])


def _measure(
    ways: Mapping[str, Callable[[int], object]], rounds: int, check: Callable[[str], object]
) -> Measured:
    everyone: dict[str, list[float]] = {way: [] for way in ways}
    server: dict[str, list[float]] = {way: [] for way in ways}

    def run(way: str, turn: int) -> None:
        before, served = processor_seconds(), processor_seconds(SERVER)
        ways[way](turn)
        everyone[way].append(processor_seconds() - before)
        server[way].append(processor_seconds(SERVER) - served)

    seconds = seconds_in_turn({way: partial(run, way) for way in ways}, rounds, check)
    return {way: (times, everyone[way][1:], server[way][1:]) for way, times in seconds.items()}


def _duckdb(file: Path, connection: AwsConnection) -> duckdb.DuckDBPyConnection:
    package = importlib.util.find_spec("duckdb_extension_httpfs")
    [folder] = (package and package.submodule_search_locations) or [""]
    [extension] = Path(folder).rglob("httpfs.duckdb_extension")
    duck = duckdb.connect(str(file), config={"threads": CORES})
    duck.execute(f"LOAD '{extension}'")
    duck.execute("SET TimeZone = 'UTC'")
    host = (connection.endpoint or "").removeprefix("http://")
    duck.execute(
        f"""CREATE SECRET (TYPE s3, KEY_ID '{connection.access_key_id}',
        SECRET '{connection.secret_access_key}', REGION '{connection.region}',
        ENDPOINT '{host}', URL_STYLE 'path', USE_SSL false)"""
    )
    return duck


def _dialect() -> str:
    """The columns, and how CSV is quoted, as DuckDB's `read_csv` takes them."""
    kinds = (f"{name}: '{kind}'" for name, kind in COLUMNS.items())
    columns = ", ".join(kinds).replace("'timestamp'", "'timestamptz'")
    return f"columns = {{{columns}}}, auto_detect = false, quote = '\"', escape = '\"'"


def _tell(what: str, measured: Measured) -> None:
    """Print the medians of each way: seconds, their ratio to s3a's in the same round with the
    smallest and the largest, processor seconds, and those without the server's; then who wins."""
    head = f"{'seconds':>8}{'to s3a':>8}  {'from, to':<14}{'processor':>9}{'its own':>9}"
    print(f"\n{what:<30}{head}")
    for way, (seconds, everyone, server) in measured.items():
        ratios = _ratios(seconds, measured[S3A][0])
        spread = f"{min(ratios):.2f}, {max(ratios):.2f}"
        numbers = f"{median(seconds):>8.2f}{median(ratios):>8.2f}  {spread:<14}"
        own = median(all_of - served for all_of, served in zip(everyone, server, strict=True))
        print(f"{way:<30}{numbers}{median(everyone):>9.1f}{own:>9.1f}")
    ways = {way: seconds for way, (seconds, *_) in measured.items() if not way.startswith(FLOOR)}
    first = min(ways, key=lambda way: median(ways[way]))
    others = (
        f"{way} takes {median(_ratios(seconds, ways[first])):.2f} times as long"
        for way, seconds in ways.items()
        if way != first
    )
    print(f"{first} wins: {', '.join(others)}")
    ours, base = f"{OURS}, Comet", f"{S3A}, Comet"
    if ours in ways:
        print(f"{ours}: {median(_ratios(ways[ours], ways[base])):.2f} x {base}")


def _ratios(times: Sequence[float], base: Sequence[float]) -> list[float]:
    return [time / of for time, of in zip(times, base, strict=True)]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--native", action="store_true", help="exports with Comet too")
    return parser.parse_args()


if __name__ == "__main__":
    main()
