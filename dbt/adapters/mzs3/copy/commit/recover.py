"""Finishing the commit that an interrupted run left half-way."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.mzs3.aws.failures import AwsFailure, describe
from dbt.adapters.mzs3.copy.commit.claim import read_claim
from dbt.adapters.mzs3.copy.commit.place import COMMITTING, MANIFEST, Place
from dbt.adapters.mzs3.copy.commit.protocol import Commit
from dbt.adapters.mzs3.copy.commit.take_back import take_back
from dbt.adapters.mzs3.errors import CopyError, S3Error


@dataclass(frozen=True)
class Finished:
    """A commit that has been completed: in words, and the names its own run may still delete.

    A claim does not tell whether the run that wrote it is dead, or slow and about to go on.
    """

    text: str
    stale: tuple[str, ...]


def finish_interrupted(place: Place) -> Finished | None:
    """Finish the commit that a run before this one left half-way at the location, if there is one.

    Completed if it can be, else taken back. Returns what was completed, or None. Raises CopyError
    if neither could be done, S3Error if the location can't be listed.
    """
    try:
        there = place.find(place.key(COMMITTING))
    except AwsFailure as exc:
        raise S3Error(describe(exc, f"listing {place.uri}", "s3:ListBucket")) from exc
    if there is None:
        return None
    try:
        found = read_claim(place)
        if found is None:  # released since it was listed
            return None
        claim, forward = found
        if forward and Commit(place, claim).roll_forward():
            text = (
                f"an earlier run was cut off while it committed to {place.uri}; its export has "
                f"been completed now: {claim.pending.manifest['meta']['record_count']} rows, "
                f"{place.uri}{MANIFEST}"
            )
            prefix = place.location.prefix
            return Finished(text, tuple(k.removeprefix(prefix) for k in claim.pending.stale))
        taken = take_back(place, claim)
    except AwsFailure as exc:
        doing = f"finishing the interrupted commit at {place.uri}"
        raise CopyError(describe(exc, doing, "s3:GetObject and s3:PutObject")) from exc
    except ValueError as exc:
        raise CopyError(
            f"{place.uri}{COMMITTING} is not what an export writes ({exc}); remove it"
        ) from exc
    if taken.problems:
        listed = "".join(f"\n  - {problem}" for problem in taken.problems)
        raise CopyError(
            f"what an earlier run left at {place.uri} could not be taken back; remove it by "
            f"hand:{listed}"
        )
    return None
