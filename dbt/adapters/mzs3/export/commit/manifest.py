"""The manifest of an export, in the format of manifests that Redshift reads."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import types as T

from dbt.adapters.mzs3.types.table import row_of

MANIFEST = "_manifest.json"


def schema_of(schema: T.StructType) -> dict[str, Any]:
    """The manifest's `schema`: the columns with Redshift's types and Spark's."""
    elements = []
    for field in schema.fields:
        kind = field.dataType
        base: dict[str, str | int] = {"base": row_of(kind.typeName()).redshift}
        if isinstance(kind, T.DecimalType):
            base |= {"precision": kind.precision, "scale": kind.scale}
        elements.append({"name": field.name, "type": base, "spark_type": kind.simpleString()})
    return {"elements": elements}


def to_json(document: Mapping[str, Any]) -> bytes:
    """The document as JSON; equal documents give equal bytes."""
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


def parse_manifest(content: bytes | None) -> Mapping[str, Any]:
    """Parses the content of the manifest; empty if that is None, or not a JSON object."""
    with contextlib.suppress(ValueError):
        parsed = json.loads(content or b"{}")
        return parsed if isinstance(parsed, dict) else {}
    return {}


def named_files(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a parsed manifest's files, each with the id of the commit that wrote it.

    The bucket in the files' URIs is ignored, as it may be the name of an access point.
    """
    entries = [entry for entry in manifest.get("entries", ()) if isinstance(entry, dict)]
    return {
        str(entry.get("url")).partition("://")[2].partition("/")[2]: (entry.get("meta") or {}).get(
            "run_id"
        )
        for entry in entries
    }
