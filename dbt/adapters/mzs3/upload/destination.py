"""Resolves the option `location`, which says where an export or a shard is written."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

from pyspark.sql import SparkSession

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, readable
from dbt.adapters.mzs3.store.location import (
    SCHEME,
    SCHEMES,
    S3Location,
    joined_texts,
    parse_location,
)

_BUCKET = re.compile(rf"(?:{'|'.join(SCHEMES)})[^/'\"\s]+")


def likely_bucket(text: str) -> S3Location | None:
    """The first bucket that the text of a location names, without evaluating the text; or None."""
    match = _BUCKET.search(text)
    with suppress(ValueError):
        return parse_location(match[0]) if match else None
    return None


def resolve_location(spark: SparkSession, node: str, text: str, as_of: int) -> S3Location:
    """The location in `text`: a literal `s3://…`, or a scalar SQL expression with that value.

    `mz_now()` in the expression is `as_of`, in ms since the epoch.
    Raises ConfigError if the expression fails, or if its value is not an S3 location.
    """
    literal = text if text.startswith(SCHEMES) else joined_texts(text, as_of)
    values = _evaluate(spark, node, text, as_of) if literal is None else [literal]
    value = values[0] if len(values) == 1 else None
    if not isinstance(value, str):
        what = f"{value!r}, which is no text"
        if value is None:
            what = {0: "no row", 1: "NULL"}.get(len(values), "several rows")
        wanted = f"it has to be one text such as {SCHEME}bucket/prefix"
        raise ConfigError(node, [f"location {text!r} evaluates to {what}; {wanted}"])
    try:
        return parse_location(value)
    except ValueError as exc:
        raise ConfigError(node, [f"location {exc}"]) from exc


def _evaluate(spark: SparkSession, node: str, text: str, as_of: int) -> list[Any]:
    """The first two values of the expression; raises ConfigError if it fails."""
    try:
        spark.sql(
            f"CREATE OR REPLACE TEMPORARY FUNCTION mz_now() RETURNS BIGINT RETURN {int(as_of)}L"
        )
        # With a literal row, Spark's optimizer evaluates the expression; no job runs.
        frame = spark.sql(f"SELECT ({text}) AS location FROM VALUES (0)")
        return [row[0] for row in frame.limit(2).collect()]
    except SPARK_FAILURES as exc:
        reason = str(readable(exc)).splitlines()[0]
        problem = (
            f"location {text!r} is neither a literal {SCHEME}… nor a SQL expression that "
            f"Spark can evaluate: {reason}"
        )
        raise ConfigError(node, [problem]) from exc
