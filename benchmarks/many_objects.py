"""What a source costs whose bucket holds very many objects, as ratios to listing it once.

    listing   a million keys: the first run, runs that find 1,000 new ones, the driver's memory
    fetching  10,000 objects of 1 kB in one run: its time, to boto3's GETs, and its requests
    scale     ten million objects: what each step of a run computes, and what the driver holds

The bucket is made up by a server on this machine. Listing it once is boto3's paginator in one
process, and reading its objects boto3 with 16 threads a core. Read the ratios: the server and
Spark share the cores. For `scale` there is no server: the client makes up its answers, and rows
are made up where objects would be fetched.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from made_up_bucket import PREFIX, MadeUpBucket, made_up_bucket
from made_up_client import CONNECTION, MadeUpClient, made_up_client
from memory import DriverMemory, DriverPeak, processor_seconds
from plain_gets import plain_client, plain_gets
from pyspark.sql import functions as F
from session import BUCKET, Session, source

from dbt.adapters.mzs3.ledger.compaction import compact
from dbt.adapters.mzs3.ledger.epochs import next_epoch
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.source.ingest import ingest
from dbt.adapters.mzs3.source.listing.scan import listed_objects
from dbt.adapters.mzs3.source.operations.object_actions import ObjectAction, act
from dbt.adapters.mzs3.source.operations.status import read_status
from dbt.adapters.mzs3.source.options import SourceDefinition
from dbt.adapters.mzs3.source.report import IngestReport
from dbt.adapters.mzs3.source.run import SourceRun

NEW = 1000


def main() -> None:
    arguments = _arguments()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.master": arguments.master,
        "spark.driver.memory": arguments.driver_memory,
        "spark.executor.memory": arguments.executor_memory,
        "spark.log.level": "ERROR",
    }
    with tempfile.TemporaryDirectory(prefix="mzs3-bench-") as name:
        if arguments.measure == "scale":
            with made_up_client(arguments.keys or 10_000_000) as client:
                Scale(Path(name), **settings).runs(client)
            return
        bench = Bench(Path(name), **settings)
        folders = not arguments.flat
        if arguments.measure == "listing":
            with made_up_bucket(arguments.keys or 1_000_000, folders=folders) as bucket:
                bench.listing(bucket, arguments.rounds)
        else:
            with made_up_bucket(arguments.keys or 10_000, size=1000, folders=folders) as bucket:
                bench.fetching(bucket, arguments.rounds)
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

    def fetching(self, bucket: MadeUpBucket, rounds: int) -> None:
        """Print what runs over all objects of the bucket take, beside boto3 alone."""
        self._warm_up()
        memory = DriverMemory()
        self._print("what", "seconds", "to raw", "LIST", "GET", "  MB more in Python, JVM")
        keys = list(_keys(bucket))
        raw: list[float] = []
        seconds: list[float] = []
        with plain_gets(bucket.connection, keys) as gets:
            for turn in range(rounds):
                base = self._time("boto3 alone", bucket, memory, partial(gets.read, keys), raw)
                everything = source(f"small_{turn}", "orders", PREFIX, {})
                run = partial(self._ingest, bucket, everything, len(keys))
                self._time("one run", bucket, memory, run, seconds, base)
        ratio = statistics.median(seconds) / statistics.median(raw)
        print(f"one run: {ratio:.2f} x boto3 alone, medians of {rounds}", flush=True)

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


class Scale(Session):
    """One Spark session, and what runs and queries cost on a source of very many objects."""

    def runs(self, bucket: MadeUpClient) -> None:
        """Print what each step takes of time, of processors and of the driver's memory."""
        self._peak = DriverPeak(self.spark)
        print(f"{bucket.objects:,} objects{'':<13}", end="")
        print("  seconds  processor  MB in Python, in the heap, of the ledger")
        limited = {"max_objects_per_run": NEW}
        others = bucket.objects - NEW
        self._ingest("first run, takes 1,000", NEW, **limited)
        self._ingest("takes all others", others)
        self._ingest("nothing new", 0, key_order="ascending")  # the first one is full
        bucket.objects += NEW
        self._ingest("1,000 new", NEW)
        self._ingest("nothing new at the end", 0, key_order="ascending")
        orders = _orders()
        with self._cost("compaction"):
            compact(Ledger(self.spark, orders.relations))
        self._ingest("nothing new, compacted", 0)
        with self._cost("status"):
            read_status(self.spark, orders)
        self._query("query", bucket.objects)
        with self._cost("retracts all"):
            act(self.spark, orders, ObjectAction.RETRACT, ["**"])
        self._query("query, all hidden", 0)
        self.spark.stop()

    def _ingest(self, title: str, objects: int, **external: Any) -> None:
        with self._cost(title) as cost:
            report = ingest(self.spark, _orders(**external), CONNECTION, tell=cost.on_line)
        if report.objects != objects:
            raise SystemExit(f"{report.objects} objects were ingested in the place of {objects}")

    def _query(self, title: str, rows: int) -> None:
        with self._cost(title):
            found = self.spark.table(_orders().relations.source).count()
        if found != rows:
            raise SystemExit(f"{found} rows were found in the place of {rows}")

    @contextlib.contextmanager
    def _cost(self, title: str) -> Iterator[Cost]:
        cost = Cost(self._peak)
        yield cost
        files = (self.folder / "warehouse").rglob("orders__ledger/**/*.parquet")
        cost.tell(title, sum(file.stat().st_size for file in files))


