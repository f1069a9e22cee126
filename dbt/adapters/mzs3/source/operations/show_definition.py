"""Shows a source's purified definition, as SQL and as YAML: pinned, or as it would be pinned."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from dbt.adapters.mzs3.errors import S3Error, SourceError
from dbt.adapters.mzs3.formats.read.columns import Column
from dbt.adapters.mzs3.formats.read.dialect import SourceDialect
from dbt.adapters.mzs3.formats.read.format import Reading
from dbt.adapters.mzs3.ledger.compaction import has_commits
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.options.option import as_config, options_of
from dbt.adapters.mzs3.source.discovery import queue_name
from dbt.adapters.mzs3.source.options import SourceDefinition
from dbt.adapters.mzs3.source.pinning import purify_now
from dbt.adapters.mzs3.source.purify import PinnedDefinition, contradictions, sql_name
from dbt.adapters.mzs3.source.queue.inbox import open_inbox
from dbt.adapters.mzs3.source.run import SourceRun, source_settings
from dbt.adapters.mzs3.source.tables import lost_rows_error, read_tables
from dbt.adapters.mzs3.store.connection import AwsConnection

# Texts that need no quotes in any version of YAML; except those in `_WORDS`, which need them.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:/[A-Za-z0-9_]+)*")
_WORDS = frozenset(
    ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "none", "nan", "inf"]
)
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_REPLACED_KEYS = frozenset({"header", "column_count"})


@dataclass(frozen=True)
class ShownDefinition:
    """The purified definition that is or, unless `is_pinned`, would be pinned.

    `differences`: how the declared definition now differs from the pinned one.
    """

    declared: SourceDefinition
    purified: PinnedDefinition
    is_pinned: bool
    differences: tuple[str, ...] = ()


def purified_lines(shown: ShownDefinition, external: Mapping[str, Any]) -> list[str]:
    """What the log shows: the definition in SQL, then in YAML; `external` is as declared."""
    name = shown.declared.name
    state = "pinned" if shown.is_pinned else "not ingested yet; this would be pinned"
    lines = [f"{name} ({state}):", f"  {purified_sql(shown)}", "  as YAML:"]
    lines += [f"    {line}" for line in purified_yaml(shown, external)]
    if shown.differences:
        lines.append("  the definition now says otherwise, and is refused:")
        lines += [f"    - {difference}" for difference in shown.differences]
    return lines


def purified_sql(shown: ShownDefinition) -> str:
    """The definition in the syntax of Materialize's CREATE SOURCE, with everything spelt out."""
    definition, purified = shown.declared, shown.purified
    discovery = definition.discovery
    ways = []
    if discovery.bucket_scan:
        ways.append(f"BUCKET SCAN {_sql_text(definition.location.bucket)}")
    if discovery.queue is not None:
        ways.append(f"SQS NOTIFICATIONS {_sql_text(queue_name(discovery.queue))}")
    pattern = definition.location.prefix + definition.pattern
    table = definition.name.partition(".")[2]
    head = " ".join(part for part in (sql_name(table), purified.aliases_sql()) if part)
    values = {**as_config(definition.reading), **purified.options}
    options = {
        key: value
        for key, one in {**options_of(Reading), **options_of(SourceDialect)}.items()
        if (value := values.get(key, one.default)) != one.default
    }
    given = ", ".join(f"{key} = {_sql_value(value)}" for key, value in options.items())
    return (
        f"CREATE SOURCE {head} FROM S3 DISCOVER OBJECTS MATCHING {_sql_text(pattern)} "
        f"USING {', '.join(ways)} {purified.format_sql()}"
        f"{f' WITH ({given})' if given else ''};"
    )


def purified_yaml(shown: ShownDefinition, external: Mapping[str, Any]) -> list[str]:
    """The table as it may be declared under `tables` of a source, with nothing left open."""
    definition, purified = shown.declared, shown.purified
    declared = {key: value for key, value in external.items() if key not in _REPLACED_KEYS}
    header = definition.reading.widens or (purified.header is not None and list(purified.header))
    table = definition.name.partition(".")[2]
    return [
        f"- name: {yaml_text(table)}",
        "  external:",
        *(f"    {yaml_text(str(key))}: {yaml_text(value)}" for key, value in declared.items()),
        f"    header: {yaml_text(header)}",
        *(f"  {line}" for line in columns_yaml(purified.columns)),
    ]


def columns_yaml(columns: Sequence[Column]) -> list[str]:
    """The columns as a table of a source declares them."""
    return [
        "columns:",
        *(
            f"  - {{name: {yaml_text(column.name)}, data_type: {yaml_text(column.data_type)}}}"
            for column in columns
        ),
    ]


def yaml_text(value: Any) -> str:
    """The value on one line of YAML."""
    if isinstance(value, str):
        if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
            return value
        quoted = json.dumps(value, ensure_ascii=False)
        return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)
    if isinstance(value, Mapping):
        pairs = ", ".join(
            f"{yaml_text(str(key))}: {yaml_text(each)}" for key, each in value.items()
        )
        return f"{{{pairs}}}"
    if isinstance(value, Sequence):
        return f"[{', '.join(yaml_text(each) for each in value)}]"
    return json.dumps(value)


def _sql_value(value: Any) -> str:
    return _sql_text(value) if isinstance(value, str) else str(value).upper()


def _sql_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def read_purified(
    spark: SparkSession, definition: SourceDefinition, connection: AwsConnection
) -> ShownDefinition:
    """The purified definition; changes nothing in Spark, and leaves the queue's messages in place.

    Raises an Mzs3Error.
    """
    ledger = None
    with source_settings(spark, definition.name):
        tables = read_tables(spark, definition)
        if tables is not None and tables.has_ledger:
            ledger = Ledger(spark, tables.relations)
        if tables is not None and ledger and has_commits(ledger):
            if tables.pinned is None:
                raise lost_rows_error(definition)
            differences = tuple(contradictions(tables.pinned, definition))
            return ShownDefinition(definition, tables.pinned, True, differences)
    run = SourceRun(spark, definition, connection)
    try:
        with source_settings(spark, definition.name), open_inbox(run) as inbox:
            purified = purify_now(run, inbox, ledger)
    except S3Error as exc:
        raise SourceError(f"{definition.name}: {exc}") from exc
    return ShownDefinition(definition, purified, False)
