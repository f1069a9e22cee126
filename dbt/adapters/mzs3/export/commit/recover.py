"""Ending the commit that a run before this one has left half-way."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.mzs3.aws.failures import AwsFailure, describe
from dbt.adapters.mzs3.errors import CopyError, LocationError, S3Error
from dbt.adapters.mzs3.export.commit.intent import (
    COMMITTING,
    ChangedError,
    CommitError,
    StaleFilesError,
    UnansweredError,
    read_intent,
)
from dbt.adapters.mzs3.export.commit.manifest import MANIFEST
from dbt.adapters.mzs3.export.commit.protocol import Commit
from dbt.adapters.mzs3.objects.prefix import Place
from dbt.adapters.mzs3.upload.names import NO_NAMES, UsedNames

# Each time, another run has brought the commit forward.
_TIMES = 20


@dataclass(frozen=True)
class Recovered:
    """What a location has from runs before: names not to be used, and a commit ended just now.

    `finished` says in words which export is visible now, if one is.
    """

    used: UsedNames = NO_NAMES
    finished: str | None = None


def recover(place: Place, *, deletes: bool) -> Recovered:
    """End the commit that a run before this one left half-way at the location, if there is one.

    Forward if that is possible, else back. Raises CopyError if neither could be done, S3Error if
    the location can't be listed, LocationError if other runs keep committing there.
    """
    try:
        there = place.find(place.key(COMMITTING))
    except AwsFailure as exc:
        raise S3Error(describe(exc, f"listing {place.uri}", "s3:ListBucket")) from exc
    if there is None:
        return Recovered()
    finished: str | None = None
    for _ in range(_TIMES):
        try:
            version = read_intent(place)
            if version is None:
                return Recovered(finished=finished)
            if version.intent.state == "closed":
                return Recovered(version.intent.used, finished)
            commit = Commit.found(place, version, deletes=deletes)
            if commit.recover():
                rows = commit.pending.manifest["meta"]["record_count"]
                finished = (
                    f"an earlier run was cut off while it committed to {place.uri}; its export "
                    f"has been completed now: {rows} rows, {place.uri}{MANIFEST}"
                )
        except ChangedError:
            continue
        except StaleFilesError as exc:
            raise CopyError(
                f"an earlier run's export to {place.uri} is whole, but it could not remove all of "
                f"the one before it, nor could this one, which has exported nothing: {exc}"
            ) from exc
        except CommitError as exc:
            listed = "".join(f"\n  - {problem}" for problem in exc.remains)
            raise CopyError(
                f"what an earlier run left at {place.uri} could not be removed:{listed}\nThe next "
                "run to this location tries again"
            ) from exc
        except (UnansweredError, *AwsFailure) as exc:
            cause = exc.cause if isinstance(exc, UnansweredError) else exc
            doing = f"finishing the interrupted commit at {place.uri}"
            raise CopyError(describe(cause, doing, "s3:GetObject and s3:PutObject")) from exc
        except ValueError as exc:
            raise CopyError(
                f"{place.uri}{COMMITTING} is not what an export to this location writes ({exc}). "
                "Use the version of dbt-mzs3, and the name of the bucket, that wrote it; remove "
                "it only if nothing has"
            ) from exc
    raise LocationError(
        f"other runs are committing to {place.uri} at this moment; give each model, and each "
        "run, a location of its own"
    )
