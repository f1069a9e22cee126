"""Reads a shard's state from its S3 object, and changes it with conditional writes."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from threading import Event
from typing import Any

from dbt.adapters.mzs3.errors import S3Error, ShardError
from dbt.adapters.mzs3.shard.state.state import ShardState, from_document, to_document
from dbt.adapters.mzs3.store.conditions import store_conditions
from dbt.adapters.mzs3.store.failures import (
    READS_OBJECT,
    ConflictError,
    MissingBucketError,
    MissingError,
    PreconditionFailedError,
    StoreError,
    describe,
    explained,
)
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.prefix import Prefix
from dbt.adapters.mzs3.store.reader import ObjectStream
from dbt.adapters.mzs3.store.store import Store

STATE = "_shard.json"
ATTEMPTS = 10
_LONGEST_WAIT_S = 2.0
_MAY_BE_WRITTEN = ". It may have been written nevertheless, or may be yet"


@dataclass(frozen=True)
class StoredState:
    """A state as it was read, and the ETag of its object."""

    state: ShardState
    etag: str


class NoShardError(ShardError):
    """There is no shard at the location."""


class LostRaceError(ShardError):
    """Another writer has changed the shard since it was read."""


class UnknownWriteError(S3Error):
    """A write may have succeeded, or may succeed later. Callers add advice to the text."""


class StateStore:
    """Reads the state of the shard at a location, and changes it with conditional writes.

    If several writers have read the same state, one succeeds; the others get LostRaceError.
    Methods raise S3Error if S3 refuses a request, and UnknownWriteError if the outcome of a write
    is unknown. `clock` is S3's time at the last `read`, in ms since the epoch, or None.
    """

    def __init__(self, store: Store, location: S3Location) -> None:
        self.prefix = Prefix(store, location)
        self.clock: int | None = None

    @property
    def uri(self) -> str:
        """The URI of the object with the state."""
        return self.prefix.uri + STATE

    def read(self) -> StoredState | None:
        """The state; None without a shard. Raises ShardError if the object is not a state."""
        stream = ObjectStream(self.prefix.store, self.prefix.key(STATE))
        try:
            with closing(stream):
                data = stream.rest()
        except StoreError as exc:
            if _lacks_object(exc):
                self.clock = exc.time
                return None
            raise S3Error(describe(exc, f"reading {self.uri}", READS_OBJECT)) from exc
        self.clock = stream.time
        try:
            return StoredState(from_document(data), stream.etag or "")
        except ValueError as error:
            raise ShardError(
                f"{self.uri} is not a shard's state that this version of dbt-mzs3 can read: "
                f"{error}. Use the version that wrote it; if something else has changed the "
                "object, restore it"
            ) from error

    def existing(self) -> StoredState:
        """The state. Raises NoShardError if there is no shard, and the errors of `read`."""
        stored = self.read()
        if stored is None:
            raise NoShardError(
                f"there is no shard at {self.prefix.uri}; run the model that writes it first, "
                "or correct the location"
            )
        return stored

    def require_conditions(self) -> None:
        """Raises ShardError if the store does not support conditional writes."""
        supported = store_conditions(self.prefix)
        if not (supported.creates and supported.replaces):
            raise ShardError(
                f"the store of {self.uri} does not heed the conditions of writes (If-None-Match, "
                "If-Match), without which two runs at once could lose each other's batches; "
                "shards need a store that does, such as Amazon S3"
            )

    def change(self, change: Callable[[ShardState], ShardState]) -> StoredState:
        """Applies `change` to the state and writes the result, if it differs. If another writer
        was faster, reads the new state and tries again."""
        for attempt in range(ATTEMPTS):
            before = self.existing()
            state = change(before.state)
            if state == before.state:
                return before
            try:
                return self.write(before, state)
            except LostRaceError:
                pause(attempt)
        raise LostRaceError(
            f"{self.uri} was changed by others {ATTEMPTS} times while this run tried to; run it "
            "again when fewer runs write to the shard"
        )

    def reset(self) -> ShardState:
        """Empties the shard; the next run writes all its rows. Returns the state before that.

        Deletes no files: as after a compaction, earlier readers can still use them. A run that is
        in progress loses the race, and starts over."""
        self.require_conditions()
        replaced: list[ShardState] = []

        def begin_anew(state: ShardState) -> ShardState:
            replaced.append(state)
            return state.after_reset(self.now())

        self.change(begin_anew)
        return replaced[-1]

    def now(self) -> int:
        """S3's time, in ms since the epoch."""
        with explained(f"asking {self.prefix.uri} what time it is", "s3:ListBucket"):
            return self.prefix.now()

    def write(self, before: StoredState | None, state: ShardState) -> StoredState:
        """Writes a state in place of `before`, which was read; None creates the shard.

        Call `require_conditions` first. Raises LostRaceError if another run wrote since the read.
        """
        writer = uuid.uuid4().hex
        written = state.written_after(before.state if before else None, writer)
        condition: dict[str, Any] = {"if_version": before.etag} if before else {"if_absent": True}
        try:
            etag = self.prefix.write(STATE, to_document(written, writer), **condition)
        except StoreError as exc:
            return self._state_after_failure(exc, before, written)
        return StoredState(written, etag)

    def _state_after_failure(
        self, exc: StoreError, before: StoredState | None, written: ShardState
    ) -> StoredState:
        """Returns the stored state if the write succeeded after all; else raises an error."""
        text = describe(exc, f"writing {self.uri}", "s3:PutObject")
        is_conflict = isinstance(exc, ConflictError)
        is_unmet = is_conflict or isinstance(exc, PreconditionFailedError) or _lacks_object(exc)
        if not is_unmet and exc.is_certain_refusal:
            raise S3Error(text) from exc
        try:
            stored = self.read()
        except (S3Error, ShardError) as unread:
            raise UnknownWriteError(f"{text}, and {unread}{_MAY_BE_WRITTEN}") from exc
        is_written = stored is not None and stored.state.was_written(written)
        if stored and is_written:
            return stored
        if (stored and stored.etag) == (before and before.etag):
            # After a retry, the conflicting request may be our own first attempt.
            is_lost = is_unmet and not (is_conflict and exc.retries)
        else:
            # The object has changed, so the condition of our write can't be met later.
            is_lost = is_written is False
        if is_lost:
            raise LostRaceError(
                f"{self.uri} has been changed by another run since this one read it"
            ) from exc
        raise UnknownWriteError(text + _MAY_BE_WRITTEN) from exc


def _lacks_object(exc: StoreError) -> bool:
    return isinstance(exc, MissingError) and not isinstance(exc, MissingBucketError)


def pause(attempt: int) -> None:
    """Waits before a retry: exponential backoff with jitter."""
    longest = min(0.05 * 2.0**attempt, _LONGEST_WAIT_S)
    Event().wait(random.random() * longest)  # noqa: S311
