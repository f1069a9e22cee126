"""Shows what a source would read, from the start of a few objects; pins and changes nothing.

Options are found by trying: if the definition or a header is wrong, that is shown, and as much of
the rest as can be.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from dbt.adapters.mzs3.errors import Mzs3Error, S3Error, SourceError
from dbt.adapters.mzs3.formats.read.columns import Column, name_problems
from dbt.adapters.mzs3.formats.read.convert import convert
from dbt.adapters.mzs3.formats.read.dialect import SourceDialect
from dbt.adapters.mzs3.formats.read.format import (
    CSV,
    JSONL,
    REJECT,
    ObjectFormat,
    Reading,
    RecordField,
)
from dbt.adapters.mzs3.formats.read.jsonl import MalformedLine, json_decode, read_record
from dbt.adapters.mzs3.formats.read.object_error import ObjectError, excerpt
from dbt.adapters.mzs3.formats.read.typed import VOID
from dbt.adapters.mzs3.formats.write.csv.values import value_text
from dbt.adapters.mzs3.ledger.compaction import has_commits
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.options.option import as_config, option, read
from dbt.adapters.mzs3.options.values import flag, whole_number
from dbt.adapters.mzs3.source.executor.fetch import open_format
from dbt.adapters.mzs3.source.executor.stored_object import ObjectReader, S3Object
from dbt.adapters.mzs3.source.operations.show_definition import columns_yaml, yaml_text
from dbt.adapters.mzs3.source.options import OPTIONS, SourceDefinition
from dbt.adapters.mzs3.source.pinning import purify_now, readable_objects
from dbt.adapters.mzs3.source.purify import PinnedDefinition, contradictions, sql_name, sql_names
from dbt.adapters.mzs3.source.queue.inbox import Inbox, open_inbox
from dbt.adapters.mzs3.source.run import SourceRun, source_settings
from dbt.adapters.mzs3.source.tables import read_tables
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.text import bytes_text, count_with_commas, table_lines

PREVIEW = "preview_s3_source"
ENOUGH_BYTES = 4 * 1024 * 1024
"""No further object is looked at once those before have so many bytes."""
MOST_BYTES = 16 * 1024 * 1024
"""The most that is streamed of one object, to find its first records."""
_OTHER_OPTIONS = ("format", "header", "compression")
_SHOWN_ERRORS = 5
_MOST_IN_CELL, _MOST_IN_LINE = 32, 160
# A number with more digits after the point is rather a measurement than an amount.
_MOST_SCALE = 6
# Each line is a record with one field: hardly any text has this character.
_LINES = SourceDialect(delimiter="\x01", quote="", escape="", null="\x01")


@dataclass(frozen=True)
class PreviewRequest:
    """How many rows are shown of how many objects, and whether types are suggested."""

    rows: int = option(whole_number(1, 100), 10)
    objects: int = option(whole_number(1, 20), 3)
    infer: bool = option(flag, False)


def parse_preview(arguments: Mapping[str, Any]) -> PreviewRequest:
    """The request in a run-operation's arguments; raises ConfigError with all problems."""
    return read(PreviewRequest, arguments, PREVIEW, of=PREVIEW)


def preview_source(
    spark: SparkSession,
    definition: SourceDefinition,
    connection: AwsConnection,
    request: PreviewRequest,
) -> list[str]:
    """The lines of a preview; leaves the queue's messages in place. Raises SourceError only if
    the source's objects can't be found."""
    run, ledger, pinned = SourceRun(spark, definition, connection), None, None
    try:
        with source_settings(spark, definition.name), open_inbox(run) as inbox:
            tables = read_tables(spark, definition)
            if tables is not None and tables.has_ledger:
                ledger = Ledger(spark, tables.relations)
                pinned = tables.pinned if has_commits(ledger) else None
            return preview_lines(run, inbox, ledger, pinned, request)
    except S3Error as exc:
        raise SourceError(f"{definition.name}: {exc}") from exc


def preview_lines(
    run: SourceRun,
    inbox: Inbox | None,
    ledger: Ledger | None,
    pinned: PinnedDefinition | None,
    request: PreviewRequest,
) -> list[str]:
    """See `preview_source`; `pinned` is the definition that an earlier run has pinned."""
    definition, purified = run.definition, pinned
    reading = replace(definition.reading, on_bad_row=REJECT)
    form = open_format(definition.format, definition.dialect, definition.compression, reading)
    objects = _starts(readable_objects(run, inbox, ledger), request.objects)
    lines = [f"{definition.name}: a preview; nothing is pinned or ingested", _options(definition)]
    if pinned and (differences := contradictions(pinned, definition)):
        lines.append("  a run would refuse this until the source is reset:")
        lines += [f"    - {difference}" for difference in differences]
        purified = None
    if purified is None:
        try:
            purified = purify_now(run, inbox, ledger)
        except Mzs3Error as exc:
            lines += ["  a run would fail:", *(f"    {line}" for line in str(exc).splitlines())]
    if not objects:
        return [*lines, f"  no object to read at {definition.location.uri}"]
    found, origin = _first_header(definition, form, objects)
    if found is not None:
        lines.append(f"  header: {sql_names([one.name for one in found])} in {origin}")
    sample = _sample(form, purified, objects) if purified else None
    own = _as_found(definition, found) if found else None
    if own and not (sample and sample.rows) and not (purified and _alike(own, purified)):
        if sample is not None:
            lines += [*_errors(sample), "  so the columns are taken from the header instead:"]
        purified, sample = own, _sample(form, own, objects)
    if sample is None or purified is None:
        texts = _lines_of(definition, objects[:1]).column(0).to_pylist()[: request.rows]
        return lines + ["  first lines:", *(f"    {_cell(text)}" for text in texts)] * bool(texts)
    types = ", ".join(f"{sql_name(c.name)} {c.data_type}" for c in purified.columns)
    lines += [f"  columns: {types}", *sample.objects, *_table(sample, request.rows)]
    lines += _errors(sample)
    return lines + (
        _suggestion(definition, form, purified, found, objects) if request.infer else []
    )


