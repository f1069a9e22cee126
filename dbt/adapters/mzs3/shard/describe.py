"""A shard in words: its columns, its batches, and how large they are."""

from __future__ import annotations

from collections.abc import Iterator

from dbt.adapters.mzs3.config.values import format_size
from dbt.adapters.mzs3.shard.compact.job import Compacted
from dbt.adapters.mzs3.shard.state.state import Schema, ShardBatch, ShardState
from dbt.adapters.mzs3.shard.types.kind import Column
from dbt.adapters.mzs3.text import counted, shown_at


def described(uri: str, state: ShardState) -> Iterator[str]:
    """Lines for people: what is read at which times, and of which files it is made."""
    rows = sum(batch.rows for batch in state.batches)
    size = sum(batch.bytes for batch in state.batches)
    yield f"{uri}: {_batches(len(state.batches))}, {counted(rows, 'change')}, {size} bytes"
    if state.batches:
        yield f"readable as of {shown_at(state.first_moment)} to {shown_at(state.upper - 1)}"
    for schema in state.schemas:
        yield from _schema(schema, in_force=schema is state.schema)
    for batch in state.batches:
        yield _batch(batch)
    if state.retired:
        yield f"{counted(len(state.retired), 'file')} of compacted batches, not removed yet"


def _schema(schema: Schema, *, in_force: bool) -> Iterator[str]:
    mark = ", in force" if in_force else ""
    yield f"schema {schema.id} from {shown_at(schema.since)}{mark}"
    for column in schema.columns:
        yield f"  {_column(column)}"


def _column(column: Column) -> str:
    default = ", with a default" if column.default else ""
    return f"{column.tag}: {column.name} {column.spark} ({column.kind}){default}"


def _batch(batch: ShardBatch) -> str:
    times = f"batch {shown_at(batch.lower)} to {shown_at(batch.upper - 1)}, schema {batch.schema}"
    if not batch.files:
        return f"{times}: no change"
    order = f", sorted by {', '.join(map(str, batch.sort_by))}" if batch.sort_by else ""
    changes = f"+{batch.additions} -{batch.retractions}"
    return f"{times}, {batch.encoding}{order}: {changes}, {_files(batch)}"


def _files(batch: ShardBatch) -> str:
    return f"{counted(len(batch.files), 'file')}, {format_size(batch.bytes)}"


def compaction(uri: str, done: Compacted) -> Iterator[str]:
    """Lines for people: what a compaction did."""
    if done.new is None:
        yield f"{uri}: no batches to compact; readable as of {shown_at(done.since)} and later"
    else:
        files = sum(len(batch.files) for batch in done.old)
        size = format_size(sum(batch.bytes for batch in done.old))
        before = f"{_batches(len(done.old))} ({counted(files, 'file')}, {size})"
        yield (
            f"{uri}: {before} became 1 ({_files(done.new)}); readable as of "
            f"{shown_at(done.since)} and later"
        )
    if done.swept.files:
        removed = f"{counted(done.swept.files, 'file')}, {format_size(done.swept.bytes)}"
        yield f"{uri}: removed {removed}, which no batch names"
    if done.aborted.uploads:
        uploads = counted(done.aborted.uploads, "upload")
        yield f"{uri}: aborted {uploads}, open for too long to be those of a run"
    yield from done.aborted.problems


def _batches(count: int) -> str:
    return counted(count, "batch").replace("batchs", "batches")
