"""Ingesting one S3 CSV source, from its definition to the report of what is new."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from dbt.adapters.mzs3.errors import S3Error, SourceError
from dbt.adapters.mzs3.ledger.lease import WAIT_S, SourceLock
from dbt.adapters.mzs3.source.access import OWN_SETTINGS
from dbt.adapters.mzs3.source.definition import SourceDefinition
from dbt.adapters.mzs3.source.epoch import Pass
from dbt.adapters.mzs3.source.executor.fetch import FetchSpec, HeaderFrom
from dbt.adapters.mzs3.source.first_run import least_objects
from dbt.adapters.mzs3.source.idle import is_idle
from dbt.adapters.mzs3.source.pinning import Pin, pin, purify_now
from dbt.adapters.mzs3.source.queue.inbox import open_inbox
from dbt.adapters.mzs3.source.report import NO_LOG, IngestReport, SourceLog
from dbt.adapters.mzs3.source.reset import reset_source
from dbt.adapters.mzs3.source.run import OnStep, SourceRun
from dbt.adapters.mzs3.source.tables import make_schema, refused_name
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, readable
from dbt.adapters.mzs3.spark.settings import settings
from dbt.adapters.mzs3.store.connection import AwsConnection


def ingest(
    spark: SparkSession,
    definition: SourceDefinition,
    connection: AwsConnection,
    *,
    create_only: bool = False,
    afresh: bool = False,
    wait_s: float = WAIT_S,
    cancelled: threading.Event | None = None,
    on_step: OnStep = lambda step: None,
    log: SourceLog = NO_LOG,
) -> IngestReport:
    """Ingests every matching object that is not ingested yet, exactly once.

    Makes the source's schema and relations if they are missing, `create_only` no more than that;
    `afresh` drops all that was ingested before. `spark` must not be used by another thread
    meanwhile: some of its settings are changed, and set back. Another run on the same source is
    waited for, up to `wait_s` seconds. Once `cancelled` is set, no step begins. `log` is told what
    a user should know beside the report. Raises an Mzs3Error; what was committed before stays.
    """
    started = time.monotonic()
    name, relations = definition.name, definition.relations
    run = SourceRun(spark, definition, connection, cancelled=cancelled, on_step=on_step, log=log)
    stop = run.cancellation
    try:
        with settings(spark, OWN_SETTINGS):
            stop.check()
            if not (create_only or afresh) and is_idle(run):
                return IngestReport(name, seconds=time.monotonic() - started)
            stop.check()
            make_schema(spark, definition)
            with (
                SourceLock(spark, relations, name, wait_s=wait_s, cancellation=stop) as lock,
                open_inbox(run) as inbox,
            ):
                if afresh:
                    purify_now(run, inbox)  # or nothing is dropped
                    with run.step("reset"):
                        reset_source(spark, definition, lock)
                with run.step("create"):
                    pinned = pin(run, inbox, lock)
                report = IngestReport(name)
                if not create_only:
                    spec = fetch_spec(run, pinned)
                    report = Pass(run, spec, pinned.ledger, inbox, least_objects(spec)).ingest()
                on_step("begin unlock")
    except SPARK_FAILURES as exc:
        if stop.requested:
            raise stop.error() from exc
        raise SourceError(f"{name}: {refused_name(exc, definition) or readable(exc)}") from exc
    except S3Error as exc:
        raise SourceError(f"{name}: {exc}") from exc
    on_step("end unlock")
    return replace(report, seconds=time.monotonic() - started)


def ingest_and_tell(
    spark: SparkSession, *, tell: Callable[[tuple[str, str]], None], **how: Any
) -> IngestReport:
    """As `ingest`; each line of its log is told with its level, `warn` or `say`."""
    log = SourceLog(warn=lambda text: tell(("warn", text)), say=lambda text: tell(("say", text)))
    return ingest(spark, log=log, **how)


def fetch_spec(run: SourceRun, pin: Pin) -> FetchSpec:
    """What tasks need to read the source's objects as they are pinned."""
    definition, pinned = run.definition, pin.definition
    return FetchSpec(
        connection=run.connection,
        bucket=definition.location.bucket,
        source=definition.name,
        header=pinned.header,
        columns=pinned.fetched(),
        dialect=definition.dialect,
        compression=definition.compression,
        reading=definition.reading,
        format=definition.format,
        header_from=HeaderFrom(pin.is_first, definition.header is True, pinned.origin),
    )
