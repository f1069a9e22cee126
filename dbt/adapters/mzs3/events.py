"""The events of an export: each is a line for people and fields for programs, without secrets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

from dbt.adapters.mzs3.rows.batches import RestartReason
from dbt.adapters.mzs3.text import shown_bytes, shown_duration

Phase = Literal["running", "computing", "writing", "committing"]

_BAR = 16


@dataclass(frozen=True)
class CopyEvent:
    """Something that happened to an export; its fields are texts, numbers, booleans and None.

    `name` is fixed for each kind, to filter by. `relation` is the model as users name it,
    `unique_id` as dbt does. Sizes are in bytes, times in seconds.
    """

    relation: str
    unique_id: str
    location: str

    name: ClassVar[str]
    level: ClassVar[Literal["debug", "info", "warn"]] = "info"
    text: ClassVar[str]
    """What the message says of the model, with names of fields in braces."""

    @property
    def message(self) -> str:
        """The event as a line of a log."""
        return f"{self.relation}: {self._said()}"

    def _said(self) -> str:
        return self.text.format_map(vars(self))


EventSink = Callable[[CopyEvent], None]
"""Called with each event, maybe from another thread than the export's."""


def ignore_event(_: CopyEvent) -> None:
    """An EventSink that does nothing."""


@dataclass(frozen=True)
class CopyStarted(CopyEvent):
    """The export begins; no request was made to its location yet."""

    parts: int
    as_of: int

    name = "mzs3.copy.started"
    level = "debug"

    def _said(self) -> str:
        return f"COPY to {self.location} in {_counted(self.parts, 'part')}"


@dataclass(frozen=True)
class CopyBeginsAgain(CopyEvent):
    """The query runs once more, as its rows are not what was assumed of them.

    `wide rows` have more than `limit` bytes; `equal hashes` are those of two different rows;
    `rows computed anew` may differ from those that are in files already.
    """

    reason: RestartReason
    limit: int

    name = "mzs3.copy.begins_again"

    def _said(self) -> str:
        if self.reason == "wide rows":
            now = f"with batches for wide rows: one has more than {shown_bytes(self.limit)}"
        elif self.reason == "rows computed anew":
            now = "as Spark lost rows while files were written, and computed them anew"
        else:
            now = "sorted by all columns: different rows have the same hash"
        return f"COPY to {self.location} begins again, {now}"


@dataclass(frozen=True)
class CopyProgress(CopyEvent):
    """How far an export has come, every few seconds.

    `phase` is `computing` until a part reports, `writing` until the last file is uploaded, then
    `committing`; `running` where workers can't reach the driver: then there are no counts. Parts
    without rows never report. `bytes_per_second` is the mean since the first part reported.
    """

    phase: Phase
    parts_done: int | None
    parts: int
    rows: int | None
    bytes: int | None
    bytes_per_second: float | None
    elapsed: float

    name = "mzs3.copy.progress"

    @property
    def message_with_bar(self) -> str:
        """The message for a terminal, with a bar for the share of parts that are done."""
        if self.phase != "writing":
            return self.message
        full = _BAR * (self.parts_done or 0) // self.parts
        return f"{self.relation}: [{'#' * full}{'-' * (_BAR - full)}] {self._said()}"

    def _said(self) -> str:
        time = shown_duration(self.elapsed)
        match self.phase:
            case "computing":
                return f"Spark is computing the rows, no part has reported yet, {time}"
            case "committing":
                return f"all files are uploaded and being committed, {time}"
            case "running":
                return f"COPY is running, {time}"
        said = [f"{self.parts_done} of {_counted(self.parts, 'part')}"]
        said += [_counted(self.rows or 0, "row"), shown_bytes(self.bytes or 0)]
        if self.bytes_per_second is not None:
            said.append(f"{shown_bytes(self.bytes_per_second)}/s")
        return ", ".join([*said, time])


@dataclass(frozen=True)
class CopyCommitted(CopyEvent):
    """The export is committed: everything that the manifest names is visible."""

    manifest: str
    rows: int
    bytes: int
    files: int
    elapsed: float

    name = "mzs3.copy.committed"

    def _said(self) -> str:
        return (
            f"{_counted(self.rows, 'row')}, {_counted(self.files, 'file')}, "
            f"{shown_bytes(self.bytes)} in {self.location}, {shown_duration(self.elapsed)}"
        )


@dataclass(frozen=True)
class CopyFailed(CopyEvent):
    """The export failed; `error` says why, and what is left behind."""

    error: str
    elapsed: float

    name = "mzs3.copy.failed"
    level = "debug"  # dbt shows the error of a model itself
    text = "COPY to {location} failed: {error}"


@dataclass(frozen=True)
class CopyCancelled(CopyEvent):
    """The user stopped the run before its commit; `error` says what is left behind."""

    error: str
    elapsed: float

    name = "mzs3.copy.cancelled"
    level = "debug"
    text = "COPY to {location} was cancelled"


@dataclass(frozen=True)
class CopyRecovered(CopyEvent):
    """This run has finished the commit of an earlier one that was interrupted."""

    recovered: str

    name = "mzs3.copy.recovered"
    text = "{recovered}"


@dataclass(frozen=True)
class CopyResumed(CopyEvent):
    """All files are uploaded; an earlier run had sent `parts` of their `of_parts` upload parts,
    with so many `bytes`. Where the export was `finished` already, nothing was sent."""

    parts: int
    of_parts: int
    bytes: int
    finished: bool

    name = "mzs3.copy.resumed"

    def _said(self) -> str:
        if self.finished:
            return f"resume: the export in {self.location} is whole, and the same; nothing is sent"
        found = f"{self.parts:,} of {_counted(self.of_parts, 'upload part')}"
        return f"resume: {found}, {shown_bytes(self.bytes)}, taken over from an earlier run"


@dataclass(frozen=True)
class CopyWarning(CopyEvent):
    """Something that the export does not depend on went wrong."""

    warning: str

    name = "mzs3.copy.warning"
    level = "warn"
    text = "{warning}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
