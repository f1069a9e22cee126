"""Shows what a source would read, from the start of a few objects; pins and changes nothing.

Options are found by trying: if the definition or a header is wrong, that is shown, and as much of
the rest as can be.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from dbt.adapters.mzs3.errors import Mzs3Error, S3Error, SourceError
from dbt.adapters.mzs3.formats.read.columns import Column
from dbt.adapters.mzs3.formats.read.convert import convert
from dbt.adapters.mzs3.formats.read.dialect import SourceDialect
from dbt.adapters.mzs3.formats.read.format import CSV, JSONL, REJECT, Reading, RecordField
from dbt.adapters.mzs3.formats.read.jsonl import MalformedLine, Value, json_decode, read_record
from dbt.adapters.mzs3.formats.read.object_error import ObjectError, excerpt
from dbt.adapters.mzs3.formats.write.csv.values import value_text
from dbt.adapters.mzs3.ledger.compaction import has_commits
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.options.option import as_config, option, read
from dbt.adapters.mzs3.options.values import flag, whole_number
from dbt.adapters.mzs3.source.executor.fetch import open_format
from dbt.adapters.mzs3.source.executor.stored_object import ObjectReader, S3Object
from dbt.adapters.mzs3.source.operations.show_definition import columns_yaml, yaml_text
from dbt.adapters.mzs3.source.options import OPTIONS, SourceDefinition
from dbt.adapters.mzs3.source.pinning import readable_objects
from dbt.adapters.mzs3.source.purify import (
    PinnedDefinition,
    contradictions,
    purify,
    sql_name,
    widen,
)
from dbt.adapters.mzs3.source.queue.inbox import open_inbox
from dbt.adapters.mzs3.source.run import SourceRun, source_settings
from dbt.adapters.mzs3.source.tables import read_tables
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.text import bytes_text, count_with_commas, table_lines

PREVIEW = "preview_s3_source"
MOST_BYTES = 16 * 1024 * 1024
"""The most that is streamed of one object, to find its first records."""
_OTHER_OPTIONS = ("format", "header", "compression")
_SHOWN_ERRORS = 5
_MOST_IN_CELL, _MOST_IN_LINE = 32, 160
# A number with more than six digits after the point is rather a measurement than an amount.
_TYPES = ("bigint", "decimal(18,2)", "decimal(38,6)", "double", "boolean", "date", "timestamp")
# Texts of which a number would lose the start, such as `007` and `+49`.
_NO_NUMBER = r"^\s*(?:\+|-?0)[0-9]+\s*$"
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


class _Start(S3Object):
    """An object of which at most the first `MOST_BYTES` are streamed."""

    def open(self) -> ObjectReader:
        """A reader that ends there: of text, far behind the first chunk of whole records."""
        end = min(self.size, MOST_BYTES)
        return ObjectReader(self.store, self.key, self.etag, byte_range=(0, end))


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
            return preview_lines(definition, readable_objects(run, inbox, ledger), pinned, request)
    except S3Error as exc:
        raise SourceError(f"{definition.name}: {exc}") from exc


def preview_lines(
    definition: SourceDefinition,
    readable: Iterable[S3Object],
    pinned: PinnedDefinition | None,
    request: PreviewRequest,
) -> list[str]:
    """The lines for these objects; `pinned` is the definition that an earlier run has pinned."""
    lines = [f"{definition.name}: a preview; nothing is pinned or ingested", _options(definition)]
    if pinned and (differences := contradictions(pinned, definition)):
        lines.append("  a run would refuse this until the source is reset:")
        lines += [f"    - {difference}" for difference in differences]
        pinned = None
    objects = [_Start(**vars(one)) for one in islice(readable, request.objects)]
    if not objects:
        return [*lines, f"  no object to read at {definition.location.uri}"]
    header, unread, reading = None, "", definition.reading
    form = open_format(definition.format, definition.dialect, definition.compression, reading)
    for stored in objects if definition.header is not False else ():
        try:
            header = form.fields(stored)
        except ObjectError as problem:
            unread = unread or problem.text(stored.uri, definition.name)
        if header is not None:
            names = ", ".join(sql_name(one.name) for one in header)
            lines.append(f"  header: ({names}) in {stored.uri}")
            break
    try:
        pinned = pinned or purify(definition, header)
    except Mzs3Error as exc:
        failure = str(exc) if header or not unread else unread
        lines += ["  a run would fail:", *(f"    {line}" for line in failure.splitlines())]
    for stored in objects if reading.widens else ():
        with contextlib.suppress(Mzs3Error, ObjectError):
            pinned = pinned and (widen(definition, pinned, form.fields(stored) or ()) or pinned)
    by_header = _by_header(definition, header)
    for one in {(one.header, one.columns): one for one in (pinned, by_header) if one}.values():
        table, shown = _sample(definition, one, objects, request.rows)
        lines += shown
        if table.num_rows:
            if request.infer and by_header:
                lines += _suggestion(definition, by_header, objects)
            return lines
    texts = _text_lines(definition, objects[:1])[: request.rows]
    return lines + ["  first lines:", *(f"    {_cell(text)}" for text in texts)] * bool(texts)


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


def _by_header(
    definition: SourceDefinition, header: Sequence[RecordField] | None
) -> PinnedDefinition | None:
    """The definition with the objects' own types and, if it must, with their names or numbers."""
    own = "string" if definition.format == CSV else ""
    declared = tuple(replace(column, data_type=own) for column in definition.columns)
    numbered = tuple(Column(f"column{n}", own) for n in range(1, len(header or ()) + 1))
    has_header = definition.header is not False
    for columns in (declared, (), numbered):
        with contextlib.suppress(Mzs3Error):
            return purify(replace(definition, header=has_header, columns=columns), header)
    return None


