"""The S3 requests of a commit; `protocol.py` decides which of them to send, and when."""

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
    """The requests of a commit. Each method is idempotent: a run that takes over can repeat it."""

    def __init__(self, prefix: Prefix, pending: PendingExport) -> None:
        self._prefix = prefix
        self.pending = pending
        self.unproven: tuple[str, ...] = ()
        """The keys of objects that `delete_visible` keeps, as they may be another writer's."""
        self.refusal: str | None = None
        """For users: why an upload can never be completed."""
        self._refused_key: str | None = None  # the file's key, if another object has it
        self.known = KnownEtags(pending.in_place, is_amazon_s3=prefix.store.is_amazon_s3)
        self._taken_keys: set[str] = set()

    def names(self, keys: Iterable[str] | None = None) -> list[str]:
        """The keys relative to the location; by default, those of all files."""
        keys = (file.key for file in self.pending.files) if keys is None else keys
        return [key.removeprefix(self._prefix.location.prefix) for key in keys]

    def require_unchanged(self) -> None:
        """Raises LocationError if the location has changed since the run began.

        Called after claiming the location, so that no other run can commit after this check.
        """
        if self.pending.replaces is None:
            ours = {self._prefix.key(COMMITTING), *(file.key for file in self.pending.files)}
            require_empty(self._prefix, ignoring=ours)
        elif not self.can_still_be_visible():
            raise LocationError(self.overtaken_text())

    def require_free(self) -> None:
        """Raises LocationError if there is an object with the name of one of the files.

        Called before the claim. Until then, no run completes our uploads: the object is not ours.
        """
        if self.pending.in_place is not None:
            return
        mine = {file.key for file in self.pending.files}
        for found in self._prefix.objects():
            if found.key in mine:
                self.require_unchanged()  # its error is more precise if another run has committed
                raise TakenError(self._prefix, found.key)

    def can_still_be_visible(self) -> bool:
        """Whether the manifest has not changed since the run began, so ours can replace it."""
        return self._prefix.etag(self._prefix.key(MANIFEST)) == self.pending.replaces

    def complete_all(self) -> bool:
        """Completes all uploads in parallel, as `complete` does; returns False if any is gone."""
        return all(map_concurrently(self.pending.files, self._complete))

    def _complete(self, file: PendingFile) -> bool:
        try:
            return complete(self._prefix, file, known=self.known) is not None
        except TakenError:
            self._taken_keys.add(file.key)
            raise

    @property
    def has_completed_all(self) -> bool:
        """Whether this run has completed each upload, and has received the ETag of the object."""
        return all(file.key in self.known.by_key for file in self.pending.files)

    def complete_or_abort_all(self) -> bool:
        """While another run may do the same: completes the uploads, or aborts those that S3
        refuses to complete. Returns whether all files are there."""
        return all(map_concurrently(self.pending.files, self._complete_or_abort))

    def _complete_or_abort(self, file: PendingFile) -> bool:
        """Completes the upload, or aborts it; returns whether the file is there.

        If S3 refuses to complete an upload that no other run has completed, it is aborted: left
        open, it would keep later runs from using the location. If another object has the file's
        name, the upload stays open: that proves to all runs that the object is not the file.
        """
        try:
            return self._complete(file)
        except TakenError as exc:
            self.refusal, self._refused_key = str(exc), exc.key
            return False
        except StoreError as exc:
            # Of the requests in `_complete`, only this one changes the upload; the others read.
            is_completion = exc.operation == "CompleteMultipartUpload"
            if not is_completion or not exc.is_certain_refusal:
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
            # The other run may have completed the upload after `find_file`.
            _, verdict = find_file(self._prefix, file, self.known)
        return verdict is not False

    def is_visible(self) -> bool:
        """Whether the manifest is this commit's, or a later one that names some of its files.

        Compares the commit's id: other runs may write the same bytes under the same names.
        """
        return self._is_of_this(self._prefix.read(MANIFEST))

    def _is_of_this(self, content: bytes | None) -> bool:
        mine, manifest = self.pending.manifest["run_id"], parse_manifest(content)
        return manifest.get("run_id") == mine or mine in named_files(manifest).values()

    def write_manifest(self) -> bool:
        """Makes the export visible: writes the manifest, if the one to replace has not changed.

        Returns False if the location has another manifest. Then this run was taken for dead, and
        another run finished its commit.
        """
        body, before = to_json(self.pending.manifest), self.pending.replaces
        write = partial(self._prefix.write, MANIFEST, body)
        try:
            on_condition(write, if_absent=before is None, if_version=before)
        except (PreconditionFailedError, ConflictError, MissingError):
            # After a retry, the manifest there may be from our own first attempt.
            content, etag = self._prefix.read_version(MANIFEST) or (None, None)
            if self._is_of_this(content):
                return True
            if etag == before:
                raise  # the manifest has not changed: the write conflicted with another request
            return False
        return True

    def delete_stale(self) -> None:
        """Deletes files that only the old manifest names; raises StaleFilesError if any remain."""
        try:
            problems = self._stale_problems()
        except Exception as exc:  # noqa: BLE001 - the export is visible already
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

    def abort(self, *, keep_taken: bool = False) -> list[str]:
        """Aborts all uploads; returns a line for each that could not be aborted.

        With `keep_taken`, an upload stays open if another object has its file's name: the open
        upload proves to other runs that the object is not the file.
        """
        files = [f for f in self.pending.files if not (keep_taken and f.key in self._taken_keys)]
        return abort_all(self._prefix, [(f.key, f.upload_id) for f in files])

    def delete_visible(self) -> list[str]:
        """Deletes the commit's completed files, if their ETags prove what they are; returns a line
        for each that could not be deleted."""
        try:
            # A run that began at the same time may have committed files of the same names.
            named = self._visible_keys()
            files = {file.key: file for file in self.pending.files if file.key not in named}
            objects = [found for found in self._prefix.objects() if found.key in files]
        except StoreError as exc:
            doing = f"reading {self._prefix.uri}"
            return [describe(exc, doing, "s3:ListBucket and s3:GetObject")]
        objects = [found for found in objects if found.size == files[found.key].bytes]
        ours = [found.key for found in objects if is_file(found, files[found.key], self.known)]
        self.unproven = tuple(found.key for found in objects if found.key not in ours)
        return delete_all(self._prefix, ours)

    def other_unproven_uris(self, exc: BaseException) -> list[str]:
        """The URIs of `unproven` objects, except the one that the error names."""
        named = exc.key if isinstance(exc, TakenError) else self._refused_key
        return [self._prefix.uri_of(key) for key in self.unproven if key != named]

    def overtaken_text(self) -> str:
        """The text of the error if another run has committed to the location first."""
        return (
            f"another run has committed an export to {self._prefix.uri} since this one began, or "
            "something has removed the manifest; what is there stays. Give each model a location "
            "of its own, or run this one again"
        )
