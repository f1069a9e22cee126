"""The whole export as one function, `copy_to_s3`, which compiled models call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.mzs3.errors import CopyError
from dbt.adapters.mzs3.export.commit.existing import Existing, require_same_files
from dbt.adapters.mzs3.export.commit.failures import CommitError, StaleFilesError
from dbt.adapters.mzs3.export.commit.manifest import MANIFEST
from dbt.adapters.mzs3.export.commit.preflight import Preflight, prepare
from dbt.adapters.mzs3.export.commit.protocol import Commit
from dbt.adapters.mzs3.export.export import CopyResult, Export, checked_frame
from dbt.adapters.mzs3.export.monitor import RunContext, RunMonitor, count_resumed_parts
from dbt.adapters.mzs3.export.options import parse_options, reader_warnings
from dbt.adapters.mzs3.export.progress import Progress
from dbt.adapters.mzs3.rows.batches import RestartReason
from dbt.adapters.mzs3.spark import engine
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, executor_error, explain
from dbt.adapters.mzs3.spark.frames import default_parallelism, speculates
from dbt.adapters.mzs3.spark.interrupt import interruptible
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.opened import PooledStore, borrow_store
from dbt.adapters.mzs3.store.prefix import Prefix, abort_all
from dbt.adapters.mzs3.text import bulleted, followed_by
from dbt.adapters.mzs3.upload.destination import likely_bucket, resolve_location
from dbt.adapters.mzs3.upload.job import PlannedRows, Uploads, plan_rows, upload_parts
from dbt.adapters.mzs3.upload.pending import PendingFile


def copy_to_s3(
    spark: SparkSession,
    query: str,
    *,
    node: str,
    options: Mapping[str, Any],
    connections: Mapping[str, AwsConnection],
    as_of: int,
    full_refresh: bool = False,
    cancelled: threading.Event | None = None,
    context: RunContext = RunContext(),  # noqa: B008 - frozen
) -> CopyResult:
    """Writes the rows of `query` to S3 atomically: all files become visible, or none.

    The files depend only on the rows, the options and `parts`; they are the same on any cluster
    and in any attempt. `as_of` is the run's start in ms since the epoch; `node` names the model in
    errors. Once `cancelled` is set, no new step starts; a commit that has begun is finished.
    With `full_refresh`, an overwrite replaces all partitions, not only those with new rows.
    Raises an Mzs3Error that says what is wrong and what, if anything, is left in S3.
    """
    parsed = parse_options(node, options, connections)
    connection = connections[parsed.aws_connection]
    cleaning_up: list[Future[object]] = []
    # Threads resolve and check the location while Spark analyses and plans the query. After the
    # commit, they clean up while the history row is written.
    with ThreadPoolExecutor(2) as pool:
        locating = pool.submit(resolve_location, spark, node, parsed.location, as_of)
        opening = pool.submit(_open_store, connection, parsed.location, locating)
        frame = checked_frame(spark, node, query, parsed)
        location = locating.result()
        parts = 1 if parsed.single_file is not None else parsed.parts or default_parallelism(spark)
        with_parts = replace(parsed, parts=parts)
        export = Export(node, frame.schema, with_parts, location, connection, as_of, full_refresh)
        preparing = pool.submit(_prepare, export, opening)
        with RunMonitor(spark, export, context, cancelled) as monitor:
            for warning in reader_warnings(parsed):
                monitor.warn(warning)
            try:
                rows = _plan(export, frame, parts)
            finally:
                # Reports that an earlier run's commit was completed, even if this run fails.
                prefix, preflight = preparing.result()
                if preflight.finished is not None:
                    monitor.note_recovered(preflight.finished)
            export.check_kept_partitions(preflight)
            with monitor.progress() as progress, interruptible(spark, cancelled):
                run = ExportRun(export, rows, prefix, preflight, progress, monitor)
                if parsed.on_existing == "resume" and preflight.existing is not None:
                    result = run.compare_with(preflight.existing)
                else:
                    result = run.upload_and_commit()
                    with suppress(RuntimeError):  # Python is exiting; the next run cleans up
                        cleaning_up += map(pool.submit, run.clean_ups())
        for future in cleaning_up:
            future.exception()  # waits, and ignores failures, as the export is visible
    opening.result().give_back()
    return result


def _open_store(connection: AwsConnection, text: str, locating: Future[S3Location]) -> PooledStore:
    """Opens the location's store; if `text` names the bucket, before the text is evaluated."""
    likely_location = likely_bucket(text)
    pooled = borrow_store(connection, likely_location) if likely_location is not None else None
    location = locating.result()
    if pooled is None or likely_location != replace(location, prefix=""):
        pooled = borrow_store(connection, location)
    return pooled


def _plan(export: Export, frame: DataFrame, parts: int) -> PlannedRows:
    try:
        return plan_rows(frame, parts, export.partition_by)
    except SPARK_FAILURES as exc:
        raise _with_remains(export, exc, None, cancelled=False) from exc


def _prepare(export: Export, opening: Future[PooledStore]) -> tuple[Prefix, Preflight]:
    prefix = Prefix(opening.result().store, export.location, export.options.properties.for_notes())
    return prefix, prepare(prefix, export.options)