class _Start(S3Object):
    """An object of which at most the first `MOST_BYTES` are streamed."""

    def open(self) -> ObjectReader:
        """A reader that ends there: of text, far behind the first chunk of whole records."""
        end = min(self.size, MOST_BYTES)
        return ObjectReader(self.store, self.key, self.etag, byte_range=(0, end))


def _starts(objects: Iterable[S3Object], most: int) -> list[S3Object]:
    chosen: list[S3Object] = []
    for stored in islice(objects, most):
        chosen.append(_Start(**vars(stored)))
        if sum(one.size for one in chosen) > ENOUGH_BYTES:
            break
    return chosen


def _options(definition: SourceDefinition) -> str:
    """The options that say how objects are read, as YAML."""
    options = {
        key: value
        for key, value in as_config(definition).items()
        if (OPTIONS[key].owner in (SourceDialect, Reading) or key in _OTHER_OPTIONS)
        and definition.format in (OPTIONS[key].formats or (definition.format,))
        and value is not None
    }
    return f"  options: {yaml_text(options)}"


def _first_header(
    definition: SourceDefinition, form: ObjectFormat, objects: Sequence[S3Object]
) -> tuple[tuple[RecordField, ...] | None, str]:
    """The first header that can be read, and the URI of its object."""
    for stored in objects if definition.header is not False else ():
        with contextlib.suppress(ObjectError):
            if (found := form.fields(stored)) is not None:
                return found, stored.uri
    return None, ""


def _as_found(definition: SourceDefinition, found: Sequence[RecordField]) -> PinnedDefinition:
    """A definition by the header alone; if its names can't be columns, those have other names."""
    names = tuple(one.name for one in found)
    usable = [f"column{n}" for n in range(1, len(names) + 1)] if name_problems(names) else names
    columns = tuple(map(Column, usable, map(_own_type, found)))
    return PinnedDefinition(names, columns, definition.pinned_options())


def _alike(one: PinnedDefinition, other: PinnedDefinition) -> bool:
    return (one.header, one.columns) == (other.header, other.columns)


def _own_type(of: RecordField) -> str:
    return "string" if of.own in (None, VOID) else str(of.own)


@dataclass
class _Sample:
    """The first records of objects: rows of the columns, and the first errors of `wrong`."""

    columns: tuple[Column, ...]
    batches: list[pa.RecordBatch] = field(default_factory=list)
    objects: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    wrong: int = 0

    def add_error(self, text: str) -> None:
        """Counts an error, and keeps the first ones."""
        self.wrong += 1
        self.errors += [text] if len(self.errors) < _SHOWN_ERRORS else []

    @property
    def rows(self) -> int:
        """How many records are rows."""
        return sum(batch.num_rows for batch in self.batches)

    def column(self, place: int) -> pa.Array:
        """A column's values."""
        arrays = [batch.column(place) for batch in self.batches]
        return pa.concat_arrays(arrays) if arrays else pa.array([], pa.string())


def _places(definition: PinnedDefinition) -> Sequence[int]:
    """For each column, its position in the header."""
    return definition.fields or range(len(definition.columns))


def _sample(
    form: ObjectFormat, definition: PinnedDefinition, objects: Iterable[S3Object]
) -> _Sample:
    sample, places = _Sample(definition.columns), list(_places(definition))
    decoder = form.decoder(definition.header, definition.fetched())
    for stored in objects:
        count, before = 0, sample.wrong
        try:
            with contextlib.closing(decoder(stored)) as found:
                for records in islice(found, 1):
                    count = records.count
                    sample.batches.append(records.batch.select(places))
                    for one in records.rejects:
                        where = f"object {stored.uri}, line {one.line}, byte {one.byte}"
                        sample.add_error(f"{where}: {one.error}, in {excerpt(one.raw)}")
        except ObjectError as problem:
            # What ends early may do so only here.
            cut = f". Only its first {bytes_text(MOST_BYTES)} were read"
            told = problem.text(stored.uri, "").removeprefix(": ")
            sample.add_error(told + cut * (stored.size > MOST_BYTES))
        text = f"{stored.uri} ({bytes_text(stored.size)}): {count_with_commas(count, 'record')}"
        errors = count_with_commas(sample.wrong - before, "error")
        sample.objects.append(f"  read of {text}, {errors}")
    return sample


