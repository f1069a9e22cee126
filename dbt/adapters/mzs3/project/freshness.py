"""The freshness of sources, for `dbt source freshness`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.mzs3.errors import Mzs3Error
from dbt.adapters.mzs3.project.sources import is_set, schema_of, source_definition, sources_read_as
from dbt.adapters.mzs3.runner import runner_for
from dbt.adapters.mzs3.source.freshness import (
    read_freshness,
    read_ingested_freshness,
    read_pending,
    with_ingested,
)
from dbt.adapters.mzs3.source.options import TYPE
from dbt.adapters.mzs3.spark.job import Call

PENDING_VARIABLE = "mzs3_freshness_pending"


@dataclass
class FreshnessResponse(AdapterResponse):
    """The source's objects and their bytes, in S3 or in the ledger.

    Pending objects are yet to be ingested; they are counted only if the variable
    `mzs3_freshness_pending` is true, as that needs Spark.
    """

    objects: int | None = None
    bytes: int | None = None
    pending_objects: int | None = None
    pending_bytes: int | None = None


def freshness_from_s3(
    adapter: Any, relation: Any, manifest: Any
) -> tuple[FreshnessResponse, datetime | None, datetime]:
    """The response, the newest LastModified or None, and the time of this check.

    Starts Spark only if the variable asks for pending objects, or if a listing does not show all
    objects: if the source has only a queue, or moves or deletes objects. Raises DbtRuntimeError
    for any other kind of source, which needs a `loaded_at_field`, and for a variable that is
    neither true nor false.
    """
    credentials = adapter.config.credentials
    catalog = credentials.default_catalog
    sources = sources_read_as(manifest, [relation], TYPE, catalog=catalog, rejects=False)
    if not sources:
        raise DbtRuntimeError(
            f"Could not compute freshness for source {relation}: it has no loaded_at_field, and "
            f"only sources of type {TYPE} can do without one"
        )
    # Several sources may name one relation in Spark; ingestion refuses them.
    place = (schema_of(relation), relation.identifier)
    source = next((s for s in sources if (schema_of(s), s.identifier) == place), sources[0])
    counts_pending = is_set(adapter.config, PENDING_VARIABLE)
    try:
        definition = source_definition(source, credentials.connections)
        connection = credentials.connections[definition.aws_connection]
        discovery, name = definition.discovery, definition.name
        how = {"definition": definition}
        with runner_for(credentials) as runner:
            if discovery.bucket_scan and not definition.after_commit.empties_location:
                seen = read_freshness(definition, connection)
            else:
                seen = runner.run(Call(read_ingested_freshness, how), name)
                if discovery.bucket_scan:
                    seen = with_ingested(read_freshness(definition, connection), seen)
            response = FreshnessResponse("OK", "FRESHNESS", objects=seen.objects, bytes=seen.bytes)
            if counts_pending:
                pending = runner.run(Call(read_pending, {**how, "connection": connection}), name)
                response.pending_objects, response.pending_bytes = pending
    except Mzs3Error as exc:
        raise DbtRuntimeError(str(exc)) from exc
    return response, seen.newest, datetime.now(timezone.utc)
