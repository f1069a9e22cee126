"""The plan of an export: what to write, where to, and what to commit."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from dbt.adapters.mzs3.__version__ import version
from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.events import Committed
from dbt.adapters.mzs3.export.commit.existing import (
    Existing,
    plan_replacement,
    require_same_reading,
)
from dbt.adapters.mzs3.export.commit.intent import PendingExport
from dbt.adapters.mzs3.export.commit.manifest import schema_of
from dbt.adapters.mzs3.export.commit.preflight import Preflight
from dbt.adapters.mzs3.export.options import CopyOptions
from dbt.adapters.mzs3.options.groups import MAX_OBJECT_SIZE
from dbt.adapters.mzs3.rows.columns import (
    column_problems,
    exported_columns,
    queried_rows,
    view_problems,
)
from dbt.adapters.mzs3.rows.plan import is_ordered, partition_indexes, partition_problems
from dbt.adapters.mzs3.spark.failure import explain
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.prefix import Prefix
from dbt.adapters.mzs3.upload.pending import PendingFile
from dbt.adapters.mzs3.upload.progress import ProgressTarget
from dbt.adapters.mzs3.upload.spec import WriteSpec


class CopyResult(Committed):
    """The result of a committed export; `manifest` is the URI of its manifest."""


@dataclass(frozen=True)
class Export:
    """What stays the same during an export; `options.parts` is always set."""

    node: str
    schema: T.StructType
    options: CopyOptions
    location: S3Location
    connection: AwsConnection
    as_of: int
    full_refresh: bool

    @property
    def partition_by(self) -> tuple[int, ...]:
        """The indexes of the columns that name folders."""
        return partition_indexes(self.schema, self.options.partition_by)

    def write_spec(
        self, preflight: Preflight, *, dry: bool = False, progress: ProgressTarget | None = None
    ) -> WriteSpec:
        """What workers need to write files; with `dry`, they only report what they would write."""
        options, first_number = self.options, preflight.first_number
        if dry and preflight.existing is not None:
            first_number = int(preflight.existing.manifest["first_number"])
        is_single = options.single_file is not None
        return WriteSpec(
            connection=self.connection,
            location=self.location,
            columns=exported_columns(self.schema),
            format=options.format,
            max_file_size=MAX_OBJECT_SIZE if is_single else options.sizes.max_file_size,
            part_size=options.sizes.part_size,
            max_bytes_in_memory=options.sizes.max_multi_part_bytes_in_memory,
            partition_by=self.partition_by,
            first_number=first_number,
            single_file=options.single_file,
            properties=options.properties.for_files(),
            reusable=preflight.reusable,
            resumable=options.on_existing == "resume",
            with_sha256=preflight.needs_sha256,
            dry=dry,
            progress=progress,
        )

    def pending(
        self, files: Sequence[PendingFile], preflight: Preflight, prefix: Prefix
    ) -> PendingExport:
        """The commit of these files: its manifest, and the old files that it will delete."""
        existing = preflight.existing
        kept, stale, in_place = plan_replacement(
            existing, files, keeps_partitions=self._keeps_partitions(existing)
        )
        return PendingExport(
            files=tuple(files),
            manifest=build_manifest(self, files, uuid.uuid4().hex, preflight.first_number, kept),
            replaces=existing.etag if existing else None,
            stale=tuple(self.location.key(name) for name in stale),
            in_place=prefix.etag(files[0].key) if in_place else None,
        )

    def writes_empty_file(self, preflight: Preflight) -> bool:
        """Whether an export without rows writes an empty file: not if it may keep partitions."""
        return not self._keeps_partitions(preflight.existing)

    def check_kept_partitions(self, preflight: Preflight) -> None:
        """Raises LocationError if kept partitions and new files could not be read as one table."""
        existing = preflight.existing
        if existing is not None and self._keeps_partitions(existing):
            require_same_reading(existing, self.options.as_config(), schema_of(self.schema))

    def _keeps_partitions(self, existing: Existing | None) -> bool:
        """Whether this export may keep partitions of the existing one, which must have rows."""
        options = self.options
        replaces_partitions = options.on_existing == "overwrite" and bool(options.partition_by)
        has_rows = existing is not None and existing.manifest["meta"]["record_count"] > 0
        return replaces_partitions and has_rows and not self.full_refresh


def build_manifest(
    export: Export,
    files: Sequence[PendingFile],
    run_id: str,
    first_number: int = 1,
    kept: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """A manifest: the keys `entries`, `schema` and `meta`, which Redshift reads, and our own keys.

    `kept` are entries of an older manifest. Each entry has the `run_id` of the commit that wrote
    its file. New files are numbered from `first_number`; `next_number` is for the next export.
    """
    new_entries = [
        {
            "url": export.location.uri_of(file.key),
            "mandatory": True,
            "meta": {
                "content_length": file.bytes,
                "record_count": file.rows,
                "sha256": file.sha256,
                "run_id": run_id,
            },
        }
        for file in files
    ]
    entries = sorted([*new_entries, *kept], key=lambda entry: str(entry["url"]))
    totals = ("content_length", "record_count")
    return {
        "entries": entries,
        "schema": schema_of(export.schema),
        "meta": {key: sum(entry["meta"][key] for entry in entries) for key in totals},
        "author": {"name": "dbt-mzs3", "version": version},
        "model": export.node,
        "run_id": run_id,
        "as_of": export.as_of,
        "options": export.options.as_config(),
        "first_number": first_number,
        "next_number": max([first_number, *(file.number + 1 for file in files)]),
    }


def checked_frame(spark: SparkSession, node: str, query: str, options: CopyOptions) -> DataFrame:
    """The query as a DataFrame that can be exported; the query is not run.

    Raises ConfigError with all problems of its columns and its order.
    """
    frame = queried_rows(spark, node, query)
    try:
        problems = column_problems(frame.schema, options.format)
        problems += view_problems(frame.schema)
        problems += partition_problems(frame.schema, options.partition_by)
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
