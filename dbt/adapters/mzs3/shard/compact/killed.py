"""Uploads that killed runs left open: not visible, but stored."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.mzs3.aws.clock import s3_now
from dbt.adapters.mzs3.aws.failures import AwsFailure, describe
from dbt.adapters.mzs3.objects.abort import abort_all
from dbt.adapters.mzs3.objects.prefix import Place
from dbt.adapters.mzs3.shard.write.spec import BATCHES

# Of a run that is not killed, no upload is open for a week.
LONGEST_UPLOAD_MS = 7 * 24 * 60 * 60 * 1000


@dataclass(frozen=True)
class Aborted:
    """How many uploads are gone, and what could not be done."""

    uploads: int = 0
    problems: tuple[str, ...] = ()


def abort_killed(place: Place, keep_ms: int) -> Aborted:
    """Abort uploads of batches that were begun `keep_ms` ago, and too long for a run to go on.

    A compaction can do without: what fails is told, not raised.
    """
    try:
        oldest = s3_now(place.client, place.location) - max(keep_ms, LONGEST_UPLOAD_MS)
        old = list(place.uploads(place.key(BATCHES), begun_by=oldest))
    except AwsFailure as exc:
        doing = f"looking for uploads that killed runs left open below {place.uri}"
        return Aborted(0, (describe(exc, doing, "s3:ListBucketMultipartUploads"),))
    problems = abort_all(place, old)
    return Aborted(len(old) - len(problems), tuple(problems))