class Cost:
    """Prints what something costs, and the steps of a run that come before it ends."""

    STEPS = ("list, compare", "note", "plan", "fetch", "commit", "compact")

    def __init__(self, peak: DriverPeak) -> None:
        self._peak = peak
        peak.since_last()
        self._began = self._last = time.perf_counter(), processor_seconds()
        self._most = [0, 0]

    def on_line(self, line: tuple[str, str]) -> None:
        """A step begins or ends, as the log of `ingest` has it."""
        level, text = line
        if level != "debug":
            return
        event = text.partition(": ")[2]
        name = event.removeprefix("end ")
        # What is between two steps is the listing.
        self._line("list, compare" if event.startswith("begin") else name)

    def _line(self, name: str) -> None:
        now = time.perf_counter(), processor_seconds()
        seconds, computed = (later - before for later, before in zip(now, self._last, strict=True))
        peak = self._peak.since_last()
        self._most = list(map(max, self._most, peak))
        self._last = now
        if name in self.STEPS and seconds > 1:
            self._print(f"    {name}", seconds, computed, *peak)

    def tell(self, title: str, *sizes: int) -> None:
        """Print what all of it has cost, and sizes in bytes."""
        self._line("")
        now = time.perf_counter(), processor_seconds()
        spent = (later - before for later, before in zip(now, self._began, strict=True))
        self._print(title, *spent, *self._most, *sizes)

    def _print(self, title: str, seconds: float, computed: float, *sizes: float) -> None:
        megabytes = "".join(f"{size / 1e6:>8.0f}" for size in sizes)
        print(f"{title:<30}{seconds:>10.1f}{computed:>11.1f}{megabytes}", flush=True)


def _orders(**external: Any) -> SourceDefinition:
    return source("scale", "orders", PREFIX, {"id": "string"}, header=["id"], **external)


def _list(bucket: MadeUpBucket) -> None:
    for _ in _keys(bucket):
        pass


def _keys(bucket: MadeUpBucket) -> Iterator[str]:
    pages = plain_client(bucket.connection).get_paginator("list_objects_v2")
    for page in pages.paginate(Bucket=BUCKET, Prefix=PREFIX):
        yield from (one["Key"] for one in page["Contents"])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("measure", choices=("listing", "fetching", "scale"))
    parser.add_argument("--keys", type=int, help="how many objects the bucket has")
    parser.add_argument("--flat", action="store_true", help="without folders in their keys")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--master", default="local[2]", help="such as local-cluster[1,2,1500]")
    parser.add_argument("--driver-memory", default="1g")
    parser.add_argument("--executor-memory", default="1g", help="where the master has executors")
    return parser.parse_args()


if __name__ == "__main__":
    main()
