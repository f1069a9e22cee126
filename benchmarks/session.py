"""What all benchmarks run on: one Spark session, and a folder that an S3 server serves."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from dbt.adapters.mzs3.export.export import CopyResult
from dbt.adapters.mzs3.export.job import copy_to_s3
from dbt.adapters.mzs3.source.options import SourceDefinition, parse_definition
from dbt.adapters.mzs3.spark.session import get_or_create
from dbt.adapters.mzs3.store.connection import AwsConnection

BUCKET = "bench"

# Where `make bench-native` puts the jar, docs/engines/native.md has what each setting is for.
COMET = {
    "spark.driver.extraClassPath": str(Path(sys.prefix) / "comet.jar"),
    "spark.plugins": "org.apache.spark.CometPlugin",
    "spark.shuffle.manager": "org.apache.spark.sql.comet.execution.shuffle.CometShuffleManager",
    "spark.comet.exec.pyarrowUDF.enabled": "true",
    "spark.comet.scan.unsignedSmallIntSafetyCheck": "false",
    "spark.memory.offHeap.enabled": "true",
    "spark.memory.offHeap.size": "4g",
}


class Session:
    """A Spark of two cores with its tables in `folder`, and an empty bucket below it.

    `connection` is that of the server, once it serves `s3_folder`. `settings` are Spark's, by
    their names. With those in COMET, `with_comet` turns it on and off.
    """

    connection: AwsConnection

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.has_comet = COMET.items() <= settings.items()
        self.s3_folder = folder / "s3"
        (self.s3_folder / BUCKET).mkdir(parents=True)
        self.spark = get_or_create(
            {
                "spark.master": "local[2]",
                "spark.driver.memory": "8g",
                "spark.sql.warehouse.dir": str(folder / "warehouse"),
                "spark.ui.enabled": "false",
                "spark.ui.showConsoleProgress": "false",
                **settings,
            }
        )

    def with_comet(
        self, ways: Mapping[str, Callable[[int], object]]
    ) -> dict[str, Callable[[int], object]]:
        """The ways as they are; in a session with Comet each without it, and then, under a name
        that ends with Comet, with it."""
        if not self.has_comet:
            return dict(ways)

        def run(way: str, is_on: bool, turn: int) -> None:
            self.spark.conf.set("spark.comet.enabled", is_on)
            ways[way](turn)

        return {
            f"{way}{', Comet' if is_on else ''}": partial(run, way, is_on)
            for way in ways
            for is_on in (False, True)
        }

    def copy(self, query: str, prefix: str, **options: object) -> CopyResult:
        """An export of the query below a prefix of the bucket."""
        return copy_to_s3(
            self.spark,
            query,
            node="benchmark",
            options={"location": f"s3://{BUCKET}/{prefix}", **options},
            connections={self.connection.name: self.connection},
            as_of=0,
        )


def source(
    schema: str, table: str, prefix: str, columns: Mapping[str, str], **external: Any
) -> SourceDefinition:
    """A source of the objects below a prefix of the bucket; without columns, as their header."""
    return parse_definition(
        name=f"lake.{table}",
        schema=schema,
        identifier=table,
        external={"type": "s3_csv_source", "location": f"s3://{BUCKET}/{prefix}", **external},
        columns=[{"name": name, "data_type": kind} for name, kind in columns.items()],
        connections=["default"],
    )


def median_seconds(
    ways: Mapping[str, Callable[[int], object]],
    rounds: int,
    after_each: Callable[[], object] = lambda: None,
) -> dict[str, float]:
    """The median of `seconds_in_turn` of each way."""
    seconds = seconds_in_turn(ways, rounds, lambda _: after_each())
    return {way: statistics.median(times) for way, times in seconds.items()}


def seconds_in_turn(
    ways: Mapping[str, Callable[[int], object]],
    rounds: int,
    after_each: Callable[[str], object],
) -> dict[str, list[float]]:
    """The times of each way, of which all run in turn and get the number of the turn.

    The first turn, whose number is 0, warms up and does not count, nor does `after_each`, which
    gets the way.
    """
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(rounds + 1):
        for way, run in ways.items():
            started = time.perf_counter()
            run(turn)
            if turn:
                seconds[way].append(time.perf_counter() - started)
            after_each(way)
    return seconds
