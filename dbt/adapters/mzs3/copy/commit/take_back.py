"""Undoing a commit that was refused half-way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from dbt.adapters.mzs3.aws.failures import AwsFailure, describe, is_missing
from dbt.adapters.mzs3.copy.commit.abort import abort_all
from dbt.adapters.mzs3.copy.commit.claim import Claim
from dbt.adapters.mzs3.copy.commit.place import MANIFEST, Place


@dataclass(frozen=True)
class TakenBack:
    """What could not be taken back, and why; `goes_on`: nothing was, the claim stands."""

    problems: list[str]
    goes_on: bool = False


def take_back(place: Place, claim: Claim) -> TakenBack:
    """Abort what is open, delete what has become visible.

    An older export's files and manifest are not touched, nor anything of a run that has finished
    this commit in the meantime, or has claimed the location since. A file that has replaced an
    older one of its name can't be taken back; then the claim stays, for the next run to go on.
    """
    pending = claim.pending
    uploads = [(file.key, file.upload_id) for file in pending.files]
    if claim.is_others():
        return TakenBack(abort_all(place, uploads))
    if pending.in_place is not None and _is_replaced(place, claim):
        file = place.uri_of(pending.files[0].key)
        text = (
            f"{file} is the new file already; its manifest, {place.uri}{MANIFEST}, is the old one"
        )
        return TakenBack([text], goes_on=True)
    problems: list[str] = []

    def attempt(action: Callable[[], object], doing: str, permission: str) -> None:
        try:
            action()
        except AwsFailure as exc:
            if not is_missing(exc):
                problems.append(describe(exc, doing, permission))

    attempt(claim.turn_back, "marking the commit as taken back", "s3:PutObject")
    problems += abort_all(place, uploads)
    visible: list[str] = []
    attempt(
        lambda: visible.extend(_visible(place, claim)), f"listing {place.uri}", "s3:ListBucket"
    )
    for key in visible:
        attempt(partial(place.delete, key), f"removing {place.uri_of(key)}", "s3:DeleteObject")
    return TakenBack(problems)


def _visible(place: Place, claim: Claim) -> list[str]:
    """The keys of this export that are objects now: the manifest first, the claim last."""
    pending = claim.pending
    there = {found.key for found in place.objects()}
    manifest = [place.key(MANIFEST)] if pending.replaces is None else []
    files = [] if pending.in_place is not None else [file.key for file in pending.files]
    return [key for key in [*manifest, *files, claim.key] if key in there]


def _is_replaced(place: Place, claim: Claim) -> bool:
    """Whether the one file has replaced the older one; else it can't any more, afterwards."""
    [file] = claim.pending.files
    try:
        place.abort(file.key, file.upload_id)
    except AwsFailure as exc:
        if not is_missing(exc):
            return True  # it may still do so
    found = place.find(file.key)
    return found is not None and found.etag != claim.pending.in_place
