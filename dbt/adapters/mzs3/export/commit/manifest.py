"""The manifest of an export, in the form that Redshift reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import types as T

from dbt.adapters.mzs3.__version__ import version
from dbt.adapters.mzs3.aws.location import S3Location
from dbt.adapters.mzs3.upload.pending import PendingFile

MANIFEST = "_manifest.json"

# Redshift's names of Spark's types, as UNLOAD … MANIFEST VERBOSE writes them.
_REDSHIFT_TYPES: dict[type[T.DataType], str] = {
    T.BooleanType: "boolean",
    T.ByteType: "smallint",
    T.ShortType: "smallint",
    T.IntegerType: "integer",
    T.LongType: "bigint",
    T.FloatType: "real",
    T.DoubleType: "double precision",
    T.DateType: "date",
    T.TimeType: "time without time zone",
    T.TimestampType: "timestamp with time zone",
    T.TimestampNTZType: "timestamp without time zone",
    T.BinaryType: "binary varying",
}


def build_manifest(
    location: S3Location,
    files: Sequence[PendingFile],
    *,
    node: str,
    schema: T.StructType,
    options: Mapping[str, Any],
    as_of: int,
    run_id: str,
    first_number: int = 1,
    kept: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """A manifest with Redshift's keys `entries`, `schema` and `meta`, and some of our own.

    These are the SHA-256 of each file, the model, the options, and `as_of` in ms since the epoch.
    `kept` are entries of an older manifest that stay. Files are in the order of their names, and
    numbered from `first_number`; the next export to the location begins with `next_number`.
    `run_id` is the commit's id; kept entries have that of the commit that wrote them.
    """
    new = [_entry(location, file, run_id) for file in files]
    entries = sorted([*new, *kept], key=lambda entry: str(entry["url"]))
    metas = [entry["meta"] for entry in entries]
    return {
        "entries": entries,
        "schema": schema_of(schema),
        "meta": {
            "content_length": sum(meta["content_length"] for meta in metas),
            "record_count": sum(meta["record_count"] for meta in metas),
        },
        "author": {"name": "dbt-mzs3", "version": version},
        "model": node,
        "run_id": run_id,
        "as_of": as_of,
        "options": dict(options),
        "first_number": first_number,
        "next_number": max([first_number, *(file.number + 1 for file in files)]),
    }


def schema_of(schema: T.StructType) -> dict[str, Any]:
    """The columns with Redshift's types and Spark's."""
    return {"elements": [_element(field) for field in schema.fields]}


def to_json(document: Mapping[str, Any]) -> bytes:
    """The document as JSON, the same bytes each time."""
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


def _entry(location: S3Location, file: PendingFile, run_id: str) -> Mapping[str, Any]:
    meta = {
        "content_length": file.bytes,
        "record_count": file.rows,
        "sha256": file.sha256,
        "run_id": run_id,
    }
    return {"url": f"s3://{location.bucket}/{file.key}", "mandatory": True, "meta": meta}


def _element(field: T.StructField) -> dict[str, Any]:
    kind = field.dataType
    if isinstance(kind, T.DecimalType):
        base = {"base": "numeric", "precision": kind.precision, "scale": kind.scale}
    else:
        base = {"base": _REDSHIFT_TYPES.get(type(kind), "character varying")}
    return {"name": field.name, "type": base, "spark_type": kind.simpleString()}
