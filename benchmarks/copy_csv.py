"""How long an export takes, as a ratio to what Spark itself does with the same table.

`copy_to_s3` writes to an S3 server on this machine; Spark's own CSV writer writes to a local
folder, and `noop` only computes the rows. All run in one session, in turn, so that whatever slows
this machine slows them alike: read the ratios, not the seconds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession
from rclone import serve_s3
from worker_memory import WorkerMemory

from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.copy.config.size import parse_size
from dbt.adapters.mzs3.copy.job import copy_to_s3
from dbt.adapters.mzs3.copy.result import CopyResult
from dbt.adapters.mzs3.spark.session import get_or_create

BUCKET = "bench"
BYTES_PER_ROW = 152  # of the table below, as CSV

# Twelve columns as exports have them; the text has what CSV must quote, and NULLs.
TABLE = """
select
    id,
    cast(hash(id) as int) as customer,
    cast(pmod(hash(id, 1), 1000) as smallint) as quantity,
    cast(pmod(xxhash64(id), 100000000) / 100 as decimal(12, 2)) as price,
    cast(pmod(xxhash64(id, 1), 1000000) / 10000 as decimal(8, 4)) as rate,
    xxhash64(id, 2) / 1e13 as score,
    date_add(date'2015-01-01', cast(pmod(hash(id, 2), 4000) as int)) as ordered_on,
    timestamp_micros(1420070400000000 + pmod(xxhash64(id, 3), 315360000000000)) as created_at,
    pmod(hash(id, 3), 2) = 0 as is_paid,
    if(pmod(hash(id, 4), 10) = 0, null, concat('city, number ', pmod(hash(id, 5), 5000))) as city,
    cast(pmod(hash(id, 8), 100) as tinyint) as discount,
    case pmod(hash(id, 6), 8)
        when 0 then null
        when 1 then concat('said "yes" to offer ', pmod(hash(id, 7), 100000))
        when 2 then concat('two lines,\\nthe second ', pmod(hash(id, 7), 100000))
        else concat('nothing to remark here, no ', pmod(hash(id, 7), 100000))
    end as remark
from range(0, {rows}, 1, 8)
"""


def main() -> None:
    arguments = _arguments()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory(prefix="mzs3-bench-") as name:
        folder = Path(name)
        (folder / "s3" / BUCKET).mkdir(parents=True)
        spark = _session(folder)
        with serve_s3(folder / "s3") as connection:
            if arguments.one_part:
                measure_memory(spark, connection, parse_size(arguments.bytes))
            else:
                measure_time(spark, connection, folder, arguments.rows, arguments.rounds)
        spark.stop()


def measure_time(
    spark: SparkSession, connection: AwsConnection, folder: Path, rows: int, rounds: int
) -> None:
    """Print the median of each way to write the table, and its ratio to Spark's CSV writer."""
    stored = str(folder / "table")
    spark.sql(TABLE.format(rows=rows)).write.parquet(stored)
    query = f"select * from parquet.`{stored}`"
    ways: dict[str, Callable[[int], object]] = {
        "noop": lambda _: spark.sql(query).write.format("noop").mode("overwrite").save(),
        "df.write.csv": lambda turn: spark.sql(query).write.csv(str(folder / f"csv-{turn}")),
        "copy_to_s3": lambda turn: _export(spark, connection, query, f"turn-{turn}"),
    }
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(rounds + 1):  # the first one warms up
        for way, run in ways.items():
            started = time.perf_counter()
            run(turn)
            if turn:
                seconds[way].append(time.perf_counter() - started)
    medians = {way: statistics.median(times) for way, times in seconds.items()}
    written = sum(file.stat().st_size for file in (folder / "csv-0").glob("*.csv"))
    print(f"{rows:,} rows, {written / 1e6:,.0f} MB as CSV, medians of {rounds}")
    for way, median in medians.items():
        print(f"{way:<14}{median:>8.2f} s {median / medians['df.write.csv']:>8.2f} x")


def measure_memory(spark: SparkSession, connection: AwsConnection, size: int) -> None:
    """Print the most memory a Python worker had while it exported about `size` bytes alone."""
    memory = WorkerMemory()
    query = TABLE.format(rows=size // BYTES_PER_ROW)
    with memory.watched():
        result = _export(spark, connection, query, "one-part", parts=1)
    print(
        f"{result.rows:,} rows, {result.bytes / 1e6:,.0f} MB in one part, {result.files} files: "
        f"at most {memory.peak / 1e6:,.0f} MB resident in a Python worker"
    )


def _export(
    spark: SparkSession, connection: AwsConnection, query: str, prefix: str, **options: object
) -> CopyResult:
    return copy_to_s3(
        spark,
        query,
        node="benchmark",
        options={"location": f"s3://{BUCKET}/{prefix}", **options},
        connections={connection.name: connection},
        as_of=0,
    )


def _session(folder: Path) -> SparkSession:
    return get_or_create(
        {
            "spark.master": "local[2]",
            "spark.driver.memory": "3g",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--one-part", action="store_true", help="measure memory instead of time")
    parser.add_argument("--bytes", default="1GB", help="how much to export with --one-part")
    return parser.parse_args()


if __name__ == "__main__":
    main()
