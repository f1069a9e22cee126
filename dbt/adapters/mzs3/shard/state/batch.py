"""A batch of changes, as the shard's state knows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class BatchFile:
    """A file below the shard's location; the size in bytes, rows counted as they are written."""

    name: str
    size: int
    etag: str
    rows: int

    def as_json(self) -> dict[str, Any]:
        """Plain values that `file_from_json` reads back."""
        return {"name": self.name, "size": self.size, "etag": self.etag, "rows": self.rows}


@dataclass(frozen=True)
class Retired:
    """A file that no batch has any more since `at`, in ms since the epoch.

    Whoever read the shard's state before that may still read the file.
    """

    name: str
    at: int

    def as_json(self) -> dict[str, Any]:
        """Plain values that `retired_from_json` reads back."""
        return {"name": self.name, "at": self.at}


@dataclass(frozen=True)
class Batch:
    """All changes from the time `lower` to before `upper`, in ms since the epoch.

    They are of the last of these times, each of them: who reads as of an earlier one does not
    need the batch. One without files is of times at which nothing changed. `schema` is the id of
    the one that it was written with. `additions` and `retractions` are rows with d > 0 and d < 0.
    `sort_by` has the tags of the columns by which its rows are sorted, from file to file.
    """

    lower: int
    upper: int
    schema: int
    encoding: str
    files: tuple[BatchFile, ...] = ()
    additions: int = 0
    retractions: int = 0
    sort_by: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.lower >= self.upper:
            raise ValueError(f"a batch can't go from {self.lower} to before {self.upper}")

    @property
    def moment(self) -> int:
        """The time of its changes."""
        return self.upper - 1

    @property
    def rows(self) -> int:
        """How many changes it holds."""
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        """The sizes of its files together."""
        return sum(file.size for file in self.files)

    def as_json(self) -> dict[str, Any]:
        """Plain values that `batch_from_json` reads back."""
        return {
            "lower": self.lower,
            "upper": self.upper,
            "schema": self.schema,
            "encoding": self.encoding,
            "files": [file.as_json() for file in self.files],
            "additions": self.additions,
            "retractions": self.retractions,
            "sort_by": list(self.sort_by),
        }


def batch_from_json(found: Mapping[str, Any]) -> Batch:
    """The batch that `as_json` wrote; raises KeyError or ValueError."""
    return Batch(
        int(found["lower"]),
        int(found["upper"]),
        int(found["schema"]),
        str(found["encoding"]),
        tuple(map(file_from_json, found["files"])),
        int(found["additions"]),
        int(found["retractions"]),
        tuple(map(int, found["sort_by"])),
    )


def file_from_json(found: Mapping[str, Any]) -> BatchFile:
    """The file that `as_json` wrote; raises KeyError or ValueError."""
    return BatchFile(
        str(found["name"]), int(found["size"]), str(found["etag"]), int(found["rows"])
    )


def retired_from_json(found: Mapping[str, Any]) -> Retired:
    """The file that `as_json` wrote; raises KeyError or ValueError."""
    return Retired(str(found["name"]), int(found["at"]))
