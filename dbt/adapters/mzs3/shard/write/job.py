"""A run of a `persist_shard` model from end to end, which a compiled job calls."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.mzs3.errors import ShardError
from dbt.adapters.mzs3.events import EventSink, copy_warning, ignore_event
from dbt.adapters.mzs3.names import folded, namesakes, shown_namesakes
from dbt.adapters.mzs3.options.values import Problems
from dbt.adapters.mzs3.rows.columns import canonical_columns, column_problems, queried_rows
from dbt.adapters.mzs3.rows.plan import in_parts
from dbt.adapters.mzs3.shard.batch.write import as_wire
from dbt.adapters.mzs3.shard.codec.encode import datums
from dbt.adapters.mzs3.shard.config import ShardOptions, parse_shard_options, sort_problems
from dbt.adapters.mzs3.shard.read.rows import ShardLocation, changes_in
from dbt.adapters.mzs3.shard.rows import (
    added,
    in_wire_type,
    parts_of_changes,
    sorted_inside,
    wire_spark_type,
)
from dbt.adapters.mzs3.shard.state.evolve import evolved, given_columns
from dbt.adapters.mzs3.shard.state.spark_types import ddl_of, fits
from dbt.adapters.mzs3.shard.state.state import ShardBatch, ShardState, new_shard
from dbt.adapters.mzs3.shard.state.store import (
    LostRaceError,
    StateStore,
    StoredState,
    UnknownWriteError,
    pause,
)
from dbt.adapters.mzs3.shard.types import Column as ShardColumn
from dbt.adapters.mzs3.shard.types import Type
from dbt.adapters.mzs3.shard.write.batch import committing, write_batch
from dbt.adapters.mzs3.shard.write.diff import as_compared, changed, digest_of
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, explain
from dbt.adapters.mzs3.spark.frames import default_parallelism
from dbt.adapters.mzs3.spark.interrupt import interruptible
from dbt.adapters.mzs3.store.client import s3_client
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.prefix import Prefix
from dbt.adapters.mzs3.text import counted
from dbt.adapters.mzs3.upload.destination import resolve_location

# A compaction at the same time changes the state twice.
_ATTEMPTS = 8

MOST_AHEAD_MS = 10 * 60_000


@dataclass(frozen=True)
class PersistResult:
    """A batch that is in the shard, whose state is the `manifest`; `rows` are its changes."""

    rows: int
    location: str
    manifest: str
    files: int
    bytes: int
    as_of: int


def persist_shard(
    spark: SparkSession,
    query: str,
    *,
    node: str,
    options: Mapping[str, Any],
    connections: Mapping[str, AwsConnection],
    as_of: int,
    cancelled: threading.Event | None = None,
    tell: EventSink = ignore_event,
) -> PersistResult:
    """Append a batch to the shard: what turns its rows into those of `query`, or all of them.

    The changes have the time `as_of`, in ms since the epoch, or the first one after the shard's
    last. After a lost race with another run all begins again, a few times. `tell` gets warnings.
    Raises an Mzs3Error; the shard is then what it was, unless it is an UnknownWriteError.
    """
    parsed = parse_shard_options(node, options, connections)
    problems = Problems(node)
    frame = location = None
    with problems.gathered():
        frame = checked_frame(spark, node, query)
        problems.found += type_problems(frame.schema, parsed.column_types).values()
    with problems.gathered():
        location = resolve_location(spark, node, parsed.location, as_of)
    if frame is None or location is None:
        problems.raise_if_any()
        raise AssertionError
    shard = ShardLocation(connections[parsed.aws_connection], location)
    run = _Run(spark, node, frame, parsed, shard, as_of, cancelled, tell)
    for attempt in range(_ATTEMPTS):
        try:
            with interruptible(spark, cancelled):
                return run.once(first=attempt == 0)
        except UnknownWriteError as exc:
            raise UnknownWriteError(
                f"{node}: {exc}, and the batch with it: look with `dbt run-operation "
                f"describe_shard --args '{{location: {location.uri}}}'` before you run it again, "
                "as mode: append would add its rows twice"
            ) from exc
        except LostRaceError as exc:
            if attempt == _ATTEMPTS - 1:
                raise ShardError(
                    f"{node}: {_ATTEMPTS} times another run changed the shard while this one "
                    f"wrote: {exc}. The shard has nothing of this run; run it again when fewer "
                    "write to the shard"
                ) from exc
            pause(attempt)
    raise AssertionError


@dataclass(frozen=True)
class _Run:
    spark: SparkSession
    node: str
    frame: DataFrame
    options: ShardOptions
    shard: ShardLocation
    as_of: int
    cancelled: threading.Event | None
    tell: EventSink

    def once(self, *, first: bool) -> PersistResult:
        """One attempt; raises LostRaceError if another run was faster."""
        store = StateStore(s3_client(self.shard.connection), self.shard.location)
        before = store.read()
        if first:
            store.require_conditions()
            upper = before.state.upper if before is not None else 0
            warning = clock_warning(self.as_of, upper, store.clock)
            if warning is not None:
                self._warn(warning)
        state = self._state(before)
        moment = max(self.as_of, state.upper)
        if self._has_the_rows_of(state):
            batch = self._new_batch(state, moment)
        else:
            batch = self._batch(store.prefix, state, moment)
        with committing(store, batch.files):
            after = self._with_digest(state.appended(batch), batch)
            if before is None:
                store.create(after)
            else:
                store.replace(before, after)
        changes = batch.additions + batch.retractions
        if self.cancelled is not None and self.cancelled.is_set():
            # dbt reports the model as cancelled nevertheless.
            append = self.options.mode == "append"
            self._warn(
                "the run was cancelled too late: its batch is part of the shard, and stays: "
                f"{counted(changes, 'change')}, {counted(len(batch.files), 'file')}"
                + ("; to run it again adds its rows twice" if append else "")
            )
        return PersistResult(
            rows=changes,
            location=store.prefix.uri,
            manifest=store.uri,
            files=len(batch.files),
            bytes=batch.bytes,
            as_of=moment,
        )

    def _state(self, before: StoredState | None) -> ShardState:
        """The shard with its columns from this run on; ConfigError with all wrong options."""
        options, schema = self.options, self.frame.schema
        given = given_columns(schema, options.column_types)
        wrong = type_problems(schema, options.column_types)
        problems = Problems(self.node, wrong.values())
        usable = {n: sql for n, sql in options.column_defaults.items() if folded(n) not in wrong}
        defaults: dict[str, bytes] = {}
        with problems.gathered():
            defaults = default_datums(self.spark, self.node, usable, given)
        state = new_shard(given) if before is None else before.state
        columns = state.schema.columns
        names = [*(column.name for column in columns), *(column.name for column in given)]
        if before is not None:
            with problems.gathered():
                # After a reset there are no columns that the model's could differ from.
                is_new = state.is_unwritten
                columns = evolved(
                    self.node,
                    columns,
                    given,
                    state.next_tag,
                    policy="append_new_columns" if is_new else options.on_schema_change,
                    renames={} if is_new else options.column_renames,
                    defaults=defaults,
                )
                names = [column.name for column in columns]
        problems.found += sort_problems(options.sort_by, list(dict.fromkeys(names)))
        problems.raise_if_any()
        return state.with_columns(columns, self.as_of)

    def _has_the_rows_of(self, state: ShardState) -> bool:
        """Whether the model's digest is the shard's: then nothing is to be compared."""
        if self.options.mode != "diff" or not state.digest:
            return False
        rows = model_rows(self.frame, state.schema.columns)
        try:
            return digest_of(added(rows), rows.columns) == state.digest
        except SPARK_FAILURES:
            return False  # whatever it is, the comparison fails with it too, and says so

    def _with_digest(self, after: ShardState, batch: ShardBatch) -> ShardState:
        """The state with a digest, if this run has found the rows to be the shard's.

        It is that of the shard's files, which don't change: a model may give other rows each time
        it is asked. Those of a shard that changed now will change again: they need none.
        """
        if self.options.mode != "diff" or batch.files or after.digest:
            return after
        columns = after.schema.columns
        stored = changes_in(self.spark, self.shard, after.batches, columns)
        try:
            digest = digest_of(stored, [f"c{place}" for place in range(len(columns))])
        except SPARK_FAILURES:
            return after
        return replace(after, digest=digest)

    def _new_batch(self, state: ShardState, moment: int) -> ShardBatch:
        return ShardBatch(state.upper, moment + 1, state.schema.id, self.options.encoding)

    def _batch(self, prefix: Prefix, state: ShardState, moment: int) -> ShardBatch:
        """The changes, in files that no state names yet."""
        options = self.options
        return write_batch(
            self.shard,
            prefix,
            self._new_batch(state, moment),
            state.schema.columns,
            partial(self._parts, state, moment),
            f"{self.node}: writing to {prefix.uri}",
            self.cancelled,
            max_file_size=options.max_file_size,
            part_size=options.part_size,
            max_bytes_in_memory=options.max_multi_part_bytes_in_memory,
        )

    def _parts(self, state: ShardState, moment: int) -> DataFrame:
        """The changes, partitioned as files are."""
        columns, parts = state.schema.columns, self.options.parts
        sorted_by, _ = state.schema.named(self.options.sort_by)
        keys = [f"c{columns.index(column)}" for column in sorted_by]
        rows = model_rows(self.frame, columns)
        ordered: list[Column | str] = [F.lit(moment).cast("bigint").alias("t"), "d", *rows.columns]
        if self.options.mode == "diff" and any(batch.files for batch in state.batches):
            compared = list(map(as_compared, columns))
            before = changes_in(self.spark, self.shard, state.batches, compared)
            stored = sum(batch.bytes for batch in state.batches)
            changes = changed(rows, before, stored).select(ordered)
            return parts_of_changes(changes, keys, parts, state.batches)
        new = in_parts(added(rows).select(ordered), parts or default_parallelism(self.spark))
        return sorted_inside(new, keys) if keys else new

    def _warn(self, text: str) -> None:
        uri = self.shard.location.uri
        self.tell(copy_warning(self.node, self.node, uri, f"{uri}: {text}"))


def clock_warning(as_of: int, upper: int, s3_time: int | None) -> str | None:
    """A warning if this host's clock, or that of the last batch's, is ahead of S3's, or None.

    All in ms; `upper` is the first time that the shard has not reached.
    """
    if s3_time is None:
        return None
    ahead, last_ahead = as_of - s3_time, upper - s3_time
    if ahead > MOST_AHEAD_MS:
        return (
            f"the clock of this host is {ahead // 60_000} minutes ahead of S3's: the "
            "changes of this run get that time, and those of later runs no earlier one; set the "
            "clock"
        )
    if last_ahead > MOST_AHEAD_MS:
        return (
            f"the last batch of the shard is of a time {last_ahead // 60_000} minutes ahead "
            "of S3's clock, as the clock of the host that wrote it was; until that time has come, "
            "the changes of each run are 1 ms after those of the one before, not of its own time"
        )
    return None


def model_rows(frame: DataFrame, columns: Sequence[ShardColumn]) -> DataFrame:
    """The model's rows as c0, c1, … of the shard's columns; NULL where the model lacks one."""
    rows = canonical_columns(frame)
    kinds = {field.name: field.dataType for field in rows.schema.fields}
    places = {folded(name): f"c{place}" for place, name in enumerate(frame.columns)}

    def value(column: ShardColumn) -> Column:
        place = places.get(folded(column.name))
        if place is None:
            return F.lit(None).cast(wire_spark_type(column.kind))
        return in_wire_type(F.col(place), kinds[place], column.kind, column.name)

    return rows.select(*[value(column).alias(f"c{i}") for i, column in enumerate(columns)])


def default_datums(
    spark: SparkSession, node: str, expressions: Mapping[str, str], given: Sequence[ShardColumn]
) -> dict[str, bytes]:
    """The values of SQL expressions as `Datum`s; raises ConfigError with all that fail."""
    columns = {folded(column.name): column for column in given}
    found: dict[str, bytes] = {}
    problems: list[str] = []
    for name, expression in expressions.items():
        column = columns.get(folded(name))
        if column is None:
            problems.append(
                f"column_defaults has {name}, which the model lacks; it has "
                f"{', '.join(one.name for one in given)}"
            )
            continue
        value = f"SELECT CAST(({expression}) AS {column.spark_sql}) AS value"
        try:
            one = canonical_columns(spark.sql(value))
            [field], kind = one.schema.fields, column.kind
            values = in_wire_type(F.col(field.name), field.dataType, kind, column.name)
            wire = as_wire(one.select(values).toArrow().column(0).combine_chunks(), kind)
            found[name] = datums(wire, kind)[0].as_py() or b""
        except (PySparkException, ValueError) as exc:
            reason = str(explain(exc)).splitlines()[0]
            problems.append(f"column_defaults has {expression} for {name}, which fails: {reason}")
    Problems(node, problems).raise_if_any()
    return found


def checked_frame(spark: SparkSession, node: str, query: str) -> DataFrame:
    """The query's rows, in columns that a shard can have; raises ConfigError or SparkJobError."""
    frame = queried_rows(spark, node, query)
    problems = column_problems(frame.schema)
    names = frame.schema.fieldNames()
    problems += [
        f"the query has {shown_namesakes(names[first], names[place])}; rename one"
        for first, place in namesakes(names)
    ]
    Problems(node, problems).raise_if_any()
    return frame


def type_problems(schema: T.StructType, types: Mapping[str, Type]) -> dict[str, str]:
    """What is wrong with names in `column_types`, by these names."""
    found = {folded(field.name): field.dataType for field in schema.fields}
    problems = {}
    for name, kind in types.items():
        if name not in found:
            problems[name] = (
                f"column_types has {name}, which the query lacks; it has {', '.join(found)}"
            )
        elif not fits(found[name], kind):
            problems[name] = (
                f"column_types has {kind} for {name}, whose values, {ddl_of(found[name])}, can't "
                "be taken for it; cast them, or correct the type"
            )
    return problems
