"""The state of a shard: what makes it valid, how it changes, and its JSON document."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, get_args, get_origin, get_type_hints

from dbt.adapters.mzs3.errors import ShardError
from dbt.adapters.mzs3.names import folded
from dbt.adapters.mzs3.shard.types import BatchEncoding, Column, Type, type_from_json
from dbt.adapters.mzs3.text import moment_text

RECENT = 100


@dataclass(frozen=True)
class Schema:
    """Columns in force from the time `since` on. Raises ValueError for repeated tags or names."""

    id: int
    since: int
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        names = [column.name.lower() for column in self.columns]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"schema {self.id} has several columns named {', '.join(twice)}")
        if len({column.tag for column in self.columns}) < len(names):
            raise ValueError(f"schema {self.id} has several columns of one tag")

    def named(self, names: Sequence[str]) -> tuple[tuple[Column, ...], list[str]]:
        """The columns with these names, as Spark resolves them, and the names without a column."""
        columns = {folded(column.name): column for column in reversed(self.columns)}
        present = tuple(columns[folded(name)] for name in names if folded(name) in columns)
        return present, [name for name in names if folded(name) not in columns]


@dataclass(frozen=True)
class ShardState:
    """Schemas, oldest first, and batches, which cover the times from 0 to `upper` without gaps.

    The last schema is in force. The shard can be read as of times from `since` to before `upper`.
    Tags from `next_tag` on are unused. `retired` lists files of replaced batches until they are
    deleted. `sweeps` counts deletions and resets, `writes` counts writes of the state, and
    `recent` has the ids of the last RECENT writes. `digest` is the digest of all rows
    (`write.diff.digest_of`), empty if unknown. Raises ValueError if the state is not valid.
    """

    schemas: tuple[Schema, ...]
    next_tag: int
    batches: tuple[ShardBatch, ...] = ()
    since: int = 0
    retired: tuple[Retired, ...] = ()
    sweeps: int = 0
    writes: int = 0
    recent: tuple[str, ...] = ()
    digest: str = ""

    def __post_init__(self) -> None:
        if not self.schemas:
            raise ValueError("a shard has a schema")
        ends = [0, *(batch.upper for batch in self.batches)]
        if [batch.lower for batch in self.batches] != ends[:-1]:
            raise ValueError("its batches leave times out, or have some twice")
        tags = {column.tag for schema in self.schemas for column in schema.columns}
        if tags and max(tags) >= self.next_tag:
            raise ValueError(f"its next tag, {self.next_tag}, is taken")
        ids = {schema.id for schema in self.schemas}
        if len(ids) < len(self.schemas) or not ids >= {b.schema for b in self.batches}:
            raise ValueError("its batches are of schemas that it does not have")
        if self.since > self.upper:
            raise ValueError("it can be read only from times on that it has not reached")

    @property
    def schema(self) -> Schema:
        """The schema in force."""
        return self.schemas[-1]

    @property
    def upper(self) -> int:
        """The first time that is not written yet."""
        return self.batches[-1].upper if self.batches else 0

    @property
    def file_names(self) -> frozenset[str]:
        """The names of all files of its batches."""
        return frozenset(file.name for batch in self.batches for file in batch.files)

    @property
    def is_unwritten(self) -> bool:
        """Whether no run has written since the shard was created or reset: it can't be read."""
        return self.since == self.upper

    def schema_at(self, moment: int) -> Schema:
        """The schema that was in force at a time."""
        earlier = [schema for schema in self.schemas if schema.since <= moment]
        return earlier[-1] if earlier else self.schemas[0]

    @property
    def first_moment(self) -> int:
        """The first time that can be read, or 0 if the first runs had no rows."""
        first = self.batches[0].moment if self.batches and self.batches[0].files else 0
        return max(self.since, first)

    def batches_until(self, moment: int) -> tuple[ShardBatch, ...]:
        """The batches up to and including a time. Raises ShardError if the time can't be read."""
        if moment < self.since and self.since > 0:
            raise ShardError(
                f"the shard can be read as of {moment_text(self.since)} and later, as what was "
                "before has been compacted, or was another shard before a reset; "
                f"{moment_text(moment)} is before that. Give a later as_of, or leave it out"
            )
        if moment < self.first_moment:
            raise ShardError(
                f"the shard has been written since {moment_text(self.first_moment)}; there is "
                f"nothing to read as of {moment_text(moment)}, which is before that. Give a later "
                "as_of, or leave it out"
            )
        if moment >= self.upper:
            raise ShardError(
                f"the shard has been written up to {moment_text(self.upper - 1)}; as of "
                f"{moment_text(moment)} it may still change. Leave as_of out, or give an earlier "
                "one"
            )
        return tuple(batch for batch in self.batches if batch.moment <= moment)

    def with_columns(self, columns: Sequence[Column], since: int) -> ShardState:
        """The state with these columns from the later of `since` and `upper` on."""
        if tuple(columns) == self.schema.columns:
            return self
        schema = Schema(self.schema.id + 1, max(since, self.upper), tuple(columns))
        next_tag = max(self.next_tag, *(column.tag + 1 for column in columns))
        return replace(self, schemas=(*self.schemas, schema), next_tag=next_tag, digest="")

    def appended(self, batch: ShardBatch) -> ShardState:
        """The state with `batch` appended. Raises ShardError if it does not begin at `upper`.

        If neither the batch nor the last one has files, the last one is extended instead. The
        first batch after a reset is the first that can be read.
        """
        if batch.lower != self.upper:
            raise ShardError(
                f"the shard has been written up to {moment_text(self.upper - 1)} in the meantime, "
                f"and these changes are those since {moment_text(batch.lower - 1)}"
            )
        since = batch.moment if self.batches and self.is_unwritten else self.since
        if self.batches and not batch.files and not self.batches[-1].files:
            last = replace(self.batches[-1], upper=batch.upper, schema=batch.schema)
            return replace(self, batches=(*self.batches[:-1], last), since=since)
        digest = "" if batch.files else self.digest
        return replace(self, batches=(*self.batches, batch), since=since, digest=digest)

    def compacted(self, old: Sequence[ShardBatch], new: ShardBatch, now: int) -> ShardState:
        """The state with `new` in place of the oldest batches, `old`; readable since `new`'s time.

        If the last batch of `old` was extended in the meantime, the added time becomes a batch
        without files. The files of `old` are retired at `now`, in ms since the epoch. Raises
        ShardError if the shard no longer begins with the batches `old`.
        """
        first = self.batches[: len(old)]
        extension = _extension(tuple(old), first)
        if not old or (first != tuple(old) and not extension):
            raise ShardError("another run has compacted the shard in the meantime")
        since = max(self.since, new.moment)
        batches = (new, *extension, *self.batches[len(old) :])
        used = {batch.schema for batch in batches} | {self.schema.id}
        needed = self.schema_at(since).id
        schemas = tuple(s for s in self.schemas if s.id in used or s.id >= needed)
        retired = tuple(Retired(file.name, now) for batch in old for file in batch.files)
        return replace(
            self,
            schemas=schemas,
            batches=batches,
            since=since,
            retired=self.retired + retired,
        )

    def after_reset(self, now: int) -> ShardState:
        """The state after a reset, without columns and rows: the next run writes all its rows.

        Times and tags continue, as none may be used twice. All files are retired at `now`, in ms
        since the epoch. `sweeps` increases, so that a running compaction can't commit.
        """
        if self.is_unwritten:
            return self
        schema = Schema(self.schema.id + 1, self.upper, ())
        batch = ShardBatch(0, self.upper, schema.id, self.batches[-1].encoding)
        retired = tuple(Retired(file.name, now) for each in self.batches for file in each.files)
        return replace(
            self,
            schemas=(schema,),
            batches=(batch,),
            since=self.upper,
            retired=self.retired + retired,
            sweeps=self.sweeps + 1,
            digest="",
        )

    def written_after(self, before: ShardState | None, writer: str) -> ShardState:
        """This state in the form in which the write with the id `writer` replaces `before`."""
        writes, recent = (before.writes, before.recent) if before is not None else (0, ())
        return replace(self, writes=writes + 1, recent=(*recent, writer)[-RECENT:])

    def was_written(self, written: ShardState) -> bool | None:
        """Whether this state includes the write of `written`; None if that is unknown."""
        if written.recent[-1] in self.recent:
            return True
        return False if written.writes <= self.writes < written.writes + RECENT else None

    def after_sweep(self, names: Collection[str]) -> ShardState:
        """The state to store before files with these names are deleted.

        The result always differs from this state: no run that has read this one can still commit.
        """
        retired = tuple(file for file in self.retired if file.name not in names)
        return replace(self, retired=retired, sweeps=self.sweeps + 1)


