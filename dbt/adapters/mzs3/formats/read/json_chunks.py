"""Reads chunks of whole lines of JSON into columns with pyarrow, and checks what it accepts.

pyarrow's reader ignores where lines end, accepts NaN, stops at a NUL byte, does not check UTF-8,
changes numbers that are out of range, and treats a missing key as NULL. It reads decimals modulo a
power of 2, and fills digits far after the point with arbitrary ones.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json

from dbt.adapters.mzs3.formats.read.convert import WIDE_DIGITS, is_special
from dbt.adapters.mzs3.formats.read.encoding import invalid_utf8

# A line of one or more whole objects: none of these continues in another line.
_LINE = r"[ \t\r]*(?:\{[^\n]*\}[ \t\r]*)?"
_LINES = rf"\A(?:{_LINE}\n)*(?:{_LINE})?\z"
_RECORD = re.compile(rb"^[ \t\r]*\{", re.MULTILINE)
_NO_NUMBER = re.compile(rb"[:,\[][ \t\r]*-?(?:NaN|Inf(?:inity)?)[ \t\r]*[,}\]]")
# Numbers that may be too small for the type, and would become 0; few others match.
_TINY = {
    kind: re.compile(rb":[ \t\r]*-?(?:[0-9][0-9.]*[eE]-0*(?:%b)|0\.0{%d})" % far)
    for kind, far in {
        pa.float32(): (rb"[2-9][0-9]|[1-9][0-9]{2}", 20),
        pa.float64(): (rb"[1-9][0-9]{2}", 100),
    }.items()
}
# Numbers that would lose more digits than a decimal has: pyarrow divides by a power of ten not in
# its table, and may crash. Also in strings and with escapes: it reads decimals there too.
_FAR_AFTER_POINT = (
    r':[ \t\r]*(?:-?[0-9.]+[eE]-0*[1-9][0-9]|"[+-]?[0-9.]+[eE]-[0-9]+"|"?[+-]?[0-9.]{40})'
    r"|\\u00(?:2[dDeE]|3[0-9]|[46]5)"
)
# A NULL after a key, which does not end with an escaped quote.
_NULL = re.compile(rb'(?<!\\)"[ \t\r]*:[ \t\r]*null')
_BRACKET = re.compile(rb"[][{}]")
_ESCAPES = {b"\\": b"\\\\", b'"': b'\\"', b"\t": b"\\t", b"\r": b"\\r"}
# How many levels of nested objects and arrays are read.
_DEPTH = 16
_STAND_INS = {pa.string(): b'""', pa.bool_(): b"false"}


def _nested() -> re.Pattern[bytes]:
    """A pattern of a value that is an object or array, for data without brackets in strings."""
    others = rb"[^][{}]*"
    value = rb"[\[{]%b[\]}]" % others
    for _ in range(_DEPTH - 1):
        value = rb"[\[{]%b(?:%b%b)*[\]}]" % (others, value, others)
    return re.compile(rb":[ \t\r]*(%b)" % value)


_NESTED = _nested()


def read_lines(
    data: bytes, types: Mapping[str, pa.DataType], *, others: bool, missing: bool, nested: bool
) -> list[pa.Array] | None:
    """The values of these keys, by column; None if the lines have to be read one by one.

    `others` allows keys besides these, `missing` lines without some of these, which are NULL
    there, and `nested` objects and arrays in place of strings, as text. The values are exactly
    the lines'. None may also be the result for lines that are good.
    """
    if not _is_plain(data):
        return None
    if any(map(pa.types.is_decimal, types.values())) and _matches(data, _FAR_AFTER_POINT):
        return None
    try:
        if nested:
            _read(data, {}, "ignore")  # checks the nested values
            data = with_texts(data)
        arrays = _read(data, types, "ignore" if others else "error")
        for array in arrays:
            _require_exact(array, data)
        arrays = [
            # The cast checks the precision.
            pc.cast(array, kind) if pa.types.is_decimal(kind) else array
            for array, kind in zip(arrays, types.values(), strict=True)
        ]
    except ValueError:
        return None
    if len(arrays[0]) != _records_in(data):
        return None
    if not missing and not _all_there(data, types, arrays):
        return None
    return arrays


def with_texts(data: bytes) -> bytes:
    """Turns each value that is an object or array, unless very deep, into a string of its text."""
    spans = [found.span(1) for found in _NESTED.finditer(_without_brackets_in_strings(data))]
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    around = map(slice, [0, *ends], [*starts, len(data)])
    texts = b"\0".join(map(data.__getitem__, itertools.starmap(slice, spans)))
    for char, escape in _ESCAPES.items():
        texts = texts.replace(char, escape)
    pieces = [b""] * (2 * len(spans) + 1)
    pieces[::2] = map(data.__getitem__, around)
    pieces[1::2] = texts.split(b"\0") if spans else []
    return b'"'.join(pieces)


def _without_brackets_in_strings(data: bytes) -> bytes:
    """The valid lines without brackets in strings; their length is unchanged."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    pieces = data.split(b'"')
    if _BRACKET.search(b"".join(pieces[1::2])):
        pieces[1::2] = [b"_" * len(piece) for piece in pieces[1::2]]
        return b'"'.join(pieces)
    return data


