"""Making an export visible: all of its files, or none."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial

from dbt.adapters.mzs3.aws.failures import AwsFailure, describe, error_code, is_missing
from dbt.adapters.mzs3.copy.commit.claim import NO_CONDITIONS_CODES, TAKEN_CODES, Claim
from dbt.adapters.mzs3.copy.commit.complete import complete
from dbt.adapters.mzs3.copy.commit.each import each
from dbt.adapters.mzs3.copy.commit.existing import require_empty
from dbt.adapters.mzs3.copy.commit.manifest import to_json
from dbt.adapters.mzs3.copy.commit.place import MANIFEST, Place
from dbt.adapters.mzs3.copy.commit.take_back import take_back
from dbt.adapters.mzs3.errors import CopyError, LocationError


class CommitError(CopyError):
    """A commit that was refused, with what of it could not be taken back.

    `goes_on` says that its claim stays, for the next run to finish it: then nothing of it is to be
    removed.
    """

    def __init__(self, reason: str, remains: Sequence[str], *, goes_on: bool = False) -> None:
        self.remains = tuple(remains)
        self.goes_on = goes_on
        super().__init__(reason)


class OvertakenError(CopyError):
    """Another run has committed to the location; nothing of this one is to be seen there."""


class StaleFilesError(CopyError):
    """The export is committed and its manifest true, but files of the old one are still there."""


class Commit:
    """The one commit point of an export.

    The location is claimed, with the pending export; every upload is completed; writing
    `_manifest.json` is the commit; what only an older manifest names is deleted after it. A
    refusal before the manifest takes everything back; a crash anywhere in between is finished by
    the next run, which finds the claim.
    """

    def __init__(self, place: Place, claim: Claim) -> None:
        self._place = place
        self._claim = claim
        self._pending = claim.pending

    def run(self, once_claimed: Callable[[], object] = lambda: None) -> None:
        """Everything is visible afterwards; on an exception nothing is, or the error says what.

        `once_claimed` is what must be done while no other run can commit, before it begins.
        Uploads that are still open after an exception are the caller's to abort.
        """
        self._take_claim()
        try:
            self._require_unchanged()
            once_claimed()
            if not self._complete_all():
                raise CopyError(
                    "uploads of this run are gone; another run to this location has aborted them"
                )
            self._write_manifest()
        except LocationError as exc:
            self._release_after(exc)
            raise
        except BaseException as exc:
            if not self._is_committed_after(exc):
                raise
        self._clear_up()

    def roll_forward(self) -> bool:
        """Finish a commit that was cut off; False if it can't be, as uploads of it are gone."""
        if not self._is_written():
            if not self._complete_all():
                return False
            if not self._claim.is_standing():
                return False  # its own run lives, and has turned back
            self._write_manifest()
        self._clear_up()
        return True

    def _take_claim(self) -> None:
        try:
            self._claim.take()
        except LocationError:
            raise
        except Exception as exc:
            left = []
            try:
                self._claim.release_if_ours()  # it may have been written all the same
            except AwsFailure as second:
                doing = f"looking for {self._uri_of_claim()}, which may have been written"
                left = [describe(second, doing, "s3:GetObject and s3:DeleteObject")]
            raise CommitError(self._reason(exc), left) from exc

    def _require_unchanged(self) -> None:
        """Looked at after claiming, so that no other run can have committed in between."""
        if self._pending.replaces is None:
            require_empty(self._place, but_for=self._claim.key)
            return
        manifest = self._place.find(self._place.key(MANIFEST))
        if manifest is None or manifest.etag != self._pending.replaces:
            raise LocationError(self._overtaken())

    def _complete_all(self) -> bool:
        """In parallel; waits for all. False if an upload is gone, else raises what failed."""
        files = self._pending.files
        finish = partial(complete, self._place, instead_of=self._pending.in_place)
        return all(each(files, finish))

    def _is_committed_after(self, exc: BaseException) -> bool:
        """Whether only the answer was lost; else the commit is taken back, and CommitError."""
        if self._pending.replaces is not None:
            try:
                if self._is_written():
                    return True
            except AwsFailure as second:
                doing = f"looking whether {self._place.uri}{MANIFEST} was written"
                left = [
                    f"{describe(second, doing, 's3:GetObject')}; the next run to this location "
                    "finishes the commit"
                ]
                raise CommitError(self._reason(exc), left, goes_on=True) from exc
        taken = take_back(self._place, self._claim)
        if not isinstance(exc, Exception):
            return False
        raise CommitError(self._reason(exc), taken.problems, goes_on=taken.goes_on) from exc

    def _is_written(self) -> bool:
        return self._place.read(MANIFEST) == to_json(self._pending.manifest)

    def _write_manifest(self) -> None:
        """The commit itself: only over the manifest that it was made to replace.

        A run that was taken for dead, and finished by another one, may come back this late.
        """
        body, before = to_json(self._pending.manifest), self._pending.replaces
        condition = {"IfNoneMatch": "*"} if before is None else {"IfMatch": before}
        try:
            self._place.write(MANIFEST, body, **condition)
        except AwsFailure as exc:
            if error_code(exc) in NO_CONDITIONS_CODES:
                self._place.write(MANIFEST, body)
            elif error_code(exc) not in TAKEN_CODES and not is_missing(exc):
                raise
            elif not self._is_written():  # else it was asked for twice
                raise OvertakenError(self._overtaken()) from exc

    def _overtaken(self) -> str:
        return (
            f"another run has committed an export to {self._place.uri} since this one began; "
            "that one stays. Give each model a location of its own, or run this one again"
        )

    def _clear_up(self) -> None:
        """Delete what the new manifest does not name any more, and then the claim."""
        problems = []
        for key, exc in zip(self._pending.stale, self._delete_stale(), strict=True):
            if exc is not None:
                doing = f"removing {self._place.uri_of(key)}"
                problems.append(describe(exc, doing, "s3:DeleteObject"))
        if problems:
            listed = "".join(f"\n  - {problem}" for problem in problems)
            raise StaleFilesError(
                f"{self._place.uri}{MANIFEST} names the new export, whole; but files of the one "
                f"before it are still there, for whoever lists the location:{listed}\nThe next "
                "run to this location tries again to remove them"
            )
        with contextlib.suppress(*AwsFailure):  # beside its manifest, a claim does no harm
            # The next run may have finished this commit, and claimed one of its own.
            self._claim.release_unless_others()

    def _delete_stale(self) -> list[Exception | None]:
        def attempt(key: str) -> Exception | None:
            try:
                self._place.delete(key)
            except AwsFailure as exc:
                return exc
            return None

        return each(self._pending.stale, attempt)

    def _release_after(self, exc: LocationError) -> None:
        try:
            self._claim.release_unless_others()
        except AwsFailure as second:
            doing = f"removing {self._uri_of_claim()}"
            left = [describe(second, doing, "s3:DeleteObject")]
            raise CommitError(str(exc), left) from exc

    def _reason(self, exc: BaseException) -> str:
        doing = f"committing {self._place.uri}"
        if isinstance(exc, AwsFailure):
            return describe(exc, doing, "s3:PutObject")
        return f"{doing} failed: {exc}"

    def _uri_of_claim(self) -> str:
        return self._place.uri_of(self._claim.key)
