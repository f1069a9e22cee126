"""The object that holds a shard's state, changed by compare-and-set."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from threading import Event

from dbt.adapters.mzs3.errors import S3Error, ShardError
from dbt.adapters.mzs3.shard.state.state import ShardState, from_document, to_document
from dbt.adapters.mzs3.store.conditions import store_conditions
from dbt.adapters.mzs3.store.failures import (
    READS_OBJECT,
    ConflictError,
    CredentialsError,
    MissingBucketError,
    MissingError,
    PermissionDeniedError,
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
    """A write that may have taken effect, or may yet: its answer does not tell.

    Callers add what to do, which depends on what was written.
    """


class StateStore:
    """Reads the state of the shard at a location, and changes it by compare-and-set.

    Of writers that have read the same state, one succeeds; the others get LostRaceError. Every
    method raises S3Error where S3 refuses; those that write raise UnknownWriteError where the
    outcome is unknown. `clock` is S3's time at its last answer, in ms since the epoch, or None.
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

    def create(self, state: ShardState) -> StoredState:
        """Write the first state, under `require_conditions`; LostRaceError if there is one."""
        self.require_conditions()
        return self._write(None, state, None)

    def replace(self, before: StoredState, state: ShardState) -> StoredState:
        """Write a state in the place of the one that was read."""
        return self._write(before.state, state, before.etag)

    def change(self, change: Callable[[ShardState], ShardState]) -> StoredState:
        """Write what `change` makes of the state, if it differs; again after a lost race."""
        for attempt in range(ATTEMPTS):
            before = self.existing()
            state = change(before.state)
            if state == before.state:
                return before
            try:
                return self.replace(before, state)
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

        def begun_anew(state: ShardState) -> ShardState:
            replaced.append(state)
            with explained(f"asking {self.prefix.uri} what time it is", "s3:ListBucket"):
                return state.begun_anew(self.prefix.now())

        self.change(begun_anew)
        return replaced[-1]

    def _write(
        self, before: ShardState | None, state: ShardState, etag: str | None
    ) -> StoredState:
        writer = uuid.uuid4().hex
        written = state.written_after(before, writer)
        try:
            document = to_document(written, writer)
            return StoredState(
                written,
                self.prefix.write(STATE, document, if_absent=etag is None, if_version=etag),
            )
        except StoreError as exc:
            return self._after_failure(exc, writer, written.writes, etag)

    def _after_failure(
        self, exc: StoreError, writer: str, number: int, etag: str | None
    ) -> StoredState:
        """The state, if it was written nevertheless; else what the failure means, as an error."""
        lost = isinstance(exc, (ConflictError, PreconditionFailedError)) or _is_no_object(exc)
        text = describe(exc, f"writing {self.uri}", "s3:PutObject")
        if not lost and _is_refusal(exc):
            raise S3Error(text) from exc
        try:
            found = self.read()
        except (S3Error, ShardError) as unread:
            raise UnknownWriteError(f"{text}, and {unread}{_MAY_BE_WRITTEN}") from exc
        was_written = False if found is None else found.state.was_written(writer, number)
        if found is not None and was_written:
            return found
        if (None if found is None else found.etag) == etag:
            # A retry may conflict with our own first request.
            is_lost = lost and not (isinstance(exc, ConflictError) and exc.retries)
        else:
            # The state is another one now, so that our write can't succeed later.
            is_lost = was_written is False
        if is_lost:
            raise LostRaceError(
                f"{self.uri} has been changed by another run since this one read it"
            ) from exc
        raise UnknownWriteError(text + _MAY_BE_WRITTEN) from exc


def _is_no_object(exc: StoreError) -> bool:
    return isinstance(exc, MissingError) and not isinstance(exc, MissingBucketError)


def _is_refusal(exc: StoreError) -> bool:
    """Whether S3 refused the first request; before a retry, an earlier one may have succeeded."""
    is_never_done = isinstance(exc, (PermissionDeniedError, CredentialsError))
    refused = 400 <= exc.status < 500 or is_never_done
    return refused and exc.status != 408 and not exc.retries


def pause(attempt: int) -> None:
    """Wait before an attempt is repeated: longer each time, and for a random time."""
    longest = min(0.05 * 2.0**attempt, _LONGEST_WAIT_S)
    Event().wait(random.random() * longest)  # noqa: S311
