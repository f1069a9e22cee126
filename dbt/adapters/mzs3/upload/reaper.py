"""Aborts the uploads that a failed export, or a lost task attempt, has left open."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from threading import Event

from dbt.adapters.mzs3.errors import S3Error
from dbt.adapters.mzs3.store.failures import StoreError, describe, explained
from dbt.adapters.mzs3.store.prefix import Prefix, abort_all, map_concurrently, probe_name
from dbt.adapters.mzs3.store.store import NewUpload
from dbt.adapters.mzs3.upload.names import is_file_name
from dbt.adapters.mzs3.upload.spec import OpenUpload

# After the tasks of a query that failed or was cancelled have ended: a request of a worker that
# Spark has killed may still arrive, and a worker that got no more rows aborts what it has opened.
_QUIET_S = 2.0
# Spark checks every 2 s whether a task that it could not interrupt has to end, and kills its
# worker 2 s later.
_LOST_QUIET_S = 5.0
_PAUSE_S = 0.5
_MAX_S = 30.0

PROBE_PART = b"\0"
"""The part of the upload of `prove_writing`."""
Claimed = Callable[[Prefix, Collection[str]], frozenset[str]]
"""Returns the ids of uploads that a commit may be about to complete. The collection has the ids
that the caller will keep in any case. Raises UnknownClaimError and StoreError."""


class UnknownClaimError(Exception):
    """A commit has claimed uploads at the location, but the claim can't be read."""


class UploadReaper:
    """Aborts open uploads of an export's files that were opened after this object was created.

    With `take_over`, uploads of interrupted runs are aborted too. `found` has the key and id of
    each upload that was open at the start. Uploads that any run's commit has `claimed` are not
    aborted: of two runs to one location, the one that claims it succeeds.

    Listing uploads is optional for an export: s3:ListBucketMultipartUploads may be missing, and
    some stores do not list uploads, or not by prefix. `probe` is the id of an open upload that
    tests this: if it is not listed, methods abort nothing and return a text about what may be
    left. They do not raise, as they run while another error is handled.
    """

    def __init__(
        self,
        prefix: Prefix,
        probe: str,
        *,
        single_file: str | None = None,
        partition_by: Sequence[str] = (),
        take_over: bool = False,
        claimed: Claimed | None = None,
    ) -> None:
        self._prefix = prefix
        self._claimed = claimed
        self._single_file = single_file
        self._partition_by = tuple(partition_by)
        self._others: frozenset[str] = frozenset()
        self._probes: frozenset[str] = frozenset()
        self.unlisted: str | None = None
        """If open uploads can't be listed, a text that says so and what may be left open."""
        self.found: tuple[tuple[str, str], ...] = ()
        self._attempts_were_lost = False
        try:
            # Some stores list uploads only for the whole bucket.
            for self._of_whole_bucket in (False, True):
                self.found = tuple(self._open())
                if any(upload_id == probe for _, upload_id in self.found):
                    break
            else:
                self.unlisted = self._remains("the store does not list open uploads")
        except StoreError as exc:
            self.found = ()
            self.unlisted = self._remains(exc)
        if take_over:
            # Probes of runs that died in their preflight; probes opened later are of live runs.
            self._probes = frozenset(i for k, i in self.found if prefix.is_probe(k)) - {probe}
        else:
            self._others = frozenset(upload_id for _, upload_id in self.found)

    def is_ours(self, key: str) -> bool:
        """Whether an export to this location could write this key."""
        name = key.removeprefix(self._prefix.location.prefix)
        return is_file_name(name, self._single_file, self._partition_by)

    def abort_after_commit(self, *, speculative: bool) -> str | None:
        """Aborts stale uploads; if tasks that Spark has abandoned may still run, until no upload
        has appeared for some seconds. Returns what `abort_stale` does."""
        may_run = speculative or self._attempts_were_lost
        return self.abort_stale(quiet_s=_LOST_QUIET_S if may_run else None)

    def abort_until_idle(self, running: Callable[[], bool | None]) -> str | None:
        """Aborts stale uploads until tasks that were just cancelled open no more of them.

        `running` returns whether such a task runs, or None if that is unknown: then uploads may be
        left, and the text that is returned says so."""
        return self.abort_stale(quiet_s=_QUIET_S, running=running)

    def abort_stale(
        self,
        keep: Collection[str] = (),
        quiet_s: float | None = None,
        running: Callable[[], bool | None] = lambda: False,
    ) -> str | None:
        """Aborts the uploads that are open now, except the ids in `keep`; with `quiet_s`, until
        there were none, and no tasks `running`, for that many seconds. Returns None, or a text
        about what may be left."""
        if self.unlisted is not None:
            return self.unlisted
        started = quiet_since = time.monotonic()
        pause = Event()
        try:
            while time.monotonic() - started < _MAX_S:
                may_open = running()
                aborted = self._abort_open(keep)
                if quiet_s is None:
                    return None
                if aborted or may_open:
                    quiet_since = time.monotonic()
                elif time.monotonic() - quiet_since >= quiet_s:
                    if may_open is None:
                        break
                    return None
                pause.wait(_PAUSE_S)
        except (UnknownClaimError, StoreError) as exc:
            return self._remains(exc)
        return self._remains(
            "Spark does not tell whether all tasks that opened uploads have ended"
            if may_open is None
            else f"tasks still ran, or opened uploads, after {_MAX_S:.0f} s"
        )

    def _abort_open(self, keep: Collection[str]) -> bool:
        """Aborts the uploads that are open now; returns whether there were any."""
        found = [
            (key, upload_id)
            for key, upload_id in self._open()
            if upload_id not in self._others and upload_id not in keep
            if self.is_ours(key) or upload_id in self._probes
        ]
        # Claims are read after uploads are listed: this can't miss the claim of a listed upload,
        # unless the commit has ended, and then the upload is no longer open.
        if found and self._claimed is not None:
            claimed = self._claimed(self._prefix, keep)
            found = [upload for upload in found if upload[1] not in claimed]
        before = {upload_id for _, upload_id in self.found}
        self._attempts_were_lost |= any(upload_id not in before for _, upload_id in found)
        map_concurrently(found, lambda upload: self._prefix.abort(*upload))
        return bool(found)

    def _open(self) -> Iterator[tuple[str, str]]:
        return self._prefix.uploads(of_whole_bucket=self._of_whole_bucket)

    def _remains(self, reason: str | Exception) -> str:
        if isinstance(reason, StoreError):
            permissions = "s3:ListBucketMultipartUploads and s3:AbortMultipartUpload"
            reason = describe(reason, "looking for open uploads to abort", permissions)
        bucket, prefix = self._prefix.location.bucket, self._prefix.location.prefix
        return (
            f"{reason}. Open uploads may be left, which cost storage but are not visible: "
            f"`aws s3api list-multipart-uploads --bucket {bucket} --prefix {prefix}` shows them, "
            "`aws s3api abort-multipart-upload` removes them"
        )


