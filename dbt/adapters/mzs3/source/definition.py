"""What a source table declares under `external`, parsed and checked before anything is read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dbt.adapters.mzs3.formats.dialect import CsvDialect
from dbt.adapters.mzs3.formats.read.columns import Column, canonical_type, name_problems
from dbt.adapters.mzs3.formats.read.compression import BY_SUFFIX, COMPRESSIONS
from dbt.adapters.mzs3.formats.read.format import CSV, FAIL, FORMAT_NAMES, JSONL, REJECT, Reading
from dbt.adapters.mzs3.ledger.relations import SourceRelations
from dbt.adapters.mzs3.options.option import group, option, options_of, read
from dbt.adapters.mzs3.options.values import ConfigReader, choice, member, text, whole_number
from dbt.adapters.mzs3.source import config
from dbt.adapters.mzs3.source.executor.pattern import Pattern
from dbt.adapters.mzs3.spark.sql import TABLE_FORMATS
from dbt.adapters.mzs3.store.connection import DEFAULT_NAME
from dbt.adapters.mzs3.store.location import S3Location, connection_problems, declared_location
from dbt.adapters.mzs3.text import is_near_miss

TYPE = "s3_csv_source"


def as_given(value: Any) -> Any:
    """The value of an option that is read with others."""
    return value


def _pattern(value: Any) -> str:
    pattern = text(value)
    try:
        Pattern(pattern)
    except ValueError as exc:
        raise ValueError(f"{pattern!r} {exc}") from exc
    return pattern


@dataclass(frozen=True, kw_only=True)
class External:
    """The keys of `external`; the text below each is its row in `docs/options.md`."""

    type: str = option(text, TYPE, shown="required")
    """`s3_csv_source`."""
    location: S3Location = option(
        declared_location, blank=S3Location("", ""), spell=lambda one: one.uri, pinned=True
    )
    """Bucket and prefix, such as `s3://bucket/prefix/`."""
    pattern: str = option(_pattern, "**")
    """Which keys below `location`: `?` and `*` (neither matches `/`), `**`, `{a,b}`, `[!ab]`."""
    format: str = option(choice(FORMAT_NAMES), CSV, pinned=True)
    """`csv`, `avro`, `parquet` or `jsonl`: what the objects are. Of [Avro and
    Parquet](s3-csv-source/formats.md) the schema is the header, of [JSON
    lines](s3-csv-source/formats.md#json-lines) the keys of each record."""
    discover: tuple[str, ...] = option(as_given, (config.SCAN,))
    """`[bucket_scan]`: the location is listed. `[{sqs_notifications: queue}]`: only what S3's
    event notifications on an SQS queue announce is taken. [Both](s3-csv-source/queues.md): one
    source, in which every object is taken once."""
    key_order: str = option(choice(("any", "ascending")), "any")
    """`any`, or `ascending`: the keys of new objects sort behind those of earlier ones, but for
    some, so that a run lists only [their end](s3-csv-source/listing.md#where-keys-grow)."""
    full_listing_hours: int = option(whole_number(1), config.FULL_LISTING_HOURS)
    """With `key_order: ascending`: all keys are listed again once the last time was so many hours
    ago."""
    after_commit: Any = option(as_given, "keep")
    """[What becomes of an object](s3-csv-source/queues.md#after-the-commit) in S3 once its rows
    are committed: `keep`, `tag`, `{tag: {name: value}}`, `{move: s3://bucket/prefix/}`,
    `delete`."""
    header: bool | tuple[str, ...] = option(as_given, True)
    """`true`: the first object's header is pinned. A list of names: these are pinned. `false`:
    objects have none, and `columns` or `column_count` says how many columns there are."""
    column_count: int | None = option(whole_number(1), None, formats=(CSV,))
    """The number of columns of objects without a header."""
    reading: Reading = group(Reading)
    on_overwrite: config.OnOverwrite = option(member(config.OnOverwrite), config.OnOverwrite.FAIL)
    """What becomes of an object that was
    [overwritten](s3-csv-source/ledger.md#overwritten-objects-on_overwrite) after it was ingested.
    `fail`: it is an error. `ignore`: it is noted, and not read again. `append`: its rows are
    added. `replace`: its rows take the place of the old ones."""
    dialect: CsvDialect = group(CsvDialect, checked=False)
    compression: str = option(choice(COMPRESSIONS), BY_SUFFIX, formats=(CSV, JSONL), pinned=True)
    """`by_suffix`: as [the first bytes and the name](s3-csv-source/reading.md#compression) of an
    object say. `none`, `gzip`, `zstd` or `bzip2`: all objects are so."""
    max_objects_per_run: int | None = option(whole_number(1), None)
    """How many objects a run takes at most; the rest waits, and goes first next time."""
    max_bytes_per_run: int | str | None = option(config.bytes_per_run, None)
    """How many bytes of objects a run takes at most, as a number or a text such as `'10 GB'`.
    `auto`: as many as it can fetch in `minutes_per_run`, as earlier runs
    [have shown](s3-csv-source/ledger.md#auto)."""
    minutes_per_run: int = option(whole_number(1), config.MINUTES_PER_RUN)
    """With `max_bytes_per_run: auto`: how many minutes a run is to fetch, about."""
    aws_connection: str = option(text, DEFAULT_NAME)
    """A connection of the profile."""
    file_format: str | None = option(choice(TABLE_FORMATS), None)
    """`parquet`, `delta` or `iceberg`: the [format](engines/table-formats.md) of the source's
    tables in Spark. Without it, that of `spark.sql.sources.default`, by itself Parquet."""

    def problems(self, given: Mapping[str, Any]) -> Iterator[str]:
        """What is missing, and what does not go together."""
        if (kind := given.get("type")) != TYPE:
            hint = f": did you mean {TYPE}?" if is_near_miss(str(kind), TYPE) else ""
            yield f"type must be {TYPE}, not {kind!r}{hint}"
        if "location" not in given:
            yield "location is required, such as s3://bucket/prefix/"
        if self.reading.max_rejects is not None and given.get("on_bad_row", FAIL) == FAIL:
            yield f"max_rejects needs `on_bad_row: {REJECT}` beside it"
        for key in ("header_match", "on_header_mismatch") if self.header is False else ():
            if (value := getattr(self.reading, key)) != getattr(Reading, key):
                yield f"{key}: {value} needs objects with a header, but external.header is false"
        if "full_listing_hours" in given and given.get("key_order", "any") == "any":
            yield (
                "full_listing_hours needs key_order: ascending beside it; without, every listing "
                "is full"
            )
        if "minutes_per_run" in given and not config.is_word(given.get("max_bytes_per_run")):
            yield f"minutes_per_run needs max_bytes_per_run: {config.AUTO} beside it"


OPTIONS = options_of(External)
PINNED = {key: one for key, one in OPTIONS.items() if one.pinned}


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

    def pinned_options(self) -> dict[str, Any]:
        """The options to whose first values a source keeps, as they are declared now."""
        within = {CsvDialect: self.dialect, Reading: self.reading}
        return {
            key: one.spell(getattr(within.get(one.owner, self), one.field))
            for key, one in PINNED.items()
        }

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
    # YAML reads a key that is written `null`, without quotes, as no name at all, of which dbt 1.12
    # makes a text.
    named = {
        "null" if key in (None, "None") else str(key): value for key, value in external.items()
    }
    given = {key: value for key, value in named.items() if value is not None}
    unfit = dict(config.of_other_formats(given, OPTIONS))
    rest = {key: value for key, value in given.items() if key not in unfit}
    found: list[SourceDefinition] = []

    def check(options: External) -> Sequence[str]:
        problems = [f"external.{problem}" for problem in unfit.values()]
        reader = ConfigReader(rest, problems, "external.")
        declared = _columns(columns, problems, default="string" if options.format == CSV else "")
        header = _header(reader, declared, options.format)
        limit = options.max_bytes_per_run
        discovery = config.read_discovery(reader, options.location)
        if options.key_order == "ascending" and not discovery.bucket_scan:
            reader.note(f"key_order: ascending needs {config.SCAN} in external.discover")
        _check_column_count(reader, options.column_count, len(declared), header is not False)
        _check_dialect(reader, options.dialect)
        problems += (
            f"external.{problem}"
            for problem in connection_problems(options.aws_connection, connections)
        )
        definition = SourceDefinition(
            name=name,
            schema=schema,
            identifier=identifier,
            location=options.location,
            pattern=options.pattern,
            header=header,
            column_count=options.column_count,
            columns=declared,
            dialect=options.dialect,
            compression=options.compression,
            aws_connection=options.aws_connection,
            reading=options.reading,
            discovery=discovery,
            intake=config.Intake(
                on_overwrite=options.on_overwrite,
                max_objects=options.max_objects_per_run,
                max_bytes=limit if isinstance(limit, int) else None,
                minutes=options.minutes_per_run if limit == config.AUTO else None,
            ),
            full_listing_hours=(
                options.full_listing_hours if options.key_order == "ascending" else None
            ),
            format=options.format,
            file_format=options.file_format,
        )
        found.append(definition)
        return problems

    read(External, rest, f"source {name}", of=TYPE, within="external.", check=check)
    return found[0]


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


def _check_column_count(
    read: ConfigReader, count: int | None, declared: int, has_header: bool
) -> None:
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


def _check_dialect(read: ConfigReader, dialect: CsvDialect) -> None:
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
