"""Proves that a location is writable, before any data moves."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from dbt.adapters.mzs3.errors import S3Error
from dbt.adapters.mzs3.store.failures import StoreError, describe, explained
from dbt.adapters.mzs3.store.prefix import Prefix, abort_all, probe_name
from dbt.adapters.mzs3.store.store import BegunUpload


@contextlib.contextmanager
def prove_writing(prefix: Prefix) -> Iterator[str]:
    """Opens an upload with one part for as long as the block runs, and aborts it; its id.

    Raises S3Error, which names the missing permission.
    """
    key = prefix.key(probe_name())
    with explained(f"opening an upload at {prefix.uri}", prefix.permissions):
        # With the properties of files: a KMS key or an ACL that denies them fails here.
        begun = prefix.store.open_upload(key, prefix.properties)
    try:
        # A bucket may accept the upload and refuse its parts.
        with explained(f"sending a part of an upload at {prefix.uri}", prefix.permissions):
            prefix.store.put_part(key, begun.id, 1, b"\0")
        yield begun.id
    finally:
        _abort(prefix, key, begun)


def _abort(prefix: Prefix, key: str, begun: BegunUpload) -> None:
    try:
        prefix.abort(key, begun.id)
    except StoreError as exc:
        text = describe(exc, f"aborting an upload at {prefix.uri}", "s3:AbortMultipartUpload")
        raise S3Error(
            f"{text}; without it a failed export could not be cleaned up, and the upload "
            f"{begun.id} of {prefix.uri_of(key)} stays open"
        ) from exc
    if not begun.is_only:
        with contextlib.suppress(StoreError):
            abort_all(prefix, prefix.uploads(key))  # of a first request whose answer was lost


def prove_deleting(prefix: Prefix) -> None:
    """Deletes an object that is not there; raises S3Error where that is denied."""
    doing = f"deleting below {prefix.uri}, as on_existing: overwrite has to"
    with explained(doing, "s3:DeleteObject"):
        prefix.delete(prefix.key(probe_name()))
