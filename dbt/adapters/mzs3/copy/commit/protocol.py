"""Making an export visible: all of its files, or none. `docs/commit.md` has the states."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from dbt.adapters.mzs3.aws.failures import (
    AwsFailure,
    describe,
    error_code,
    is_denied,
    is_missing,
)
from dbt.adapters.mzs3.copy.commit.abort import abort_all
from dbt.adapters.mzs3.copy.commit.complete import complete
from dbt.adapters.mzs3.copy.commit.each import each
from dbt.adapters.mzs3.copy.commit.existing import require_empty
from dbt.adapters.mzs3.copy.commit.intent import (
    NO_CONDITIONS_CODES,
    REFUSED_CODES,
    ChangedError,
    CommitIntent,
    State,
    UnansweredError,
    Version,
    close_intent,
    put_intent,
    was_surely_refused,
)
from dbt.adapters.mzs3.copy.commit.manifest import to_json
from dbt.adapters.mzs3.copy.commit.names import UsedNames
from dbt.adapters.mzs3.copy.commit.pending import PendingExport
from dbt.adapters.mzs3.copy.commit.place import COMMITTING, MANIFEST, Place
from dbt.adapters.mzs3.errors import CopyError, LocationError


class CommitError(CopyError):
    """A commit that failed. `remains` says what is left for the next run to finish or remove."""

    def __init__(self, reason: str, remains: Sequence[str] = ()) -> None:
        self.remains = tuple(remains)
        super().__init__(reason)


class StaleFilesError(CopyError):
    """The export is committed and its manifest true, but files of the old one are still there."""


class _LostError(CopyError):
    """Another run has ended this commit, and nothing of it is visible."""


class Commit:
    """One commit at a location, of this run or of one that did not get to its end.

    Every change of its state is a compare-and-set of `_committing.json`. `deletes` says whether
    the store compares before it deletes, too.
    """

    def __init__(self, place: Place, pending: PendingExport, *, deletes: bool) -> None:
        self._place = place
        self.pending = pending
        self._deletes = deletes
        self._writer = uuid.uuid4().hex
        self._version: Version | None = None

    @classmethod
    def found(cls, place: Place, version: Version, *, deletes: bool) -> Commit:
        """The commit that an intent at the location tells of."""
        assert version.intent.pending is not None
        commit = cls(place, version.intent.pending, deletes=deletes)
        commit._version = version
        return commit

    def run(self, once_claimed: Callable[[], object] = lambda: None) -> None:
        """Everything is visible afterwards. On an exception nothing is, or the error says what.

        `once_claimed` is done while no other run can commit to the location. Raises LocationError
        if another run has the location, or has changed it; CommitError; or StaleFilesError.
        """
        self._claim()
        make_visible = self._make_visible
        try:
            self._require_unchanged()
            once_claimed()
            self._complete_and_decide()
        except BaseException as exc:
            if not self._goes_forward_after(exc):
                raise
            make_visible = self._make_visible_with_another
        try:
            make_visible()
        except (_LostError, UnansweredError, *AwsFailure) as exc:
            self._undo_unless_visible(exc)
        self._clean_up()

    def recover(self) -> bool:
        """End a commit that another run has left; whether the export is visible now.

        Raises ChangedError if somebody else goes on with it, CommitError for what can't be
        removed, and AwsFailure.
        """
        state = self._held.intent.state
        if state == "open":
            self._decide_for_another()
        else:
            self._change(state, shared=True)
        if self._held.intent.state == "forward" and not self._has_made_visible():
            self._change("back")
        if self._held.intent.state == "back":
            problems = self._roll_back()
            if problems:
                raise CommitError("a commit that can't go forward is not undone yet", problems)
            return False
        self._clean_up()
        return True

    @property
    def _held(self) -> Version:
        assert self._version is not None
        return self._version

    def _change(self, state: State, *, shared: bool | None = None) -> None:
        """The one way in which a commit's state changes. Raises as `put_intent`."""
        intent = self._held.intent
        shared = intent.shared if shared is None else shared
        changed = replace(intent, state=state, shared=shared, written_by=self._writer)
        self._version = put_intent(self._place, changed, self._held)

    # -- claiming the location

    def _claim(self) -> None:
        intent = CommitIntent(self._writer, "open", self.pending, self._writer)
        try:
            try:
                self._version = put_intent(self._place, intent, None)
            except ChangedError as exc:
                self._version = self._claim_closed(intent, exc.found)
        except UnansweredError as exc:
            left = f"{self._place.uri}{COMMITTING}, if it was written; the next run removes it"
            raise CommitError(self._reason(exc.cause), [left]) from exc
        except (ValueError, *AwsFailure) as exc:
            raise CommitError(self._reason(exc)) from exc

    def _claim_closed(self, intent: CommitIntent, found: Version | None) -> Version:
        """Over the closed intent of a commit that has ended."""
        if found is None or found.intent.state != "closed":
            raise self._is_taken()
        used = found.intent.used
        if not used.allows(self._names()):
            raise LocationError(
                f"another run to {self._place.uri} was undone since this one began, and may "
                "still remove files of the names that this one uses; run this one again"
            )
        try:
            return put_intent(self._place, replace(intent, used=used), found)
        except ChangedError as exc:
            raise self._is_taken() from exc

    def _is_taken(self) -> LocationError:
        return LocationError(
            f"another run is committing an export to {self._place.uri} at this moment; give each "
            "model, and each run, a location of its own"
        )

    def _require_unchanged(self) -> None:
        """Looked at after claiming, so that no other run can have committed in between."""
        if self.pending.replaces is None:
            ours = {self._place.key(COMMITTING), *(file.key for file in self.pending.files)}
            require_empty(self._place, but_for=ours)
            return
        manifest = self._place.find(self._place.key(MANIFEST))
        if manifest is None or manifest.etag != self.pending.replaces:
            raise LocationError(self._overtaken())

    # -- deciding

    def _complete_and_decide(self) -> None:
        """Forward, once every file is there; raises what failed before that."""
        if self.pending.in_place is not None:
            self._decide_forward()  # as the old file can't be had back
        if not self._complete_all():
            raise CopyError(
                "uploads of this run are gone; another run to this location, or a lifecycle rule "
                "of the bucket, has aborted them"
            )
        if self.pending.in_place is None:
            self._decide_forward()

    def _decide_forward(self) -> None:
        try:
            self._change("forward")
        except AwsFailure as exc:
            # To compare takes s3:GetObject. Without, nobody has decided; but as every file is
            # there, nobody can decide otherwise either: see docs/commit.md.
            if not is_denied(exc) or self.pending.replaces is not None:
                raise

    def _complete_all(self) -> bool:
        """In parallel; waits for all. False if an upload is gone, else raises what failed."""
        files = self.pending.files
        finish = partial(complete, self._place, instead_of=self.pending.in_place)
        return all(each(files, finish))

    def _decide_for_another(self) -> None:
        """Forward if the commit of another run can still go there, else back."""
        try:
            whole = self._is_visible()
            if not whole:
                self._require_unchanged()
                whole = self.pending.in_place is not None or self._complete_all()
        except LocationError:
            whole = False
        self._change("forward" if whole else "back", shared=whole)

    def _goes_forward_after(self, exc: BaseException) -> bool:
        """After a failure: whether another run has decided to go forward. Else it is undone."""
        try:
            if self._went_forward():
                return True
            problems = self._abort() if self._held.intent.state == "open" else self._roll_back()
        except (UnansweredError, *AwsFailure) as second:
            problems = self._undecided(second)
        if isinstance(exc, LocationError) and not problems:
            raise exc
        if isinstance(exc, Exception):
            raise CommitError(self._reason(exc), problems) from exc
        return False

    def _went_forward(self) -> bool:
        """Decide to go back, unless another run has decided; whether that one went forward."""
        try:
            self._change("back")
        except ChangedError as changed:
            found = changed.found
            ours = found is not None and found.intent.run_id == self._held.intent.run_id
            if found is None or not ours or found.intent.state == "closed":
                return self._is_visible()
            if found.intent.state == "forward":
                self._version = found
                return True
        return False

    def _undecided(self, second: Exception) -> list[str]:
        cause = second.cause if isinstance(second, UnansweredError) else second
        doing = f"taking the commit at {self._place.uri} back"
        text = describe(cause, doing, "s3:GetObject and s3:PutObject")
        if is_denied(cause):
            # Where an upload is gone, no other run can go forward either.
            visible = f"{self._place.uri}{COMMITTING}, and files that are there already"
            return [text, *self._abort(), visible]
        return [text]

    # -- going forward

    def _make_visible(self) -> None:
        """The manifest names the files, which are there. Raises what S3 says."""
        if not self._has_written_manifest():
            raise _LostError(self._overtaken())

    def _make_visible_with_another(self) -> None:
        """As `_make_visible`, beside a run that may do so at the same time."""
        if not self._has_made_visible():
            raise _LostError(self._overtaken())

    def _has_made_visible(self) -> bool:
        """False if it is impossible, for good: an upload is gone, or the manifest another one."""
        if self._is_visible():
            return True
        return self._complete_all() and self._has_written_manifest()

    def _is_visible(self) -> bool:
        """Whether the manifest names files of this commit: its own, or one that keeps some."""
        content = self._place.read(MANIFEST)
        if content == to_json(self.pending.manifest):
            return True
        named = _named_by(content)
        return any(named.get(self._place.uri_of(f.key)) == f.sha256 for f in self.pending.files)

    def _has_written_manifest(self) -> bool:
        """The change of what readers see: only over the manifest that it was made to replace.

        False if another one is there. A run that was taken for dead, and finished by another one,
        may come back this late.
        """
        body, before = to_json(self.pending.manifest), self.pending.replaces
        condition = {"IfNoneMatch": "*"} if before is None else {"IfMatch": before}
        try:
            self._place.write(MANIFEST, body, **condition)
        except AwsFailure as exc:
            if error_code(exc) in NO_CONDITIONS_CODES:
                self._place.write(MANIFEST, body)
            elif error_code(exc) in REFUSED_CODES or is_missing(exc):
                return self._is_visible()  # it may have been asked for twice
            else:
                raise
        return True

    def _undo_unless_visible(self, exc: Exception) -> None:
        """After a failure of what was decided; returns if another run has made it visible.

        It is undone only where nobody else can still write the manifest: by the run itself, as
        long as no other has taken over, and if S3 has surely refused; or where nobody ever can.
        """
        impossible = isinstance(exc, _LostError)
        if impossible or (not self._held.intent.shared and was_surely_refused(exc)):
            with contextlib.suppress(UnansweredError, *AwsFailure):
                if not self._went_forward():
                    if self._held.intent.state == "back":
                        raise CommitError(self._reason(exc), self._roll_back()) from exc
                    raise CommitError(self._overtaken()) from exc
                if self._has_made_visible():
                    return
        left = (
            f"every file is there, but {self._place.uri}{MANIFEST} does not name them: the next "
            "run to this location writes it"
        )
        raise CommitError(self._reason(exc), [left]) from exc

    def _clean_up(self) -> None:
        """Delete what the new manifest does not name any more, and then the intent."""
        problems = self._delete(self.pending.stale)
        if problems:
            listed = "".join(f"\n  - {problem}" for problem in problems)
            raise StaleFilesError(
                f"{self._place.uri}{MANIFEST} names the new export, whole; but files of the one "
                f"before it are still there, for whoever lists the location:{listed}\nThe next "
                "run to this location tries again to remove them"
            )
        retired = UsedNames(retired=self._held.intent.used.retired)
        if self._held.intent.shared:
            stale = retired.without(map(self._name, self.pending.stale))
            retired = UsedNames(retired=stale.retired)  # the manifest has the numbers
        # Beside its manifest, an intent that stays does no harm.
        with contextlib.suppress(ChangedError, UnansweredError, *AwsFailure):
            close_intent(self._place, self._held, self._writer, retired, deletes=self._deletes)

    # -- going back

    def _roll_back(self) -> list[str]:
        """Abort every upload, then delete what has become visible; what could not be.

        The intent stays until all of that is done, so that the next run goes on with it.
        """
        problems = self._abort()
        if not problems and self.pending.in_place is None:
            problems = self._delete_visible()
        if problems:
            return problems
        used = self._held.intent.used
        if self._held.intent.shared:
            used = used.without(self._names())
        try:
            close_intent(self._place, self._held, self._writer, used, deletes=self._deletes)
        except ChangedError:
            pass  # another run has come to the same end
        except (UnansweredError, *AwsFailure) as exc:
            cause = exc.cause if isinstance(exc, UnansweredError) else exc
            doing = f"removing {self._place.uri}{COMMITTING}"
            return [describe(cause, doing, "s3:DeleteObject")]
        return []

    def _abort(self) -> list[str]:
        return abort_all(self._place, [(f.key, f.upload_id) for f in self.pending.files])

    def _delete_visible(self) -> list[str]:
        keys = {file.key for file in self.pending.files}
        try:
            # Of runs that began at one time, another may have committed files of these names.
            named = _named_by(self._place.read(MANIFEST))
            keys = {key for key in keys if self._place.uri_of(key) not in named}
            visible = [found.key for found in self._place.objects() if found.key in keys]
        except AwsFailure as exc:
            doing = f"reading {self._place.uri}"
            return [describe(exc, doing, "s3:ListBucket and s3:GetObject")]
        return self._delete(visible)

    def _delete(self, keys: Sequence[str]) -> list[str]:
        """What could not be deleted, and why."""

        def attempt(key: str) -> str | None:
            try:
                self._place.delete(key)
            except AwsFailure as exc:
                return describe(exc, f"removing {self._place.uri_of(key)}", "s3:DeleteObject")
            return None

        return [problem for problem in each(keys, attempt) if problem is not None]

    # -- words

    def _names(self) -> list[str]:
        return [self._name(file.key) for file in self.pending.files]

    def _name(self, key: str) -> str:
        return key.removeprefix(self._place.location.prefix)

    def _overtaken(self) -> str:
        return (
            f"another run has committed an export to {self._place.uri} since this one began; "
            "that one stays. Give each model a location of its own, or run this one again"
        )

    def _reason(self, exc: BaseException) -> str:
        doing = f"committing {self._place.uri}"
        if isinstance(exc, AwsFailure):
            return describe(exc, doing, "s3:PutObject")
        return f"{doing} failed: {exc}"


def _named_by(manifest: bytes | None) -> dict[str, str]:
    """The URIs of a manifest's files, each with its SHA-256."""
    entries = json.loads(manifest)["entries"] if manifest else ()
    return {entry["url"]: entry["meta"]["sha256"] for entry in entries}
