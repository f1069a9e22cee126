"""Finishing the commit that an interrupted run left half-way."""

from __future__ import annotations

from dbt.adapters.mzs3.aws.failures import AwsFailure, describe
from dbt.adapters.mzs3.copy.commit.claim import read_claim
from dbt.adapters.mzs3.copy.commit.place import COMMITTING, MANIFEST, Place
from dbt.adapters.mzs3.copy.commit.protocol import Commit
from dbt.adapters.mzs3.copy.commit.take_back import take_back
from dbt.adapters.mzs3.errors import CopyError


def finish_interrupted(place: Place) -> str | None:
    """Finish the commit that a run before this one left half-way at the location, if there is one.

    Completed if it can be, else taken back. Returns what was completed, for the user to read, or
    None. Raises CopyError if neither could be done.
    """
    try:
        if place.find(place.key(COMMITTING)) is None:
            return None
        found = read_claim(place)
        if found is None:  # released since it was listed
            return None
        claim, forward = found
        if forward and Commit(place, claim).roll_forward():
            return (
                f"an earlier run was cut off while it committed to {place.uri}; its export has "
                f"been completed now: {claim.pending.manifest['meta']['record_count']} rows, "
                f"{place.uri}{MANIFEST}"
            )
        problems = take_back(place, claim)
    except AwsFailure as exc:
        doing = f"finishing the interrupted commit at {place.uri}"
        raise CopyError(describe(exc, doing, "s3:GetObject and s3:PutObject")) from exc
    except ValueError as exc:
        raise CopyError(
            f"{place.uri}{COMMITTING} is not what an export writes ({exc}); remove it"
        ) from exc
    if problems:
        listed = "".join(f"\n  - {problem}" for problem in problems)
        raise CopyError(
            f"what an earlier run left at {place.uri} could not be taken back; remove it by "
            f"hand:{listed}"
        )
    return None
