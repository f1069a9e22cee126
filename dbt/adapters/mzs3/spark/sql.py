"""Identifiers, literals and bindings of Spark SQL; the only way of untrusted text into SQL."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

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

_BIGINT = 2**63

PARQUET, DELTA, ICEBERG = TABLE_FORMATS = ("parquet", "delta", "iceberg")
"""The formats of tables that hold what the adapter keeps in Spark, as SQL names them."""


def quote_identifier(name: str) -> str:
    """The name as a quoted identifier of Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def qualified_name(schema: str, name: str) -> str:
    """The name of a relation as quoted identifiers; the schema may be in a catalog: `c.schema`."""
    return f"{quote_schema(schema)}.{quote_identifier(name)}"


def quote_schema(schema: str) -> str:
    """The schema as quoted identifiers; it may be in a catalog: `catalog.schema`."""
    # dbt-spark renders a schema as it is, so a dot in it separates names for models too.
    return ".".join(map(quote_identifier, schema.split(".")))


def shown_name(name: str) -> str:
    """The name in a message: in backticks unless it has word characters only."""
    return name if _PLAIN.fullmatch(name) else quote_identifier(name)


def quote_literal(text: str) -> str:
    """A string literal that Spark reads back as exactly this text.

    Right for Spark's default parser, where a backslash escapes; not for a session that sets
    `spark.sql.parser.escapedStringLiterals`.
    """
    return f"'{text.translate(_ESCAPES)}'"


def text_sql(text: str) -> str:
    """An expression with this value, whatever the session's settings make of backslashes and of
    `${...}`.

    Not for where SQL takes a literal alone, such as in properties.
    """
    if text == text.translate(_ESCAPES) and "$" not in text:
        return f"'{text}'"
    return f"cast(x'{text.encode().hex()}' AS string)"


def field_sql(value: str, name: str) -> str:
    """The field of a struct, whatever the session's settings make of backslashes and quotes, and
    of `${...}`, unless that is in a name with one of those.

    `value` is SQL. The name is never that of something else, and may be empty.
    """
    if name == name.translate(_ESCAPES):
        # Two literals side by side are one, and no variable of the session's.
        literal = name.replace("${", "$' '{")
        return f"{value}['{literal}']"
    # With a function's result before it, no setting takes the quoted name for a pattern of names.
    return f"coalesce({value}).{quote_identifier(name)}"


def bind(sql: str, values: Sequence[Any]) -> tuple[str, dict[str, Any]]:
    """The statement with a named parameter for each `%s`, and their values.

    Not with `?`, of which Spark 4.1.0 confuses the order where there are more than four. Dates and
    times are literals in the SQL instead, as values would be shifted by the driver's time zone.
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
        if isinstance(value, int) and not -_BIGINT <= value < _BIGINT:
            value = Decimal(value)
        plain = value is None or isinstance(value, (int, float, Decimal, str, bytes))
        passed[name] = value if plain else str(value)
    return sql % tuple(marks), passed
