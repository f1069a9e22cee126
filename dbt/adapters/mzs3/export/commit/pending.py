"""What a commit makes visible, and what it then removes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.mzs3.upload.pending import PendingFile


@dataclass(frozen=True)
class PendingExport:
    """Everything a commit needs, so that any run can finish it.

    `replaces` is the ETag of the manifest that `manifest` takes the place of, None where there is
    none; `stale` are the keys that only the old manifest names. `in_place` is set if the one
    file has the name of one that the old manifest names: to that one's ETag.
    """

    files: tuple[PendingFile, ...]
    manifest: Mapping[str, Any]
    replaces: str | None = None
    stale: tuple[str, ...] = ()
    in_place: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `from_dict` reads them back."""
        return {
            "files": [file.as_dict() for file in self.files],
            "manifest": dict(self.manifest),
            "replaces": self.replaces,
            "stale": list(self.stale),
            "in_place": self.in_place,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PendingExport:
        """What `as_dict` wrote; raises KeyError or TypeError for anything else."""
        return cls(
            files=tuple(PendingFile.from_dict(file) for file in values["files"]),
            manifest=values["manifest"],
            replaces=values.get("replaces"),
            stale=tuple(values.get("stale", ())),
            in_place=values.get("in_place"),
        )
