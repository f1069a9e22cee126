"""What a shard costs: the bytes and the time of a diff, and the bytes of a few columns.

`diff` writes a table to a shard and then, in turn, two versions of it that differ in the price of
some rows, beside full Parquet exports of the same table; read the ratios, not the seconds. An
updated row is two changes: by default 0.5 % of the rows are updated, so that there are 1 % as many
changes as rows. `columns` counts at the S3 server what reading 2 of 40 columns fetches, and what
reading all does.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from unittest import mock

from forwarder import Forwarder
from s3_server import serve_s3
from session import BUCKET, COMET, Session, median_seconds
from table import TABLE

from dbt.adapters.mzs3.events import Committed
from dbt.adapters.mzs3.export.export import CopyResult
from dbt.adapters.mzs3.shard.read.rows import read_shard
from dbt.adapters.mzs3.shard.state.store import StateStore
from dbt.adapters.mzs3.shard.write.job import persist_shard
from dbt.adapters.mzs3.store.location import parse_location

UPDATED = "pmod(hash(id, 9), 1000) < {}"
WIDE, FETCHED = 40, ["c7", "c31"]


def main() -> None:
    arguments = _arguments()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory(prefix="mzs3-bench-", dir=arguments.folder) as name:
        comet = COMET if arguments.native else {}
        bench = Bench(Path(name), **{"spark.master": arguments.master, **comet})
        # This server knows no conditions; with one writer none is ever needed.
        heedless = mock.patch.object(StateStore, "require_conditions")
        with serve_s3(bench.s3_folder) as bench.connection, heedless:
            if arguments.measure == "diff":
                bench.updated = arguments.updated
                bench.diff(arguments.rows, arguments.rounds, arguments.encoding)
            else:
                bench.columns(arguments.rows, arguments.encoding)
        bench.spark.stop()


class Bench(Session):
    """One Spark session, one S3 server, and what is measured with them."""

    exports = 0
    runs = 0
    updated = 5
    """Of 1000 rows."""

    def diff(self, rows: int, rounds: int, encoding: str) -> None:
        """Print the bytes and the median seconds of a diff, and their ratios to a full export."""
        versions = self._versions(rows)
        results: dict[str, CopyResult | Committed] = {}

        def export(turn: int) -> None:
            results["copy_to_s3"] = self.export(versions[turn % 2])

        def persist(turn: int) -> None:
            # With Comet to a shard of its own, so that both have the same changes.
            name = f"diff{self.spark.conf.get('spark.comet.enabled', '')}"
            results["persist_shard"] = self.persist(versions[(turn + 1) % 2], name, encoding)

        for first_batch in self.with_comet({"first": persist}).values():
            first_batch(1)
        first = results["persist_shard"]
        ways = {"copy_to_s3": export, "persist_shard": persist}
        medians = median_seconds(self.with_comet(ways), rounds)
        full, change = results["copy_to_s3"], results["persist_shard"]
        print(f"{rows:,} rows, {encoding}; the first batch has {first.bytes / full.bytes:.2f} x")
        for way in medians:
            result = results[way.removesuffix(", Comet")]
            print(
                f"{way:<22}{result.rows:>12,} rows {result.bytes / full.bytes:>8.2%} of the bytes"
                f"{medians[way]:>8.2f} s {medians[way] / medians['copy_to_s3']:>8.2f} x"
            )
        print(f"{change.rows / rows:.2%} as many changes as rows")

    def columns(self, rows: int, encoding: str) -> None:
        """Print the bytes that the server sends for some columns, and for all."""
        names = ", ".join(f"xxhash64(id, {number}) as c{number}" for number in range(WIDE))
        self.persist(f"select {names} from range(0, {rows}, 1, 2)", "wide", encoding)
        some, everything = self._fetched(FETCHED), self._fetched(None)
        print(
            f"{rows:,} rows, {encoding}: {len(FETCHED)} of {WIDE} columns fetch {some:,} bytes, "
            f"{some / everything:.1%} of the {everything:,} of all"
        )

    def export(self, query: str) -> CopyResult:
        """A full export as Parquet."""
        self.exports += 1
        return self.copy(query, f"export{self.exports}", format="parquet")

    def persist(self, query: str, name: str, encoding: str) -> Committed:
        """A run of a model into the shard of this name."""
        self.runs += 1
        return persist_shard(
            self.spark,
            query,
            node="benchmark",
            options={"location": f"s3://{BUCKET}/{name}", "encoding": encoding},
            connections={self.connection.name: self.connection},
            as_of=self.runs,
        )

    def _versions(self, rows: int) -> tuple[str, str]:
        """Queries of a stored table, and of it with other prices in some rows."""
        stored = str(self.folder / "table")
        self.spark.sql(TABLE.format(rows=rows)).write.parquet(stored)
        names = self.spark.read.parquet(stored).columns
        changed = [
            f"if({UPDATED.format(self.updated)}, price + 1, price) as price" if n == "price" else n
            for n in names
        ]
        kind = "cast(price as decimal(12, 2)) as price"
        query = f"select {', '.join(changed)} from parquet.`{stored}`"
        narrow = ", ".join(kind if name == "price" else name for name in names)
        return f"select * from parquet.`{stored}`", f"select {narrow} from ({query})"

    def _fetched(self, names: list[str] | None) -> int:
        place = parse_location(f"s3://{BUCKET}/wide")
        with Forwarder(self.connection.endpoint or "") as forwarder:
            connection = replace(self.connection, endpoint=forwarder.endpoint)
            frame = read_shard(self.spark, connection, place, names=names)
            frame.write.format("noop").mode("overwrite").save()
            return forwarder.bytes


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("measure", choices=("diff", "columns"), nargs="?", default="diff")
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--updated", type=int, default=5, help="of 1000 rows")
    parser.add_argument("--native", action="store_true", help="`diff` with Comet too")
    parser.add_argument("--encoding", choices=("dual", "structured", "codec"), default="dual")
    parser.add_argument("--master", default="local[2]", help="spark.master")
    parser.add_argument("--folder", help="where temporary files go; the system's folder for them")
    return parser.parse_args()


if __name__ == "__main__":
    main()
