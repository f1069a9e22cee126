"""The run-operations by name. Each is called with the adapter and the macro's arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from dbt.adapters.mzs3.operations import locations, sources
from dbt.adapters.mzs3.source.operations.object_actions import ObjectAction

OPERATIONS: dict[str, Callable[..., None]] = {
    "validate_aws_connection": locations.validate,
    "verify_copy": locations.verify,
    "copy_report": locations.report,
    "describe_shard": locations.describe_shard,
    "compact_shard": locations.compact,
    "reset_shard": locations.reset_shard,
    "ingest_s3_sources": sources.ingest,
    "s3_source_status": sources.show_status,
    "purify_s3_sources": sources.show_purified,
    "preview_s3_source": sources.preview,
    "reset_s3_source": sources.reset,
    "unlock_s3_source": sources.unlock_source,
    **{action.value: partial(sources.act_on_objects, action=action) for action in ObjectAction},
}