@contextlib.contextmanager
def prove_writing(prefix: Prefix) -> Iterator[OpenUpload]:
    """Checks that files can be written: opens an upload with PROBE_PART, yields it, and aborts it
    at the end of the block. Raises S3Error, which names the missing permission."""
    key = prefix.key(probe_name())
    with explained(f"opening an upload at {prefix.uri}", prefix.permissions):
        # With the encryption, tags and ACL of files: if their permissions are missing, this fails.
        upload = prefix.store.open_upload(key, prefix.properties)
    try:
        # A bucket may accept the upload and refuse its parts.
        with explained(f"sending a part of an upload at {prefix.uri}", prefix.permissions):
            etag = prefix.store.put_part(key, upload.id, 1, PROBE_PART)
        yield OpenUpload(upload.id, {1: (etag, len(PROBE_PART))})
    finally:
        _abort_probe(prefix, key, upload)


def _abort_probe(prefix: Prefix, key: str, upload: NewUpload) -> None:
    try:
        prefix.abort(key, upload.id)
    except StoreError as exc:
        text = describe(exc, f"aborting an upload at {prefix.uri}", "s3:AbortMultipartUpload")
        raise S3Error(
            f"{text}; without it a failed export could not be cleaned up, and the upload "
            f"{upload.id} of {prefix.uri_of(key)} stays open"
        ) from exc
    if not upload.is_sole_upload:
        with contextlib.suppress(StoreError):
            abort_all(prefix, prefix.uploads(key))  # of an attempt whose response was lost