def _sample(
    definition: SourceDefinition, read_as: PinnedDefinition, objects: Sequence[S3Object], rows: int
) -> tuple[pa.Table, list[str]]:
    """The first records of objects, and the lines that show them, with `rows` of them."""
    shown = definition.reading.with_rescued(read_as.columns)
    names, wrong = [column.name for column in shown], 0
    batches, reads, errors = list[pa.RecordBatch](), list[str](), list[str]()
    reading = replace(definition.reading, on_bad_row=REJECT)
    form = open_format(definition.format, definition.dialect, definition.compression, reading)
    decoder = form.decoder(read_as.header, read_as.fetched())
    for stored in objects:
        count, before = 0, wrong
        try:
            with contextlib.closing(decoder(stored)) as found:
                for records in islice(found, 1):
                    count, wrong = records.count, wrong + len(records.rejects)
                    batches.append(records.batch.select(names))
                    for one in records.rejects[:_SHOWN_ERRORS]:
                        where = f"object {stored.uri}, line {one.line}, byte {one.byte}"
                        option = f"; to read it, set {one.option}" if one.option else ""
                        errors.append(f"{where}: {one.error}, in {excerpt(one.raw)}{option}")
        except ObjectError as problem:
            wrong += 1
            # What ends early may do so only here.
            cut = f". Only its first {bytes_text(MOST_BYTES)} were read"
            told = problem.text(stored.uri, "").removeprefix(": ")
            errors.append(told + cut * (stored.size > MOST_BYTES))
        text = f"{stored.uri} ({bytes_text(stored.size)}): {count_with_commas(count, 'record')}"
        reads.append(f"  read of {text}, {count_with_commas(wrong - before, 'error')}")
    table = pa.Table.from_batches(batches) if batches else pa.table({name: [] for name in names})
    types = ", ".join(f"{sql_name(one.name)} {one.data_type}" for one in shown)
    lines = [f"  columns: {types}", *reads]
    if table.num_rows:
        texts = [value_text(one.combine_chunks()).to_pylist() for one in table[:rows].columns]
        cells = [[*map(_cell, row)] for row in (names, *zip(*texts, strict=True))]
        lines += [f"    {line[:_MOST_IN_LINE]}" for line in table_lines(cells, "<" * len(names))]
    if errors:
        first = f", the first {_SHOWN_ERRORS} of them" if wrong > _SHOWN_ERRORS else ""
        lines.append(f"  {count_with_commas(wrong, 'error')}{first}:")
        lines += [f"    - {error}" for error in errors[:_SHOWN_ERRORS]]
    return table, lines


def _text_lines(definition: SourceDefinition, objects: Sequence[S3Object]) -> list[str]:
    """The first lines of objects of text, each as it is."""
    reading = Reading(encoding=definition.reading.encoding)
    of_lines = replace(definition, format=CSV, dialect=_LINES, reading=reading)
    table, _ = _sample(of_lines, PinnedDefinition(None, (Column("line"),), {}), objects, 0)
    return list(table["line"].to_pylist())


def _cell(text: str | None) -> str:
    if text is None:
        return "NULL"
    if text in ("", "NULL"):
        return json.dumps(text)
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[: _MOST_IN_CELL + 1])
    return shown if len(shown) <= _MOST_IN_CELL else f"{shown[: _MOST_IN_CELL - 3]}..."


def _suggestion(
    definition: SourceDefinition, read_as: PinnedDefinition, objects: Sequence[S3Object]
) -> list[str]:
    """The columns with the narrowest types that hold the sample, as YAML."""
    if definition.format == JSONL:  # later records may have other types than the first
        records, decode = list[dict[str, Value]](), json_decode()
        for line in _text_lines(definition, objects):
            with contextlib.suppress(MalformedLine):
                records.append(dict(read_record(line.encode(), decode)))
        keys = zip(read_as.fetched(), read_as.header or (), strict=True)
        texts = {one.name: [each.get(key, (0, None))[1] for each in records] for one, key in keys}
        table = pa.table(texts, pa.schema([(name, pa.string()) for name in texts]))
    else:
        table, _ = _sample(definition, read_as, objects, 0)
    columns = [
        replace(one, data_type=narrowest_type(table[one.name], one.data_type))
        for one in read_as.columns
    ]
    lines = ["suggested by these records, to paste:", *columns_yaml(columns)]
    return [f"  {line}" for line in lines]


def narrowest_type(values: pa.ChunkedArray, own: str = "string") -> str:
    """The narrowest type of which all texts are values, or else string; `own` for other values.

    Whole numbers are `bigint`, as later values need not be as small as the first.
    """
    texts = pc.unique(values.drop_null())
    if not pa.types.is_string(texts.type):
        return own
    no_number = pc.any(pc.match_substring_regex(texts, _NO_NUMBER), min_count=0).as_py()
    for data_type in _TYPES if len(texts) and not no_number else ():
        with contextlib.suppress(ValueError):
            convert(texts, data_type)
            return data_type
    return "string"
