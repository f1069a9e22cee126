"""Identifiers, literals and bindings of Spark SQL; the only way of untrusted text into SQL."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

_PLAIN = re.compile(r"\w+")
_ESCAPES = {
    "\\": "\\\\",
    "'": "\\'",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\x00": "\\u0000",
    "\x1a": "\\Z",
}

_BIGINT = 2**63


def quote_identifier(name: str) -> str:
    """The name as a quoted identifier of Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def shown_name(name: str) -> str:
    """The name in a message: in backticks unless it has word characters only."""
    return name if _PLAIN.fullmatch(name) else quote_identifier(name)


def quote_literal(text: str) -> str:
    """A string literal that Spark reads back as exactly this text.

    Right for Spark's default parser, where a backslash escapes; not for a session that sets
    `spark.sql.parser.escapedStringLiterals`.
    """
    return "'" + "".join(_ESCAPES.get(character, character) for character in text) + "'"


def bind(sql: str, values: Sequence[Any]) -> tuple[str, list[Any]]:
    """The statement with a parameter marker for each `%s`, and the values of the markers.

    Dates and times are literals in the SQL instead, as values would be shifted by the driver's
    time zone.
    """
    marks = ["?" if not isinstance(value, dt.date) else _literal(value) for value in values]
    passed = [_exact(value) for value in values if not isinstance(value, dt.date)]
    return sql % tuple(marks), passed


def _literal(value: dt.date) -> str:
    if isinstance(value, dt.datetime):
        return f"timestamp'{value.isoformat(' ')}'"
    return f"date'{value.isoformat()}'"


def _exact(value: Any) -> Any:
    if isinstance(value, int) and not -_BIGINT <= value < _BIGINT:
        return Decimal(value)
    if value is None or isinstance(value, (bool, int, float, Decimal, str, bytes)):
        return value
    return str(value)
