"""JSON lines as a format of objects: each line is a record, whose keys are the columns' names.

pyarrow reads the chunks that it can read exactly; `read_record` reads the others line by line.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.mzs3.formats.read.chunks import Chunk
from dbt.adapters.mzs3.formats.read.columns import INTEGERS, Column, RecordLayout
from dbt.adapters.mzs3.formats.read.convert import convert, convert_good
from dbt.adapters.mzs3.formats.read.encoding import UTF_8
from dbt.adapters.mzs3.formats.read.format import SUBSET, RecordField, Records, Reject, raw_text
from dbt.adapters.mzs3.formats.read.header import malformed_header, name_difference
from dbt.adapters.mzs3.formats.read.json_chunks import read_lines
from dbt.adapters.mzs3.formats.read.object_error import (
    FIX_OBJECT,
    HEADER,
    ObjectError,
    excerpt,
    not_of_type,
)
from dbt.adapters.mzs3.formats.read.text import TextDecoder, TextFormat
from dbt.adapters.mzs3.formats.read.typed import VOID
from dbt.adapters.mzs3.types.table import arrow_type

NULL, BOOLEAN, NUMBER, STRING = "null", "boolean", "number", "string"
OBJECT, ARRAY = "object", "array"
_KIND_BY_START = {"n": NULL, "t": BOOLEAN, "f": BOOLEAN, '"': STRING, "{": OBJECT, "[": ARRAY}

_OPENING = re.compile(r"[\x20\t\r]*\{[\x20\t\r]*")
_COLON = re.compile(r"[\x20\t\r]*:[\x20\t\r]*")
_AFTER_VALUE = re.compile(r"[\x20\t\r]*([,}])[\x20\t\r]*")
# Nearly all keys and values match these: without escapes, and not nested.
_TEXT = r'"([^"\\\x00-\x1f]*)"'
_NUMBER = r"(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
_PLAIN_PAIR = re.compile(
    rf"{_TEXT}{_COLON.pattern}(?:{_TEXT}|{_NUMBER}|(true|false)|null){_AFTER_VALUE.pattern}"
)
# An escape, or two that are a surrogate pair; the group matches half of a pair.
_ESCAPES = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F]..)|\\."
)

Value = tuple[str, str | None]
"""A value's kind, and its text: None for NULL, decoded for a string, else as in the line."""


class MalformedLine(Exception):
    """The reason why a line is not a record."""


def _refuse_constant(word: str) -> None:
    raise MalformedLine(f"the line has {word}, which is not JSON")


Decode = Callable[[str, int], tuple[Any, int]]


def json_decode() -> Decode:
    """A function that decodes the value at a position, and returns it with its end.

    Numbers stay texts. To be called on the worker, as the function can't be pickled.
    """
    decoder = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse_constant)
    return decoder.raw_decode


