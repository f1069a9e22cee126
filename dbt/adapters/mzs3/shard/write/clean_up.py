"""What a run that failed has left in S3: aborted and removed, or else told of."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from dbt.adapters.mzs3.aws.failures import AwsFailure
from dbt.adapters.mzs3.aws.location import S3Location
from dbt.adapters.mzs3.errors import Mzs3Error, S3Error, ShardError
from dbt.adapters.mzs3.objects.concurrently import abort_all, map_concurrently
from dbt.adapters.mzs3.objects.prefix import Prefix
from dbt.adapters.mzs3.shard.state.state import BatchFile
from dbt.adapters.mzs3.shard.state.store import StateStore, UnknownWriteError
from dbt.adapters.mzs3.spark.failure import executor_error, explain
from dbt.adapters.mzs3.text import followed_by
from dbt.adapters.mzs3.upload.destination import proof_of_writing
from dbt.adapters.mzs3.upload.pending import PendingFile
from dbt.adapters.mzs3.upload.reaper import UploadReaper


@dataclass
class Opened:
    """The uploads of a run; None while only its tasks know them."""

    files: Sequence[PendingFile] | None = ()


@contextmanager
def cleaned_up(
    prefix: Prefix, folder: str, doing: str, cancelled: threading.Event | None = None
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
            left = left_by_tasks(prefix, folder)
        else:
            left = _left_of_files(prefix, opened.files)
        stopped = cancelled is not None and cancelled.is_set() and executor_error(exc) is None
        ended = "was cancelled" if stopped else f"failed: {explain(exc)}"
        text = followed_by(f"{doing} {ended}", "The shard is what it was")
        raise ShardError(f"{text}. {left}" if left else text) from exc


def _left_of_files(prefix: Prefix, files: Sequence[PendingFile]) -> str | None:
    """Aborts uploads, and removes the objects that they have become; what may be left."""
    problems = abort_all(prefix, [(file.key, file.upload_id) for file in files])
    objects = remove(prefix, [file.key for file in files])
    if objects:
        listed = ", ".join(prefix.uri_of(key) for key in objects)
        problems.append(f"{listed} may be left, which no reader sees and compact_shard removes")
    return "; ".join(problems) or None


def left_by_tasks(prefix: Prefix, folder: str) -> str | None:
    """Aborts what tasks have open, until none opens more; None, or what may be left."""
    below = Prefix(prefix.client, S3Location(prefix.location.bucket, folder))
    try:
        with proof_of_writing(below) as probe:
            return UploadReaper(below, probe, take_over=True).abort_until_idle()
    except S3Error as exc:
        return (
            f"Open uploads may be left below {below.uri}, which cost storage but are not visible: "
            "a lifecycle rule of the bucket that aborts incomplete uploads removes them, and "
            f"compact_shard after a week. Looking for them failed too: {exc}"
        )


@contextmanager
def committing(prefix: Prefix, store: StateStore, files: Sequence[BatchFile]) -> Iterator[None]:
    """Put around the write that makes these files part of the shard: ends well if they are.

    What the block raises is passed on if they are not, or that can't be told. They are then gone,
    but after an UnknownWriteError: what is on its way may name them yet.
    """
    try:
        yield
    except UnknownWriteError:
        if not _has(store, files):
            raise
    except Mzs3Error:
        if not remove_uncommitted(prefix, store, files):
            raise


def remove_uncommitted(prefix: Prefix, store: StateStore, files: Sequence[BatchFile]) -> bool:
    """Whether the batch of these files is or was part of the shard; if not, they are removed.

    To be called when a write was refused. One whose answer is lost may have come through, and
    others may have changed the state since. Where that can't be told, the files stay, and the
    answer is no. Raises nothing, as another error is on its way: what can't be removed stays,
    for `compact_shard` to remove.
    """
    found = _has(store, files)
    if found is False:
        remove(prefix, [prefix.key(file.name) for file in files])
    return bool(found)


def remove(prefix: Prefix, keys: Iterable[str]) -> list[str]:
    """Remove objects as far as S3 lets us; those that may still be there."""

    def one(key: str) -> str | None:
        with contextlib.suppress(*AwsFailure):
            prefix.delete(key)
            return None
        return key

    return [key for key in map_concurrently(keys, one) if key is not None]


def _has(store: StateStore, files: Sequence[BatchFile]) -> bool | None:
    """None where it can't be told."""
    if not files:
        return None
    try:
        found = store.read()
    except Mzs3Error:
        return None
    if found is None:
        return False
    names = {file.name for file in files}
    retired = {file.name for file in found.state.retired}
    return names <= found.state.file_names or names <= retired
