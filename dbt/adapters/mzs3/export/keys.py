"""The names of options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.mzs3.text import did_you_mean

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


def key_problems(given: Mapping[str, Any]) -> list[str]:
    """Every key that is no option, each with what may have been meant."""
    problems = []
    for key in given:
        if key not in KNOWN:
            hint = did_you_mean(key, KNOWN).rstrip() or f"known are {', '.join(KNOWN)}"
            problems.append(f"{key} is not an option of copy_to_s3; {hint}")
    return problems
