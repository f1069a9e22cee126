"""What a source table declares under `external`, parsed and checked before anything is read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.formats.read.columns import Column, canonical_type, name_problems
from dbt.adapters.mzs3.formats.read.compression import BY_SUFFIX, COMPRESSIONS
from dbt.adapters.mzs3.formats.read.format import CSV, JSONL, Reading
from dbt.adapters.mzs3.formats.write.csv.dialect import CsvDialect
from dbt.adapters.mzs3.ledger.relations import SourceRelations
from dbt.adapters.mzs3.options.values import ConfigReader, choice, text, whole_number
from dbt.adapters.mzs3.source import config
from dbt.adapters.mzs3.source.executor.pattern import Pattern
from dbt.adapters.mzs3.spark.sql import TABLE_FORMATS
from dbt.adapters.mzs3.store.connection import DEFAULT_NAME
from dbt.adapters.mzs3.store.location import S3Location, readable_location
from dbt.adapters.mzs3.text import did_you_mean, is_near_miss

TYPE = "s3_csv_source"


@dataclass(frozen=True)
class External:
    """The keys of `external`; the text below each is its row in `docs/options.md`."""

    type: str
    """`s3_csv_source`."""
    location: str
    """Bucket and prefix, such as `s3://bucket/prefix/`."""
    pattern: str = "**"
    """Which keys below `location`: `?` and `*` (neither matches `/`), `**`, `{a,b}`, `[!ab]`."""
    format: str = CSV
    """`csv`, `avro`, `parquet` or `jsonl`: what the objects are. Of [Avro and
    Parquet](s3-csv-source/formats.md) the schema is the header, of [JSON
    lines](s3-csv-source/formats.md#json-lines) the keys of each record."""
    discover: tuple[str, ...] = (config.SCAN,)
    """`[bucket_scan]`: the location is listed. `[{sqs_notifications: queue}]`: only what S3's
    event notifications on an SQS queue announce is taken. [Both](s3-csv-source/queues.md): one
    source, in which every object is taken once."""
    key_order: str = "any"
    """`any`, or `ascending`: the keys of new objects sort behind those of earlier ones, but for
    some, so that a run lists only [their end](s3-csv-source/listing.md#where-keys-grow)."""
    full_listing_hours: int = config.FULL_LISTING_HOURS
    """With `key_order: ascending`: all keys are listed again once the last time was so many hours
    ago."""
    after_commit: config.AfterAction = config.Discovery.after_commit
    """[What becomes of an object](s3-csv-source/queues.md#after-the-commit) in S3 once its rows
    are committed: `keep`, `tag`, `{tag: {name: value}}`, `{move: s3://bucket/prefix/}`,
    `delete`."""
    header: bool | tuple[str, ...] = True
    """`true`: the first object's header is pinned. A list of names: these are pinned. `false`:
    objects have none, and `columns` or `column_count` says how many columns there are."""
    column_count: int | None = None
    """The number of columns of objects without a header."""
    header_match: str = Reading.header_match
    """`exact`: the pinned names in the pinned order. `reorder`: the pinned names in any order.
    `subset`: at least the pinned names, in any order."""
    on_header_mismatch: str = Reading.on_header_mismatch
    """`fail`: an object with another header stops the run. `skip_object`: it is left out, and the
    others are taken."""
    on_bad_row: str = Reading.on_bad_row
    """`fail`: a record that is not right stops the run. `reject`: it goes to
    `<table>__rejects`."""
    max_rejects: int | None = Reading.max_rejects
    """With `on_bad_row: reject`: a run with more rejects than this fails, and commits nothing. 0
    or more."""
    on_overwrite: config.OnOverwrite = config.Intake.on_overwrite
    """What becomes of an object that was
    [overwritten](s3-csv-source/ledger.md#overwritten-objects-on_overwrite) after it was ingested.
    `fail`: it is an error. `ignore`: it is noted, and not read again. `append`: its rows are
    added. `replace`: its rows take the place of the old ones."""
    delimiter: str = CsvDialect.delimiter
    """What separates fields: one one-byte character."""
    quote: str = CsvDialect.quote
    """What encloses fields: one one-byte character, doubled inside. `''`: nothing does, and [each
    line is a record](s3-csv-source/reading.md#without-quotes)."""
    escape: str = CsvDialect.escape
    """As `quote`; no other is supported by this version."""
    null: str = CsvDialect.null
    """The unquoted text that stands for NULL."""
    encoding: str = Reading.encoding
    """UTF-8, UTF-16, or one of Python's codecs that has ASCII's characters at ASCII's bytes."""
    compression: str = BY_SUFFIX
    """`by_suffix`: as [the first bytes and the name](s3-csv-source/reading.md#compression) of an
    object say. `none`, `gzip`, `zstd` or `bzip2`: all objects are so."""
    max_objects_per_run: int | None = config.Intake.max_objects
    """How many objects a run takes at most; the rest waits, and goes first next time."""
    max_bytes_per_run: int | str | None = config.Intake.max_bytes
    """How many bytes of objects a run takes at most, as a number or a text such as `'10 GB'`.
    `auto`: as many as it can fetch in `minutes_per_run`, as earlier runs
    [have shown](s3-csv-source/ledger.md#auto)."""
    minutes_per_run: int = config.MINUTES_PER_RUN
    """With `max_bytes_per_run: auto`: how many minutes a run is to fetch, about."""
    aws_connection: str = DEFAULT_NAME
    """A connection of the profile."""
    file_format: str | None = None
    """`parquet`, `delta` or `iceberg`: the [format](engines/table-formats.md) of the source's
    tables in Spark. Without it, that of `spark.sql.sources.default`, by itself Parquet."""


KNOWN_KEYS = tuple(key.name for key in fields(External))


@dataclass(frozen=True)
class SourceDefinition:
    """A source as declared: valid by itself; what was left open is for `purify` to fill in.

    `name` is `source.table`; `schema` and `identifier` are where it is in Spark. `header` and
    `column_count` are as declared. `columns` is empty if none were declared; in formats other than
    CSV, one without a type has the empty text as its type. `full_listing_hours` is None where
    every listing is full, `file_format` where Spark's own default holds.
    """

    name: str
    schema: str
    identifier: str
    location: S3Location
    pattern: str
    header: bool | tuple[str, ...]
    column_count: int | None
    columns: tuple[Column, ...]
    dialect: CsvDialect
    compression: str
    aws_connection: str
    reading: Reading
    discovery: config.Discovery
    intake: config.Intake
    full_listing_hours: int | None
    format: str
    file_format: str | None = None

    @property
    def relations(self) -> SourceRelations:
        """The names of the source's relations in Spark."""
        return SourceRelations(self.schema, self.identifier)


def parse_definition(
    *,
    name: str,
    schema: str,
    identifier: str,
    external: Mapping[str, Any],
    columns: Sequence[Mapping[str, Any]],
    connections: Collection[str],
) -> SourceDefinition:
    """The definition that a source table's `external` and `columns` declare.

    A key without a value counts as left out. Raises ConfigError with all problems at once.
    """
    problems: list[str] = []
    # YAML reads a key that is written `null`, without quotes, as no name at all, of which dbt 1.12
    # makes a text.
    named = {
        "null" if key in (None, "None") else str(key): value for key, value in external.items()
    }
    given = {key: value for key, value in named.items() if value is not None}
    problems += _key_problems(given)
    form, read = config.read_format(ConfigReader(given, problems, "external."))
    declared = _columns(columns, problems, default="string" if form == CSV else "")
    header = _header(read, declared, form)
    if "location" not in given:
        read.note("location is required, such as s3://bucket/prefix/")
    location = read("location", lambda value: readable_location(str(value))) or S3Location("", "")
    discovery = config.read_discovery(read, location)
    definition = SourceDefinition(
        name=name,
        schema=schema,
        identifier=identifier,
        location=location,
        pattern=read("pattern", _pattern) or External.pattern,
        header=header,
        column_count=_column_count(read, len(declared), has_header=header is not False),
        columns=declared,
        dialect=_dialect(read),
        compression=read("compression", choice(COMPRESSIONS)) or External.compression,
        aws_connection=_connection(read, connections),
        reading=config.parse_reading(read, has_header=header is not False),
        discovery=discovery,
        intake=config.read_intake(read),
        full_listing_hours=config.read_full_listing_hours(read, discovery),
        format=form,
        file_format=read("file_format", choice(TABLE_FORMATS)),
    )
    if problems:
        raise ConfigError(f"source {name}", problems)
    return definition


def _key_problems(given: Mapping[str, Any]) -> Iterator[str]:
    for key in given:
        if key not in KNOWN_KEYS:
            hint, known = did_you_mean(key, KNOWN_KEYS), ", ".join(KNOWN_KEYS)
            yield f"external.{key} is not a known key; {hint}known are {known}"
    if (kind := given.get("type")) != TYPE:
        hint = f": did you mean {TYPE}?" if is_near_miss(str(kind), TYPE) else ""
        yield f"external.type must be {TYPE}, not {kind!r}{hint}"


def _columns(
    declared: Sequence[Mapping[str, Any]], problems: list[str], *, default: str
) -> tuple[Column, ...]:
    found = []
    for one in declared:
        name = str(one.get("name") or "")
        data_type = str(one.get("data_type") or default)
        try:
            data_type = canonical_type(data_type) if data_type else ""
        except ValueError as exc:
            problems.append(f"column {name}: {exc}")
        found.append(Column(name, data_type))
    problems += [f"columns: {problem}" for problem in name_problems([c.name for c in found])]
    return tuple(found)


def _header(read: ConfigReader, columns: tuple[Column, ...], form: str) -> bool | tuple[str, ...]:
    header = read.given.get("header", True)
    if isinstance(header, bool):
        return header
    if not isinstance(header, (list, tuple)) or not header:
        read.note("header must be true, false, or the list of names in the header")
        return True
    wrong = [name for name in header if not isinstance(name, str)]
    if wrong:
        read.note(f"header has {wrong[0]!r}, which is not a text; put it in quotes")
    names = tuple(str(name) for name in header)
    if form != CSV:
        listed = "header lists the names, so no object is read for their types: declare"
        if not columns:
            read.note(f"{listed} `columns` with the data_type of each ({', '.join(names)})")
        for column in columns:
            if not column.data_type:
                read.note(f"{listed} the data_type of column {column.name}")
    if form == JSONL and len(set(names)) < len(names):
        read.note("header has a name twice, but a record of JSON lines has each key once")
    if not columns:
        for problem in name_problems(names):
            read.note(f"header: {problem}; declare `columns` to name them")
    elif len(columns) != len(names):
        read.note(f"header has {len(names)} names but {len(columns)} columns are declared")
    return names


def _pattern(value: Any) -> str:
    pattern = text(value)
    try:
        Pattern(pattern)
    except ValueError as exc:
        raise ValueError(f"{pattern!r} {exc}") from exc
    return pattern


def _column_count(read: ConfigReader, declared: int, *, has_header: bool) -> int | None:
    count = read("column_count", whole_number(1))
    if has_header:
        if count is not None:
            read.note("column_count needs `header: false` beside it")
    elif "column_count" not in read.given:
        if not declared:
            read.note(
                "header is false, so the columns must be known: declare `columns`, or "
                "external.column_count"
            )
    elif count is not None and declared and declared != count:
        read.note(f"column_count is {count} but {declared} columns are declared")
    return count


def _dialect(read: ConfigReader) -> CsvDialect:
    given = read.all(dict.fromkeys(config.DIALECT_KEYS, text))
    dialect = CsvDialect(**{"escape": given.get("quote", CsvDialect().quote), **given})
    if len(dialect.delimiter) > 1 and dialect.delimiter != "\\t":
        read.note(
            f"delimiter {dialect.delimiter!r} has {len(dialect.delimiter)} characters; "
            "delimiters of several characters are not supported: have the objects written with "
            "one of a single one-byte character"
        )
    else:
        # Of another escape than the quote there is but one thing to say, below.
        usable = replace(dialect, escape=dialect.quote).problems(may_lack_quote=True)
        read.problems += [f"external: {problem}" for problem in usable]
    if dialect.escape != dialect.quote:
        read.note("escape other than the quote is not supported by this version")
    if dialect.delimiter == "\\t":
        read.note('delimiter: write a tab as "\\t", in double quotes')
    return dialect


def _connection(read: ConfigReader, connections: Collection[str]) -> str:
    name = read("aws_connection", text)
    name = External.aws_connection if name is None else name
    if name not in connections:
        known = ", ".join(sorted(connections))
        read.note(
            f"aws_connection {name!r} is not in the profile's aws_connections; known are {known}"
        )
    return name
