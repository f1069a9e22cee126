"""What an overwrite keeps of the export before it, and what it removes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.mzs3.errors import CopyError, LocationError
from dbt.adapters.mzs3.export.commit.existing import Existing
from dbt.adapters.mzs3.upload.pending import PendingFile

# The options that tell a reader how to read the files.
_READING = ("format", "partition_by", "header", "delimiter", "quote", "escape", "null")


@dataclass(frozen=True)
class Replacement:
    """Of the old manifest: the entries that stay, and the names of the files that go.

    `in_place` says that the one new file takes the place of the old one of its name.
    """

    kept: tuple[Mapping[str, Any], ...] = ()
    stale: tuple[str, ...] = ()
    in_place: bool = False


def require_same_reading(
    existing: Existing, options: Mapping[str, Any], schema: Mapping[str, Any]
) -> None:
    """Raises LocationError unless old and new files can be read as one table.

    `options` and `schema` are what the new manifest will have of them.
    """
    old = existing.manifest
    differ = [key for key in _READING if old["options"].get(key) != options.get(key)]
    if old["schema"] != schema:
        differ.append("columns")
    if differ:
        raise LocationError(
            f"the export that stands there has other {', '.join(differ)}, and partitions without "
            "new rows would stay as they are; run with --full-refresh to replace all of them"
        )


def plan_replacement(
    existing: Existing, files: Sequence[PendingFile], *, partitioned: bool, everything: bool
) -> Replacement:
    """Folder by folder where the export is partitioned, else all of it.

    A partition that the new export has no row for stays as it is, unless `everything` goes.
    Raises CopyError if a new file has the name of one that readers of the old manifest need.
    """
    prefix = existing.prefix
    new = {file.key.removeprefix(prefix) for file in files}
    folders = {file.folder for file in files}

    def stays(name: str) -> bool:
        folder = name[: name.rfind("/") + 1]
        return partitioned and not everything and folder != "" and folder not in folders

    entries = existing.entries
    kept = tuple(entry for name, entry in entries.items() if stays(name))
    goes = [name for name in entries if not stays(name)]
    clash = sorted(new.intersection(entries))
    in_place = bool(clash) and len(files) == 1
    if clash and not in_place:
        raise CopyError(
            f"the new export has a file {clash[0]}, as the old one has; choose another single_file"
        )
    return Replacement(kept, tuple(name for name in goes if name not in new), in_place)
