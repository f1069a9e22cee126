"""The walk of docs/persist-shard.md from messages to columns, with its files and its commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file
from support.s3.opened import state_of

from dbt.adapters.mzs3.shard.read.rows import read_shard
from dbt.adapters.mzs3.store.client import s3_client
from dbt.adapters.mzs3.store.location import parse_location

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PAGE = Path(__file__).parents[3] / "docs" / "persist-shard.md"
BUCKET = "migration-walk"
LOCATION = parse_location(f"s3://{BUCKET}/shards/orders")
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
NAME = re.compile(r"(?:--|#) models/([\w.]+)\n")


def steps() -> list[str | tuple[str, str]]:
    """In order: commands as they are typed, and files as pairs of a name and a text."""
    [section] = re.findall(r"\n## Migration\n(.*?)\n## ", PAGE.read_text(), re.DOTALL)
    found: list[str | tuple[str, str]] = []
    for language, text in BLOCK.findall(section.replace("s3://acme/", f"s3://{BUCKET}/")):
        if language == "sh":
            found += text.splitlines()
        else:
            name = NAME.match(text)
            assert name is not None, text
            found.append((name[1], text))
    return found


class TestMigrationWalk:
    @pytest.fixture(scope="class", autouse=True)
    def the_bucket(self, s3: Any) -> None:
        s3.create_bucket(Bucket=BUCKET)

    def test_the_walk_from_messages_to_columns(
        self, project: Any, spark: Any, connection: Any
    ) -> None:
        """After each command: the encodings that the shard has, and what the log says of them."""
        logs: list[str] = []
        encodings: list[list[str]] = []
        store = state_of(s3_client(connection), LOCATION)
        for step in steps():
            if isinstance(step, tuple):
                write_file(step[1], project.project_root, "models", step[0])
                continue
            orders = f"select id, id % 2 as amount from range({len(logs) + 3})"
            write_file(orders, project.project_root, "models", "orders.sql")
            run_dbt(["run", "--select", "orders"])
            dbt, *arguments = shlex.split(step)
            assert dbt == "dbt"
            logs.append(run_dbt_and_capture(["--no-use-colors", *arguments])[1])
            batches = store.existing().state.batches
            encodings.append([batch.encoding for batch in batches if batch.files])
        assert encodings == [
            ["codec"],
            ["codec", "dual"],
            ["dual"],  # all written anew
            ["dual", "dual"],
            ["dual", "dual"],  # shown
            ["dual", "dual", "structured"],
            ["structured"],
            ["structured"],  # described
            ["codec"],
        ]
        _, few, _, all_, shown, _, compacted, described, back = logs
        # Two columns: of one row more than there was, and of all six.
        assert "lake.orders_compared: 2 values were compared, in 1 of 2 batches, and are " in few
        assert "lake.orders_compared: 12 values were compared, in 2 of 2 batches, and " in all_
        assert re.search(r"\| codec +\| +0 \| +0 \|", shown), shown
        assert re.search(r"\| dual +\| +14 \| +0 \|", shown), shown
        assert "3 batches (" in compacted
        assert re.search(r"batch .*, structured: \+8 -0, 1 file", described), described
        assert "codec" not in described
        assert "dual" not in described
        assert "1 batch (" in back
        rows = read_shard(spark, connection, LOCATION).collect()
        assert sorted(map(tuple, rows)) == [(n, n % 2) for n in range(8)]
