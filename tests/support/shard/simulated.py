"""Runs, compactions and readers of a shard without Spark: the real code that asks S3.

Files hold made-up changes. A store of shards has a clock, and looks at every change of the state.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any
from unittest import mock

from dbt.adapters.mzs3.events import Committed
from dbt.adapters.mzs3.shard import compact as shard_compact
from dbt.adapters.mzs3.shard.compact import CompactionPlan
from dbt.adapters.mzs3.shard.options import LATEST, CompactionRequest
from dbt.adapters.mzs3.shard.read.rows import ShardLocation
from dbt.adapters.mzs3.shard.state import store
from dbt.adapters.mzs3.shard.state.state import ShardBatch, ShardState, from_document, new_shard
from dbt.adapters.mzs3.shard.types import Column, Type
from dbt.adapters.mzs3.shard.write import batch as write_batch
from dbt.adapters.mzs3.shard.write import job as write_job
from dbt.adapters.mzs3.store import prefix as objects_prefix
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.store import ListedObject, Page
from dbt.adapters.mzs3.upload import reaper
from dbt.adapters.mzs3.upload.pending import PendingFile
from dbt.adapters.mzs3.upload.spec import WriteSpec
from support.interleavings import Ask, Failed, Request
from support.s3.model import Bucket, Client, S3Model, etag_of

LOCATION = S3Location("b", "x/")
STATE = LOCATION.key("_shard.json")
HOUR_MS = 3_600_000
BEGINNING_MS = 1_767_225_600_000
Rows = Counter[str]


class GoneError(Exception):
    """A file that a state names is not there, or is another one."""


@dataclass(frozen=True)
class Shard:
    """A bucket at a time, in ms, and when each object came; who has changed the shard's rows.

    `late` has writes that are on their way. `problem` is what was wrong with a change.
    """

    bucket: Bucket = field(default_factory=Bucket)
    clock: int = BEGINNING_MS
    modified: tuple[tuple[str, int], ...] = ()
    wrote: tuple[int, ...] = ()
    late: tuple[tuple[int, Request], ...] = ()
    problem: str = ""

    @property
    def state(self) -> ShardState | None:
        """What `_shard.json` says."""
        found = self.bucket.read(STATE)
        return None if found is None else from_document(found)

    def rows(self, state: ShardState, moment: int) -> Rows:
        """The rows as of a time."""
        rows: Rows = Counter()
        for batch in state.batches_until(moment):
            for file in batch.files:
                rows.update(json.loads(self.bucket.read(LOCATION.key(file.name)) or b"{}"))
        return +rows


@dataclass(frozen=True)
class Write:
    """A run: of `append` a row of its name more, of `diff` that row and no other.

    If it is `late`, its writes of the state arrive after their time-out. With several `files`,
    it has as many rows, each in a file of its own.
    """

    name: str
    mode: str = "append"
    late: bool = False
    files: int = 1

    def __call__(self, ask: Ask) -> Committed:
        client = ShardClient(ask, late=self.late, files=self.files)

        def changes(_: Any, state: ShardState, __: int) -> Any:
            return client, self._changes(client, state)

        def first_state(_: Any, before: ShardState | None) -> ShardState:
            return before or new_shard([Column(0, "a", Type("text"), "string")])

        with (
            _deterministic(self.name, client, write_job),
            mock.patch.object(write_job, "checked_frame", lambda *_: SimpleNamespace(schema=None)),
            mock.patch.object(write_job, "type_problems", lambda *_: {}),
            mock.patch.object(write_job, "evolve_shard", first_state),
            mock.patch.object(write_job, "changes_of", changes),
        ):
            return write_job.persist_shard(
                None,  # type: ignore[arg-type]
                "select 1",
                node=self.name,
                options={"location": LOCATION.uri, "mode": self.mode},
                connections={"default": AwsConnection()},
                as_of=10,
            )

    def after(self, rows: Rows) -> Rows:
        """What it makes of the rows that there are."""
        return rows + self._rows if self.mode == "append" else self._rows

    @property
    def _rows(self) -> Rows:
        return Counter(self.name + "'" * number for number in range(self.files))

    def _changes(self, client: ShardClient, state: ShardState) -> Rows:
        if self.mode == "append":
            return self._rows
        changes = self.after(Counter())
        changes.subtract(read(client, state.batches))
        return changes


@dataclass(frozen=True)
class Compact:
    """A compaction of all that there is; without `since`, one that only sweeps where the shard is
    compacted up to its `since`."""

    name: str
    keep_ms: int = 24 * HOUR_MS
    since: str | None = LATEST
    files: int = 1

    def __call__(self, ask: Ask) -> Any:
        client = ShardClient(ask, files=self.files)

        def rows(_: Any, __: Any, plan: CompactionPlan, ___: Any) -> Any:
            return client, read(client, plan.old)

        with (
            _deterministic(self.name, client, shard_compact),
            mock.patch.object(shard_compact, "compacted_rows", rows),
        ):
            return shard_compact.compact_shard(
                None,  # type: ignore[arg-type]
                ShardLocation(AwsConnection(), LOCATION),
                CompactionRequest(self.since, keep_ms=self.keep_ms),
            )


@dataclass(frozen=True)
class Reset:
    """A reset, as `dbt run-operation reset_shard` does it."""

    name: str = "reset"
    late: bool = False

    def __call__(self, ask: Ask) -> ShardState:
        client = ShardClient(ask, late=self.late)
        with _deterministic(self.name, client):
            return store.StateStore(client, LOCATION).reset()


@dataclass(frozen=True)
class Look:
    """A reader, who reads the state and then its files."""

    name: str = "reader"

    def __call__(self, ask: Ask) -> Rows:
        client = ShardClient(ask)
        found = store.StateStore(client, LOCATION).read()
        return Counter() if found is None else read(client, found.state.batches)


@dataclass(frozen=True)
class Pass:
    """Time that passes."""

    ms: int

    def __call__(self, ask: Ask) -> None:
        ask("tick", self.ms)


def arrive(ask: Ask) -> None:
    """What is on its way arrives."""
    ask("deliver")


def read(client: ShardClient, batches: Sequence[ShardBatch]) -> Rows:
    """The rows of batches, each file as the state names it."""
    rows: Rows = Counter()
    for file in (file for batch in batches for file in batch.files):
        try:
            found = client.get(LOCATION.key(file.name))
        except Exception as exc:
            if "NoSuchKey" in str(exc):
                raise GoneError(f"{file.name} is gone") from exc
            raise
        if found.etag != file.etag:
            raise GoneError(f"{file.name} is another one")
        rows.update(json.loads(found.body.read()))
    return +rows


def _upload(
    _: Any, parts: tuple[ShardClient, Rows], spec: WriteSpec
) -> tuple[list[PendingFile], int, int]:
    """What the tasks do: uploads, which stay open; none where nothing changes."""
    client, changes = parts
    changed = [(row, diff) for row, diff in sorted(changes.items()) if diff]
    files = []
    for part in range(min(client.files, len(changed))):
        rows = dict(changed[part :: client.files])
        key, body = spec.location.key(f"part-{part:04}-0001.parquet"), json.dumps(rows).encode()
        upload_id = client.open_upload(key, {}).id
        client.put_part(key, upload_id, 1, body)
        pending = key, upload_id, (etag_of(body),), len(rows), len(body), ""
        files.append(PendingFile(part, 1, *pending))
    more = sum(diff for _, diff in changed if diff > 0)
    return files, more, more - sum(diff for _, diff in changed)


class ShardClient(Client):
    """A client that is told the time."""

    def __init__(self, ask: Ask, *, late: bool = False, files: int = 1) -> None:
        super().__init__(ask)
        self._late = late
        self.files = files

    def put(self, key: str, body: bytes, properties: Any, **condition: Any) -> str:
        etag = condition.get("if_version")
        if self._late and etag != '"0"':
            asked = "*" if condition.get("if_absent") else etag or ""
            self._ask("send", "put", key, bytes(body), asked)
        return super().put(key, body, properties, **condition)

    def pages(self, prefix: str, **_: Any) -> Iterator[Page]:
        clock, found = self._ask("list", prefix)
        listed = [
            ListedObject(key, etag, size, _time(modified)) for key, etag, size, modified in found
        ]
        yield Page(listed, time=clock // 1000 * 1000)


def _time(ms: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(ms / 1000, dt.timezone.utc)


class _Inline:
    """An executor that does everything at once, in order: requests one at a time."""

    def __init__(self, *_: Any) -> None:
        pass

    def __enter__(self) -> _Inline:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, work: Any, *arguments: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(work(*arguments))
        except BaseException as exc:
            done.set_exception(exc)
        return done


@contextlib.contextmanager
def _deterministic(name: str, client: ShardClient, module: Any = write_job) -> Iterator[None]:
    """The same requests in the same order whenever the answers are the same."""
    count = iter(range(100))
    heeds = SimpleNamespace(creates=True, replaces=True)
    with (
        mock.patch.object(store, "store_conditions", lambda _: heeds),
        mock.patch.object(objects_prefix, "ThreadPoolExecutor", _Inline),
        mock.patch.object(reaper, "_QUIET_S", 0.0),
        mock.patch.object(reaper, "_PAUSE_S", 0.0),
        mock.patch.object(store, "pause", lambda _: None),
        mock.patch.object(write_job, "pause", lambda _: None),
        mock.patch.object(module, "open_store", lambda *_: client),
        mock.patch.object(write_batch, "upload", _upload),
        # No other run writes to the folder of a batch.
        mock.patch.object(write_batch, "find_lost_attempts", lambda *_: None),
        mock.patch("uuid.uuid4", lambda: SimpleNamespace(hex=f"{name}{next(count)}")),
    ):
        yield


@dataclass(frozen=True)
class ShardStore:
    """S3 with a clock. `programs` has by actor what a change of the rows is compared with."""

    programs: Mapping[int, Any]
    s3: S3Model = field(default_factory=S3Model)

    @property
    def refused(self) -> Failed:
        """A request that S3 fails to answer."""
        return self.s3.refused

    @property
    def lost(self) -> Failed:
        """An answer that does not come."""
        return self.s3.lost

    def is_private(self, request: Request) -> bool:
        """Whether it can be sent at once: nobody else asks for the parts of an upload."""
        return request[0] == "part"

    def changes(self, request: Request) -> bool:
        """Whether it may have an effect."""
        return request[0] in {"tick", "deliver"} or self.s3.changes(request)

    def apply(self, state: Shard, actor: int, request: Request) -> tuple[Shard, Any]:
        """The shard after the request, and the answer."""
        match request[0]:
            case "tick":
                return replace(state, clock=state.clock + request[1]), True
            case "send":
                return replace(state, late=(*state.late, (actor, request[1:]))), self.lost
            case "deliver":
                for sender, sent in state.late:
                    state, _ = self.apply(state, sender, sent)
                return replace(state, late=()), True
        bucket, answer = self.s3.apply(state.bucket, actor, request)
        if request[0] == "list":
            modified = dict(state.modified)
            answer = state.clock, tuple((*one, modified[one[0]]) for one in answer)
        return self._observed(state, bucket, actor), answer

    def _observed(self, before: Shard, bucket: Bucket, actor: int) -> Shard:
        if bucket == before.bucket:
            return before
        old, modified = dict(before.bucket.objects), dict(before.modified)
        now = {
            key: modified[key] if old.get(key) == found else before.clock
            for key, found in bucket.objects
        }
        after = replace(before, bucket=bucket, modified=tuple(sorted(now.items())))
        if bucket.read(STATE) == before.bucket.read(STATE):
            return after
        return self._with_verdict(before, after, actor)

    def _with_verdict(self, before: Shard, after: Shard, actor: int) -> Shard:
        """The shard with what is wrong with a change of its state, and who wrote rows."""
        old, new = before.state, after.state
        assert new is not None
        if old is None:
            old = new_shard(new.schema.columns)
        if new.upper < old.upper:
            return replace(after, problem="what was written last is gone")
        rows = Counter() if old.is_unwritten else before.rows(old, old.upper - 1)
        for moment in [batch.moment for batch in old.batches if batch.moment >= new.since]:
            if before.rows(old, moment) != after.rows(new, moment):
                return replace(after, problem=f"the rows as of {moment} have changed")
        if new.upper == old.upper:
            is_reset = new.is_unwritten and not old.is_unwritten
            is_asked = isinstance(self.programs.get(actor), Reset)
            problem = "" if is_reset == is_asked else "reset without a reset, or not reset by one"
            return replace(after, problem=problem)
        expected, found = self.programs[actor].after(rows), after.rows(new, new.upper - 1)
        problem = "" if found == expected else f"the rows are {found}, not {expected}"
        return replace(after, wrote=(*after.wrote, actor), problem=problem)


def require_readable(shard: Shard) -> None:
    """Changes were right, and the state names only files that are there, as they were written."""
    assert not shard.problem, shard.problem
    assert len(set(shard.wrote)) == len(shard.wrote), f"written twice: {shard.wrote}"
    state, there = shard.state, dict(shard.bucket.objects)
    for file in (file for batch in state.batches for file in batch.files) if state else ():
        found = there.get(LOCATION.key(file.name))
        assert found is not None, f"the state names {file.name}, which is not there"
        assert (found.etag, len(found.body)) == (file.etag, file.size), file.name
