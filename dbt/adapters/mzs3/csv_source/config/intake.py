"""How much a run takes, and what it does about objects that were overwritten."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from dbt.adapters.mzs3.config.size import parse_size
from dbt.adapters.mzs3.csv_source.config.values import one_of, whole_number


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


def read_intake(given: Mapping[str, Any], problems: list[str]) -> Intake:
    """The intake that the keys under `external` declare; what is wrong goes to `problems`."""
    return Intake(
        on_overwrite=one_of(given, "on_overwrite", OnOverwrite.FAIL, problems),
        max_objects=whole_number(given, "max_objects_per_run", 1, problems),
        max_bytes=_max_bytes(given, problems),
    )


def _max_bytes(given: Mapping[str, Any], problems: list[str]) -> int | None:
    value = given.get("max_bytes_per_run")
    if value is None:
        return None
    try:
        return parse_size(value)
    except ValueError as exc:
        problems.append(f"external.max_bytes_per_run {exc}")
        return None