def _is_plain(data: bytes) -> bool:
    """Whether each line is blank or, if it is valid, one or more whole objects."""
    if b"\0" in data or invalid_utf8(data):
        return False
    if (b"NaN" in data or b"Inf" in data) and _NO_NUMBER.search(data):
        return False
    return _matches(data, _LINES)


def _matches(data: bytes, pattern: str) -> bool:
    # pyarrow's regular expressions take linear time, whatever the data.
    return bool(pc.match_substring_regex(pa.scalar(data), pattern).as_py())


def _records_in(data: bytes) -> int:
    """The number of lines that are not blank, in data for which `_is_plain` is true."""
    lines = data.count(b"\n") + (not data.endswith(b"\n") if data else 0)
    if data.count(b"}\n{") + data.count(b"}\r\n{") == lines - 1:
        return lines
    return len(_RECORD.findall(data))


def _read(data: bytes, types: Mapping[str, pa.DataType], unexpected: str) -> list[pa.Array]:
    schema = pa.schema([(name, _read_as(kind)) for name, kind in types.items()])
    parse = json.ParseOptions(
        explicit_schema=schema, newlines_in_values=False, unexpected_field_behavior=unexpected
    )
    whole = json.ReadOptions(use_threads=False, block_size=len(data) + 1)
    table = json.read_json(pa.BufferReader(data), whole, parse) if data else schema.empty_table()
    return [column.combine_chunks() for column in table.columns]


def _read_as(kind: pa.DataType) -> pa.DataType:
    """The type itself; for a decimal, one with digits to spare, so that no number overflows.

    The reader counts a number's digits before it appends those of the scale.
    """
    if pa.types.is_decimal(kind):
        return pa.decimal256(WIDE_DIGITS - kind.scale, kind.scale)
    return kind


def _require_exact(array: pa.Array, data: bytes) -> None:
    """Raises ValueError for a value that may differ from the text."""
    kind = array.type
    if pa.types.is_string(kind):
        array.validate(full=True)
    if (
        pa.types.is_floating(kind)
        and pc.any(is_special(array)).as_py()
        and (not pc.all(pc.is_finite(array)).as_py() or _TINY[kind].search(data))
    ):
        raise ValueError("perhaps a number out of range")


def _all_there(data: bytes, types: Mapping[str, pa.DataType], arrays: Sequence[pa.Array]) -> bool:
    """Whether each NULL is in the text, and no key is missing.

    Reads the data again with a value in place of each NULL: a key that is still NULL is missing.
    """
    pairs = zip(types.items(), arrays, strict=True)
    sought = {name: kind for (name, kind), array in pairs if array.null_count}
    if any(name.startswith(":") for name in sought):
        # Within a string only its start can be replaced, as in ":null", so its first byte is ":".
        return False
    for stand_in in {_stand_in(kind) for kind in sought.values()}:
        same = {name: kind for name, kind in sought.items() if _stand_in(kind) == stand_in}
        filled = _NULL.sub(b'":' + stand_in, data)
        try:
            if any(array.null_count for array in _read(filled, same, "ignore")):
                return False
        except ValueError:
            return False
    return True


def _stand_in(kind: pa.DataType) -> bytes:
    return _STAND_INS.get(kind, b"0")
