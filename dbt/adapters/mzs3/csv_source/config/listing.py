"""How a source lists its location: all of it, or only the end that grows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from dbt.adapters.mzs3.csv_source.config.discovery import SCAN, Discovery
from dbt.adapters.mzs3.csv_source.config.values import one_of, whole_number

FULL_LISTING_HOURS = 24
# What S3 Express calls its directory buckets, whose listings are in no order.
_UNORDERED_BUCKETS = "--x-s3"


class KeyOrder(Enum):
    """Where the keys of new objects sort."""

    ANY = "any"
    ASCENDING = "ascending"


@dataclass(frozen=True)
class Listing:
    """With ASCENDING, a run lists the end of the keys; all of them once the last time that was
    done is `full_hours` ago."""

    order: KeyOrder = KeyOrder.ANY
    full_hours: int = FULL_LISTING_HOURS


def is_ordered(bucket: str) -> bool:
    """Whether S3 lists the bucket in the order of its keys."""
    return not bucket.endswith(_UNORDERED_BUCKETS)


def read_listing(given: Mapping[str, Any], discovery: Discovery, problems: list[str]) -> Listing:
    """What `key_order` and `full_listing_hours` declare; what is wrong goes to `problems`."""
    order = one_of(given, "key_order", KeyOrder.ANY, problems)
    if order is KeyOrder.ASCENDING and not discovery.bucket_scan:
        problems.append(f"external.key_order: ascending needs {SCAN} in external.discover")
    hours = whole_number(given, "full_listing_hours", 1, problems, FULL_LISTING_HOURS)
    any_order = given.get("key_order", KeyOrder.ANY.value) == KeyOrder.ANY.value
    if "full_listing_hours" in given and any_order:
        problems.append(
            "external.full_listing_hours needs key_order: ascending beside it; without, every "
            "listing is full"
        )
    return Listing(order, hours or FULL_LISTING_HOURS)
