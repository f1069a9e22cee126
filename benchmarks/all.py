"""All figures, measured one after another, as a page of the docs with their dates and commits.

It takes an hour and a half, in which the machine should do nothing else. Where names of benchmarks
are given, only these are measured again, and the rest of the page stays as it is.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "figures.md"
NATIVE_PYTHON = str(ROOT / ".venv-formats/bin/python")
HEAD = """# Figures

`make bench-all` writes this page. [How it is measured](inside/measured.md) says what is compared.
Compare the ratios: they move far less than the seconds from one machine or hour to another.

| ratio | limit | goal | measured |
| --- | --- | --- | --- |
"""

COMMANDS = {
    "exports": "copy_to_s3.py",
    "peers": "peers.py",
    "ingestion": "ingest.py",
    "shards": "shard.py diff --rounds 9",
    "small-runs": "small_runs.py",
    "small-objects": "many_objects.py fetching --rounds 5",
    "sample": "engines.py sample --targets connect cluster",
    "workers": "engines.py workers",
    "linear": "copy_to_s3.py linear --rows 30000000",
    "memory": "copy_to_s3.py memory",
    "folders": "copy_to_s3.py partitions",
    "large-object": "large_object.py",
    "ledger": "ledger_epochs.py",
    "keys": "many_objects.py listing --rounds 1",
    "native-exports": "copy_to_s3.py native",
    "native-peers": "peers.py --native",
    "native-shards": "shard.py diff --native --rounds 5",
}
"""What is measured, in the order of the page, and what runs it: the native ones in the environment
of `make test-native`."""


class Limit(NamedTuple):
    """A ratio, where a benchmark prints it, and what it should be at most.

    `line` is how the line begins, after one that begins with `after`; the ratio is its number
    `place`, counted from 0.
    """

    ratio: str
    benchmark: str
    after: str
    line: str
    place: int
    most: float
    goal: float


LIMITS = (
    Limit("CSV export, to `df.write.csv` to a folder", "exports", "", "copy_to_s3 csv", 1, 1.4, 1),
    Limit(
        "Parquet export, to `df.write.parquet` to a folder",
        *("exports", "", "copy_to_s3 parquet", 1, 1.8, 1.2),
    ),
    Limit(
        "CSV export, to `df.write` over s3a", "peers", "export as csv", "copy_to_s3", 1, 1.1, 0.8
    ),
    Limit(
        "Parquet export, to `df.write` over s3a",
        *("peers", "export as parquet", "copy_to_s3", 1, 1.3, 1),
    ),
    Limit("8 objects, to Spark's reader", "ingestion", "8 objects", "s3_csv_source", 1, 0.9, 0.7),
    Limit("export of 1,000 rows, to a table", "small-runs", "", "copy_to_s3", 1, 2, 1.3),
    Limit("source with nothing new, to that table", "small-runs", "", "idle source", 1, 1.5, 0.5),
    Limit("shard without changes, to that table", "small-runs", "", "idle shard", 1, 2, 1),
    Limit("10,000 objects of 1 kB, to boto3", "small-objects", "", "one run:", 0, 2, 1.2),
    Limit("diff of 1 %, to a full Parquet export", "shards", "", "persist_shard", 3, 1.6, 1.2),
    Limit(
        "CSV export with Comet, to `df.write.csv` to a folder without",
        *("native-exports", "", "copy_to_s3 csv, Comet", 1, 1.15, 0.9),
    ),
    Limit(
        "Parquet export with Comet, to `df.write.parquet` to a folder without",
        *("native-exports", "", "copy_to_s3 parquet, Comet", 1, 1.45, 1.1),
    ),
    Limit(
        "CSV export with Comet, to `df.write` over s3a without",
        *("native-peers", "export as csv", "copy_to_s3, Comet", 1, 0.85, 0.7),
    ),
    Limit(
        "Parquet export with Comet, to `df.write` over s3a without",
        *("native-peers", "export as parquet", "copy_to_s3, Comet", 1, 1.05, 0.9),
    ),
    Limit(
        "CSV export, to `df.write` over s3a, both with Comet",
        *("native-peers", "export as csv", "copy_to_s3, Comet:", 0, 1.1, 1),
    ),
    Limit(
        "Parquet export, to `df.write` over s3a, both with Comet",
        *("native-peers", "export as parquet", "copy_to_s3, Comet:", 0, 1.3, 1.1),
    ),
    Limit(
        "diff of 1 % with Comet, to a full Parquet export without",
        *("native-shards", "", "persist_shard, Comet", 3, 1, 0.7),
    ),
)


def main() -> None:
    """Measure, and write the page anew after each benchmark."""
    sections = _sections()
    commit = _output("git", "describe", "--always", "--dirty", "--exclude=*")
    for name in _arguments().names or COMMANDS:
        print(f"{name} …", flush=True)
        sections[name] = _measured(name, commit)
        PAGE.write_text(_page(sections))


def _measured(name: str, commit: str) -> str:
    """What the benchmark prints, with when, where and of what."""
    today = datetime.now(timezone.utc).date()
    cores = len(os.sched_getaffinity(0))
    command = COMMANDS[name]
    script, *arguments = command.split()
    python = NATIVE_PYTHON if name.startswith("native-") else sys.executable
    version = _output(python, "-c", "import pyspark; print(pyspark.__version__)")
    printed = _output(python, str(ROOT / "benchmarks" / script), *arguments)
    where = f"{cores} cores, Spark {version}"
    return f"`benchmarks/{command}`, {today}, commit {commit}, {where}:\n\n```text\n{printed}\n```"


def _output(*command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "scripts")}
    run = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return run.stdout.strip()


def _sections() -> dict[str, str]:
    """What the page has of each benchmark."""
    text = PAGE.read_text() if PAGE.exists() else ""
    found = (section.partition("\n") for section in text.split("\n## ")[1:])
    return {name: section.strip() for name, _, section in found}


def _page(sections: Mapping[str, str]) -> str:
    limits = "".join(
        f"| {limit.ratio} | {limit.most} | {limit.goal} | {_ratio(limit, sections)} |\n"
        for limit in LIMITS
    )
    texts = (f"\n## {name}\n\n{sections[name]}\n" for name in COMMANDS if name in sections)
    return HEAD + limits + "".join(texts)


def _ratio(limit: Limit, sections: Mapping[str, str]) -> str:
    """The number that the benchmark has printed; nothing before it is measured."""
    text = sections.get(limit.benchmark, "")
    for line in text[max(text.find(limit.after), 0) :].splitlines():
        if line.startswith(limit.line):
            numbers: list[str] = re.findall(r"[\d.,]*\d", line[len(limit.line) :])
            return numbers[limit.place]
    return ""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *COMMANDS], metavar="benchmark")
    return parser.parse_args()


if __name__ == "__main__":
    main()
