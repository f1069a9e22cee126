"""Makes all files of an export visible, or none. `docs/commit.md` explains the states."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable
from dataclasses import replace

from dbt.adapters.mzs3.errors import CopyError, LocationError
from dbt.adapters.mzs3.export.commit.effects import Effects
from dbt.adapters.mzs3.export.commit.failures import (
    CommitError,
    UnansweredError,
    describe_failure,
    is_denied,
)
from dbt.adapters.mzs3.export.commit.intent import (
    COMMITTING,
    ChangedError,
    CommitIntent,
    PendingExport,
    State,
    Version,
    close_intent,
    probe_conditional_writes,
    put_intent,
    read_intent,
)
from dbt.adapters.mzs3.export.commit.manifest import MANIFEST
from dbt.adapters.mzs3.store.failures import StoreError
from dbt.adapters.mzs3.store.prefix import Prefix

_GONE = (
    "uploads of this run are gone; another run to this location, a lifecycle rule of the bucket, "
    "or S3, because of another write to the name, has aborted them. Run again"
)
_NEXT_RUN = "the next run to this location finishes the export, or undoes it"


class _LostError(CopyError):
    """Nothing of this commit is visible now, or can become visible later."""


class Commit:
    """A commit at a location: `claim`, `complete` and `finish`, in a `with` block; then `release`.

    Each change of its state is a conditional write of `_committing.json`. If a call fails before
    the state is `forward`, the end of the block rolls back and raises CommitError, which says what
    is left, or LocationError if another run has claimed or changed the location. If another run
    has set the state to `forward`, the end of the block makes the export visible instead, and does
    not raise. `has_conditional_deletes` and `has_conditional_writes` say what the store supports;
    `has_conditional_writes` is None if that is not tested yet.
    """

    def __init__(
        self,
        prefix: Prefix,
        pending: PendingExport,
        *,
        has_conditional_deletes: bool,
        has_conditional_writes: bool | None = True,
    ) -> None:
        self._prefix = prefix
        self.pending = pending
        self._effects = Effects(prefix, pending)
        self._has_conditional_deletes = has_conditional_deletes
        self._has_conditional_writes = has_conditional_writes
        self._writer = str(pending.manifest["run_id"])  # `written_by` of our intents
        self._version: Version | None = None  # as last written or read; None before the claim
        self._is_finishing = False  # `finish` has begun, and handles its own failures

    @classmethod
    def from_intent(
        cls, prefix: Prefix, version: Version, *, has_conditional_deletes: bool
    ) -> Commit:
        """The commit of an intent that another run has written, for this run to recover."""
        assert version.intent.pending is not None
        commit = cls(
            prefix, version.intent.pending, has_conditional_deletes=has_conditional_deletes
        )
        commit._continue_from(version)
        commit._writer = uuid.uuid4().hex
        return commit

    def __enter__(self) -> Commit:
        return self

    def __exit__(self, _: object, exc: BaseException | None, __: object) -> bool:
        if exc is None or self._is_finishing or not self._roll_back_unless_forward(exc):
            return False
        if self._version is not None:  # else the run that made the export visible cleans up
            self._finish(self._make_visible_with_another)
        return True

    def claim(self) -> None:
        """Writes the intent; raises if the location has changed since the run began."""
        self._effects.require_free()
        self._put_claim()
        if self._has_conditional_writes is None:
            self._has_conditional_writes = probe_conditional_writes(self._prefix, self._current)
        if not self._has_conditional_writes:
            self._require_claimed()
        self._effects.require_unchanged()

    def complete(self) -> None:
        """Completes the uploads; if that replaces an old file, first sets the state `forward`."""
        if self.pending.in_place is not None:
            self._decide_forward()
        if not self._effects.complete_all():
            raise CopyError(_GONE)

    def finish(self) -> None:
        """Sets the state to `forward`, writes the manifest, and deletes files that only the old
        manifest names.

        Raises StaleFilesError, and CommitError, which says whether the export may become visible.
        """
        if self.pending.in_place is None:
            self._decide_forward()
        self._is_finishing = True
        self._finish(self._make_visible)

    def release(self) -> None:
        """Frees the location for the next commit; if this fails, the next run does that."""
        if self._version is None:
            return
        used = self._version.intent.used
        if self._version.intent.shared:
            stale = used.with_names(self._effects.names(self.pending.stale))
            used = replace(used, retired=stale.retired)
        # The manifest has a next number, too. Only that of a commit that was rolled back may be
        # higher, and has to be kept.
        if used.next_number <= int(self.pending.manifest.get("next_number", 1)):
            used = replace(used, next_number=1)
        # If this fails, the intent stays, which does no harm once its manifest is written.
        with contextlib.suppress(Exception):
            close_intent(
                self._prefix,
                self._version,
                self._writer,
                used,
                has_conditional_deletes=self._has_conditional_deletes,
            )

    def _finish(self, make_visible: Callable[[], None]) -> None:
        try:
            make_visible()
        except Exception as exc:  # noqa: BLE001 - the state is `forward`, whatever fails
            self._undo_unless_visible(exc)
        self._effects.delete_stale()

    def recover(self) -> bool:
        """Rolls another run's commit forward, else back; returns whether the export is visible.

        Raises ChangedError if a third run takes over the commit, CommitError if it can't be rolled
        back now, StaleFilesError, UnansweredError, and StoreError.
        """
        state = self._current.intent.state
        if state == "open":
            self._decide_for_another()
        else:
            self._change(state, shared=True)
        if self._current.intent.state == "forward":
            try:
                self._make_visible_with_another()
            except _LostError:
                self._change("back")
        if self._current.intent.state == "back":
            if problems := self._roll_back():
                raise CommitError("a commit that can't go forward is not undone yet", problems)
            return False
        self._effects.delete_stale()
        self.release()
        return True

    @property
    def _current(self) -> Version:
        assert self._version is not None
        return self._version

    def _continue_from(self, version: Version) -> None:
        # An intent has the same encryption as the files only if the same run has written both.
        writers = {version.intent.run_id, version.intent.written_by}
        is_own = writers == {self.pending.manifest["run_id"]}
        self._effects.known.are_md5s |= is_own and version.has_md5
        self._version = version

    def _change(self, state: State, *, shared: bool | None = None) -> None:
        """Writes the intent with this state. Raises as `put_intent`."""
        if not self._has_conditional_writes:
            self._require_claimed()
        intent = self._current.intent
        shared = intent.shared if shared is None else shared
        changed = replace(intent, state=state, shared=shared, written_by=self._writer)
        self._continue_from(put_intent(self._prefix, changed, self._current))

    # -- claiming the location

    def _put_claim(self) -> None:
        intent = CommitIntent("open", self._writer, self._writer, pending=self.pending)
        try:
            version = put_intent(self._prefix, intent, None)
        except ChangedError as exc:
            version = self._claim_closed(intent, exc.found)
        self._continue_from(version)

    def _claim_closed(self, intent: CommitIntent, found: Version | None) -> Version:
        """Claims the location by replacing `found`, the closed intent of an earlier commit."""
        if found is not None and found.intent.run_id == self._writer:
            self._continue_from(found)
            raise ChangedError(found)  # another run has taken over our commit already
        if found is None or found.intent.state != "closed":
            raise self._taken_error()
        used = found.intent.used
        if not used.allows(self._effects.names()):
            raise LocationError(
                f"another run to {self._prefix.uri} was undone since this one began, and may "
                "still remove files of the names that this one uses; run this one again"
            )
        try:
            return put_intent(self._prefix, replace(intent, used=used), found)
        except ChangedError as exc:
            if exc.found is None or exc.found.intent.run_id != self._writer:
                raise self._taken_error() from exc
            self._continue_from(exc.found)
            raise  # another run has taken over our commit already

    def _require_claimed(self) -> None:
        """Raises LocationError if another run has changed the intent since this run knew it."""
        try:
            found = read_intent(self._prefix)
        except StoreError:
            return  # an export works without the permission to read
        if found is None or found.intent != self._current.intent:
            raise self._taken_error()
        self._continue_from(found)

    def _taken_error(self) -> LocationError:
        return LocationError(
            f"another run is committing an export to {self._prefix.uri} at this moment; give each "
            "model, and each run, a location of its own"
        )

    # -- deciding

    def _decide_forward(self) -> None:
        try:
            self._change("forward")
        except (UnansweredError, StoreError) as exc:
            # If-Match needs s3:GetObject. Without it, a run continues if it has received the ETag
            # of each completed upload; else a file may be another run's (docs/commit.md).
            is_certain = self.pending.replaces is None and self._effects.has_completed_all
            if not (is_denied(exc) and is_certain):
                raise

    def _decide_for_another(self) -> None:
        """Sets the state of another run's commit to `forward` if still possible, else `back`."""
        is_whole = self._effects.is_visible()
        if not is_whole and self._effects.can_still_be_visible():
            is_whole = self.pending.in_place is not None or self._effects.complete_or_abort_all()
        self._change("forward" if is_whole else "back", shared=is_whole)

    def _roll_back_unless_forward(self, exc: BaseException) -> bool:
        """After a failure: rolls back, and may raise. Returns True if the export goes forward."""
        try:
            if self._find_claim(exc):
                # The state `forward` stays until it is known that the export can't become visible.
                if self._current.intent.state == "forward" or self._decide_back_unless_forward():
                    return True
                problems = self._undo()
            elif not self._effects.is_visible():
                problems = []
            else:
                return True
        except (UnansweredError, StoreError) as second:
            is_claimed = self._version is not None
            problems = self._abort_undecided(second) if is_claimed else self._abort_unclaimed(exc)
        except Exception as second:  # noqa: BLE001 - the first failure is reported
            may_be = f"{second}; files that this run has completed may be there"
            problems = [may_be] if self._version else []
        leftovers = [*problems, *self._effects.other_unproven_uris(exc)]
        is_all_told = isinstance(exc, LocationError) and not leftovers
        if isinstance(exc, Exception) and not is_all_told:
            raise self._failed(exc, problems) from exc
        return False

    def _failed(self, exc: Exception, leftovers: list[str]) -> CommitError:
        reason = describe_failure(exc, f"committing {self._prefix.uri}")
        return CommitError(reason, leftovers, self._effects.other_unproven_uris(exc))

    def _abort_unclaimed(self, exc: BaseException) -> list[str]:
        """If the claim had no response, aborts uploads; returns lines about what may remain."""
        may_be = f"{self._prefix.uri}{COMMITTING} may be there, and is then ended by the next run"
        return [*self._effects.abort(), may_be] if isinstance(exc, UnansweredError) else []

    def _find_claim(self, exc: BaseException) -> bool:
        """Whether the claim was written. If its PUT had no response, aborts the uploads, and reads
        the intent."""
        if self._version is None and not isinstance(exc, LocationError):
            self._effects.abort()  # first: a claim that arrives after this look finds no uploads
            found = read_intent(self._prefix)
            if found is not None and found.intent.run_id == self._writer:
                self._continue_from(found)
        return self._version is not None

    def _decide_back_unless_forward(self) -> bool:
        """Sets the state to `back` if no other run has decided; returns whether to go forward."""
        if self._effects.is_visible():
            return True
        found: Version | None = self._current
        if self._current.intent.written_by == self._writer:
            try:
                self._change("back")
            except ChangedError as changed:
                found = changed.found
            else:
                return False
        is_ours = found is not None and found.intent.run_id == self._current.intent.run_id
        if found is None or not is_ours or found.intent.state == "closed":
            return self._effects.is_visible()
        self._continue_from(found)
        return found.intent.state == "forward"

    def _undo(self) -> list[str]:
        """Rolls back if this run has set the state to `back`, else only aborts the uploads;
        returns lines about what is left to undo."""
        state, writer = self._current.intent.state, self._current.intent.written_by
        if state == "back" and writer == self._writer:
            return self._roll_back()
        notes = [f"files of this run at {self._prefix.uri}, which another run removes"]
        return self._effects.abort() + (notes if state == "back" else [])

    def _abort_undecided(self, second: Exception) -> list[str]:
        """If the state could not be changed or read: returns lines about what is left; aborts the
        uploads only if a permission is missing."""
        text = describe_failure(second, f"taking the commit at {self._prefix.uri} back")
        # Once an upload is aborted, or a name taken, other runs can't roll forward either.
        aborted = self._effects.abort(keep_taken=True) if is_denied(second) else []
        there = f"{self._prefix.uri}{COMMITTING}, and files that are there already"
        return [text, *aborted, f"{there}: {_NEXT_RUN}"]

    # -- going forward

    def _make_visible(self) -> None:
        """Writes the manifest, after all files are complete. Raises StoreError and _LostError."""
        if self.pending.in_place is not None:
            self._require_forward()
        if not self._effects.write_manifest():
            raise _LostError(self._effects.overtaken_text())

    def _require_forward(self) -> None:
        """Raises _LostError unless the state is still `forward`, now that the file is complete.

        Else another run may have rolled this commit back, and replaced the file with its own.
        """
        try:
            self._change("forward")
        except ChangedError as changed:
            found = changed.found
            decided = (self._current.intent.run_id, "forward")
            if found is None or (found.intent.run_id, found.intent.state) != decided:
                raise _LostError(self._effects.overtaken_text()) from changed
            self._continue_from(found)

    def _make_visible_with_another(self) -> None:
        """Completes the uploads and writes the manifest, while another run may do the same. Raises
        _LostError if no run can."""
        if self._effects.is_visible():
            return
        if not self._effects.complete_or_abort_all():
            raise _LostError(self._effects.refusal or _GONE)
        self._make_visible()

    def _undo_unless_visible(self, exc: Exception) -> None:
        """After a failure to go forward: rolls back if safe, and raises, unless it is visible.

        Rolling back is safe if no run can write the manifest later: this commit is lost; or no
        other run has taken over, and S3 has certainly refused our write.
        """
        is_only_ours = not self._current.intent.shared and self.pending.in_place is None
        leftovers = [f"{self._prefix.uri}{MANIFEST} may not name the new files yet: {_NEXT_RUN}"]
        is_refused = isinstance(exc, StoreError) and exc.is_certain_refusal
        with contextlib.suppress(Exception):
            if self._effects.is_visible():
                return
            if isinstance(exc, _LostError) or (is_only_ours and is_refused):
                if self._decide_back_unless_forward():
                    self._make_visible_with_another()
                    return
                leftovers = self._undo()
        raise self._failed(exc, leftovers) from exc

    # -- going back

    def _roll_back(self) -> list[str]:
        """Aborts all uploads, deletes completed files, and closes the intent; returns failures.

        The intent is closed last, so that after a failure the next run continues the work.
        """
        problems = self._effects.abort()
        if not problems and self.pending.in_place is None:
            problems = self._effects.delete_visible()
        if problems:
            return problems
        used = self._current.intent.used
        if self._effects.unproven or (
            self._current.intent.shared and self.pending.in_place is None
        ):
            used = used.with_names(self._effects.names())
        try:
            close_intent(
                self._prefix,
                self._current,
                self._writer,
                used,
                has_conditional_deletes=self._has_conditional_deletes,
            )
        except (UnansweredError, StoreError) as exc:
            return [describe_failure(exc, f"removing {self._prefix.uri}{COMMITTING}")]
        except ChangedError:
            pass  # another run has rolled back and closed the intent
        return []