def read_record(raw: bytes, decode: Decode) -> list[tuple[str, Value]]:
    """The keys of a line's object in their order, duplicates included, each with its value.

    Raises MalformedLine for a line that is not one JSON object (RFC 8259) in UTF-8.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError as exc:
        byte = raw[exc.start]
        raise MalformedLine(f"the line is not valid UTF-8: byte 0x{byte:02x}") from None
    try:
        pairs = _pairs(text, decode)
    except json.JSONDecodeError as exc:
        raise _invalid(text, exc.pos) from None
    except RecursionError:
        raise MalformedLine("the line is nested too deeply to be read") from None
    if "\\u" in text:
        for escape in _ESCAPES.finditer(text):
            if escape[1]:
                raise MalformedLine(f"the line has half of a surrogate pair, {escape[1]}")
    return pairs


def _pairs(text: str, decode: Decode) -> list[tuple[str, Value]]:
    opening = _OPENING.match(text)
    if opening is None:
        found = excerpt(text.strip(" \t\r"))
        raise MalformedLine(
            f"the line is not a JSON object, which a line has from {{ to }}: {found}"
        )
    pairs: list[tuple[str, Value]] = []
    position, mark = opening.end(), ","
    if text.startswith("}", position):
        after = _match(_AFTER_VALUE, text, position)
        position, mark = after.end(), after[1]
    while mark == ",":
        plain = _PLAIN_PAIR.match(text, position)
        if plain is None:
            pair, position = _pair(text, position, decode)
            after = _match(_AFTER_VALUE, text, position)
            position, mark = after.end(), after[1]
        else:
            name, string, number, word, mark = plain.groups()
            position = plain.end()
            kind = STRING if string is not None else NUMBER if number else BOOLEAN
            value = string if string is not None else number or word
            pair = name, (kind if value is not None else NULL, value)
        pairs.append(pair)
    if position < len(text):
        raise _invalid(text, position)
    return pairs


def _pair(text: str, position: int, decode: Decode) -> tuple[tuple[str, Value], int]:
    """The key at the position with its value, and where the value ends."""
    if not text.startswith('"', position):
        raise _invalid(text, position)
    name, position = decode(text, position)
    position = _match(_COLON, text, position).end()
    value, end = decode(text, position)
    kind = _KIND_BY_START.get(text[position], NUMBER)
    if kind != STRING:
        value = None if kind == NULL else text[position:end]
    return (name, (kind, value)), end


def _match(pattern: re.Pattern[str], text: str, position: int) -> re.Match[str]:
    """The match at the position. Raises MalformedLine where there is none."""
    found = pattern.match(text, position)
    if found is None:
        raise _invalid(text, position)
    return found


def _invalid(text: str, position: int) -> MalformedLine:
    rest = text[position:].strip(" \t\r")
    if not rest:
        return MalformedLine("the line is not valid JSON: it ends early")
    return MalformedLine(
        f"the line is not valid JSON from character {position + 1} on: {excerpt(rest)}"
    )


PART_BYTES = 64 * 1024

_NUMBERS = (*INTEGERS, "decimal", "float", "double")
# The JSON kinds that a column type accepts besides NULL; strings as fields of CSV.
_KINDS = {
    "string": (STRING, OBJECT, ARRAY),
    "boolean": (STRING, BOOLEAN),
    **dict.fromkeys(_NUMBERS, (STRING, NUMBER)),
}
_NATIVE = ("boolean", *_NUMBERS)
_OTHER_TYPE = "; or declare another data_type for the column"
_BIGINT = re.compile(r"-?[0-9]{1,18}")
_WHOLE = re.compile(r"-?[0-9]{1,38}")


class _OtherKeys(MalformedLine):
    """A record whose keys differ from the header."""


class NumberField(RecordField):
    """A number; in other records its digits may need another type."""

    also = _NUMBERS


class JsonLinesFormat(TextFormat):
    """JSON lines with one compression; each record has its own keys."""

    def fields_in(self, chunk: Chunk) -> tuple[RecordField, ...] | None:
        """The keys of the chunk's first record with their types; None if all lines are blank.

        Raises HeaderProblem.
        """
        for line in _lines(chunk):
            try:
                return _fields(line.data)
            except MalformedLine as exc:
                raise malformed_header(str(exc), line.line, line.byte) from exc
        return None

    def decoder(self, header: tuple[str, ...] | None, columns: Sequence[Column]) -> JsonDecoder:
        """See `ObjectFormat`; `header` is never None."""
        assert header is not None
        return JsonDecoder(self, header, columns)


def _fields(raw: bytes) -> tuple[RecordField, ...]:
    pairs = read_record(raw, json_decode())
    names = [name for name, _ in pairs]
    if not names:
        raise MalformedLine("the record has no key")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise MalformedLine(f"the record has the key {excerpt(twice)} twice")
    return tuple(_field(name, *value) for name, value in pairs)


def _field(name: str, kind: str, text: str | None) -> RecordField:
    if kind == NULL:
        return RecordField(name, kind, VOID)
    if kind == BOOLEAN:
        return RecordField(name, kind, "boolean")
    if kind != NUMBER:
        return RecordField(name, kind, "string")
    assert text is not None
    whole = "bigint" if _BIGINT.fullmatch(text) else "decimal(38,0)"
    return NumberField(name, kind, whole if _WHOLE.fullmatch(text) else "double")


def _lines(chunk: Chunk) -> Iterator[Chunk]:
    """The lines that are not blank, without their newlines."""
    byte = chunk.byte
    for number, raw in enumerate(chunk.data.split(b"\n"), chunk.line):
        if raw.strip(b" \t\r"):
            yield Chunk(raw, byte, number)
        byte += len(raw) + 1


def _parts(chunk: Chunk) -> Iterator[Chunk]:
    """Cuts the chunk after newlines, so that few good records share a part with a bad one."""
    start, line = 0, chunk.line
    while start < len(chunk.data):
        end = chunk.data.find(b"\n", start + PART_BYTES) + 1 or len(chunk.data)
        data = chunk.data[start:end]
        yield Chunk(data, chunk.byte + start, line)
        start, line = end, line + data.count(b"\n")


def _concatenated(parts: Sequence[Records]) -> Records:
    """Joins the records of consecutive parts."""
    numbers: list[pa.Array] = []
    rejects: list[Reject] = []
    count = 0
    for part in parts:
        own = pa.arange(0, part.count) if part.numbers is None else part.numbers
        numbers.append(pc.add(own, pa.scalar(count, pa.int64())))
        rejects += [replace(one, number=count + one.number) for one in part.rejects]
        count += part.count
    batch = pa.concat_batches([part.batch for part in parts])
    return Records(batch, count, pa.concat_arrays(numbers), tuple(rejects))


class JsonDecoder(TextDecoder):
    """Decodes JSON lines, whose `keys` are the columns in their order; has no use for a layout.

    Learns how values are written, and whether to expect records that pyarrow can't read exactly.
    """

    def __init__(
        self, form: JsonLinesFormat, keys: Sequence[str], columns: Sequence[Column]
    ) -> None:
        super().__init__(form, None, columns)
        self._keys = keys
        self._key_set = frozenset(keys)
        families = [column.data_type.partition("(")[0] for column in columns]
        self._kinds = [_KINDS.get(family, (STRING,)) for family in families]
        self._native = [family in _NATIVE for family in families]
        # Whether each column is read as a string, for `convert`.
        self._as_text = [not native for native in self._native]
        self._has_nested = False
        self._expects_others = False
        self._decode = json_decode()

    def decode(self, chunk: Chunk, _: RecordLayout | None = None) -> Records:
        """See `TextDecoder`."""
        # After a chunk that pyarrow can't read exactly, most are like it: skip this attempt.
        batch = None if self._expects_others else self.all_good(chunk.data)
        if batch is not None:
            return Records(batch, batch.num_rows)
        parts = [self._read_part(part) for part in _parts(chunk)]
        self._expects_others = any(part.numbers is not None for part in parts)
        return _concatenated(parts)

    def _read_part(self, chunk: Chunk) -> Records:
        batch = self.all_good(chunk.data)
        return self._one_by_one(chunk) if batch is None else Records(batch, batch.num_rows)

    def all_good(self, data: bytes, _: RecordLayout | None = None) -> pa.RecordBatch | None:
        """See `TextDecoder`."""
        types = {
            name: pa.string() if as_text else arrow_type(column.data_type)
            for name, column, as_text in zip(self._keys, self.columns, self._as_text, strict=True)
        }
        others = self._reading.header_match == SUBSET
        arrays = read_lines(
            data, types, others=others, missing=self._reading.fills, nested=self._has_nested
        )
        if arrays is None:
            return None
        with contextlib.suppress(ValueError):
            return self.batch(
                convert(array, column.data_type) if as_text else array
                for array, column, as_text in zip(arrays, self.columns, self._as_text, strict=True)
            )
        return None

    def _one_by_one(self, chunk: Chunk) -> Records:
        """The chunk's records: reads the lines one by one, and converts whole columns."""
        lines = list(_lines(chunk))
        bad: dict[int, tuple[str | None, str]] = {}
        options: dict[int, str] = {}  # that read records with other keys
        numbers: list[int] = []
        values: list[Sequence[Value]] = []
        for number, line in enumerate(lines):
            try:
                values.append(self._values(line.data))
                numbers.append(number)
            except MalformedLine as exc:
                bad[number] = None, str(exc)
                if isinstance(exc, _OtherKeys):
                    fills = " is missing" in str(exc)
                    options[number] = "missing_columns: null" if fills else ""
        arrays, wrong = self._converted(numbers, values)
        bad |= wrong
        rejects = tuple(
            Reject(
                n, line.line, line.byte, raw_text(line.data, UTF_8), *bad[n], options.get(n, "")
            )
            for n, line in enumerate(lines)
            if n in bad
        )
        if bad and not self._reading.rejects:
            first = rejects[0]
            advice = f"; or set {first.option}" if first.option else ""
            advice = _OTHER_TYPE if first.number in wrong else advice
            where = {"line": first.line, "byte": first.byte}
            cause = HEADER if first.number in options else ""
            raise ObjectError(first.error, FIX_OBJECT + advice, cause=cause, **where)
        if wrong:
            good = pa.array([number not in wrong for number in numbers], pa.bool_())
            arrays = [array.filter(good) for array in arrays]
            numbers = [number for number in numbers if number not in wrong]
        return Records(self.batch(arrays), len(lines), pa.array(numbers, pa.int64()), rejects)

    def _values(self, raw: bytes) -> Sequence[Value]:
        """The columns' values. Raises MalformedLine, also for keys other than the pinned ones."""
        pairs = read_record(raw, self._decode)
        found = dict(pairs)
        if self._reading.fills:
            pairs += [(key, (NULL, None)) for key in self._keys if key not in found]
            found = dict(pairs)
        match = self._reading.header_match
        fits = found.keys() >= self._key_set if match == SUBSET else found.keys() == self._key_set
        if not fits or len(found) < len(pairs):
            difference = name_difference([name for name, _ in pairs], self._keys, match)
            if difference is not None:
                raise _OtherKeys(f"the record has other keys than the header: {difference}")
        return [found[name] for name in self._keys]

    def _converted(
        self, numbers: Sequence[int], values: Sequence[Sequence[Value]]
    ) -> tuple[list[pa.Array], dict[int, tuple[str | None, str]]]:
        """The columns, NULL for bad values; and each bad record's first bad column and error."""
        arrays: list[pa.Array] = []
        wrong: dict[int, tuple[str | None, str]] = {}
        for index, column in enumerate(self.columns):
            cells = [row[index] for row in values]
            kinds = {kind for kind, _ in cells}
            self._learn(index, kinds)
            fits = {NULL, *self._kinds[index]}
            texts = [text if kind in fits else None for kind, text in cells]
            array, is_bad = convert_good(pa.array(texts, pa.string()), column.data_type)
            arrays.append(array)
            rows = set() if is_bad is None else set(pc.indices_nonzero(is_bad).to_pylist())
            if not kinds <= fits:
                rows |= {row for row, (kind, _) in enumerate(cells) if kind not in fits}
            for row in rows:
                kind, text = cells[row]
                assert text is not None
                value = excerpt(text, quoted=kind == STRING)
                error = not_of_type(column.name, value, column.data_type)
                wrong.setdefault(numbers[row], (column.name, error))
        return arrays, wrong

    def _learn(self, index: int, kinds: set[str]) -> None:
        kinds = kinds - {NULL}
        if self._native[index] and kinds:
            self._as_text[index] = kinds == {STRING}
        self._has_nested |= not kinds.isdisjoint((OBJECT, ARRAY))
