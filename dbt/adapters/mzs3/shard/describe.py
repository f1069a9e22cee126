"""Texts for users about a shard: its columns, its batches, and what was done to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbt.adapters.mzs3.options.values import format_size
from dbt.adapters.mzs3.shard.compact import Compacted
from dbt.adapters.mzs3.shard.state.state import BatchFile, ShardBatch, ShardState
from dbt.adapters.mzs3.store.store import ListedObject
from dbt.adapters.mzs3.text import count_noun, moment_text


def description_lines(uri: str, state: ShardState) -> Iterator[str]:
    """Lines for users: the columns, the readable times and the batches of a shard."""
    rows = sum(batch.rows for batch in state.batches)
    size = sum(batch.bytes for batch in state.batches)
    yield f"{uri}: {_batches(len(state.batches))}, {count_noun(rows, 'change')}, {size} bytes"
    if state.is_unwritten:
        yield "reset: there is nothing to read until a run has written it"
    else:
        yield f"readable as of {moment_text(state.first_moment)} to {moment_text(state.upper - 1)}"
    for schema in state.schemas:
        mark = ", in force" if schema is state.schema else ""
        yield f"schema {schema.id} from {moment_text(schema.since)}{mark}"
        for column in schema.columns:
            default = ", with a default" if column.default else ""
            yield f"  {column.tag}: {column.name} {column.spark} ({column.kind}){default}"
    yield from map(_batch, state.batches)
    if state.retired:
        yield f"{count_noun(len(state.retired), 'file')} of earlier batches, not removed yet"


def _batch(batch: ShardBatch) -> str:
    first, last = moment_text(batch.lower), moment_text(batch.upper - 1)
    times = f"batch {first} to {last}, schema {batch.schema}"
    if not batch.files:
        return f"{times}: no change"
    order = f", sorted by {', '.join(map(str, batch.sort_by))}" if batch.sort_by else ""
    changes = f"+{batch.additions} -{batch.retractions}"
    return f"{times}, {batch.encoding}{order}: {changes}, {_files(batch.files)}"


def _files(files: Sequence[BatchFile] | Sequence[ListedObject]) -> str:
    return f"{count_noun(len(files), 'file')}, {format_size(sum(file.size for file in files))}"


def compaction_lines(uri: str, done: Compacted) -> Iterator[str]:
    """Lines for users: what a compaction did."""
    since = f"readable as of {moment_text(done.state.since)} and later"
    if done.new is None:
        yield f"{uri}: no batches to compact; {since}"
    else:
        before = _files([file for batch in done.old for file in batch.files])
        after = _files(done.new.files)
        yield f"{uri}: {_batches(len(done.old))} ({before}) became 1 ({after}); {since}"
    if done.removed:
        yield f"{uri}: removed {_files(done.removed)}, which no batch names"
    if done.aborted:
        uploads = count_noun(done.aborted, "upload")
        yield f"{uri}: aborted {uploads}, open for too long to be those of a run"
    yield from done.problems


def reset_line(uri: str, before: ShardState) -> str:
    """A line for users: what a reset did to the shard, whose state was `before`."""
    if before.is_unwritten:
        return f"{uri}: was reset before, and no run has written it since"
    files = [file for batch in before.batches for file in batch.files]
    return (
        f"{uri}: reset; the next run writes all rows of its model, as those of a new shard. "
        f"{_batches(len(before.batches))} ({_files(files)}) can't be read any more, and "
        "compact_shard removes them"
    )


def _batches(count: int) -> str:
    return "1 batch" if count == 1 else f"{count} batches"
