"""Texts stored in the properties of a table or view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from dbt.adapters.mzs3.spark.sql import quote_literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NOT_FOUND = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")


def encoded(text: str) -> str:
    """The text in hexadecimal digits: Spark shows a value in which it finds a word such as `url`
    or `token` as redacted, and hexadecimal digits spell none of them."""
    return text.encode().hex()


def decoded(value: str) -> str:
    """The text that `encoded` made the value of. Raises ValueError for any other value."""
    return bytes.fromhex(value).decode()


def properties_sql(prefix: str, values: Mapping[str, str]) -> str:
    """The list behind TBLPROPERTIES, in parentheses; names get the prefix."""
    pairs = ", ".join(
        f"{quote_literal(prefix + key)} = {quote_literal(value)}" for key, value in values.items()
    )
    return f"({pairs})"


def read_properties(spark: SparkSession, relation: str, prefix: str) -> dict[str, str] | None:
    """The relation's properties whose names start with the prefix, by the rest of the name.

    None if there is no such relation.
    """
    try:
        rows = spark.sql(f"SHOW TBLPROPERTIES {relation}").collect()
    except AnalysisException as exc:
        if exc.getCondition() in _NOT_FOUND:
            return None
        raise
    return {
        row["key"].removeprefix(prefix): row["value"]
        for row in rows
        if row["key"].startswith(prefix)
    }
