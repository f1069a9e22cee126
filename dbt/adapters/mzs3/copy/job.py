"""COPY TO S3 from end to end; what a compiled job calls."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.mzs3.aws.client import s3_client
from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.aws.failures import AwsFailure, describe, is_missing
from dbt.adapters.mzs3.aws.location import S3Location
from dbt.adapters.mzs3.copy.commit.claim import Claim
from dbt.adapters.mzs3.copy.commit.destination import (
    MANIFEST,
    list_location,
    proof_of_writing,
    require_empty,
    resolve_location,
)
from dbt.adapters.mzs3.copy.commit.manifest import build_manifest
from dbt.adapters.mzs3.copy.commit.pending import PendingFile
from dbt.adapters.mzs3.copy.commit.protocol import (
    Commit,
    CommitError,
    abort_upload,
    finish_interrupted,
)
from dbt.adapters.mzs3.copy.commit.sweep import Sweeper
from dbt.adapters.mzs3.copy.config.options import CopyOptions, parse_options
from dbt.adapters.mzs3.copy.executor.write import WriteSpec
from dbt.adapters.mzs3.copy.result import CopyResult
from dbt.adapters.mzs3.copy.rows.columns import column_problems
from dbt.adapters.mzs3.copy.rows.plan import default_parts, is_ordered
from dbt.adapters.mzs3.copy.rows.uploads import check_count, upload_parts
from dbt.adapters.mzs3.errors import ConfigError, CopyError, LocationError
from dbt.adapters.mzs3.spark.failure import explain

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def copy_to_s3(
    spark: SparkSession,
    query: str,
    *,
    node: str,
    options: Mapping[str, Any],
    connections: Mapping[str, AwsConnection],
    as_of: int,
    cancelled: threading.Event | None = None,
) -> CopyResult:
    """The rows of `query` in S3, all visible at once, or not at all.

    The files are a function of the rows, the options and `parts`: the same on any cluster and in
    any attempt. `as_of` is the run's start in ms since the epoch; `node` names the model in
    errors. Once `cancelled` is set, nothing new is begun; a commit that has begun is finished.
    Raises an Mzs3Error that says what is wrong and what, if anything, is left behind.
    """
    parsed = parse_options(node, options, connections)
    frame = _checked_frame(spark, node, query, parsed)
    location = resolve_location(spark, node, parsed.location, as_of)
    client = s3_client(connections[parsed.aws_connection])
    sweeper = _preflight(client, location)
    parts = parsed.parts or default_parts(spark)
    export = _Export(
        node=node,
        frame=frame,
        options=replace(parsed, parts=parts),
        location=location,
        connection=connections[parsed.aws_connection],
        as_of=as_of,
    )
    files: list[PendingFile] = []
    try:
        _stop_if(cancelled)
        uploaded, counted = upload_parts(frame, export.write_spec(), parts)
        files += uploaded
        check_count(written=sum(file.rows for file in files), counted=counted)
        _stop_if(cancelled)
        # What lost attempts of tasks have opened goes now; it needs no mention if it can't.
        sweeper.sweep(keep={file.upload_id for file in files})
        claim = Claim(client, location, files, export.manifest(files))
        Commit(client, location, claim).run()
    except BaseException as exc:
        raise _with_remains(export, exc, _clean_up(client, location, sweeper, files)) from exc
    return CopyResult(
        rows=sum(file.rows for file in files),
        location=location.uri,
        manifest=location.uri + MANIFEST,
        files=len(files),
        bytes=sum(file.bytes for file in files),
        as_of=as_of,
    )


@dataclass(frozen=True)
class _Export:
    node: str
    frame: DataFrame
    options: CopyOptions
    location: S3Location
    connection: AwsConnection
    as_of: int

    def write_spec(self) -> WriteSpec:
        options = self.options
        return WriteSpec(
            connection=self.connection,
            bucket=self.location.bucket,
            prefix=self.location.prefix,
            columns=tuple(self.frame.columns),
            dialect=options.dialect,
            header=options.header,
            force_quote=options.force_quote,
            max_file_size=options.max_file_size,
            part_size=options.part_size,
            max_bytes_in_memory=options.max_multi_part_bytes_in_memory,
        )

    def manifest(self, files: list[PendingFile]) -> dict[str, Any]:
        return build_manifest(
            self.location,
            files,
            node=self.node,
            schema=self.frame.schema,
            options=self.options.as_config(),
            as_of=self.as_of,
        )


def _checked_frame(spark: SparkSession, node: str, query: str, options: CopyOptions) -> DataFrame:
    """The query as a DataFrame that can be exported; nothing has run yet."""
    try:
        frame = spark.sql(query)
        problems = column_problems(frame.schema, options.force_quote)
        if is_ordered(spark, query):
            problems.append(
                "the query ends in ORDER BY, which would cost a sort and promise nothing: within "
                "each file, rows are ordered by their content. Order them where they are read"
            )
    except PySparkException as exc:
        raise explain(exc) from exc
    if problems:
        raise ConfigError(node, problems)
    return frame


def _preflight(client: S3Client, location: S3Location) -> Sweeper:
    """Proves the location empty and writable before any data moves."""
    finished = finish_interrupted(client, location, list_location(client, location))
    if finished is not None:
        raise LocationError(
            f"{finished}. This run has exported nothing; export to another location, or remove "
            "that export first"
        )
    require_empty(client, location)
    with proof_of_writing(client, location) as probe:
        return Sweeper(client, location, probe)


def _stop_if(cancelled: threading.Event | None) -> None:
    if cancelled is not None and cancelled.is_set():
        raise CopyError("the run was cancelled")


def _clean_up(
    client: S3Client, location: S3Location, sweeper: Sweeper, files: list[PendingFile]
) -> str | None:
    """Abort every upload of a failed export; None, or what may be left."""
    if not files:
        return sweeper.sweep_until_quiet()  # its tasks may still be ending
    problems: list[str] = []
    for file in files:
        try:
            abort_upload(client, location, file)
        except AwsFailure as exc:
            if not is_missing(exc):
                doing = f"aborting the upload of s3://{location.bucket}/{file.key}"
                problems.append(describe(exc, doing, "s3:AbortMultipartUpload"))
    sweeper.sweep()
    return "; ".join(problems) or None


def _with_remains(export: _Export, exc: BaseException, left: str | None) -> BaseException:
    """The failure, with what it leaves behind; interrupts pass through as they are."""
    if not isinstance(exc, Exception):
        return exc
    text = f"{export.node}: the export to {export.location.uri} failed: {explain(exc)}"
    if isinstance(exc, CommitError) and exc.remains:
        listed = "".join(f"\n  - {problem}" for problem in exc.remains)
        return CopyError(f"{text}. Not all of it could be taken back; remove by hand:{listed}")
    if left is not None:
        return CopyError(f"{text}. {left}")
    return CopyError(f"{text}. Nothing of this export is visible, and no upload is left open")
