"""The options of a source, under `external` in YAML, and their checks."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from dbt.adapters.mzs3.formats.read.columns import Column, canonical_type, name_problems
from dbt.adapters.mzs3.formats.read.compression import BY_SUFFIX, COMPRESSIONS
from dbt.adapters.mzs3.formats.read.dialect import SourceDialect
from dbt.adapters.mzs3.formats.read.format import (
    AVRO,
    CSV,
    FAIL,
    FORMAT_NAMES,
    JSONL,
    NULL,
    PARQUET,
    REJECT,
    SKIP_OBJECT,
    SUBSET,
    Reading,
)
from dbt.adapters.mzs3.ledger.relations import SourceRelations
from dbt.adapters.mzs3.options.option import as_config, group, option, options_of, read
from dbt.adapters.mzs3.options.values import choice, member, parse_size, text, whole_number
from dbt.adapters.mzs3.source.discovery import (
    SCAN,
    AfterCommit,
    Discovery,
    read_after_commit,
    read_discovery,
)
from dbt.adapters.mzs3.source.executor.pattern import Pattern
from dbt.adapters.mzs3.spark.sql import TABLE_FORMATS
from dbt.adapters.mzs3.store.connection import DEFAULT_NAME
from dbt.adapters.mzs3.store.location import S3Location, connection_problems, readable_location
from dbt.adapters.mzs3.text import is_near_miss

TYPE = "s3_csv_source"
ANY, ASCENDING = "any", "ascending"
AUTO = "auto"
MISSING_COLUMNS = "missing_columns"
_TITLES = {CSV: "CSV", AVRO: "Avro", PARQUET: "Parquet", JSONL: "JSON lines"}


def _pattern(value: Any) -> str:
    pattern = text(value)
    try:
        Pattern(pattern)
    except ValueError as exc:
        raise ValueError(f"{pattern!r} {exc}") from exc
    return pattern


def _header(value: Any) -> bool | tuple[str, ...]:
    if isinstance(value, bool):
        return value
    if not isinstance(value, (list, tuple)) or not value:
        raise ValueError("must be true, false, or the list of names in the header")
    for name in value:
        if not isinstance(name, str):
            raise ValueError(f"has {name!r}, which is not a text; put it in quotes")
    return tuple(value)


def _is_word(size: object) -> bool:
    """Whether a size is a word, such as `auto`, and not a number."""
    return isinstance(size, str) and not re.match(r"\s*\d", size)


def _bytes_per_run(value: object) -> int | str:
    """A number of bytes, or `auto`."""
    if value == AUTO:
        return AUTO
    if _is_word(value):
        raise ValueError(
            f"must be {AUTO}, a number of bytes or a text such as '256MB', not {value!r}"
        )
    return parse_size(value)


class OnOverwrite(Enum):
    """What becomes of an object with a new ETag under a key whose rows are in the source."""

    FAIL = "fail"
    IGNORE = "ignore"
    APPEND = "append"
    REPLACE = "replace"


@dataclass(frozen=True)
class Intake:
    """Which new objects a run ingests; a limit of None is no limit.

    A run takes at least one object, even one that is larger than `max_bytes`.
    """

    on_overwrite: OnOverwrite = option(member(OnOverwrite), OnOverwrite.FAIL)
    """What becomes of an object that was
    [overwritten](s3-csv-source/ledger.md#overwritten-objects-on_overwrite) after it was ingested.
    `fail`: it is an error. `ignore`: it is noted, and not read again. `append`: its rows are
    added. `replace`: its rows take the place of the old ones."""
    max_objects: int | None = option(whole_number(1), None, key="max_objects_per_run")
    """How many objects a run takes at most; the rest waits, and goes first next time."""
    max_bytes: int | str | None = option(_bytes_per_run, None, key="max_bytes_per_run")
    """How many bytes of objects a run takes at most, as a number or a text such as `'10 GB'`.
    `auto`: as many as it can fetch in `minutes_per_run`, as earlier runs
    [have shown](s3-csv-source/ledger.md#auto)."""
    minutes: int = option(whole_number(1), 10, key="minutes_per_run")
    """With `max_bytes_per_run: auto`: how many minutes a run is to fetch, about."""

    @property
    def is_limited(self) -> bool:
        """Whether a run may leave objects for later ones."""
        return self.max_objects is not None or self.max_bytes is not None

    def problems(self, given: Mapping[str, Any]) -> Iterator[str]:
        """Options that can't be combined."""
        if "minutes_per_run" in given and not _is_word(given.get("max_bytes_per_run")):
            yield f"minutes_per_run needs max_bytes_per_run: {AUTO} beside it"


@dataclass(frozen=True, kw_only=True)
class SourceDefinition:
    """A source as declared. It is valid by itself; `purify` fills in what was left open.

    `name` is `source.table`; `schema` and `identifier` name the source's view in Spark. `columns`
    is empty if none were declared; in formats other than CSV, the type of a column may be empty.
    The other fields are the options; the text below each is its row in `docs/options.md`.
    """

    name: str
    schema: str
    identifier: str
    columns: tuple[Column, ...]

    type: str = option(text, TYPE, shown="required")
    """`s3_csv_source`."""
    location: S3Location = option(
        readable_location, blank=S3Location("", ""), spell=lambda one: one.uri, pinned=True
    )
    """Bucket and prefix, such as `s3://bucket/prefix/`."""
    pattern: str = option(_pattern, "**")
    """Which keys below `location`: `?` and `*` (neither matches `/`), `**`, `{a,b}`, `[!ab]`."""
    format: str = option(choice(FORMAT_NAMES), CSV, pinned=True)
    """`csv`, `avro`, `parquet` or `jsonl`: what the objects are. Of [Avro and
    Parquet](s3-csv-source/formats.md) the schema is the header, of [JSON
    lines](s3-csv-source/formats.md#json-lines) the keys of each record."""
    discovery: Discovery = option(read_discovery, Discovery(), key="discover", shown=f"`[{SCAN}]`")
    """`[bucket_scan]`: the location is listed. `[{sqs_notifications: queue}]`: only what S3's
    event notifications on an SQS queue announce is taken. [Both](s3-csv-source/queues.md): one
    source, in which every object is taken once."""
    key_order: str = option(choice((ANY, ASCENDING)), ANY)
    """`any`, or `ascending`: the keys of new objects sort after those of earlier ones, but for
    some, so that a run lists only [their end](s3-csv-source/listing.md#where-keys-grow)."""
    full_listing_hours: int = option(whole_number(1), 24)
    """With `key_order: ascending`: all keys are listed again once the last time was so many hours
    ago."""
    after_commit: AfterCommit = option(read_after_commit, AfterCommit(), shown="`keep`")
    """[What becomes of an object](s3-csv-source/queues.md#after-the-commit) in S3 once its rows
    are committed: `keep`, `tag`, `{tag: {name: value}}`, `{move: s3://bucket/prefix/}`,
    `delete`."""
    header: bool | tuple[str, ...] = option(_header, True)
    """`true`: the first object's header is pinned. A list of names: these are pinned. `false`:
    objects have none, and `columns` or `column_count` says how many columns there are."""
    column_count: int | None = option(whole_number(1), None, formats=(CSV,))
    """The number of columns of objects without a header."""
    reading: Reading = group(Reading)
    intake: Intake = group(Intake)
    dialect: SourceDialect = group(SourceDialect, checked=False)
    compression: str = option(choice(COMPRESSIONS), BY_SUFFIX, formats=(CSV, JSONL), pinned=True)
    """`by_suffix`: as [the first bytes and the name](s3-csv-source/reading.md#compression) of an
    object say. `none`, `gzip`, `zstd` or `bzip2`: all objects are so."""
    aws_connection: str = option(text, DEFAULT_NAME)
    """A connection of the profile."""
    file_format: str | None = option(choice(TABLE_FORMATS), None)
    """`parquet`, `delta` or `iceberg`: the [format](engines/table-formats.md) of the source's
    tables in Spark. Without it, that of `spark.sql.sources.default`, by itself Parquet."""

    @property
    def relations(self) -> SourceRelations:
        """The names of the source's relations in Spark."""
        return SourceRelations(self.schema, self.identifier)

    @property
    def keys_ascend(self) -> bool:
        """Whether new keys sort after old ones, so that not every listing is full."""
        return self.key_order == ASCENDING

    def pinned_options(self) -> dict[str, Any]:
        """The declared values of the options that can't be changed once they are pinned.

        Without one that has the value of the option that it follows, as `escape` does `quote`.
        """
        values = as_config(self)
        return {
            key: values[key] for key, one in PINNED.items() if values[key] != values.get(one.like)
        }

    def problems(self, given: Mapping[str, Any]) -> Iterator[str]:
        """Options that are missing, or can't be combined."""
        if (kind := given.get("type")) != TYPE:
            hint = f": did you mean {TYPE}?" if is_near_miss(str(kind), TYPE) else ""
            yield f"type must be {TYPE}, not {kind!r}{hint}"
        if "location" not in given:
            yield "location is required, such as s3://bucket/prefix/"
        if self.reading.max_rejects is not None and given.get("on_bad_row", FAIL) == FAIL:
            yield f"max_rejects needs `on_bad_row: {REJECT}` beside it"
        needing = ("header_match", "on_header_mismatch", "on_new_columns")
        for key in needing if self.header is False else ():
            if (value := getattr(self.reading, key)) != getattr(Reading, key):
                yield f"{key}: {value} needs objects with a header, but external.header is false"
        if self.reading.widens:
            yield from self._widening_problems()
        if "full_listing_hours" in given and given.get("key_order", ANY) == ANY:
            yield (
                "full_listing_hours needs key_order: ascending beside it; without, every listing "
                "is full"
            )
        yield from self._header_problems()
        if self.keys_ascend and not self.discovery.bucket_scan:
            yield f"key_order: {ASCENDING} needs {SCAN} in external.discover"
        yield from self.after_commit.problems(self.location)
        yield from self._column_count_problems(given)

    def _widening_problems(self) -> Iterator[str]:
        if isinstance(self.header, tuple):
            yield "on_new_columns: add learns names from headers, so leave out external.header"
        if self.reading.header_match == SUBSET:
            yield "on_new_columns: add adds what header_match: subset leaves out; leave out one"
        if self.reading.skips:
            yield (
                "on_new_columns: add takes what on_header_mismatch: skip_object would skip; leave "
                "out one"
            )

    def _header_problems(self) -> Iterator[str]:
        names, columns = self.header, self.columns
        if isinstance(names, bool):
            return
        if self.format != CSV:
            listed = "header lists the names, so no object is read for their types: declare"
            if not columns:
                yield f"{listed} `columns` with the data_type of each ({', '.join(names)})"
            for column in columns:
                if not column.data_type:
                    yield f"{listed} the data_type of column {column.name}"
        if self.format == JSONL and len(set(names)) < len(names):
            yield "header has a name twice, but a record of JSON lines has each key once"
        if not columns:
            for problem in name_problems(names):
                yield f"header: {problem}; declare `columns` to name them"
        elif len(columns) != len(names):
            yield f"header has {len(names)} names but {len(columns)} columns are declared"

    def _column_count_problems(self, given: Mapping[str, Any]) -> Iterator[str]:
        count, declared = self.column_count, len(self.columns)
        if self.header is not False:
            if count is not None:
                yield "column_count needs `header: false` beside it"
        elif "column_count" not in given:
            if not declared:
                yield (
                    "header is false, so the columns must be known: declare `columns`, or "
                    "external.column_count"
                )
        elif count is not None and declared and declared != count:
            yield f"column_count is {count} but {declared} columns are declared"


OPTIONS = options_of(SourceDefinition)
PINNED = {key: one for key, one in OPTIONS.items() if one.pinned}


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
    # YAML reads an unquoted key `null` as None, which dbt 1.12 converts to the text "None".
    given = {
        "null" if key in (None, "None") else str(key): value
        for key, value in external.items()
        if value is not None
    }
    if external.get(MISSING_COLUMNS, FAIL) in (None, "None"):
        given[MISSING_COLUMNS] = NULL
    name_of_format = given.get("format", CSV)
    # Objects of the other formats have typed fields.
    data_type = "" if name_of_format in FORMAT_NAMES and name_of_format != CSV else "string"
    problems: list[str] = []
    declared = _columns(columns, problems, data_type)

    def check(definition: SourceDefinition) -> Iterator[str]:
        yield from problems
        yield from _dialect_problems(definition.dialect)
        for problem in connection_problems(definition.aws_connection, connections):
            yield f"external.{problem}"

    return read(
        SourceDefinition,
        given,
        f"source {name}",
        of=TYPE,
        within="external.",
        refused=dict(_of_other_formats(given)),
        check=check,
        name=name,
        schema=schema,
        identifier=identifier,
        columns=declared,
    )


def _of_other_formats(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The given keys that do not apply to the format of the objects, each with the problem."""
    name = given.get("format", CSV)
    if name not in FORMAT_NAMES or name == CSV:
        return
    for key, one in OPTIONS.items():
        if key in given and one.formats and name not in one.formats:
            *others, last = (_TITLES[each] for each in one.formats)
            titles = " and ".join([*filter(None, [", ".join(others)]), last])
            yield key, f"{key} is for {titles}, but external.format is {name}"
    if given.get("header") is False:
        yield (
            "header",
            f"header is false, but objects of the format {name} name their fields; leave it out, "
            "or list the names",
        )
    if name == JSONL and given.get("on_header_mismatch") == SKIP_OBJECT:
        yield (
            "on_header_mismatch",
            f"on_header_mismatch: {SKIP_OBJECT} is for objects with one header, but with the "
            f"format {name} each record has its own keys; leave it out, and see on_bad_row",
        )


def _columns(
    declared: Sequence[Mapping[str, Any]], problems: list[str], default: str
) -> tuple[Column, ...]:
    parsed = []
    for column in declared:
        name = str(column.get("name") or "")
        data_type = str(column.get("data_type") or default)
        try:
            data_type = canonical_type(data_type) if data_type else ""
        except ValueError as exc:
            problems.append(f"column {name}: {exc}")
        parsed.append(Column(name, data_type))
    problems += [f"columns: {problem}" for problem in name_problems([c.name for c in parsed])]
    return tuple(parsed)


def _dialect_problems(dialect: SourceDialect) -> Iterator[str]:
    if dialect.delimiter == "\\t":
        yield 'external.delimiter: write a tab as "\\t", in double quotes'
    yield from (f"external: {problem}" for problem in dialect.problems())
