"""The events of exports and shards, a line for people and fields for programs each, without
secrets, and what exports and shards return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

Level = Literal["debug", "info", "warn"]
FieldValue = str | int | float | bool | None


@dataclass(frozen=True)
class CopyEvent:
    """An event of an export; `docs/copy-to-s3.md` has the fields of each kind.

    `name` is the same for all events of a kind. In the fields of each, `relation` is the model as
    users name it, `unique_id` as dbt does. Sizes are in bytes, times in seconds. `bar` is for a
    terminal.
    """

    name: str
    text: str
    fields: Mapping[str, FieldValue]
    level: Level = "info"
    bar: str = ""

    @property
    def message(self) -> str:
        """The event as a line of a log."""
        return f"{self.fields['relation']}: {self.text}"

    @property
    def message_with_bar(self) -> str:
        """The message for a terminal, with a bar for the share of parts that are done, if any."""
        return f"{self.fields['relation']}: {self.bar}{self.text}"


def copy_warning(relation: str, unique_id: str, location: str, warning: str) -> CopyEvent:
    """The event of a failure that the export does not depend on."""
    about = {"relation": relation, "unique_id": unique_id, "location": location}
    return CopyEvent("mzs3.copy.warning", warning, {**about, "warning": warning}, "warn")


EventSink = Callable[[CopyEvent], None]
"""Called with each event, possibly from another thread than the export's."""


def ignore_event(_: CopyEvent) -> None:
    """An EventSink that does nothing."""


@dataclass(frozen=True)
class Committed:
    """What an export or a write to a shard has committed, which is visible by way of the
    `manifest`; `bytes` and `files` are of what it wrote."""

    rows: int
    location: str
    manifest: str
    files: int
    bytes: int
    as_of: int
