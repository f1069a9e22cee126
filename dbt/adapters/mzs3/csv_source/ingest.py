"""Ingesting one S3 CSV source, from its definition to the report of what is new."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

from pyspark.sql import SparkSession

from dbt.adapters.mzs3.aws.client import s3_client
from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.csv_source.access import OWN_SETTINGS
from dbt.adapters.mzs3.csv_source.definition import SourceDefinition
from dbt.adapters.mzs3.csv_source.epoch import Pass
from dbt.adapters.mzs3.csv_source.executor.columns import PROBLEM_COLUMN
from dbt.adapters.mzs3.csv_source.executor.fetch import FetchSpec, open_format, schema_ddl
from dbt.adapters.mzs3.csv_source.executor.formats.format import (
    RecordField,
    StoredObject,
    read_fields,
)
from dbt.adapters.mzs3.csv_source.executor.listing import ObjectInfo, iter_pages
from dbt.adapters.mzs3.csv_source.idle import is_idle
from dbt.adapters.mzs3.csv_source.ledger.ledger import Ledger
from dbt.adapters.mzs3.csv_source.ledger.lock import WAIT_S, SourceLock
from dbt.adapters.mzs3.csv_source.operations.reset import ingested_after_reset, reset_source
from dbt.adapters.mzs3.csv_source.purify import PinnedDefinition, contradictions, purify
from dbt.adapters.mzs3.csv_source.queue.inbox import VISIBILITY_S, Inbox, open_inbox
from dbt.adapters.mzs3.csv_source.relations import EPOCH_COLUMN, SourceRelations
from dbt.adapters.mzs3.csv_source.report import NO_LOG, IngestReport, SourceLog, reset_hint
from dbt.adapters.mzs3.csv_source.run import OnStep, SourceRun
from dbt.adapters.mzs3.csv_source.tables import (
    make_relations,
    make_schema,
    read_tables,
    refused_name,
)
from dbt.adapters.mzs3.errors import S3Error, SourceError
from dbt.adapters.mzs3.names import folded
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, readable
from dbt.adapters.mzs3.spark.settings import settings
from dbt.adapters.mzs3.spark.tables import table_format


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
                    pinned, made = _pin(run, inbox)
                report = IngestReport(name)
                if not create_only:
                    ledger = Ledger(spark, made, lock)
                    report = Pass(run, fetch_spec(run, pinned), ledger, inbox).ingest()
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


def _pin(run: SourceRun, inbox: Inbox | None) -> tuple[PinnedDefinition, SourceRelations]:
    """Makes the relations of the source; the pinned definition, which holds for every object, and
    the relations with the format of their tables."""
    definition = run.definition
    made = read_tables(run.spark, definition)
    if made is None:
        pinned = purify_now(run, inbox)
    else:
        pinned = PinnedDefinition.from_json(made.pinned)
        _require_agreement(definition, pinned)
    text = pinned.to_json()
    columns = schema_ddl(pinned.columns)
    relations = make_relations(run.spark, definition, columns, text, pinned.file_format, made)
    # A run that lost the lock may still make the table, as it knew it, just after it was dropped:
    # then it was there, and has other columns.
    if made is None and (
        (now := read_tables(run.spark, definition)) is None or now.pinned != text
    ):
        rows = definition.relations.shown("__rows")
        raise SourceError(
            f"{definition.name}: another run made or dropped {rows} while this one was to make "
            "it; nothing was ingested. Run again"
        )
    return pinned, relations


def purify_now(run: SourceRun, inbox: Inbox | None) -> PinnedDefinition:
    """Purifies the definition by what is in S3 now; messages of its queue stay there.

    Raises an Mzs3Error.
    """
    definition = run.definition
    found = _discover_header(run, inbox) if definition.header is True else None
    file_format = table_format(run.spark, definition.file_format)
    pinned = replace(purify(definition, found), file_format=file_format)
    names = {folded(column.name) for column in pinned.columns}
    for taken in (EPOCH_COLUMN, PROBLEM_COLUMN):
        if taken in names:
            raise SourceError(
                f"{definition.name}: a column can't be named {taken}, as the table of rows has "
                "one of that name; declare `columns` to give it another"
            )
    return pinned


def _require_agreement(definition: SourceDefinition, pinned: PinnedDefinition) -> None:
    found = contradictions(pinned, definition)
    if found:
        differences = "".join(f"\n  - {difference}" for difference in found)
        raise SourceError(
            f"{definition.name}: its definition is not the one that was pinned when it was first "
            f"ingested, {pinned.sql()}:{differences}\nRestore the definition; or, to ingest "
            f"{ingested_after_reset(definition.discovery)} under this one, drop what was made "
            f"with the old one: {reset_hint(definition.name)}"
        )


def _discover_header(run: SourceRun, inbox: Inbox | None) -> tuple[RecordField, ...] | None:
    """The header of the first object that has one, listed objects before announced ones."""
    definition = run.definition
    form = open_format(
        definition.format, definition.dialect, definition.compression, definition.reading
    )
    for stored in _stored_objects(run, inbox):
        run.cancellation.check()
        header = read_fields(form, stored, definition.name) if stored.size else None
        if header is not None:
            return header
    if inbox is not None and not definition.discovery.bucket_scan:
        what = "is empty" if inbox.empty else "names no object that has a header"
        if inbox.only_tests:
            what = "holds nothing but S3's test event, which announces no object"
        raise SourceError(
            f"{definition.name}: the queue {inbox.queue_name} {what}, so there is none to learn "
            "the columns from. Declare the names as `header: [name, ...]`; or run again once an "
            "object was announced. Messages that a killed run had received come back within "
            f"{VISIBILITY_S} s"
        )
    return None


def _stored_objects(run: SourceRun, inbox: Inbox | None) -> Iterator[StoredObject]:
    definition, client = run.definition, s3_client(run.connection)

    def found() -> Iterator[list[ObjectInfo]]:
        if definition.discovery.bucket_scan:
            yield from iter_pages(client, definition.location, definition.pattern)
        if inbox is not None:
            inbox.receive()
            yield inbox.found

    for one in chain.from_iterable(found()):
        yield StoredObject(client, definition.location.bucket, one.key, one.etag, one.size)


def fetch_spec(run: SourceRun, pinned: PinnedDefinition) -> FetchSpec:
    """What tasks need to read the source's objects as they are pinned."""
    definition = run.definition
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
    )
