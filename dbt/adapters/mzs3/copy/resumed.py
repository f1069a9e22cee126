"""`on_existing: resume` where the export is whole already."""

from __future__ import annotations

from collections.abc import Sequence

from dbt.adapters.mzs3.copy.commit.existing import Existing
from dbt.adapters.mzs3.copy.commit.pending import PendingFile
from dbt.adapters.mzs3.copy.commit.place import Place
from dbt.adapters.mzs3.errors import LocationError


def require_same(place: Place, existing: Existing, files: Sequence[PendingFile]) -> None:
    """Raises LocationError unless these files, which were not uploaded, are what is there."""
    prefix = place.location.prefix
    wanted = {f.key.removeprefix(prefix): (f.bytes, f.rows, f.sha256) for f in files}
    there = {
        name: (meta["content_length"], meta["record_count"], meta["sha256"])
        for name, meta in ((name, entry["meta"]) for name, entry in existing.entries.items())
    }
    if wanted != there:
        differ = sorted(name for name in {*wanted, *there} if wanted.get(name) != there.get(name))
        raise LocationError(
            f"{place.uri} holds a finished export, and the query gives other rows by now: "
            f"{len(differ)} of {len({*wanted, *there})} files differ, such as {differ[0]}. To "
            "replace it, set on_existing to overwrite; resume only finishes what was cut off"
        )
