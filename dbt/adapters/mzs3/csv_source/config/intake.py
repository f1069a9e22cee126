"""What a run takes: of which format, how listed, how much, and what of overwritten objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from dbt.adapters.mzs3.config.values import ConfigReader, choice, member, parse_size, whole_number
from dbt.adapters.mzs3.csv_source.config.discovery import SCAN, Discovery
from dbt.adapters.mzs3.csv_source.executor.columns import Column
from dbt.adapters.mzs3.csv_source.executor.formats.format import CSV, FORMATS

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

FULL_LISTING_HOURS = 24


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


def read_format(given: Mapping[str, Any], problems: list[str]) -> tuple[str, dict[str, Any]]:
    """The format that `given` says, and what it says beside that of such objects.

    Keys that are of CSV alone are wrong with another format; all that is wrong goes to
    `problems`.
    """
    name = ConfigReader(given, problems, "external.")("format", choice(FORMATS)) or CSV
    if name == CSV:
        return CSV, dict(given)
    wrong = [key for key in CSV_KEYS if key in given]
    problems += [f"external.{key} is for CSV, but external.format is {name}" for key in wrong]
    rest = {key: value for key, value in given.items() if key not in wrong}
    if rest.get("header") is False:
        problems.append(
            f"external.header is false, but objects of the format {name} name their fields; "
            "leave it out, or list the names"
        )
        del rest["header"]
    return name, rest


def untyped_problems(columns: Sequence[Column], names: Sequence[str]) -> list[str]:
    """What is missing where `header` lists the names, so that no object tells their types."""
    listed = "external.header lists the names, so no object is read for their types"
    if not columns:
        return [f"{listed}: declare `columns` with the data_type of each ({', '.join(names)})"]
    return [
        f"{listed}: declare the data_type of column {column.name}"
        for column in columns
        if not column.data_type
    ]


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


def read_listing(read: ConfigReader, discovery: Discovery) -> Listing:
    """What `key_order` and `full_listing_hours` declare."""
    order = read("key_order", member(KeyOrder)) or KeyOrder.ANY
    if order is KeyOrder.ASCENDING and not discovery.bucket_scan:
        read.note(f"key_order: ascending needs {SCAN} in external.discover")
    hours = read("full_listing_hours", whole_number(1))
    any_order = read.given.get("key_order", KeyOrder.ANY.value) == KeyOrder.ANY.value
    if "full_listing_hours" in read.given and any_order:
        read.note(
            "full_listing_hours needs key_order: ascending beside it; without, every listing is "
            "full"
        )
    return Listing(order, hours or FULL_LISTING_HOURS)
