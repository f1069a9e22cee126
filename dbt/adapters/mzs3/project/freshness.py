"""The door between `dbt source freshness` and S3 CSV sources."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.mzs3.csv_source.definition import TYPE, SourceDefinition
from dbt.adapters.mzs3.csv_source.freshness import (
    Freshness,
    read_freshness,
    read_ingested_freshness,
    read_pending,
    with_ingested,
)
from dbt.adapters.mzs3.errors import Mzs3Error
from dbt.adapters.mzs3.project.sources import open_session, source_definition, source_of
from dbt.adapters.mzs3.project.variables import is_set

if TYPE_CHECKING:
    from dbt.adapters.mzs3.aws.connection import AwsConnection

PENDING_VARIABLE = "mzs3_freshness_pending"


@dataclass
class FreshnessResponse(AdapterResponse):
    """What a freshness check saw: matching objects and their bytes, in S3 or in the ledger.

    `pending_objects` and `pending_bytes` are those of them that are yet to be ingested; they are
    looked up only if the variable `mzs3_freshness_pending` is true, as that needs Spark.
    """

    objects: int | None = None
    bytes: int | None = None
    pending_objects: int | None = None
    pending_bytes: int | None = None


def freshness_from_s3(
    adapter: Any, relation: Any, manifest: Any
) -> tuple[FreshnessResponse, datetime | None, datetime]:
    """The response, the newest LastModified or None, and when that was looked up.

    Starts Spark only where a variable asks for what is pending, and for a source whose objects a
    listing does not show: a queue alone tells of them, or they are moved or deleted. Raises
    DbtRuntimeError for a source that is no S3 CSV source: it needs a `loaded_at_field`; and for a
    variable that is neither true nor false.
    """
    source = source_of(manifest, relation)
    if source is None:
        raise DbtRuntimeError(
            f"Could not compute freshness for source {relation}: it has no loaded_at_field, and "
            f"only S3 CSV sources (type: {TYPE}) can do without one"
        )
    tells_pending = is_set(adapter.config, PENDING_VARIABLE)
    try:
        connections = adapter.config.credentials.connections
        definition = source_definition(source, connections)
        connection = connections[definition.aws_connection]
        found = _freshness(adapter.config.credentials, definition, connection)
        response = FreshnessResponse(
            _message="OK", code="FRESHNESS", objects=found.objects, bytes=found.bytes
        )
        if tells_pending:
            session = open_session(adapter.config.credentials, definition.name)
            response.pending_objects, response.pending_bytes = read_pending(
                session, definition, connection
            )
    except Mzs3Error as exc:
        raise DbtRuntimeError(str(exc)) from exc
    return response, found.newest, datetime.now(timezone.utc)


def _freshness(
    credentials: Any, definition: SourceDefinition, connection: AwsConnection
) -> Freshness:
    discovery = definition.discovery
    if discovery.bucket_scan and not discovery.empties_location:
        return read_freshness(definition, connection)
    session = open_session(credentials, definition.name)
    ingested = read_ingested_freshness(session, definition)
    if not discovery.bucket_scan:
        return ingested
    return with_ingested(read_freshness(definition, connection), ingested)
