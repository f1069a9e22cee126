"""How long ingesting CSV objects takes, as a ratio to Spark's own reader of the same files.

The source reads them from an S3 server on this machine and Spark's reader from the folder where
that keeps them; both make a Parquet table in a schema of its own. Both run in one session, in
turn: read the ratios.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from s3_server import serve_s3
from session import BUCKET, Session, median_seconds, source
from table import BYTES_PER_ROW, COLUMNS, TABLE

from dbt.adapters.mzs3.source.ingest import ingest

BYTES = 400 * 1024 * 1024


def main() -> None:
    rounds = _arguments().rounds
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory(prefix="mzs3-bench-") as name:
        bench = Bench(Path(name))
        with serve_s3(bench.s3_folder) as bench.connection:
            for objects in (8, 1):
                bench.ratio(objects, rounds)
        bench.spark.stop()


class Bench(Session):
    """One Spark session, one S3 server, and the objects that are read."""

    def ratio(self, objects: int, rounds: int) -> None:
        """Print the medians of both for 400 MB in so many objects."""
        prefix = f"objects-{objects}"
        size = self._put(prefix, objects)
        rows = {0}
        ways: dict[str, Callable[[int], object]] = {
            "Spark's reader": lambda _: self._read(prefix),
            "s3_csv_source": lambda _: self._ingest(prefix),
        }
        medians = median_seconds(ways, rounds, lambda: rows.add(self._counted()))
        base = medians["Spark's reader"]
        print(f"{objects} objects, {size / 1e6:,.0f} MB, {max(rows):,} rows, medians of {rounds}")
        for way, median in medians.items():
            print(f"{way:<20}{median:>8.2f} s {median / base:>8.2f} x")
        if len(rows) != 2:
            raise SystemExit(f"the two have not read the same rows: {sorted(rows)}")

    def _put(self, prefix: str, objects: int) -> int:
        how: dict[str, object] = (
            {"parts": objects, "max_file_size": "1GB"} if objects > 1 else {"single_file": "a.csv"}
        )
        # To Spark's reader `t` is no boolean: each would cost it an exception and be NULL.
        columns = ", ".join(COLUMNS).replace("is_paid", "string(is_paid) as is_paid")
        query = f"select {columns} from ({TABLE.format(rows=BYTES // BYTES_PER_ROW)})"
        return self.copy(query, prefix, header=True, **how).bytes

    def _read(self, prefix: str) -> None:
        reader = self.spark.read.options(
            header=True, multiLine=True, escape='"', enforceSchema=False
        ).schema(", ".join(f"{name} {kind}" for name, kind in COLUMNS.items()))
        files = str(self.s3_folder / BUCKET / prefix / "*.csv")
        self.spark.sql("CREATE SCHEMA raw")
        reader.csv(files).write.format("parquet").saveAsTable("raw.orders")

    def _ingest(self, prefix: str) -> None:
        definition = source("raw", "orders", f"{prefix}/", COLUMNS)
        ingest(self.spark, definition, self.connection)

    def _counted(self) -> int:
        """How many rows were read; removes them."""
        # There is a value in every row, unless it was not understood.
        [counted] = self.spark.sql("SELECT count(is_paid) FROM raw.orders").collect()
        self.spark.sql("DROP SCHEMA raw CASCADE")
        return int(counted[0])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
