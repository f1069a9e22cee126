"""One line of JSON read by itself: the keys and values of its object, or what is wrong with it.

Slow, and the judge of what a line means: for headers, for lines that pyarrow refuses, and for
values that it does not give as they are written.
"""

from __future__ import annotations

import json
import re

from dbt.adapters.mzs3.formats.read.object_error import shown

NULL, BOOLEAN, NUMBER, STRING = "null", "boolean", "number", "string"
OBJECT, ARRAY = "object", "array"
_KIND_BY_START = {"n": NULL, "t": BOOLEAN, "f": BOOLEAN, '"': STRING, "{": OBJECT, "[": ARRAY}

_OPENING = re.compile(r"[\x20\t\r]*\{[\x20\t\r]*")
_COLON = re.compile(r"[\x20\t\r]*:[\x20\t\r]*")
_BEHIND_VALUE = re.compile(r"[\x20\t\r]*([,}])[\x20\t\r]*")
# Nearly all keys with their values: without escapes, and not nested.
_TEXT = r'"([^"\\\x00-\x1f]*)"'
_NUMBER = r"(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
_PLAIN_PAIR = re.compile(
    rf"{_TEXT}{_COLON.pattern}(?:{_TEXT}|{_NUMBER}|(true|false)|null){_BEHIND_VALUE.pattern}"
)
# An escape alone, or two that are one character; the group is half of such a pair.
_ESCAPES = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F]..)|\\."
)

Value = tuple[str, str | None]
"""A value's kind, and its text: of a string the text itself, else as it is in the line."""


class MalformedLine(Exception):
    """What is wrong with a line that is not a record."""


class RecordReader:
    """Reads records, each from its line; made where it is used, as it can't travel."""

    def __init__(self) -> None:
        # A number stays the text that it is.
        decoder = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_not_json)
        self._decode = decoder.raw_decode

    def __call__(self, raw: bytes) -> list[tuple[str, Value]]:
        """The keys of the line's object in their order, even twice, each with its value.

        Raises MalformedLine for what is not one JSON object as RFC 8259 has it, in UTF-8.
        """
        try:
            text = raw.decode()
        except UnicodeDecodeError as exc:
            byte = raw[exc.start]
            raise MalformedLine(f"the line is not valid UTF-8: byte 0x{byte:02x}") from None
        try:
            pairs = self._pairs(text)
        except json.JSONDecodeError as exc:
            raise _invalid(text, exc.pos) from None
        except RecursionError:
            raise MalformedLine("the line is nested too deeply to be read") from None
        if "\\u" in text:
            for escape in _ESCAPES.finditer(text):
                if escape[1]:
                    raise MalformedLine(f"the line has half of a surrogate pair, {escape[1]}")
        return pairs

    def _pairs(self, text: str) -> list[tuple[str, Value]]:
        opening = _OPENING.match(text)
        if opening is None:
            found = shown(text.strip(" \t\r"))
            raise MalformedLine(
                f"the line is not a JSON object, which a line has from {{ to }}: {found}"
            )
        pairs: list[tuple[str, Value]] = []
        position, mark = opening.end(), ","
        if text.startswith("}", position):
            behind = _behind(_BEHIND_VALUE, text, position)
            position, mark = behind.end(), behind[1]
        while mark == ",":
            plain = _PLAIN_PAIR.match(text, position)
            if plain is None:
                pair, position = self._pair(text, position)
                behind = _behind(_BEHIND_VALUE, text, position)
                position, mark = behind.end(), behind[1]
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

    def _pair(self, text: str, position: int) -> tuple[tuple[str, Value], int]:
        """The key that starts there with its value, and where that ends."""
        if not text.startswith('"', position):
            raise _invalid(text, position)
        name, position = self._decode(text, position)
        position = _behind(_COLON, text, position).end()
        value, end = self._decode(text, position)
        kind = _KIND_BY_START.get(text[position], NUMBER)
        if kind != STRING:
            value = None if kind == NULL else text[position:end]
        return (name, (kind, value)), end


def _not_json(word: str) -> None:
    raise MalformedLine(f"the line has {word}, which is not JSON")


def _behind(pattern: re.Pattern[str], text: str, position: int) -> re.Match[str]:
    found = pattern.match(text, position)
    if found is None:
        raise _invalid(text, position)
    return found


def _invalid(text: str, position: int) -> MalformedLine:
    rest = text[position:].strip(" \t\r")
    if not rest:
        return MalformedLine("the line is not valid JSON: it ends early")
    return MalformedLine(
        f"the line is not valid JSON from character {position + 1} on: {shown(rest)}"
    )
