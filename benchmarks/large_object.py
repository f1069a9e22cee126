"""One large CSV object, read in ranges: its rows against two other readers', and bytes fetched.

A third of the fields are quoted, and one in twenty has quotes, newlines and delimiters inside.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import duckdb
from forwarder import Forwarder
from s3_server import serve_s3
from session import BUCKET, Session, source

from dbt.adapters.mzs3.ledger.relations import SourceRelations
from dbt.adapters.mzs3.options.values import parse_size
from dbt.adapters.mzs3.source.ingest import ingest

NAMES = ("id", "customer", "city", "remark", "note")
MOST_BYTES_FETCHED = 1.1


def main() -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    size = parse_size(_arguments().bytes)
    with tempfile.TemporaryDirectory(prefix="mzs3-bench-") as name:
        session = Session(Path(name))
        object_file = session.s3_folder / BUCKET / "large" / "a.csv"
        object_file.parent.mkdir()
        write(object_file, size)
        size = object_file.stat().st_size
        with (
            serve_s3(session.s3_folder) as connection,
            Forwarder(connection.endpoint or "") as forwarder,
        ):
            session.connection = replace(connection, endpoint=forwarder.endpoint)
            started = time.perf_counter()
            files = read(session)
            seconds = time.perf_counter() - started
            fetched = forwarder.bytes
        session.spark.stop()
        rows = compare(object_file, files)
    print(f"{size / 1e6:,.0f} MB in one object: {rows:,} rows in {seconds:.1f} s, as `csv` and")
    print(f"DuckDB have them; bytes fetched: {fetched / size:.3f} of the object's")
    if fetched > MOST_BYTES_FETCHED * size:
        raise SystemExit("that is too much")


def write(path: Path, size: int) -> None:
    """A CSV file with a header and at least `size` bytes; the same for a size."""
    dice = random.Random(size)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(NAMES)
        number = 0
        while file.tell() < size:
            writer.writerows(_record(dice, number + n) for n in range(10_000))
            number += 10_000


def _record(dice: random.Random, number: int) -> tuple[str, ...]:
    return (str(number), *(_field(dice, number) for _ in NAMES[1:]))


def _field(dice: random.Random, number: int) -> str:
    chance = dice.random()
    if chance < 0.05:
        return f'said "{number}",\nthen ""{chance}"",\r\nand "no more"'
    return f"with, comma {chance}" if chance < 0.3 else f"plain {chance}"


def read(session: Session) -> list[str]:
    """The Parquet files of the source's rows, after it was ingested."""
    definition = source("raw", "large", "large/", {})
    ingest(session.spark, definition, session.connection)
    rows = session.spark.table(SourceRelations("raw", "large").rows)
    return [file.removeprefix("file:") for file in rows.inputFiles()]


def compare(path: Path, files: list[str]) -> int:
    """How many rows there are. Ends with an error if they are not those of the other readers."""
    duck = duckdb.connect()
    names = ", ".join(NAMES)
    ours = f"SELECT {names} FROM read_parquet({files})"
    options = "header = true, all_varchar = true, quote = '\"', escape = '\"', new_line = '\\n'"
    theirs = f"SELECT {names} FROM read_csv('{path}', {options})"
    for one, other in ((ours, theirs), (theirs, ours)):
        # All that was found: DuckDB takes no other query while a result may have rows to come.
        found = duck.execute(f"SELECT count(*) FROM ({one} EXCEPT ALL {other})").fetchall()
        if found != [(0,)]:
            raise SystemExit(f"DuckDB's reader has other rows: {found}")
    in_order = duck.sql(f"{ours} ORDER BY _mz_record").to_arrow_reader(100_000)
    with path.open(newline="") as file:
        expected = csv.reader(file)
        next(expected)
        count = 0
        for batch in in_order:
            rows = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
            if rows != [tuple(row) for row in islice(expected, len(rows))]:
                raise SystemExit(f"Python's csv module has other rows after row {count}")
            count += len(rows)
        _require_end(expected)
    return count


def _require_end(expected: Iterator[list[str]]) -> None:
    if next(expected, None) is not None:
        raise SystemExit("Python's csv module has more rows")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bytes", default="500MB")
    return parser.parse_args()


if __name__ == "__main__":
    main()