@dataclass
class ExportRun:
    """Uploads and commits the rows of one export; cleans up after a failure."""

    export: Export
    rows: PlannedRows
    prefix: Prefix
    preflight: Preflight
    progress: Progress
    monitor: RunMonitor
    files: list[PendingFile] = field(default_factory=list)
    may_have_tasks: bool = False
    commit: Commit | None = None

    def upload_and_commit(self) -> CopyResult:
        """Uploads and commits the rows; raises errors whose text is for users."""
        try:
            self._upload()
            self._commit()
        except StaleFilesError as exc:
            self._note_committed(self.files, self.export.as_of)
            raise CopyError(f"{self.export.node}: {exc}") from exc
        except BaseException as exc:
            remains = None
            # If leftovers remain, the next run may need the uploads to finish the commit.
            if not (isinstance(exc, CommitError) and exc.leftovers):
                remains = _clean_up(self)
            raise _with_remains(self.export, exc, remains, self.monitor.is_cancelled) from exc
        return self._note_committed(self.files, self.export.as_of)

    def clean_ups(self) -> Iterator[Callable[[], object]]:
        """Functions to call after the commit: one frees the location, one aborts uploads of lost
        task attempts. If they fail, the next run does the same."""
        if self.commit is not None:
            yield self.commit.release
            speculative = speculates(self.rows.ordered)
            yield partial(self.preflight.reaper.abort_after_commit, speculative=speculative)

    def compare_with(self, existing: Existing) -> CopyResult:
        """The existing export's result; raises LocationError if this run's files would differ."""
        uploads = self._uploads(dry=True)
        uploads.check()
        require_same_files(self.prefix, existing, uploads.files)
        self.monitor.note_already_whole()
        self.preflight.reaper.abort_stale()  # uploads of earlier runs
        return self._note_committed(uploads.files, int(existing.manifest["as_of"]))

    def _upload(self) -> None:
        self.monitor.stop_if_cancelled()
        self.may_have_tasks = True
        uploads = self._uploads()
        self.files += uploads.files
        # If the job failed over recomputed rows, there are no files, and tasks may still run.
        self.may_have_tasks = uploads.restart_reason is not None and not uploads.files
        if self.export.options.on_existing == "resume":
            self.monitor.note_resumed(count_resumed_parts(self.preflight.reusable, self.files))
        if uploads.not_native is not None:
            self.monitor.note_native(uploads.not_native)
        uploads.check()
        self.monitor.stop_if_cancelled()

    def _uploads(self, *, dry: bool = False) -> Uploads:
        return upload_parts(
            self.rows,
            self.export.write_spec(self.preflight, dry=dry, progress=self.progress.target),
            before_again=self._begin_again,
            empty_file=self.export.writes_empty_file(self.preflight),
        )

    def _begin_again(self, reason: RestartReason, uploads: list[tuple[str, str]]) -> None:
        self.progress.begin_again()
        self.monitor.begin_again(reason)
        problems = abort_all(self.prefix, [upload for upload in uploads if upload[1]])
        if problems:
            raise CopyError("; ".join(problems))

    def _commit(self) -> None:
        self.progress.note_committing()
        preflight, keep = self.preflight, {file.upload_id for file in self.files}
        pending = self.export.pending(self.files, preflight, self.prefix)
        self.commit = Commit(
            self.prefix,
            pending,
            has_conditional_deletes=preflight.has_conditional_deletes,
            has_conditional_writes=preflight.has_conditional_writes,
        )
        with self.commit as commit:
            commit.claim()
            # Aborts uploads of lost task attempts, without reporting failures. Not before the
            # claim: two runs could abort each other's uploads, and both would fail.
            with ThreadPoolExecutor(1) as pool:
                aborting = pool.submit(preflight.reaper.abort_stale, keep)
                commit.complete()
            aborting.result()
            commit.finish()

    def _note_committed(self, files: list[PendingFile], as_of: int) -> CopyResult:
        location = self.export.location.uri
        return self.monitor.note_committed(
            CopyResult(
                rows=sum(file.rows for file in files),
                location=location,
                manifest=location + MANIFEST,
                files=len(files),
                bytes=sum(file.bytes for file in files),
                as_of=as_of,
            )
        )


def _clean_up(run: ExportRun) -> str | None:
    """Aborts all uploads of a failed export; returns None, or a text about what may be left."""
    reaper = run.preflight.reaper
    if run.may_have_tasks:  # the job failed, and its tasks may still be running
        return reaper.abort_until_idle(
            partial(engine.has_running_tasks, run.rows.ordered.sparkSession)
        )
    problems = abort_all(run.prefix, [(file.key, file.upload_id) for file in run.files])
    return "; ".join(problems) or reaper.abort_stale()


def _with_remains(
    export: Export, exc: BaseException, remains: str | None, cancelled: bool
) -> BaseException:
    """The failure as a CopyError that says what is left in S3; interrupts stay unchanged."""
    if not isinstance(exc, Exception):
        return exc
    # After Ctrl-C, failures of the commit and of executors are still shown.
    was_stopped = cancelled and not isinstance(exc, CommitError) and executor_error(exc) is None
    ended = "was cancelled" if was_stopped else f"failed: {explain(exc)}"
    text = f"{export.node}: the export to {export.location.uri} {ended}"
    if isinstance(exc, CommitError) and exc.leftovers:
        instruction = (
            "Remove nothing: the next run to this location puts in order what is left (where each "
            "run has a location of its own, set location to this one for a run):"
        )
        return CopyError(followed_by(text, instruction + bulleted(exc.leftovers)))
    sentences = [] if remains is None else [remains]
    if isinstance(exc, CommitError) and exc.unproven:
        sentences.append(
            "No manifest names any file of this export; but objects of such names stay, as their "
            "ETags do not tell that this run has written them. Remove each that nothing else has "
            f"written:{bulleted(exc.unproven)}"
        )
    elif remains is None:
        sentences.append("Nothing of this export is visible, and no upload is left open")
    return CopyError(reduce(followed_by, sentences, text))
