"""`on_existing: resume`: what is taken over, and the export that is whole already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dbt.adapters.mzs3.errors import LocationError
from dbt.adapters.mzs3.export.commit.existing import Existing
from dbt.adapters.mzs3.objects.prefix import Prefix
from dbt.adapters.mzs3.upload.pending import PendingFile
from dbt.adapters.mzs3.upload.spec import OpenUpload


@dataclass(frozen=True)
class TakenOver:
    """Upload parts of an interrupted run that are in these files, and of how many they are."""

    parts: int
    of_parts: int
    bytes: int


def taken_over(
    found: Mapping[str, Sequence[OpenUpload]], files: Sequence[PendingFile]
) -> TakenOver:
    """What was not sent again of the uploads that a run found at its beginning, by key."""
    sizes = [
        upload.parts[number][1]
        for file in files
        for upload in found.get(file.key, ())
        if upload.upload_id == file.upload_id
        for number, etag in enumerate(file.etags, 1)
        if upload.parts.get(number, ("", 0))[0] == etag
    ]
    return TakenOver(len(sizes), sum(len(file.etags) for file in files), sum(sizes))


def require_same(prefix: Prefix, existing: Existing, files: Sequence[PendingFile]) -> None:
    """Raises LocationError unless these files, which were not uploaded, are what is there."""
    start = prefix.location.prefix
    wanted = {f.key.removeprefix(start): (f.bytes, f.rows, f.sha256) for f in files}
    there = {
        name: (meta["content_length"], meta["record_count"], meta["sha256"])
        for name, meta in ((name, entry["meta"]) for name, entry in existing.entries.items())
    }
    if wanted != there:
        differ = sorted(name for name in {*wanted, *there} if wanted.get(name) != there.get(name))
        raise LocationError(
            f"{prefix.uri} holds a finished export, and this run gives another one: "
            f"{len(differ)} of {len({*wanted, *there})} files differ, such as {differ[0]}, as its "
            "rows, options or parts do. To replace it, set on_existing to overwrite; resume only "
            "finishes what was cut off"
        )