def _lines_of(definition: SourceDefinition, objects: Sequence[S3Object]) -> _Sample:
    """The first lines of objects of text, each as it is."""
    reading = Reading(encoding=definition.reading.encoding, on_bad_row=REJECT)
    form = open_format(CSV, _LINES, definition.compression, reading)
    return _sample(form, PinnedDefinition(None, (Column("line"),), {}), objects)


def _table(sample: _Sample, rows: int) -> list[str]:
    """The first rows; lines are cut at their ends."""
    if not sample.rows:
        return []
    texts = [value_text(sample.column(n)[:rows]).to_pylist() for n in range(len(sample.columns))]
    names = [column.name for column in sample.columns]
    cells = [[*map(_cell, row)] for row in (names, *zip(*texts, strict=True))]
    return [f"    {line[:_MOST_IN_LINE]}" for line in table_lines(cells, "<" * len(names))]


def _cell(text: str | None) -> str:
    if text is None:
        return "NULL"
    if text in ("", "NULL"):
        return json.dumps(text)
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[: _MOST_IN_CELL + 1])
    return shown if len(shown) <= _MOST_IN_CELL else f"{shown[: _MOST_IN_CELL - 3]}..."


def _errors(sample: _Sample) -> list[str]:
    first = f", the first {_SHOWN_ERRORS} of them" if sample.wrong > _SHOWN_ERRORS else ""
    lines = [f"  {count_with_commas(sample.wrong, 'error')}{first}:"]
    return [*lines, *(f"    - {error}" for error in sample.errors)] if sample.wrong else []


def _suggestion(
    definition: SourceDefinition,
    form: ObjectFormat,
    purified: PinnedDefinition,
    found: Sequence[RecordField] | None,
    objects: Sequence[S3Object],
) -> list[str]:
    """The columns with the narrowest types that hold the sample, as YAML."""
    own = {one.name: _own_type(one) for one in found or ()}
    names = [purified.header[place] if purified.header else "" for place in _places(purified)]
    stored = tuple(
        replace(column, data_type=own.get(name, "string"))
        for column, name in zip(purified.columns, names, strict=True)
    )
    if definition.format == JSONL:
        texts = _json_texts(_lines_of(definition, objects), names)
    else:
        sample = _sample(form, replace(purified, columns=stored), objects)
        texts = [sample.column(place) for place in range(len(stored))]
    if not len(texts[0]):
        return ["  no record to suggest types from"]
    suggested = tuple(
        replace(column, data_type=narrowest_type(values))
        if pa.types.is_string(values.type)
        else column
        for column, values in zip(stored, texts, strict=True)
    )
    wrong = _sample(form, replace(purified, columns=suggested), objects).wrong
    but = f", with which {count_with_commas(wrong, 'error')} would be left" if wrong else ""
    lines = [f"suggested by these records{but}, to paste:", *columns_yaml(suggested)]
    return [f"  {line}" for line in lines]


def _json_texts(lines: _Sample, names: Sequence[str]) -> list[pa.Array]:
    """The texts of each key's values in lines of JSON; NULL in records without the key."""
    decode, found = json_decode(), []
    for line in lines.column(0).to_pylist():
        with contextlib.suppress(MalformedLine):
            found.append(dict(read_record(line.encode(), decode)))
    return [pa.array([one.get(n, ("", None))[1] for one in found], pa.string()) for n in names]


def narrowest_type(texts: pa.Array) -> str:
    """The narrowest type of which all of these texts are values; string if there is none.

    Whole numbers are `bigint`, as later values need not be as small as the first. If one has a
    sign or zeros before it that a number would lose, such as `007`, all are strings.
    """
    values = pc.unique(texts.drop_null())
    trimmed = pc.ascii_trim_whitespace(values)
    for data_type in _candidates(trimmed) if len(values) else ():
        with contextlib.suppress(ValueError):
            converted = convert(values, data_type)
            is_whole = data_type == "bigint" or data_type.endswith(",0)")
            keeps_all = not is_whole or value_text(converted).cast(pa.string()).equals(trimmed)
            return data_type if keeps_all else "string"
    return "string"


def _candidates(texts: pa.Array) -> list[str]:
    """The types to try; decimals if few digits follow the point, and there is no exponent."""
    point = pc.find_substring(texts, ".")
    digits = pc.subtract(pc.subtract(pc.utf8_length(texts), point), 1)
    scale = pc.max(pc.if_else(pc.less(point, 0), 0, digits)).as_py()
    exponents = pc.any(pc.match_substring(texts, "e", ignore_case=True)).as_py()
    precisions = () if exponents or scale > _MOST_SCALE else (18, 38)
    decimals = [f"decimal({precision},{scale})" for precision in precisions]
    return ["bigint", *decimals, "double", "boolean", "date", "timestamp"]
