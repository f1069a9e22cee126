"""The names of options."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

OF_CSV = ("header", "delimiter", "quote", "escape", "null", "force_quote")
KNOWN = (
    "location",
    "aws_connection",
    "format",
    "compression",
    "max_file_size",
    "part_size",
    "max_multi_part_bytes_in_memory",
    "parts",
    "partition_by",
    "single_file",
    "on_existing",
    *OF_CSV,
    "encryption",
    "kms_key_id",
    "storage_class",
    "object_tags",
    "acl",
)
# Configs of Spark models that projects set for whole folders; they mean nothing to an export.
IGNORED = frozenset(
    {
        "file_format",
        "location_root",
        "clustered_by",
        "buckets",
        "options",
        "tblproperties",
        "merge_update_columns",
        "sql_header",
        # What dbt notes of a Python model, and how one is to be run.
        "config_keys_used",
        "config_keys_defaults",
        "meta_keys_used",
        "meta_keys_defaults",
        "submission_method",
    }
)


def key_problems(given: Mapping[str, Any]) -> list[str]:
    """Every key that is no option, each with what may have been meant."""
    problems = []
    for key in given:
        if key not in KNOWN:
            close = difflib.get_close_matches(key, KNOWN, n=1)
            hint = f"; did you mean {close[0]}?" if close else f"; known are {', '.join(KNOWN)}"
            problems.append(f"{key} is not an option of copy_to_s3{hint}")
    return problems
