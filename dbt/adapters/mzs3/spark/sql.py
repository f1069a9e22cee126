"""Identifiers, literals and bindings of Spark SQL: only these put untrusted text into SQL."""

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
"""The formats of tables that hold what the adapter keeps in Spark, as SQL names them."""


def quote_identifier(name: str) -> str:
    """The name as an identifier in backticks."""
    return "`" + name.replace("`", "``") + "`"


def qualified_name(schema: str, name: str) -> str:
    """The name of a relation as quoted identifiers; the schema may be in a catalog: `c.schema`."""
    return f"{quote_schema(schema)}.{quote_identifier(name)}"


def quote_schema(schema: str) -> str:
    """The schema as quoted identifiers; it may be in a catalog: `catalog.schema`."""
    # dbt-spark renders a schema as it is, so a dot in it separates names for models too.
    return ".".join(map(quote_identifier, schema.split(".")))


def message_name(name: str) -> str:
    """The name for a message: in backticks unless it has word characters only."""
    return name if _PLAIN.fullmatch(name) else quote_identifier(name)


def quote_literal(text: str) -> str:
    """The text as a literal, for sessions without `spark.sql.parser.escapedStringLiterals`."""
    return f"'{text.translate(_ESCAPES)}'"


def text_sql(text: str) -> str:
    """The text as an expression that has this value with any settings of the session. It may be no
    literal, which SQL demands in some places, such as properties."""
    if text == text.translate(_ESCAPES) and "$" not in text:
        return f"'{text}'"
    return f"cast(x'{text.encode().hex()}' AS string)"


def field_sql(value: str, name: str) -> str:
    """The field `name`, which may be empty, of the struct `value`, which is SQL.

    Correct with any settings of the session, unless the name has both an escaped character and
    `${...}`.
    """
    if name == name.translate(_ESCAPES):
        # Spark joins two literals side by side, and sees no `${` in them.
        literal = name.replace("${", "$' '{")
        return f"{value}['{literal}']"
    # A session may take a quoted name for a pattern of columns, but not after a function.
    return f"coalesce({value}).{quote_identifier(name)}"


def bind(sql: str, values: Sequence[Any]) -> tuple[str, dict[str, Any]]:
    """The statement with a named parameter for each `%s`, and their values.

    Not with `?`, as Spark 4.1.0 confuses the order of more than four. Dates and times become
    literals, as Spark would shift values by the driver's time zone.
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
