"""Undoing a commit that was refused half-way."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from dbt.adapters.mzs3.aws.failures import AwsFailure, describe, is_missing
from dbt.adapters.mzs3.copy.commit.claim import Claim
from dbt.adapters.mzs3.copy.commit.place import MANIFEST, Place


def take_back(place: Place, claim: Claim) -> list[str]:
    """Abort what is open, delete what has become visible; what could not be, and why.

    An older export's files and manifest are not touched. A file that has replaced an older one
    of its name can't be taken back; then the claim stays, for the next run to go forward.
    """
    pending = claim.pending
    if pending.in_place is not None and not _abort_in_place(place, claim):
        return [
            f"{place.uri_of(pending.files[0].key)} is the new file already, and the claim "
            f"{place.uri_of(claim.key)} stays: the next run to this location writes its manifest"
        ]
    problems: list[str] = []

    def attempt(action: Callable[[], object], doing: str, permission: str) -> None:
        try:
            action()
        except AwsFailure as exc:
            if not is_missing(exc):
                problems.append(describe(exc, doing, permission))

    attempt(claim.turn_back, "marking the commit as taken back", "s3:PutObject")
    for file in pending.files:
        attempt(
            partial(place.abort, file.key, file.upload_id),
            f"aborting the upload of {place.uri_of(file.key)}",
            "s3:AbortMultipartUpload",
        )
    visible: list[str] = []
    attempt(
        lambda: visible.extend(_visible(place, claim)), f"listing {place.uri}", "s3:ListBucket"
    )
    for key in visible:
        attempt(partial(place.delete, key), f"removing {place.uri_of(key)}", "s3:DeleteObject")
    return problems


def _visible(place: Place, claim: Claim) -> list[str]:
    """The keys of this export that are objects now: the manifest first, the claim last."""
    pending = claim.pending
    there = {found.key for found in place.objects()}
    manifest = [place.key(MANIFEST)] if pending.replaces is None else []
    files = [] if pending.in_place is not None else [file.key for file in pending.files]
    return [key for key in [*manifest, *files, claim.key] if key in there]


def _abort_in_place(place: Place, claim: Claim) -> bool:
    """Whether no file has replaced an older one yet, and none can any more."""
    try:
        for file in claim.pending.files:
            place.abort(file.key, file.upload_id)
    except AwsFailure:
        return False
    return True
