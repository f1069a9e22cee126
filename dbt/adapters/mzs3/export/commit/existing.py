"""The export that a location already holds: whether a new one may replace it, and how."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from dbt.adapters.mzs3.errors import CopyError, LocationError
from dbt.adapters.mzs3.export.commit.manifest import MANIFEST
from dbt.adapters.mzs3.formats.write import FORMATS
from dbt.adapters.mzs3.store.failures import explained
from dbt.adapters.mzs3.store.prefix import Prefix
from dbt.adapters.mzs3.store.store import KEYS_PER_PAGE, ListedObject
from dbt.adapters.mzs3.upload.names import UsedNames
from dbt.adapters.mzs3.upload.pending import PendingFile

# The options that readers of the files have to know.
_READER_OPTIONS = (
    "format",
    "partition_by",
    *(key for each in FORMATS.values() for key in each.reading_options),
)


@dataclass(frozen=True)
class Existing:
    """The export at a location: its manifest, the manifest's ETag, and the location's prefix."""

    etag: str
    manifest: Mapping[str, Any]
    prefix: str

    def used(self, before: UsedNames) -> UsedNames:
        """The used names in `before`, and the numbers of this export's files."""
        number = max(before.next_number, int(self.manifest.get("next_number", 1)))
        next_number = UsedNames(number).with_names(self.entries).next_number
        return UsedNames(next_number, before.retired)

    @property
    def entries(self) -> dict[str, Mapping[str, Any]]:
        """The manifest's entries by file name, relative to the location."""
        keys = ((entry["url"].split("/", 3)[3], entry) for entry in self.manifest["entries"])
        return {key.removeprefix(self.prefix): entry for key, entry in keys}


def read_existing(prefix: Prefix) -> Existing | None:
    """The export at a location, or None. Raises LocationError if it is not ours, and S3Error."""
    key = prefix.key(MANIFEST)
    with explained(f"reading {prefix.uri_of(key)}", "s3:ListBucket and s3:GetObject"):
        found = prefix.find(key)
        content = prefix.read(MANIFEST) if found is not None else None
    if found is None or content is None:
        return None
    try:
        manifest = json.loads(content)
        existing = Existing(found.etag, manifest, prefix.location.prefix)
        if not all(entry["url"].startswith(prefix.uri) for entry in manifest["entries"]):
            raise ValueError("it names files elsewhere")
        if manifest["author"]["name"] != "dbt-mzs3":
            raise ValueError("it has another author")
    except (ValueError, KeyError, TypeError) as exc:
        raise LocationError(
            f"{prefix.uri_of(key)} is not a manifest that dbt-mzs3 writes ({exc}), and only what "
            "such a manifest names is ever replaced. Export to another location"
        ) from exc
    return existing


def require_empty(prefix: Prefix, *, ignoring: Collection[str] = ()) -> None:
    """Raises LocationError for any object that is no folder marker, probe or key in `ignoring`."""
    with explained(f"listing {prefix.uri}", "s3:ListBucket"):
        others = (
            found.key
            for found in prefix.objects()
            if not (_is_folder(found) or prefix.is_probe(found.key) or found.key in ignoring)
        )
        keys = list(islice(others, KEYS_PER_PAGE))
    if keys:
        more = " or more" if len(keys) == KEYS_PER_PAGE else ""
        count = "1 object" if len(keys) == 1 else f"{len(keys)}{more} objects"
        overwrite = "set on_existing to overwrite, " if prefix.key(MANIFEST) in keys else ""
        raise LocationError(
            f"{prefix.uri} is not empty: it holds {count}, such as {prefix.uri_of(keys[0])}. "
            f"Remove what is there, {overwrite}or export to a new location for each run, such as "
            f"'{prefix.uri}' || mz_now()"
        )


def _is_folder(found: ListedObject) -> bool:
    """Whether the object is a folder marker, such as S3's console creates."""
    return found.size == 0 and found.key.endswith("/")


def require_ours(prefix: Prefix, existing: Existing) -> None:
    """Raises LocationError for objects that the manifest does not name, but readers would read."""
    with explained(f"listing {prefix.uri}", "s3:ListBucket"):
        keys = list(unlisted_objects(prefix, existing, prefix.objects()))
    if keys:
        more = f", and {len(keys) - 1} more" if len(keys) > 1 else ""
        raise LocationError(
            f"{prefix.uri} holds objects that its manifest does not name: "
            f"{prefix.uri_of(keys[0])}{more}. An overwrite replaces only what a "
            "manifest of dbt-mzs3 names; move them away, or export to another location"
        )


def unlisted_objects(
    prefix: Prefix, existing: Existing, objects: Iterable[ListedObject]
) -> Iterator[str]:
    """The keys of objects that the manifest does not name, but readers of the location would read.

    Readers skip folder markers, and names that begin with `_` or `.`.
    """
    ours = {prefix.key(name) for name in existing.entries}
    for found in objects:
        is_hidden = found.key.split("/")[-1].startswith(("_", "."))
        if not is_hidden and not _is_folder(found) and found.key not in ours:
            yield found.key


def require_same_reading(
    existing: Existing, options: Mapping[str, Any], schema: Mapping[str, Any]
) -> None:
    """Raises LocationError if new files like this can't be read as one table with the old ones."""
    old = existing.manifest
    differ = [key for key in _READER_OPTIONS if old["options"].get(key) != options.get(key)]
    if old["schema"] != schema:
        differ.append("columns")
    if differ:
        raise LocationError(
            f"the export that stands there has other {', '.join(differ)}, and partitions without "
            "new rows would stay as they are; run with --full-refresh to replace all of them"
        )


def require_same_files(prefix: Prefix, existing: Existing, files: Sequence[PendingFile]) -> None:
    """Raises LocationError unless the existing export has exactly these files."""
    start = prefix.location.prefix
    wanted = {f.key.removeprefix(start): (f.bytes, f.rows, f.sha256) for f in files}
    actual = {
        name: tuple(entry["meta"][key] for key in ("content_length", "record_count", "sha256"))
        for name, entry in existing.entries.items()
    }
    names = {*wanted, *actual}
    differ = sorted(name for name in names if wanted.get(name) != actual.get(name))
    if differ:
        raise LocationError(
            f"{prefix.uri} holds a finished export, and this run gives another one: "
            f"{len(differ)} of {len(names)} files differ, such as {differ[0]}, as its "
            "rows, options or parts do. To replace it, set on_existing to overwrite; resume only "
            "finishes what was cut off"
        )


def plan_replacement(
    existing: Existing | None, files: Sequence[PendingFile], *, keeps_partitions: bool
) -> tuple[list[Mapping[str, Any]], list[str], bool]:
    """The manifest entries to keep, the names of old files to delete, and `in_place`.

    With `keeps_partitions`, partitions without new rows are kept. `in_place`: the one new file
    replaces an old file of the same name. Raises CopyError if one of several new files has the
    name of an old file, which readers of the old manifest need.
    """
    if existing is None:
        return [], [], False
    new = {file.key.removeprefix(existing.prefix) for file in files}
    folders = {"", *(file.folder for file in files)}

    def stays(name: str) -> bool:
        return keeps_partitions and name[: name.rfind("/") + 1] not in folders

    entries = existing.entries
    kept = [entry for name, entry in entries.items() if stays(name)]
    stale = [name for name in entries if not stays(name) and name not in new]
    clash = sorted(new.intersection(entries))
    in_place = bool(clash) and len(files) == 1
    if clash and not in_place:
        raise CopyError(
            f"the new export has a file {clash[0]}, as the old one has; choose another single_file"
        )
    return kept, stale, in_place