def _extension(
    old: tuple[ShardBatch, ...], current: tuple[ShardBatch, ...]
) -> tuple[ShardBatch, ...]:
    """A batch without files for the time by which the last of `old` was extended, if it was."""
    if not old or len(current) < len(old) or current[:-1] != old[:-1]:
        return ()
    last, now = old[-1], current[-1]
    if last.files or now.files or now.lower != last.lower or now.upper <= last.upper:
        return ()
    return (replace(now, lower=last.upper),)


def new_shard(columns: Sequence[Column]) -> ShardState:
    """The state of a new shard, without batches."""
    return ShardState((Schema(0, 0, tuple(columns)),), len(columns))


@dataclass(frozen=True)
class BatchFile:
    """A file of a batch, named below the shard's location; `size` in bytes, `rows` are changes."""

    name: str
    size: int
    etag: str
    rows: int


@dataclass(frozen=True)
class Retired:
    """A file that left its batch at `at`, in ms since the epoch; readers may still use it."""

    name: str
    at: int


@dataclass(frozen=True)
class ShardBatch:
    """The changes from the time `lower` to before `upper`, in ms since the epoch.

    All changes are stored with the time `upper - 1`: reads as of earlier times skip the batch. A
    batch without files has no changes. `schema` is the id of the batch's schema, `additions` and
    `retractions` count the rows added and retracted, and `sort_by` has the tags of the columns by
    which rows are sorted across files.
    """

    lower: int
    upper: int
    schema: int
    encoding: BatchEncoding
    files: tuple[BatchFile, ...] = ()
    additions: int = 0
    retractions: int = 0
    sort_by: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.lower >= self.upper:
            raise ValueError(f"a batch can't go from {self.lower} to before {self.upper}")

    @property
    def moment(self) -> int:
        """The time of its changes."""
        return self.upper - 1

    @property
    def rows(self) -> int:
        """The number of its changes."""
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        """The total size of its files."""
        return sum(file.size for file in self.files)


