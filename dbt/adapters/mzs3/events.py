"""The events of exports and shards, each with a line for people and fields for programs, without
secrets; and the results of exports and shards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

Level = Literal["debug", "info", "warn"]
FieldValue = str | int | float | bool | None


@dataclass(frozen=True)
class CopyEvent:
    """An event of an export; `docs/copy-to-s3.md` has the fields of each kind.

    `name` is the kind of event. All events have the fields `relation`, the model's name for users,
    and `unique_id`, its id in dbt. Sizes are in bytes, times in seconds. `bar` is a progress bar
    for a terminal.
    """

    name: str
    text: str
    fields: Mapping[str, FieldValue]
    level: Level = "info"
    bar: str = ""

    @property
    def message(self) -> str:
        """The event as a line of the log."""
        return f"{self.fields['relation']}: {self.text}"

    @property
    def message_with_bar(self) -> str:
        """The message for a terminal, with the progress bar, if any."""
        return f"{self.fields['relation']}: {self.bar}{self.text}"


def copy_warning(relation: str, unique_id: str, location: str, warning: str) -> CopyEvent:
    """The event for a problem that does not fail the export."""
    about = {"relation": relation, "unique_id": unique_id, "location": location}
    return CopyEvent("mzs3.copy.warning", warning, {**about, "warning": warning}, "warn")


EventSink = Callable[[CopyEvent], None]
"""Called with each event, possibly from another thread than the export's."""


def ignore_event(_: CopyEvent) -> None:
    """An EventSink that does nothing."""


@dataclass(frozen=True)
class Committed:
    """The result of a committed export, or of a write to a shard. `manifest` is the URI of the
    object that makes it visible; `files` and `bytes` count what was written."""

    rows: int
    location: str
    manifest: str
    files: int
    bytes: int
    as_of: int
