"""What people read of a shard."""

from __future__ import annotations

from dataclasses import replace

from dbt.adapters.mzs3.shard.compact import Compacted
from dbt.adapters.mzs3.shard.describe import compaction_lines, description_lines, reset_line
from dbt.adapters.mzs3.shard.state.state import BatchFile, ShardBatch, new_shard
from dbt.adapters.mzs3.shard.types import Column, Type
from dbt.adapters.mzs3.store.store import ListedObject

A = Column(0, "a", Type("integer"), "int")
B = Column(1, "b", Type("text"), "string", b"x")


def test_a_shard_in_words() -> None:
    files = (BatchFile("x", 3072, '"e"', 7),)
    state = new_shard([A]).appended(ShardBatch(0, 1_001, 0, "dual", files, 4, 3))
    state = state.with_columns([A, B], 2_000).appended(ShardBatch(1_001, 2_001, 1, "dual"))
    assert list(description_lines("s3://acme/x/", state)) == [
        "s3://acme/x/: 2 batches, 7 changes, 3072 bytes",
        "readable as of 1000 (1970-01-01 00:00:01.000) to 2000 (1970-01-01 00:00:02.000)",
        "schema 0 from 0 (1970-01-01 00:00:00.000)",
        "  0: a int (integer)",
        "schema 1 from 2000 (1970-01-01 00:00:02.000), in force",
        "  0: a int (integer)",
        "  1: b string (text), with a default",
        "batch 0 (1970-01-01 00:00:00.000) to 1000 (1970-01-01 00:00:01.000), schema 0, dual: "
        "+4 -3, 1 file, 3kB",
        "batch 1001 (1970-01-01 00:00:01.001) to 2000 (1970-01-01 00:00:02.000), schema 1: "
        "no change",
    ]


def test_a_compaction_in_words() -> None:
    old = (
        ShardBatch(0, 2, 0, "codec", (BatchFile("x", 3072, '"e"', 7),), 7),
        ShardBatch(2, 5, 0, "dual"),
    )
    new = ShardBatch(0, 5, 0, "dual", (BatchFile("y", 1024, '"e"', 5),), 5)
    state = new_shard([A]).appended(new)
    state = replace(state, since=4)
    removed = [ListedObject("z", '"e"', 1024)] * 2
    done = Compacted(old, new, state, removed, 1, ["another one could not be aborted"])
    assert list(compaction_lines("s3://acme/x/", done)) == [
        "s3://acme/x/: 2 batches (1 file, 3kB) became 1 (1 file, 1kB); readable as of 4 "
        "(1970-01-01 00:00:00.004) and later",
        "s3://acme/x/: removed 2 files, 2kB, which no batch names",
        "s3://acme/x/: aborted 1 upload, open for too long to be those of a run",
        "another one could not be aborted",
    ]
    nothing = Compacted((), None, state, [], 0, [])
    assert list(compaction_lines("s3://acme/x/", nothing)) == [
        "s3://acme/x/: no batches to compact; readable as of 4 (1970-01-01 00:00:00.004) and later"
    ]


def test_a_reset_in_words() -> None:
    files = (BatchFile("x", 3072, '"e"', 7),)
    before = new_shard([A]).appended(ShardBatch(0, 1_001, 0, "dual", files, 4, 3))
    assert reset_line("s3://acme/x/", before) == (
        "s3://acme/x/: reset; the next run writes all rows of its model, as those of a new shard. "
        "1 batch (1 file, 3kB) can't be read any more, and compact_shard removes them"
    )
    after = before.after_reset(5)
    assert "was reset before" in reset_line("s3://acme/x/", after)
    assert list(description_lines("s3://acme/x/", after)) == [
        "s3://acme/x/: 1 batch, 0 changes, 0 bytes",
        "reset: there is nothing to read until a run has written it",
        "schema 1 from 1001 (1970-01-01 00:00:01.001), in force",
        "batch 0 (1970-01-01 00:00:00.000) to 1000 (1970-01-01 00:00:01.000), schema 1: no change",
        "1 file of earlier batches, not removed yet",
    ]
