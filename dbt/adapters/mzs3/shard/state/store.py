"""The object that holds a shard's state, changed by compare-and-set."""

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
    """A write that may have taken effect, or may take effect later; callers add what to do."""


class StateStore:
    """Reads the state of the shard at a location, and changes it by compare-and-set.

    Of writers that have read the same state, one succeeds; the others get LostRaceError. Methods
    raise S3Error where S3 refuses, and UnknownWriteError where the outcome of a write is unknown.
    `clock` is S3's time at its last answer, in ms since the epoch, or None.
    """

    def __init__(self, store: Store, location: S3Location) -> None:
        self.prefix = Prefix(store, location)
        self.clock: int | None = None

    @property
    def uri(self) -> str:
        """The object's URI."""
        return self.prefix.uri + STATE

    def read(self) -> StoredState | None:
        """The state, or None where there is no shard; ShardError if the object is no state."""
        stream = ObjectStream(self.prefix.store, self.prefix.key(STATE))
        try:
            with closing(stream):
                data = stream.rest()
        except StoreError as exc:
            if _is_no_object(exc):
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
        """As `read`, but raises NoShardError where there is no shard."""
        found = self.read()
        if found is None:
            raise NoShardError(
                f"there is no shard at {self.prefix.uri}; run the model that writes it first, "
                "or correct the location"
            )
        return found

    def require_conditions(self) -> None:
        """Raises ShardError if the store ignores conditions of writes; asked once a process."""
        heeds = store_conditions(self.prefix)
        if not (heeds.creates and heeds.replaces):
            raise ShardError(
                f"the store of {self.uri} does not heed the conditions of writes (If-None-Match, "
                "If-Match), without which two runs at once could lose each other's batches; "
                "shards need a store that does, such as Amazon S3"
            )

    def change(self, change: Callable[[ShardState], ShardState]) -> StoredState:
        """Write what `change` makes of the state, if it differs; again after a lost race."""
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
        """Have the next run begin the shard anew; returns the state before.

        It is one write: nothing is removed, and readers of the state before keep its files as
        after a compaction. A run that writes meanwhile starts over, as the new shard's first.
        """
        self.require_conditions()
        replaced: list[ShardState] = []

        def begin_anew(state: ShardState) -> ShardState:
            replaced.append(state)
            return state.begun_anew(self.now())

        self.change(begin_anew)
        return replaced[-1]

    def now(self) -> int:
        """S3's time, in ms since the epoch."""
        with explained(f"asking {self.prefix.uri} what time it is", "s3:ListBucket"):
            return self.prefix.now()

    def write(self, before: StoredState | None, state: ShardState) -> StoredState:
        """Write a state in the place of the one that was read, or the first one of the shard.

        Raises LostRaceError if another run has written since. `require_conditions` comes first.
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
        """The state, if it was written nevertheless; else raises what the failure means."""
        text = describe(exc, f"writing {self.uri}", "s3:PutObject")
        is_conflict = isinstance(exc, ConflictError)
        is_unmet = is_conflict or isinstance(exc, PreconditionFailedError) or _is_no_object(exc)
        if not is_unmet and exc.is_certain_refusal:
            raise S3Error(text) from exc
        try:
            found = self.read()
        except (S3Error, ShardError) as unread:
            raise UnknownWriteError(f"{text}, and {unread}{_MAY_BE_WRITTEN}") from exc
        is_written = found is not None and found.state.was_written(written)
        if found and is_written:
            return found
        if (found and found.etag) == (before and before.etag):
            # The other request of a conflict may be our own first one.
            is_lost = is_unmet and not (is_conflict and exc.retries)
        else:
            # The condition holds no more, so our write can't succeed later.
            is_lost = is_written is False
        if is_lost:
            raise LostRaceError(
                f"{self.uri} has been changed by another run since this one read it"
            ) from exc
        raise UnknownWriteError(text + _MAY_BE_WRITTEN) from exc


def _is_no_object(exc: StoreError) -> bool:
    return isinstance(exc, MissingError) and not isinstance(exc, MissingBucketError)


def pause(attempt: int) -> None:
    """Wait before an attempt is repeated: longer each time, and for a random time."""
    longest = min(0.05 * 2.0**attempt, _LONGEST_WAIT_S)
    Event().wait(random.random() * longest)  # noqa: S311
