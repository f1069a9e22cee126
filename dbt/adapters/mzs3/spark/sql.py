"""Identifiers, literals and bindings of Spark SQL; all untrusted text in SQL comes from here."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from dbt.adapters.mzs3.types.table import fits_bigint

_PLAIN = re.compile(r"\w+")
_ESCAPES = str.maketrans(
    {
        "\\": "\\\\",
        "'": "\\'",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\x00": "\\u0000",
        "\x1a": "\\Z",
    }
)


PARQUET, DELTA, ICEBERG = TABLE_FORMATS = ("parquet", "delta", "iceberg")
"""The formats of the adapter's own tables in Spark, by their names in SQL."""


def quote_identifier(name: str) -> str:
    """The name as an identifier in backticks."""
    return "`" + name.replace("`", "``") + "`"


def qualified_name(schema: str, name: str) -> str:
    """The name of a relation as quoted identifiers; the schema may be `catalog.schema`."""
    return f"{quote_schema(schema)}.{quote_identifier(name)}"


def quote_schema(schema: str) -> str:
    """The schema, which may be `catalog.schema`, as quoted identifiers."""
    # A dot separates names, as for models, whose schemas dbt-spark renders without quotes.
    return ".".join(map(quote_identifier, schema.split(".")))


def message_name(name: str) -> str:
    """The name for a message: in backticks unless all its characters are word characters."""
    return name if _PLAIN.fullmatch(name) else quote_identifier(name)


def quote_literal(text: str) -> str:
    """The text as a literal, for sessions without `spark.sql.parser.escapedStringLiterals`."""
    return f"'{text.translate(_ESCAPES)}'"


def text_sql(text: str) -> str:
    """The text as an expression that works with any session settings. It may not be a literal,
    which SQL requires in some places, such as properties."""
    if text == text.translate(_ESCAPES) and "$" not in text:
        return f"'{text}'"
    return f"cast(x'{text.encode().hex()}' AS string)"


def field_sql(value: str, name: str) -> str:
    """SQL of the field `name`, which may be empty, of the struct with the SQL `value`.

    It works with any session settings, unless the name has both an escaped character and `${...}`.
    """
    if name == name.translate(_ESCAPES):
        # Spark concatenates two adjacent literals, and does not detect the `${` across both.
        literal = name.replace("${", "$' '{")
        return f"{value}['{literal}']"
    # A session may interpret a quoted name as a regular expression, but not after a function.
    return f"coalesce({value}).{quote_identifier(name)}"


def bind(sql: str, values: Sequence[Any]) -> tuple[str, dict[str, Any]]:
    """The statement with a named parameter for each `%s`, and their values.

    Not with `?`: Spark 4.1.0 confuses the order of more than four of them. Dates and times become
    literals: Spark would shift parameters by the driver's time zone.
    """
    marks: list[str] = []
    passed: dict[str, Any] = {}
    for value in values:
        if isinstance(value, dt.date):
            kind = "timestamp" if isinstance(value, dt.datetime) else "date"
            marks.append(f"{kind}'{value}'")
            continue
        name = f"p{len(passed)}"
        marks.append(f":{name}")
        if isinstance(value, int) and not fits_bigint(value):
            value = Decimal(value)
        plain = value is None or isinstance(value, (int, float, Decimal, str, bytes))
        passed[name] = value if plain else str(value)
    return sql % tuple(marks), passed
