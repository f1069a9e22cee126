"""The requests to S3 that a commit consists of; `protocol.py` decides which to send."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from dbt.adapters.mzs3.errors import CopyError, LocationError
from dbt.adapters.mzs3.export.commit.existing import require_empty
from dbt.adapters.mzs3.export.commit.failures import StaleFilesError
from dbt.adapters.mzs3.export.commit.intent import COMMITTING, PendingExport
from dbt.adapters.mzs3.export.commit.manifest import (
    MANIFEST,
    named_files,
    parse_manifest,
    to_json,
)
from dbt.adapters.mzs3.store.failures import (
    ConflictError,
    MissingError,
    PreconditionFailedError,
    StoreError,
    describe,
    on_condition,
)
from dbt.adapters.mzs3.store.prefix import Prefix, abort_all, delete_all, map_concurrently
from dbt.adapters.mzs3.text import bulleted
from dbt.adapters.mzs3.upload.pending import (
    KnownEtags,
    PendingFile,
    TakenError,
    complete,
    find_file,
    is_file,
)


class Effects:
    """Each method is idempotent: any run that goes on with the commit can call it again."""

    def __init__(self, prefix: Prefix, pending: PendingExport) -> None:
        self._prefix = prefix
        self.pending = pending
        self.unproven: tuple[str, ...] = ()
        """The keys of objects that `delete_visible` could not prove to be this commit's."""
        self.refusal: str | None = None
        """Why an upload could not be completed, and never will be."""
        self._refused_key: str | None = None  # the key that the refusal is about
        self.known = KnownEtags(prefix.store.traits, pending.in_place)
        self._taken_keys: set[str] = set()

    def names(self, keys: Iterable[str] | None = None) -> list[str]:
        """The names of keys, by default of all files, relative to the location."""
        keys = (file.key for file in self.pending.files) if keys is None else keys
        return [key.removeprefix(self._prefix.location.prefix) for key in keys]

    def require_unchanged(self) -> None:
        """Raises LocationError unless the location is as it was when the run began.

        Called after claiming it, so that no other run can have committed in between.
        """
        if self.pending.replaces is None:
            ours = {self._prefix.key(COMMITTING), *(file.key for file in self.pending.files)}
            require_empty(self._prefix, ignoring=ours)
        elif not self.can_still_be_visible():
            raise LocationError(self.overtaken_text())

    def require_free(self) -> None:
        """Raises LocationError if there is an object with the name of one of the files.

        Called before claiming the location: until then nobody can have completed the uploads.
        """
        if self.pending.in_place is not None:
            return
        mine = {file.key for file in self.pending.files}
        for found in self._prefix.objects():
            if found.key in mine:
                self.require_unchanged()  # says more where another run has committed
                raise TakenError(self._prefix, found.key)

    def can_still_be_visible(self) -> bool:
        """Whether the manifest is what it was when the run began."""
        return self._prefix.etag(self._prefix.key(MANIFEST)) == self.pending.replaces

    def complete_all(self) -> bool:
        """Complete the uploads in parallel; False if one is gone. Raises what S3 says."""
        return all(map_concurrently(self.pending.files, self._complete))

    def _complete(self, file: PendingFile) -> bool:
        try:
            return complete(self._prefix, file, known=self.known) is not None
        except TakenError:
            self._taken_keys.add(file.key)
            raise

    @property
    def has_completed_all(self) -> bool:
        """Whether S3 has confirmed to this run that each upload is completed."""
        return all(file.key in self.known.by_key for file in self.pending.files)

    def complete_or_abort_all(self) -> bool:
        """As `complete_all`, for another run's commit; aborts what S3 refuses to complete."""
        return all(map_concurrently(self.pending.files, self._complete_or_abort))

    def _complete_or_abort(self, file: PendingFile) -> bool:
        """Complete the upload, or abort it for good; whether the file is there.

        An upload that S3 refuses to complete is aborted, or no later run could use the location.
        But the other run may have completed it, and be about to write the manifest. One whose name
        is taken stays open until that is decided: by what is open, both know whose the object is.
        """
        try:
            return self._complete(file)
        except TakenError as exc:
            self.refusal, self._refused_key = str(exc), exc.key
            return False
        except StoreError as exc:
            # Of the requests in there, only this one changes the upload; the others read.
            is_of_upload = exc.operation == "CompleteMultipartUpload"
            if not is_of_upload or not exc.is_certain_refusal:
                raise
            doing = f"completing the upload of {self._prefix.uri_of(file.key)}"
            self.refusal, self._refused_key = describe(exc, doing, self._prefix.permissions), None
        found, verdict = find_file(self._prefix, file, self.known)
        if found is None or found.etag == self.pending.in_place:
            try:
                self._prefix.abort(file.key, file.upload_id)
            except StoreError as exc:
                aborting = describe(exc, "aborting it", exc.permission)
                raise CopyError(f"{self.refusal}; {aborting}") from exc
            # The other run may have come in between.
            _, verdict = find_file(self._prefix, file, self.known)
        return verdict is not False

    def is_visible(self) -> bool:
        """Whether the manifest is this commit's, or a later one that keeps some of its files.

        Decided by the commit's id: other runs may write the same bytes under the same names.
        """
        return self._is_of_this(self._prefix.read(MANIFEST))

    def _is_of_this(self, content: bytes | None) -> bool:
        mine, manifest = self.pending.manifest["run_id"], parse_manifest(content)
        return manifest.get("run_id") == mine or mine in named_files(manifest).values()

    def write_manifest(self) -> bool:
        """Write the manifest, by compare-and-set over the one that it replaces.

        This is what readers see. False if another one is there: a run that was taken for dead,
        and whose commit another one has finished, may come back this late.
        """
        body, before = to_json(self.pending.manifest), self.pending.replaces
        write = partial(self._prefix.write, MANIFEST, body)
        try:
            on_condition(write, if_absent=before is None, if_version=before)
        except (PreconditionFailedError, ConflictError, MissingError):
            # It may be this commit's after all: boto3 may have sent it twice.
            content, etag = self._prefix.read_version(MANIFEST) or (None, None)
            if self._is_of_this(content):
                return True
            if etag == before:
                raise  # it could still be replaced: another request was faster
            return False
        return True

    def delete_stale(self) -> None:
        """Delete what only the old manifest names; raises StaleFilesError if some can't be."""
        try:
            problems = self._stale_problems()
        except Exception as exc:  # noqa: BLE001 - whatever it is, the export is visible
            problems = [f"removing them failed: {exc}"]
        if problems:
            raise StaleFilesError(
                f"{self._prefix.uri}{MANIFEST} names the new export, whole; but files of the one "
                "before it are still there, for whoever lists the location:"
                f"{bulleted(problems)}\nThe next run to this location tries again to remove them"
            )

    def _stale_problems(self) -> list[str]:
        if not self.pending.stale:
            return []
        try:
            named = self._visible_keys()
        except StoreError as exc:
            return [describe(exc, f"reading {self._prefix.uri}{MANIFEST}", "s3:GetObject")]
        return delete_all(self._prefix, [key for key in self.pending.stale if key not in named])

    def _visible_keys(self) -> Iterable[str]:
        """The keys of the files that the manifest names now."""
        return named_files(parse_manifest(self._prefix.read(MANIFEST))).keys()

    def abort(self, *, but_taken: bool = False) -> list[str]:
        """Abort every upload; returns what could not be, and why.

        `but_taken` leaves those open whose names are taken: so others know whose the object is.
        """
        files = [f for f in self.pending.files if not (but_taken and f.key in self._taken_keys)]
        return abort_all(self._prefix, [(f.key, f.upload_id) for f in files])

    def delete_visible(self) -> list[str]:
        """Delete visible files that surely are ours; returns what could not be, and why."""
        try:
            # Of runs that began at one time, another may have committed files of these names.
            named = self._visible_keys()
            files = {file.key: file for file in self.pending.files if file.key not in named}
            visible = [found for found in self._prefix.objects() if found.key in files]
        except StoreError as exc:
            doing = f"reading {self._prefix.uri}"
            return [describe(exc, doing, "s3:ListBucket and s3:GetObject")]
        visible = [found for found in visible if found.size == files[found.key].bytes]
        ours = [found.key for found in visible if is_file(found, files[found.key], self.known)]
        self.unproven = tuple(found.key for found in visible if found.key not in ours)
        return delete_all(self._prefix, ours)

    def unproven_beside(self, exc: BaseException) -> list[str]:
        """The URIs of unproven objects, without the one that the error names."""
        named = exc.key if isinstance(exc, TakenError) else self._refused_key
        return [self._prefix.uri_of(key) for key in self.unproven if key != named]

    def overtaken_text(self) -> str:
        """The error of a run whose location another run has committed to first."""
        return (
            f"another run has committed an export to {self._prefix.uri} since this one began, or "
            "something has removed the manifest; what is there stays. Give each model a location "
            "of its own, or run this one again"
        )
