"""What a run that failed has left in S3: aborted and removed, or else told of."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from dbt.adapters.mzs3.aws.location import S3Location
from dbt.adapters.mzs3.errors import S3Error, ShardError
from dbt.adapters.mzs3.objects.abort import abort_all
from dbt.adapters.mzs3.objects.prefix import Place
from dbt.adapters.mzs3.shard.write.commit import remove
from dbt.adapters.mzs3.spark.failure import executor_error, explain
from dbt.adapters.mzs3.text import followed_by
from dbt.adapters.mzs3.upload.destination import proof_of_writing
from dbt.adapters.mzs3.upload.pending import PendingFile
from dbt.adapters.mzs3.upload.sweep import Sweeper


@dataclass
class Opened:
    """The uploads of a run; None while only its tasks know them."""

    files: Sequence[PendingFile] | None = ()


@contextmanager
def cleaned_up(
    place: Place, folder: str, doing: str, cancelled: threading.Event | None = None
) -> Iterator[Opened]:
    """Put around the writing of a batch: of a failure nothing is left in the run's own folder.

    `folder` is the prefix of the batch's keys. The block says when tasks begin with uploads, and
    which there are once it knows them. Raises ShardError with what `doing` failed of and, where
    cleaning up failed too, what is left.
    """
    opened = Opened()
    try:
        yield opened
    except Exception as exc:
        if opened.files is None:
            left = left_by_tasks(place, folder)
        else:
            left = _left_of_files(place, opened.files)
        stopped = cancelled is not None and cancelled.is_set() and executor_error(exc) is None
        ended = "was cancelled" if stopped else f"failed: {explain(exc)}"
        text = followed_by(f"{doing} {ended}", "The shard is what it was")
        raise ShardError(f"{text}. {left}" if left else text) from exc


def _left_of_files(place: Place, files: Sequence[PendingFile]) -> str | None:
    """Aborts uploads, and removes the objects that they have become; what may be left."""
    problems = abort_all(place, [(file.key, file.upload_id) for file in files])
    objects = remove(place, [file.key for file in files])
    if objects:
        listed = ", ".join(place.uri_of(key) for key in objects)
        problems.append(f"{listed} may be left, which no reader sees and compact_shard removes")
    return "; ".join(problems) or None


def left_by_tasks(place: Place, folder: str) -> str | None:
    """Aborts what tasks have open, until none opens more; None, or what may be left."""
    below = Place(place.client, S3Location(place.location.bucket, folder))
    try:
        with proof_of_writing(below) as probe:
            return Sweeper(below, probe, take_over=True).sweep_until_quiet()
    except S3Error as exc:
        return (
            f"Open uploads may be left below {below.uri}, which cost storage but are not visible: "
            "a lifecycle rule of the bucket that aborts incomplete uploads removes them, and "
            f"compact_shard after a week. Looking for them failed too: {exc}"
        )
