"""What a source costs whose bucket holds very many objects, as ratios to listing it once.

    listing   a million keys: the first run, runs that find 1,000 new ones, the driver's memory
    fetching  10,000 objects of 1 kB in one run: its time, and its requests

The bucket is made up by a server on this machine. Listing it once is boto3's paginator in one
process. Read the ratios: the server and Spark share the cores.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from made_up_bucket import PREFIX, MadeUpBucket, made_up_bucket
from memory import DriverMemory
from pyspark.sql import functions as F
from session import BUCKET, Session, source

from dbt.adapters.mzs3.csv_source.definition import SourceDefinition
from dbt.adapters.mzs3.csv_source.ingest import ingest
from dbt.adapters.mzs3.csv_source.ledger.epochs import next_epoch
from dbt.adapters.mzs3.csv_source.ledger.ledger import Ledger
from dbt.adapters.mzs3.csv_source.listing.scan import listed_objects
from dbt.adapters.mzs3.csv_source.report import IngestReport
from dbt.adapters.mzs3.csv_source.run import SourceRun

NEW = 1000


def main() -> None:
    arguments = _arguments()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {"spark.master": arguments.master, "spark.driver.memory": "1g"}
    with tempfile.TemporaryDirectory(prefix="mzs3-bench-") as name:
        bench = Bench(Path(name), **settings)
        folders = not arguments.flat
        if arguments.measure == "listing":
            with made_up_bucket(arguments.keys or 1_000_000, folders=folders) as bucket:
                bench.listing(bucket, arguments.rounds)
        else:
            with made_up_bucket(arguments.keys or 10_000, size=1000, folders=folders) as bucket:
                bench.fetching(bucket)
        bench.spark.stop()


class Bench(Session):
    """One Spark session, and what is measured with it."""

    def listing(self, bucket: MadeUpBucket, rounds: int) -> None:
        """Print the seconds of each kind of run, and the ratio to listing the bucket once."""
        self._warm_up()
        memory = DriverMemory()
        self._print("what", "seconds", "to raw", "LIST", "GET", "  MB more in Python, JVM")
        base = self._time("raw listing", bucket, memory, partial(_list, bucket), [])
        # It takes 1,000, and has the ledger know of the others.
        first = source("listing", "orders", PREFIX, {}, max_objects_per_run=NEW)
        self._time("first run", bucket, memory, partial(self._ingest, bucket, first), [], base)
        self._finish(bucket)
        self._runs("1,000 new among all", "any", bucket, memory, base, rounds)
        ascending = source("listing", "orders", PREFIX, {}, key_order="ascending")
        nothing_new = partial(self._ingest, bucket, ascending, 0)
        self._time("nothing new", bucket, memory, nothing_new, [], base)
        self._runs("1,000 new at the end", "ascending", bucket, memory, base, rounds)

    def _runs(
        self,
        title: str,
        order: str,
        bucket: MadeUpBucket,
        memory: DriverMemory,
        base: float,
        rounds: int,
    ) -> None:
        """Print what runs take that find new objects, and the raw listing in turn with them."""
        definition = source("listing", "orders", PREFIX, {}, key_order=order)
        raw: list[float] = []
        seconds: list[float] = []
        for _ in range(rounds):
            self._time("raw listing", bucket, memory, partial(_list, bucket), raw)
            bucket.add(NEW, late=order == "any")
            run = partial(self._ingest, bucket, definition)
            self._time(title, bucket, memory, run, seconds, base)
        ratio = statistics.median(seconds) / statistics.median(raw)
        print(f"{title}: {ratio:.2f} x the raw listing, medians of {rounds}", flush=True)

    def fetching(self, bucket: MadeUpBucket) -> None:
        """Print what one run over all objects of the bucket takes."""
        self._warm_up()
        memory = DriverMemory()
        self._print("what", "seconds", "to raw", "LIST", "GET", "  MB more in Python, JVM")
        everything = source("small", "orders", PREFIX, {})
        self._time("one run", bucket, memory, partial(self._ingest, bucket, everything, None), [])

    def _warm_up(self) -> None:
        """What Spark does for the first time it does slowly, and remembers."""
        with made_up_bucket(1200) as small:
            self._ingest(
                small, source("warm_up", "orders", PREFIX, {}, key_order="ascending"), None
            )
            small.add(10, late=False)
            self._ingest(small, source("warm_up", "orders", PREFIX, {}, key_order="ascending"), 10)

    def _time(
        self,
        title: str,
        bucket: MadeUpBucket,
        memory: DriverMemory,
        action: Callable[[], Any],
        seconds: list[float],
        base: float | None = None,
    ) -> float:
        bucket.requests()
        with memory.growth() as grown:
            started = time.perf_counter()
            action()
            took = time.perf_counter() - started
        seconds.append(took)
        requests = bucket.requests()
        self._print(
            title,
            f"{took:.1f}",
            f"{took / base:.2f}" if base else "",
            requests.get("LIST", 0),
            requests.get("GET", 0),
            "  " + ", ".join(f"{more / 1e6:.0f}" for more in grown.values()),
        )
        return took

    def _print(self, title: str, *cells: object) -> None:
        print(f"{title:<24}" + "".join(f"{cell!s:>9}" for cell in cells), flush=True)

    def _ingest(
        self, bucket: MadeUpBucket, definition: SourceDefinition, objects: int | None = NEW
    ) -> IngestReport:
        report = ingest(self.spark, definition, bucket.connection)
        if objects is not None and report.objects != objects:
            raise SystemExit(f"{report.objects} objects were ingested in the place of {objects}")
        return report

    def _finish(self, bucket: MadeUpBucket) -> None:
        """The ledger has every object as ingested, without a request for one of them."""
        definition = source("listing", "orders", PREFIX, {})
        ledger = Ledger(self.spark, definition.relations)
        epoch = next_epoch(ledger.epochs())
        run = SourceRun(self.spark, definition, bucket.connection)
        objects, _ = listed_objects(run)
        ledger.write_plan(epoch, objects.withColumn("hides", F.lit(False)))
        done = ledger.plan(epoch).select(
            "*", F.lit(1).alias("rows"), F.lit(0).alias("rejects"), F.lit(None).alias("error")
        )
        ledger.write_commit(epoch, done)


def _list(bucket: MadeUpBucket) -> None:
    connection = bucket.connection
    client = boto3.client(
        "s3",
        endpoint_url=connection.endpoint,
        region_name=connection.region,
        aws_access_key_id=connection.access_key_id,
        aws_secret_access_key=connection.secret_access_key,
        config=Config(s3={"addressing_style": "path"}),
    )
    for _ in client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=PREFIX):
        pass


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("measure", choices=("listing", "fetching"))
    parser.add_argument("--keys", type=int, help="how many objects the bucket has")
    parser.add_argument("--flat", action="store_true", help="without folders in their keys")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--master", default="local[2]", help="such as local-cluster[1,2,1500]")
    return parser.parse_args()


if __name__ == "__main__":
    main()