FORMAT = 1
_JSON_NAMES = {"kind": "type"}


def to_document(state: ShardState, writer: str) -> bytes:
    """The state as JSON, the same bytes for the same state; `writer` is the id of the write."""
    document = {**vars(state), "format": FORMAT, "writer": writer, "upper": state.upper}
    if not state.digest:
        del document["digest"]
    text = json.dumps(document, default=_plain, indent=1, sort_keys=True, ensure_ascii=False)
    return text.encode() + b"\n"


def _plain(value: Any) -> Any:
    """The JSON form of a value: of a dataclass, a mapping of its fields."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Type):
        return value.as_json()
    return {_JSON_NAMES.get(name, name): part for name, part in vars(value).items()}


def from_document(data: bytes) -> ShardState:
    """The state in a document of `to_document`. Raises ValueError if it is not valid."""
    try:
        document: Any = json.loads(data)
        if document["format"] != FORMAT:
            raise ValueError(f"it is of format {document['format']}, not {FORMAT}")
        state: ShardState = _reader(ShardState)({"digest": "", **document})
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it lacks {error}") from error
    return state


_READERS: Mapping[Any, Callable[[Any], Any]] = {
    int: int,
    str: str,
    bytes: partial(base64.b64decode, validate=True),
    Type: type_from_json,
    BatchEncoding: str,
}


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    """Returns a function that converts JSON to values of type `kind`: the inverse of `_plain`."""
    if get_origin(kind) is tuple:
        each = _reader(get_args(kind)[0])
        return lambda values: tuple(map(each, values))
    if kind in _READERS:
        return _READERS[kind]
    types = get_type_hints(kind).items()
    fields = [(name, _JSON_NAMES.get(name, name), _reader(part)) for name, part in types]
    return lambda values: kind(**{name: read(values[key]) for name, key, read in fields})
