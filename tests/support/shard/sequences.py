"""Sequences of what may happen to a shard, done to it and to the model of it."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import Any

import pytest
from pyspark.sql import functions as F

from dbt.adapters.mzs3.errors import ShardError
from dbt.adapters.mzs3.shard.compact import compact_shard
from dbt.adapters.mzs3.shard.options import parse_compaction
from dbt.adapters.mzs3.shard.read.rows import ShardLocation, read_shard, readable_state
from dbt.adapters.mzs3.shard.read.validation import validate_shard
from dbt.adapters.mzs3.shard.state.store import StateStore
from dbt.adapters.mzs3.shard.write import batch
from dbt.adapters.mzs3.shard.write.job import persist_shard
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import parse_location
from support.s3.opened import state_of
from support.shard.model import ModelColumn, Query, Row, ShardModel

VALUES = {"int": [None, -1, 0, 1, 2], "bigint": [None, 0, 1, 1 << 40], "string": [None, "", "é'"]}
ENCODINGS = ["codec", "dual", "structured"]
# Where a run or a compaction may be killed: with its uploads open, with files that no state
# names, and right after the state was changed.
MOMENTS = ["uploaded", "visible", "changed"]
STEPS = {
    "change rows": 4,
    "add": 2,
    "drop": 1,
    "drop and add again": 1,
    "rename": 1,
    "widen": 1,
    "run": 4,
    "kill a run": 1,
    "compact": 2,
    "kill a compaction": 1,
    "reset": 1,
}


class Died(BaseException):
    """What no code catches: from here on the run does nothing any more."""


class Trial:
    """One shard, the model's query that is written to it, and the model of the shard."""

    def __init__(self, spark: Any, s3: Any, connection: AwsConnection, uri: str) -> None:
        self.spark, self.s3, self.connection = spark, s3, connection
        self.location = parse_location(uri)
        self.store = state_of(s3, self.location)
        self.model = ShardModel()
        self.query = Query([ModelColumn("id", "int")])
        self.renames: dict[str, str] = {}
        self.clock = 0
        self.names = 0
        self.encoding = 0
        self.log: list[str] = []

    def do(self, chance: random.Random, step: str) -> None:
        self.log.append(step)
        getattr(self, f"_{step.replace(' ', '_')}")(chance)

    # What the user does to the model's query.

    def _change_rows(self, chance: random.Random) -> None:
        kept = [row for row in self.query.rows if chance.random() < 0.7]
        kinds = [column.kind for column in self.query.columns]
        added = [
            tuple(chance.choice(VALUES[kind]) for kind in kinds)
            for _ in range(chance.randint(0, 4))
        ]
        twice = [row for row in added if chance.random() < 0.3]
        self.query = replace(self.query, rows=kept + added + twice)

    def _add(self, chance: random.Random, name: str | None = None) -> None:
        if name is None:
            self.names += 1
            name = f"n{self.names}"
        kind = chance.choice(["int", "string"]) if name[0] == "n" else "int"
        default = chance.choice(VALUES[kind])
        self._set([*self.query.columns, ModelColumn(name, kind, default)], chance)

    def _drop(self, chance: random.Random) -> str | None:
        if len(self.query.columns) < 2:
            return None
        gone = chance.choice(self.query.columns[1:])
        self._set([one for one in self.query.columns if one is not gone], chance)
        return gone.name

    def _drop_and_add_again(self, chance: random.Random) -> None:
        name = self._drop(chance)
        if name is not None:
            self._run(chance, policy="sync_all_columns")
            self._add(chance, name)

    def _rename(self, chance: random.Random) -> None:
        column = chance.choice(self.query.columns)
        self.names += 1
        name = f"n{self.names}"
        columns = [replace(one, name=name) if one is column else one for one in self.query.columns]
        # Of two renames between two runs the shard sees one.
        for old, new in self.renames.items():
            if new == column.name:
                self.renames[old] = name
        self.renames.setdefault(column.name, name)
        self.query = replace(self.query, columns=columns)

    def _widen(self, chance: random.Random) -> None:
        ints = [one for one in self.query.columns if one.kind == "int"]
        if ints:
            column = chance.choice(ints)
            columns = [
                replace(one, kind="bigint") if one is column else one for one in self.query.columns
            ]
            self.query = replace(self.query, columns=columns)

    def _set(self, columns: list[ModelColumn], chance: random.Random) -> None:
        old = self.query

        def value(row: Row, column: ModelColumn) -> Any:
            place = old.place(column.name)
            # A column that is new often has its default, and then nothing has changed.
            new = column.default if chance.random() < 0.7 else chance.choice(VALUES[column.kind])
            return new if place is None else row[place]

        rows = [tuple(value(row, column) for column in columns) for row in old.rows]
        self.query = Query(columns, rows)

    # Runs and compactions.

    def _run(self, chance: random.Random, policy: str | None = None) -> None:
        arguments = self._arguments(chance, policy)
        result = self._persist(*arguments)
        assert result.rows == self._of_model(*arguments)
        self._compare(chance)

    def _kill_a_run(self, chance: random.Random) -> None:
        moment = chance.choice(MOMENTS)
        self.log[-1] += f" when {moment}"
        arguments = self._arguments(chance, None)
        with killed(moment), pytest.raises(Died):
            self._persist(*arguments)
        if moment == "changed":
            self._of_model(*arguments)
        self._compare(chance)

    def _compact(self, chance: random.Random) -> None:
        if not self.model.ends:
            return
        since, arguments = self._compaction(chance)
        done = self._carry_out(arguments)
        self.model.compact(since)
        assert done.state.since == self.model.since
        if arguments["keep_hours"] == 0:
            assert self._files() == done.state.file_names
        self._compare(chance)

    def _kill_a_compaction(self, chance: random.Random) -> None:
        since, arguments = self._compaction(chance)
        moment = chance.choice(MOMENTS)
        self.log[-1] += f" when {moment}"
        if not self.model.ends:
            return
        try:
            with killed(moment):
                self._carry_out(arguments)
        except Died:
            if moment == "changed":
                self.model.compact(since)
        else:
            self.model.compact(since)  # there was nothing to write, and so no such moment
        self._compare(chance)

    def _reset(self, chance: random.Random) -> None:
        if self.model.ends:
            self.store.reset()
            self.model.reset()
        self._compare(chance)

    def _arguments(self, chance: random.Random, policy: str | None) -> tuple[Any, ...]:
        self.clock += chance.choice([0, 1, 10])  # a clock may stand still
        # Encodings follow on each other, but for some run of an old version.
        self.encoding = min(2, self.encoding + (chance.random() < 0.3))
        encoding = ENCODINGS[chance.randint(0, self.encoding)]
        policy = policy or chance.choice(["sync_all_columns", "append_new_columns"])
        append = bool(chance.random() < 0.2)
        sort_by = [self.query.columns[0].name] if chance.random() < 0.2 else []
        self.log[-1] += f" at {self.clock}, {encoding}, {policy}{', append' * append}"
        return self.clock, encoding, policy, append, sort_by

    def _persist(
        self, as_of: int, encoding: str, policy: str, append: bool, sort_by: list[str]
    ) -> Any:
        names = {column.name for column in self.model.columns}
        return persist_shard(
            self.spark,
            self._sql(),
            node="model.test.orders",
            options={
                "location": self.location.uri,
                "encoding": encoding,
                "on_schema_change": policy,
                "mode": "append" if append else "diff",
                "parts": 1,
                "sort_by": sort_by,
                "column_renames": {old: new for old, new in self.renames.items() if old in names},
                "column_defaults": {
                    column.name: _literal(column.default)
                    for column in self.query.columns
                    if column.default is not None
                },
            },
            connections={"default": self.connection},
            as_of=as_of,
        )

    def _of_model(
        self, as_of: int, _encoding: str, policy: str, append: bool, _sort_by: list[str]
    ) -> int:
        changes = self.model.run(
            as_of, self.query, renames=self.renames, policy=policy, append=append
        )
        self.renames = {}
        return changes

    def _compaction(self, chance: random.Random) -> tuple[int, dict[str, Any]]:
        last = self.model.upper - 1
        since = chance.choice([None, "latest", max(0, last - 1), chance.randint(0, max(0, last))])
        arguments = {
            "since": since,
            "encoding": chance.choice([None, *ENCODINGS]),
            "sort_by": [self._oldest_column()] if chance.random() < 0.3 else None,
            "keep_hours": chance.choice([0, 24]),
            "parts": chance.choice([1, 2]),
        }
        self.log[-1] += f" {arguments}"
        return (last if since == "latest" else since or 0), arguments

    def _oldest_column(self) -> str:
        """One that the shard has as of any time; there may be none."""
        known = [{name for name, _ in seen.columns} for seen in self.model.history.values()]
        both = set.intersection(*known) if known else set()
        return min(both) if both else "none"

    def _carry_out(self, arguments: dict[str, Any]) -> Any:
        if arguments["sort_by"] == ["none"]:
            arguments = {**arguments, "sort_by": None}
        given = {key: value for key, value in arguments.items() if value is not None}
        since = given.pop("since", None)  # times of trials are smaller than those of users
        request = replace(parse_compaction(given), since=since)
        shard = ShardLocation(self.connection, self.location)
        return compact_shard(self.spark, shard, request)

    # What came of it.

    def _compare(self, chance: random.Random) -> None:
        """Every time that can be read, at once: a job for each would take minutes."""
        expected = self.model.readable()
        if not expected:
            return
        if chance.random() < 0.3:
            state = readable_state(self.connection, self.location)
            shard = ShardLocation(self.connection, self.location)
            validate_shard(self.spark, shard, state, None).require_same()
        frames = []
        for moment, seen in expected.items():
            frame = read_shard(self.spark, self.connection, self.location, as_of=moment)
            assert tuple(frame.dtypes) == seen.columns, f"as of {moment}"
            row = F.to_json(F.array(*[F.col(name).cast("string") for name in frame.columns]))
            frames.append(frame.select(F.lit(moment).alias("moment"), row.alias("row")))
        found: dict[int, Counter[Row]] = {moment: Counter() for moment in expected}
        for moment, row in reduce(lambda one, other: one.union(other), frames).collect():
            found[moment][tuple(json.loads(row))] += 1
        texts = {moment: _as_texts(seen.rows) for moment, seen in expected.items()}
        assert found == texts
        if self.model.since:
            with pytest.raises(ShardError, match="and later"):
                read_shard(self.spark, self.connection, self.location, as_of=self.model.since - 1)

    def _files(self) -> set[str]:
        prefix = self.location.prefix
        found = self.s3.list_objects_v2(
            Bucket=self.location.bucket, Prefix=f"{prefix}batches/"
        ).get("Contents", [])
        return {one["Key"].removeprefix(prefix) for one in found}

    def _sql(self) -> str:
        columns = self.query.columns
        names = ", ".join(column.name for column in columns)
        casts = ", ".join(f"cast({c.name} as {c.kind}) as {c.name}" for c in columns)
        rows = self.query.rows or [(None,) * len(columns)]
        values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
        where = "" if self.query.rows else " where false"
        return f"select {casts} from values {values} as t({names}){where}"


@contextmanager
def killed(moment: str) -> Iterator[None]:
    """A run or a compaction dies at that moment, and puts nothing in order."""

    def die(*_: Any) -> Any:
        raise Died

    with pytest.MonkeyPatch.context() as patch:
        if moment == "uploaded":
            patch.setattr(batch, "complete_files", die)
        write = StateStore.write

        def dying(store: StateStore, *states: Any) -> Any:
            if moment == "changed":
                write(store, *states)
            raise Died

        patch.setattr(StateStore, "write", dying)
        yield


def _literal(value: Any) -> str:
    if value is None:
        return "null"
    return '"' + value + '"' if isinstance(value, str) else str(value)


def _as_texts(rows: Counter[Row]) -> Counter[Row]:
    texts: Counter[Row] = Counter()
    for row, count in rows.items():
        texts[tuple(None if value is None else str(value) for value in row)] += count
    return texts
