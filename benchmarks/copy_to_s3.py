"""How long an export takes, as a ratio to what Spark itself does with the same table.

`copy_to_s3` writes to an S3 server on this machine; Spark's own writers write to a local folder,
and `noop` only computes the rows. All run in one session, in turn, so that whatever slows this
machine slows them alike: read the ratios, not the seconds.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from memory import WorkerMemory, processor_seconds
from s3_server import serve_s3
from session import BUCKET, COMET, Session, median_seconds
from table import BYTES_PER_ROW, PARTITIONED, TABLE

from dbt.adapters.mzs3.export.export import CopyResult
from dbt.adapters.mzs3.options.values import parse_size


def main() -> None:
    arguments = _arguments()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory(prefix="mzs3-bench-") as name:
        bench = Bench(Path(name), **(COMET if arguments.measure == "native" else {}))
        many_uploads = arguments.measure == "partitions"
        with serve_s3(bench.s3_folder, many_uploads=many_uploads) as bench.connection:
            if arguments.measure == "ratios":
                bench.ratios(arguments.rows, arguments.rounds)
            elif arguments.measure == "memory":
                bench.memory(parse_size(arguments.bytes))
            elif arguments.measure == "linear":
                bench.linear(arguments.rows)
            elif arguments.measure == "native":
                bench.native(arguments.rows, arguments.rounds)
            else:
                bench.partitions()
        bench.spark.stop()


class Bench(Session):
    """One Spark session, one S3 server, and what is measured with them."""

    exports = 0

    def ratios(self, rows: int, rounds: int) -> None:
        """Print the median of each way to write the table, and its ratio to Spark's writer."""
        query = self._stored(rows)
        written = self.folder / "written"
        path = str(written)
        size = 0

        def remove() -> None:
            nonlocal size
            size = sum(file.stat().st_size for file in written.glob("*.csv")) or size
            shutil.rmtree(written, ignore_errors=True)

        ways: dict[str, Callable[[int], object]] = {
            "noop": lambda _: self.spark.sql(query).write.format("noop").mode("overwrite").save(),
            "df.write.csv": lambda _: self.spark.sql(query).write.csv(path),
            "copy_to_s3 csv": lambda _: self.export(query, format="csv"),
            "df.write.parquet": lambda _: self.spark.sql(query).write.parquet(path),
            "copy_to_s3 parquet": lambda _: self.export(query, format="parquet"),
        }
        medians = median_seconds(ways, rounds, after_each=remove)
        print(f"{rows:,} rows, {size / 1e6:,.0f} MB as CSV, medians of {rounds}")
        for way, median in medians.items():
            base = medians["df.write.parquet" if "parquet" in way else "df.write.csv"]
            print(f"{way:<20}{median:>8.2f} s {median / base:>8.2f} x")

    def native(self, rows: int, rounds: int) -> None:
        """Print the median of each way with Comet and without, which `spark.comet.enabled` turns
        off, and its ratio to Spark's writer without."""
        query = self._stored(rows)
        written = self.folder / "written"
        ways: dict[str, Callable[[int], object]] = {}

        def write(kind: str, _: int) -> None:
            self.spark.sql(query).write.format(kind).save(str(written))

        def export(kind: str, _: int) -> None:
            self.export(query, format=kind)

        for kind in ("csv", "parquet"):
            ways[f"df.write.{kind}"] = partial(write, kind)
            ways[f"copy_to_s3 {kind}"] = partial(export, kind)
        ways = self.with_comet(ways)
        processor: dict[str, list[float]] = {way: [] for way in ways}

        def run(way: str, turn: int) -> None:
            before = processor_seconds()
            ways[way](turn)
            processor[way].append(processor_seconds() - before)

        turns = {way: partial(run, way) for way in ways}
        medians = median_seconds(turns, rounds, lambda: shutil.rmtree(written, ignore_errors=True))
        print(f"{rows:,} rows, medians of {rounds}")
        for way, median in medians.items():
            base = medians["df.write.parquet" if "parquet" in way else "df.write.csv"]
            spent = statistics.median(processor[way][1:])
            print(f"{way:<28}{median:>8.2f} s {median / base:>8.2f} x {spent:>8.1f} processor s")

    def memory(self, size: int) -> None:
        """Print the most memory a Python worker had while it exported about `size` bytes alone."""
        query = TABLE.format(rows=size // BYTES_PER_ROW)
        for kind in ("csv", "parquet"):
            memory = WorkerMemory()
            with memory.watched():
                result = self.export(query, parts=1, format=kind)
            print(
                f"{kind}: {result.rows:,} rows, {result.bytes / 1e6:,.0f} MB in one part, "
                f"{result.files} files: at most {memory.peak / 1e6:,.0f} MB resident in a worker"
            )

    def linear(self, rows: int) -> None:
        """Print seconds and memory for a tenth, a third and all of `rows`, twice each."""
        self.export(TABLE.format(rows=100_000))  # warms up
        for count in (rows // 30, rows // 10, rows // 3, rows):
            memory = WorkerMemory()
            with memory.watched():
                started = time.perf_counter()
                result = self.export(TABLE.format(rows=count), parts=8)
                seconds = time.perf_counter() - started
            print(
                f"{result.rows:>12,} rows {seconds:>8.1f} s {seconds / count * 1e6:>8.2f} s per "
                f"million, {memory.peak / 1e6:,.0f} MB in a worker"
            )

    def partitions(self) -> None:
        """Print seconds and memory for folders of 200 rows each."""
        self.export(PARTITIONED.format(partitions=10), partition_by="day")  # warms up
        for count in (625, 1_250, 2_500, 5_000):
            memory = WorkerMemory()
            with memory.watched():
                started = time.perf_counter()
                query = PARTITIONED.format(partitions=count)
                result = self.export(query, partition_by="day", parts=8)
                seconds = time.perf_counter() - started
            print(
                f"{count:>6,} partitions {result.files:>6,} files {seconds:>8.1f} s "
                f"{seconds / count * 1e3:>8.2f} ms per file, "
                f"{memory.peak / 1e6:,.0f} MB in a worker"
            )

    def export(self, query: str, **options: object) -> CopyResult:
        """One export, to a location of its own, as the server remembers what was in a folder."""
        shutil.rmtree(self.s3_folder / BUCKET / str(self.exports), ignore_errors=True)
        self.exports += 1
        return self.copy(query, str(self.exports), **options)

    def _stored(self, rows: int) -> str:
        stored = str(self.folder / "table")
        self.spark.sql(TABLE.format(rows=rows)).write.parquet(stored)
        return f"select * from parquet.`{stored}`"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "measure",
        nargs="?",
        choices=("ratios", "native", "memory", "linear", "partitions"),
        default="ratios",
        help="ratios to Spark's writers; the same with Comet; memory of a worker; time by rows; "
        "many partitions",
    )
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bytes", default="1GB", help="how much to export for `memory`")
    return parser.parse_args()


if __name__ == "__main__":
    main()
