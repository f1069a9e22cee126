"""Evaluates the location of an export, and proves that it is writable."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from dbt.adapters.mzs3.errors import ConfigError, S3Error
from dbt.adapters.mzs3.spark.failure import SPARK_FAILURES, readable
from dbt.adapters.mzs3.store.failures import StoreError, describe, explained
from dbt.adapters.mzs3.store.location import (
    SCHEME,
    SCHEMES,
    S3Location,
    joined_texts,
    parse_location,
)
from dbt.adapters.mzs3.store.prefix import Prefix, abort_all, probe_name
from dbt.adapters.mzs3.store.store import BegunUpload


def resolve_location(spark: SparkSession, node: str, text: str, as_of: int) -> S3Location:
    """The location that a literal `s3://…` or a SQL scalar expression gives.

    `mz_now()` in the expression is `as_of`, in ms since the epoch.
    Raises ConfigError when the expression fails, or gives no S3 location.
    """
    known = text if text.startswith(SCHEMES) else joined_texts(text, as_of)
    values = _evaluate(spark, node, text, as_of) if known is None else [known]
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
        # From a literal row: Spark's optimizer then evaluates it without compiling or running.
        asked = spark.sql(f"SELECT ({text}) AS location FROM VALUES (0)")
        return [row[0] for row in asked.limit(2).collect()]
    except SPARK_FAILURES as exc:
        reason = str(readable(exc)).splitlines()[0]
        problem = (
            f"location {text!r} is neither a literal {SCHEME}… nor a SQL expression that "
            f"Spark can evaluate: {reason}"
        )
        raise ConfigError(node, [problem]) from exc


@contextmanager
def prove_writing(prefix: Prefix) -> Iterator[str]:
    """Opens an upload with one part for as long as the block runs, and aborts it; its id.

    Raises S3Error, which names the missing permission.
    """
    key = prefix.key(probe_name())
    with explained(f"opening an upload at {prefix.uri}", prefix.permissions):
        # With the properties of files: a KMS key or an ACL that denies them fails here.
        begun = prefix.store.open_upload(key, prefix.properties)
    try:
        # A bucket may accept the upload and refuse its parts.
        with explained(f"sending a part of an upload at {prefix.uri}", prefix.permissions):
            prefix.store.put_part(key, begun.id, 1, b"\0")
        yield begun.id
    finally:
        _abort_probe(prefix, key, begun)


def _abort_probe(prefix: Prefix, key: str, begun: BegunUpload) -> None:
    try:
        prefix.abort(key, begun.id)
    except StoreError as exc:
        text = describe(exc, f"aborting an upload at {prefix.uri}", "s3:AbortMultipartUpload")
        raise S3Error(
            f"{text}; without it a failed export could not be cleaned up, and the upload "
            f"{begun.id} of {prefix.uri_of(key)} stays open"
        ) from exc
    if not begun.is_only:
        with contextlib.suppress(StoreError):
            abort_all(prefix, prefix.uploads(key))  # of a first request whose answer was lost


def prove_deleting(prefix: Prefix) -> None:
    """Deletes an object that is not there; raises S3Error where that is denied."""
    doing = f"deleting below {prefix.uri}, as on_existing: overwrite has to"
    with explained(doing, "s3:DeleteObject"):
        prefix.delete(prefix.key(probe_name()))
