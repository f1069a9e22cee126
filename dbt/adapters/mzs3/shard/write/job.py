"""A run of a `persist_shard` model from end to end; what a compiled job calls."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.mzs3.aws.client import s3_client
from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.copy.commit.destination import resolve_location
from dbt.adapters.mzs3.copy.commit.place import Place
from dbt.adapters.mzs3.copy.result import CopyResult
from dbt.adapters.mzs3.copy.rows.plan import in_parts
from dbt.adapters.mzs3.copy.rows.shapes import column_problems
from dbt.adapters.mzs3.errors import ConfigError, ShardError
from dbt.adapters.mzs3.shard.config.options import ShardOptions, parse_shard_options
from dbt.adapters.mzs3.shard.read.rows import Shelf, changes_in
from dbt.adapters.mzs3.shard.rows.given_types import fits
from dbt.adapters.mzs3.shard.rows.kinds import ddl_of, given_columns
from dbt.adapters.mzs3.shard.rows.runs import sorted_inside
from dbt.adapters.mzs3.shard.state.batch import Batch
from dbt.adapters.mzs3.shard.state.evolve import Evolution, evolved, first_columns
from dbt.adapters.mzs3.shard.state.state import ShardState, new_shard
from dbt.adapters.mzs3.shard.state.store import LostRaceError, Read, StateStore
from dbt.adapters.mzs3.shard.types.kind import Type
from dbt.adapters.mzs3.shard.write.commit import remove_uncommitted
from dbt.adapters.mzs3.shard.write.model_rows import added, changed, default_datums, model_rows
from dbt.adapters.mzs3.shard.write.spec import batch_spec
from dbt.adapters.mzs3.shard.write.upload import make_visible, upload
from dbt.adapters.mzs3.spark.failure import explain
from dbt.adapters.mzs3.spark.parallelism import default_parallelism

_ATTEMPTS = 3


def persist_shard(
    spark: SparkSession,
    query: str,
    *,
    node: str,
    options: Mapping[str, Any],
    connections: Mapping[str, AwsConnection],
    as_of: int,
    cancelled: threading.Event | None = None,
) -> CopyResult:
    """One batch more in the shard: what makes its rows those of `query`, or all of them as new.

    The changes are of the time `as_of`, in ms since the epoch, or the first one after the shard's
    last. Another run that writes at the same time makes this one begin again; after some such
    races it fails. Raises an Mzs3Error; the shard is then what it was.
    """
    parsed = parse_shard_options(node, options, connections)
    frame = _checked_frame(spark, node, query, parsed.column_types)
    location = resolve_location(spark, node, parsed.location, as_of)
    connection = connections[parsed.aws_connection]
    run = _Run(spark, node, frame, parsed, Shelf(connection, location), as_of, cancelled)
    for attempt in range(_ATTEMPTS):
        try:
            return run.once()
        except LostRaceError:
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError


@dataclass(frozen=True)
class _Run:
    spark: SparkSession
    node: str
    frame: DataFrame
    options: ShardOptions
    shelf: Shelf
    as_of: int
    cancelled: threading.Event | None

    def once(self) -> CopyResult:
        """One attempt; raises LostRaceError if another run was faster."""
        place = Place(s3_client(self.shelf.connection), self.shelf.location)
        store = StateStore(place.client, self.shelf.location)
        before = store.read()
        state = self._state(before)
        moment = max(self.as_of, state.upper)
        batch = self._batch(place, state, moment)
        try:
            _write(store, before, state.appended(batch))
        except LostRaceError:
            if not remove_uncommitted(place, store, batch.files):
                raise
        return CopyResult(
            rows=batch.additions + batch.retractions,
            location=place.uri,
            manifest=store.uri,
            files=len(batch.files),
            bytes=batch.bytes,
            as_of=moment,
        )

    def _state(self, before: Read | None) -> ShardState:
        """The shard as it is, with the columns that it has from this run on."""
        given = given_columns(self.frame.schema, self.options.column_types)
        options = self.options
        defaults = default_datums(self.spark, self.node, options.column_defaults, given)
        if before is None:
            return new_shard(first_columns(given))
        evolution = Evolution(options.on_schema_change, options.column_renames, defaults)
        state = before.state
        columns = evolved(self.node, state.schema.columns, given, state.next_tag, evolution)
        return state.with_columns(columns, self.as_of)

    def _batch(self, place: Place, state: ShardState, moment: int) -> Batch:
        """What changed, in files that no state names yet."""
        columns, options = state.schema.columns, self.options
        spec = batch_spec(self.shelf, columns, options.encoding, moment, options)
        parts = self._parts(state, moment)
        try:
            uploaded = upload(parts, spec)
        except Exception as exc:
            raise ShardError(
                f"{self.node}: writing to {place.uri} failed: {explain(exc)}. The shard is what "
                "it was"
            ) from exc
        self._stop_if_cancelled()
        return Batch(
            state.upper,
            moment + 1,
            state.schema.id,
            self.options.encoding,
            make_visible(place, uploaded.files),
            uploaded.additions,
            uploaded.retractions,
        )

    def _changes(self, state: ShardState, moment: int) -> DataFrame:
        columns = state.schema.columns
        rows = model_rows(self.frame, columns)
        if self.options.mode == "diff" and state.batches:
            changes = changed(rows, changes_in(self.spark, self.shelf, state.batches, columns))
        else:
            changes = added(rows)
        time = F.lit(moment).cast("bigint").alias("t")
        return changes.select(time, "d", *rows.columns)

    def _parts(self, state: ShardState, moment: int) -> DataFrame:
        """What changed, in the parts that become files."""
        parts = self.options.parts or default_parallelism(self.spark)
        rows = in_parts(self._changes(state, moment), parts)
        keys = self._sort_keys(state)
        return sorted_inside(rows, keys) if keys else rows

    def _sort_keys(self, state: ShardState) -> list[str]:
        columns = state.schema.columns
        found = {name: state.schema.find(name) for name in self.options.sort_by}
        known = ", ".join(column.name for column in columns)
        problems = [
            f"sort_by has {name}, which the shard lacks; it has {known}"
            for name, column in found.items()
            if column is None
        ]
        if problems:
            raise ConfigError(self.node, problems)
        return [f"c{columns.index(column)}" for column in found.values() if column is not None]

    def _stop_if_cancelled(self) -> None:
        if self.cancelled is not None and self.cancelled.is_set():
            raise ShardError(f"{self.node}: cancelled. The shard is what it was")


def _write(store: StateStore, before: Read | None, state: ShardState) -> None:
    if before is None:
        store.create(state)
    else:
        store.replace(before, state)


def _checked_frame(
    spark: SparkSession, node: str, query: str, types: Mapping[str, Type]
) -> DataFrame:
    try:
        frame = spark.sql(query)
        schema = frame.schema
    except PySparkException as exc:
        raise explain(exc) from exc
    problems = column_problems(schema, ())
    names = [name.lower() for name in schema.fieldNames()]
    twice = sorted({name for name in names if names.count(name) > 1})
    problems += [f"the query has several columns named {name}; rename them" for name in twice]
    problems += _type_problems(schema, types)
    if problems:
        raise ConfigError(node, problems)
    return frame


def _type_problems(schema: T.StructType, types: Mapping[str, Type]) -> Iterator[str]:
    found = {field.name.lower(): field.dataType for field in schema.fields}
    for name, kind in types.items():
        if name not in found:
            yield f"column_types has {name}, which the query lacks; it has {', '.join(found)}"
        elif not fits(found[name], kind):
            yield (
                f"column_types has {kind} for {name}, whose values, {ddl_of(found[name])}, can't "
                "be taken for it"
            )
