"""What a run takes: of which format, how listed, how much, how strictly, and what overwritten."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dbt.adapters.mzs3.config.values import ConfigReader, choice, member, parse_size, whole_number
from dbt.adapters.mzs3.csv_source.config.discovery import SCAN, Discovery
from dbt.adapters.mzs3.csv_source.executor.formats.format import (
    CSV,
    FAIL,
    FORMATS,
    HEADER_MATCHES,
    ON_BAD_ROW,
    ON_HEADER_MISMATCH,
    REJECT,
    Reading,
)
from dbt.adapters.mzs3.csv_source.executor.stream import UTF_8, canonical_encoding

CSV_KEYS = (
    "column_count",
    "delimiter",
    "quote",
    "escape",
    "null",
    "encoding",
    "compression",
    "on_bad_row",
    "max_rejects",
)


class OnOverwrite(Enum):
    """What becomes of an object with a new ETag under a key whose rows are in the source."""

    FAIL = "fail"
    IGNORE = "ignore"
    APPEND = "append"
    REPLACE = "replace"


@dataclass(frozen=True)
class Intake:
    """What a run takes of the objects that are new to it; None is no limit.

    At least one object is always taken, also where it alone is larger than `max_bytes`.
    """

    on_overwrite: OnOverwrite = OnOverwrite.FAIL
    max_objects: int | None = None
    max_bytes: int | None = None

    @property
    def is_limited(self) -> bool:
        """Whether a run may leave objects for later ones."""
        return self.max_objects is not None or self.max_bytes is not None


def read_intake(read: ConfigReader) -> Intake:
    """What `on_overwrite`, `max_objects_per_run` and `max_bytes_per_run` declare."""
    return Intake(
        on_overwrite=read("on_overwrite", member(OnOverwrite)) or OnOverwrite.FAIL,
        max_objects=read("max_objects_per_run", whole_number(1)),
        max_bytes=read("max_bytes_per_run", parse_size),
    )


def read_format(read: ConfigReader) -> tuple[str, ConfigReader]:
    """The declared format, and a reader of what else is declared of its objects.

    Keys that are of CSV alone are a problem with another format.
    """
    name = read("format", choice(FORMATS)) or CSV
    if name == CSV:
        return CSV, read
    wrong = [key for key in CSV_KEYS if key in read.given]
    for key in wrong:
        read.note(f"{key} is for CSV, but external.format is {name}")
    if read.given.get("header") is False:
        wrong.append("header")
        read.note(
            f"header is false, but objects of the format {name} name their fields; leave it out, "
            "or list the names"
        )
    rest = {key: value for key, value in read.given.items() if key not in wrong}
    return name, ConfigReader(rest, read.problems, "external.")


class KeyOrder(Enum):
    """Where the keys of new objects sort."""

    ANY = "any"
    ASCENDING = "ascending"


@dataclass(frozen=True)
class Listing:
    """With ASCENDING, a run lists the end of the keys; all once that was `full_hours` ago."""

    order: KeyOrder = KeyOrder.ANY
    full_hours: int = 24


def read_listing(read: ConfigReader, discovery: Discovery) -> Listing:
    """What `key_order` and `full_listing_hours` declare."""
    order = read("key_order", member(KeyOrder)) or Listing.order
    if order is KeyOrder.ASCENDING and not discovery.bucket_scan:
        read.note(f"key_order: ascending needs {SCAN} in external.discover")
    hours = read("full_listing_hours", whole_number(1))
    any_order = read.given.get("key_order", KeyOrder.ANY.value) == KeyOrder.ANY.value
    if "full_listing_hours" in read.given and any_order:
        read.note(
            "full_listing_hours needs key_order: ascending beside it; without, every listing is "
            "full"
        )
    return Listing(order, hours or Listing.full_hours)


def parse_reading(read: ConfigReader, *, has_header: bool) -> Reading:
    """What `header_match`, `on_bad_row` and the like declare: how strictly objects are read."""
    of_header = read.all(
        {
            "header_match": choice(HEADER_MATCHES),
            "on_header_mismatch": choice(ON_HEADER_MISMATCH),
        }
    )
    reading = Reading(
        **of_header,
        on_bad_row=read("on_bad_row", choice(ON_BAD_ROW)) or FAIL,
        max_rejects=read("max_rejects", whole_number(0)),
        encoding=read("encoding", lambda name: canonical_encoding(str(name))) or UTF_8,
    )
    if reading.max_rejects is not None and read.given.get("on_bad_row", FAIL) == FAIL:
        read.note(f"max_rejects needs `on_bad_row: {REJECT}` beside it")
    if not has_header:
        for key, value in of_header.items():
            if value != getattr(Reading, key):
                read.note(
                    f"{key}: {value} needs objects with a header, but external.header is false"
                )
    return reading
