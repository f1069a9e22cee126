"""Writes and commits one batch of a shard; after a failure, deletes its files and uploads."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.mzs3.errors import Mzs3Error, S3Error, ShardError
from dbt.adapters.mzs3.formats.write.format import ExportedColumn
from dbt.adapters.mzs3.options.groups import UploadSizes
from dbt.adapters.mzs3.rows.batches import Assumptions, RestartReason, sends_native_batches
from dbt.adapters.mzs3.shard.batch.write import BatchFormat, BatchLayout
from dbt.adapters.mzs3.shard.options import SIZES
from dbt.adapters.mzs3.shard.state.state import BatchFile, ShardBatch
from dbt.adapters.mzs3.shard.state.store import StateStore, UnknownWriteError
from dbt.adapters.mzs3.shard.types import Column
from dbt.adapters.mzs3.spark import engine
from dbt.adapters.mzs3.spark.failure import executor_error, explain
from dbt.adapters.mzs3.spark.frames import speculates
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.failures import explained
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.prefix import Prefix, abort_all, delete_many, map_concurrently
from dbt.adapters.mzs3.text import followed_by
from dbt.adapters.mzs3.upload.job import PlannedRows, upload_parts
from dbt.adapters.mzs3.upload.pending import KnownEtags, PendingFile, TakenError, complete
from dbt.adapters.mzs3.upload.reaper import UploadReaper, prove_writing
from dbt.adapters.mzs3.upload.spec import WriteSpec

BATCHES = "batches/"


@dataclass(frozen=True)
class BatchWriter:
    """What a run or a compaction needs to write files; texts of errors begin with `doing`."""

    connection: AwsConnection
    prefix: Prefix
    doing: str
    cancelled: threading.Event | None = None
    sizes: UploadSizes = SIZES

    def require_not_cancelled(self) -> None:
        """Raises ShardError once the run was cancelled."""
        if self.cancelled and self.cancelled.is_set():
            raise ShardError("the run was cancelled")


def write_batch(
    writer: BatchWriter,
    batch: ShardBatch,
    columns: Sequence[Column],
    changes: Callable[[], DataFrame],
) -> ShardBatch:
    """Writes the files of a batch. Returns the batch with these files, not yet committed.

    `changes` returns `t`, `d`, c0, c1, … partitioned like `in_parts`. Raises ShardError, after
    which nothing is left in the batch's folder, unless the text lists it.
    """
    prefix, cancelled = writer.prefix, writer.cancelled
    kinds = {column.tag: column.kind for column in columns}
    names = tuple(column.name for column in columns)
    spec = WriteSpec(
        connection=writer.connection,
        location=prefix.location.below(f"{BATCHES}{batch.moment}-{uuid.uuid4().hex[:12]}"),
        columns=tuple(ExportedColumn(name) for name in ("t", "d", *names)),
        format=BatchFormat(BatchLayout(kinds, batch.encoding), names),
        max_file_size=writer.sizes.max_file_size,
        part_size=writer.sizes.part_size,
        max_bytes_in_memory=writer.sizes.max_multi_part_bytes_in_memory,
        summed=1,
    )
    files: Sequence[PendingFile] | None = ()
    reaper: UploadReaper | None = None
    try:
        parts = changes()
        writer.require_not_cancelled()
        files = None  # only the tasks know which uploads they open
        files, additions, retractions = upload(prefix, parts, spec)
        reaper = find_lost_attempts(prefix, spec.location, files, parts)
        writer.require_not_cancelled()
        written = complete_files(prefix, files)
    except Exception as exc:
        is_stopped = cancelled and cancelled.is_set() and executor_error(exc) is None
        ended = "was cancelled" if is_stopped else f"failed: {explain(exc)}"
        text = followed_by(f"{writer.doing} {ended}", "The shard is what it was")
        if files is None:
            left = abort_uploads_of_tasks(prefix, spec.location, parts.sparkSession)
        else:
            left = clean_up(prefix, files, keeps=getattr(exc, "keys", ()))
        if reaper is not None and (open_yet := reaper.abort_after_commit(speculative=True)):
            left = f"{left}; {open_yet}" if left else open_yet
        raise ShardError(f"{text}. {left}" if left else text) from exc
    if reaper is not None:
        reaper.abort_after_commit(speculative=True)
    return replace(batch, files=written, additions=additions, retractions=retractions)


def upload(
    prefix: Prefix, changes: DataFrame, spec: WriteSpec
) -> tuple[Sequence[PendingFile], int, int]:
    """Uploads the files of partitioned changes, once more if Comet's batches are doubtful, or if
    Spark has computed rows twice.

    Returns the open uploads, and how many rows they add and retract. Raises Spark's failures and
    CopyError.
    """
    spark = changes.sparkSession

    def abort(_: RestartReason, uploads: list[tuple[str, str]]) -> None:
        abort_all(prefix, uploads)
        # Uploads that remain only cost storage.
        abort_uploads_of_tasks(prefix, spec.location, spark)

    assumed = Assumptions(native=sends_native_batches(spark))
    planned = PlannedRows(changes, assumed, lambda _: changes)
    uploads = upload_parts(planned, spec, before_again=abort, empty_file=False)
    uploads.check()
    additions, negative = uploads.sums
    return uploads.files, additions, -negative


class TakenNamesError(ShardError):
    """Another writer has written objects at `keys`, which this batch needs."""

    def __init__(self, prefix: Prefix, keys: Sequence[str]) -> None:
        self.keys = keys
        listed = ", ".join(map(prefix.uri_of, keys))
        super().__init__(
            f"something else than this run has written {listed}, in a folder of this run's own; "
            "it stays, and no reader of the shard sees it. Run again: that run has another folder"
        )


def complete_files(prefix: Prefix, files: Sequence[PendingFile]) -> tuple[BatchFile, ...]:
    """Completes all uploads. Returns the files. Raises ShardError if an upload fails."""
    taken_keys: list[str] = []
    etags = KnownEtags(is_amazon_s3=prefix.store.is_amazon_s3)

    def complete_one(file: PendingFile) -> BatchFile:
        try:
            is_complete = complete(prefix, file, known=etags) is not None
        except TakenError:
            taken_keys.append(file.key)
            raise
        if not is_complete:
            raise ShardError(
                f"the upload of {prefix.uri_of(file.key)} is gone: something else than this run "
                "has aborted it, such as a lifecycle rule of the bucket; run again"
            )
        listed = prefix.find(file.key)
        if listed is None:
            raise ShardError(
                f"{prefix.uri_of(file.key)} is gone right after it was written: something else "
                "than this run has removed it; run again"
            )
        name = file.key.removeprefix(prefix.location.prefix)
        return BatchFile(name, file.bytes, listed.etag, file.rows)

    doing = f"completing the files of a batch at {prefix.uri}"
    with explained(doing, "s3:PutObject and s3:ListBucket", ShardError):
        try:
            return tuple(map_concurrently(files, complete_one))
        except Exception as exc:
            if not taken_keys:
                raise
            raise TakenNamesError(prefix, sorted(taken_keys)) from exc


def clean_up(
    prefix: Prefix, files: Sequence[PendingFile], *, keeps: Collection[str] = ()
) -> str | None:
    """Aborts a batch's uploads and deletes its objects. Returns what may be left, or None.

    Objects with keys in `keeps` are not ours.
    """
    problems = abort_all(prefix, [(file.key, file.upload_id) for file in files])
    objects = delete_many(prefix, [file.key for file in files if file.key not in keeps])
    if objects:
        listed = ", ".join(prefix.uri_of(key) for key in objects)
        problems.append(f"{listed} may be left, which no reader sees and compact_shard removes")
    return "; ".join(problems) or None


def find_lost_attempts(
    prefix: Prefix, folder: S3Location, files: Sequence[PendingFile], parts: DataFrame
) -> UploadReaper | None:
    """A reaper for the uploads of abandoned task attempts; None if there can be none."""
    if not files:
        return None
    reaper = UploadReaper(Prefix(prefix.store, folder), files[0].upload_id, take_over=True)
    return reaper if len(reaper.found) > len(files) or speculates(parts) else None


def abort_uploads_of_tasks(prefix: Prefix, folder: S3Location, spark: SparkSession) -> str | None:
    """Aborts uploads until tasks open no more of them. Returns what may be left, or None."""
    below = Prefix(prefix.store, folder)
    try:
        with prove_writing(below) as probe:
            reaper = UploadReaper(below, probe.upload_id, take_over=True)
            return reaper.abort_until_idle(partial(engine.has_running_tasks, spark))
    except S3Error as exc:
        return (
            f"Open uploads may be left below {below.uri}, which cost storage but are not visible: "
            "a lifecycle rule of the bucket that aborts incomplete uploads removes them, and "
            f"compact_shard after a week. Looking for them failed too: {exc}"
        )


@contextmanager
def committing(store: StateStore, files: Sequence[BatchFile]) -> Iterator[None]:
    """Wraps the write of the state that commits these files.

    Suppresses an error if the files are committed nevertheless, as after a lost response. Raises
    any other error again. Before that, deletes the files unless they may be committed, as after an
    UnknownWriteError, whose write may still succeed.
    """
    try:
        yield
    except Mzs3Error as exc:
        is_committed = _are_committed(store, files)
        if is_committed:
            return
        if is_committed is False and not isinstance(exc, UnknownWriteError):
            delete_many(store.prefix, [store.prefix.key(file.name) for file in files])
        raise


def _are_committed(store: StateStore, files: Sequence[BatchFile]) -> bool | None:
    """Whether the files are or were part of the shard; None if that is unknown."""
    if not files:
        return None
    try:
        stored = store.read()
    except Mzs3Error:
        return None
    if stored is None:
        return False
    names = {file.name for file in files}
    retired = {file.name for file in stored.state.retired}
    return names <= stored.state.file_names or names <= retired
