"""What a ledger of many epochs costs, as a ratio to one of few: planning a pass, and status.

The older epochs come as compaction leaves them, in one snapshot with an object for each; the
newest are written one by one, until one more would make the next compaction due. That is when a
ledger is at its slowest. Each epoch took one object.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from session import Session, median_seconds

from dbt.adapters.mzs3.formats.read.columns import Column
from dbt.adapters.mzs3.ledger.compaction import compaction_is_due
from dbt.adapters.mzs3.ledger.events import Phase, State
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.source.executor.fetch import schema_ddl
from dbt.adapters.mzs3.source.listing.reconcile import reconcile
from dbt.adapters.mzs3.source.operations.status import read_status
from dbt.adapters.mzs3.source.options import OnOverwrite, SourceDefinition, parse_definition
from dbt.adapters.mzs3.source.purify import PinnedDefinition
from dbt.adapters.mzs3.source.tables import make_relations, make_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FIRST_EPOCH = 9_000_000_000_000
ROWS = schema_ddl([Column("id")])


def main() -> None:
    arguments = _arguments()
    with tempfile.TemporaryDirectory(prefix="mzs3-bench-") as name:
        bench = Bench(Path(name))
        sources = [bench.source(epochs) for epochs in (arguments.few, arguments.many)]
        found = bench.objects(0, arguments.many + 1).persist()
        for what, run in (
            ("planning", lambda source: bench.plan(source, found)),
            ("status", lambda source: read_status(bench.spark, source)),
        ):
            _print_ratio(what, run, sources, arguments.rounds)
        bench.spark.stop()


class Bench(Session):
    """One Spark session, and ledgers as so many epochs leave them."""

    def source(self, epochs: int) -> SourceDefinition:
        """A source that has committed so many epochs."""
        definition = parse_definition(
            name=f"bench.after_{epochs}",
            schema="bench",
            identifier=f"after_{epochs}",
            external={"type": "s3_csv_source", "location": "s3://bench/"},
            columns=(),
            connections={"default"},
        )
        make_schema(self.spark, definition)
        columns = (Column("id"),)
        pinned = PinnedDefinition(None, columns, definition.pinned_options())
        make_relations(self.spark, definition, pinned, None)
        ledger = Ledger(self.spark, definition.relations)
        old = max(0, epochs - 16)
        if old:
            ledger.write_snapshot(str(FIRST_EPOCH + old), self._snapshot(old))
        for number in range(old, epochs):
            if compaction_is_due(ledger.epochs()):
                break
            epoch = str(FIRST_EPOCH + number + 1)
            ledger.write_plan(epoch, self.objects(number, number + 1))
            ledger.write_commit(epoch, self.objects(number, number + 1))
        return definition

    def objects(self, first: int, end: int) -> DataFrame:
        """Objects of these numbers, as a listing finds them and a plan and a commit have them."""
        return self.spark.range(first, end).selectExpr(
            "format_string('s3://bench/%08d.csv', id) AS object",
            "cast(id AS string) AS etag",
            "10L AS size",
            "timestamp'2026-01-01' AS last_modified",
            "false AS hides",
            "1L AS `rows`",
            "0L AS rejects",
            "cast(NULL AS string) AS error",
        )

    def plan(self, source: SourceDefinition, found: DataFrame) -> int:
        """How many of the objects a pass would take; the last one alone is new to each ledger."""
        ledger = Ledger(self.spark, source.relations)
        decided = reconcile(found, ledger.objects(), OnOverwrite.FAIL, complete=True)
        return int(decided.where(F.col("action") == "take").count())

    def _snapshot(self, epochs: int) -> DataFrame:
        copies = self.objects(0, epochs).selectExpr(
            "*",
            f"'{State.FETCHED}' AS state",
            "timestamp'2026-01-01' AS at",
            f"cast({FIRST_EPOCH} + cast(etag AS bigint) AS string) AS of_epoch",
            f"'{Phase.COMMIT}' AS of_phase",
        )
        mark = self.spark.range(1).selectExpr(
            f"cast({epochs} AS bigint) AS `rows`", f"'{Phase.SNAPSHOT}' AS of_phase"
        )
        return copies.unionByName(mark, allowMissingColumns=True)


def _print_ratio(
    what: str,
    run: Callable[[SourceDefinition], object],
    sources: list[SourceDefinition],
    rounds: int,
) -> None:
    small, large = sources
    ways: dict[str, Callable[[int], object]] = {
        small.identifier: lambda _: run(small),
        large.identifier: lambda _: run(large),
    }
    few, many = median_seconds(ways, rounds).values()
    names = f"{large.identifier} to {small.identifier}"
    print(f"{what}: {many:.2f} s to {few:.2f} s, {many / few:.2f} x, {names}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--few", type=int, default=20)
    parser.add_argument("--many", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
