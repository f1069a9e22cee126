"""The manifest of an export, in the form that Redshift reads, and what a new one replaces."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from pyspark.sql import types as T

from dbt.adapters.mzs3.errors import CopyError, LocationError
from dbt.adapters.mzs3.export.commit.intent import COMMITTING
from dbt.adapters.mzs3.formats.write import FORMATS
from dbt.adapters.mzs3.store.failures import explained
from dbt.adapters.mzs3.store.prefix import Prefix
from dbt.adapters.mzs3.types.table import row_of
from dbt.adapters.mzs3.upload.names import UsedNames
from dbt.adapters.mzs3.upload.pending import PendingFile
from dbt.adapters.mzs3.upload.spec import OpenUpload

MANIFEST = "_manifest.json"

# The keys of one page of a listing.
_COUNTED = 1000

# The options that tell a reader how to read the files.
_READING = (
    "format",
    "partition_by",
    *(key for each in FORMATS.values() for key in each.reading_options),
)


def schema_of(schema: T.StructType) -> dict[str, Any]:
    """The columns with Redshift's types and Spark's."""
    elements = []
    for field in schema.fields:
        kind = field.dataType
        base: dict[str, str | int] = {"base": row_of(kind.typeName()).redshift}
        if isinstance(kind, T.DecimalType):
            base |= {"precision": kind.precision, "scale": kind.scale}
        elements.append({"name": field.name, "type": base, "spark_type": kind.simpleString()})
    return {"elements": elements}


def to_json(document: Mapping[str, Any]) -> bytes:
    """The document as JSON, the same bytes each time."""
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


@dataclass(frozen=True)
class Existing:
    """The export that a location's manifest names; `etag` is the manifest's own."""

    etag: str
    manifest: Mapping[str, Any]
    prefix: str

    def used(self, before: UsedNames) -> UsedNames:
        """The names that no new file may have, `before` included."""
        number = max(before.next_number, int(self.manifest.get("next_number", 1)))
        numbers = UsedNames(number).without(self.entries).next_number
        return UsedNames(numbers, before.retired)

    @property
    def entries(self) -> dict[str, Mapping[str, Any]]:
        """The manifest's entries by file name, relative to the location."""
        keys = ((entry["url"].split("/", 3)[3], entry) for entry in self.manifest["entries"])
        return {key.removeprefix(self.prefix): entry for key, entry in keys}


def read_existing(prefix: Prefix) -> Existing | None:
    """The export at the location, or None; raises S3Error, or LocationError for another's."""
    key = prefix.key(MANIFEST)
    with explained(f"reading {prefix.uri_of(key)}", "s3:ListBucket and s3:GetObject"):
        found = prefix.find(key)
        content = prefix.read(MANIFEST) if found is not None else None
    if found is None or content is None:
        return None
    try:
        manifest = json.loads(content)
        existing = Existing(found.etag, manifest, prefix.location.prefix)
        mine = prefix.uri
        if not all(entry["url"].startswith(mine) for entry in manifest["entries"]):
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
    """Raises LocationError for any object but folder markers, probes, and the `ignoring` keys."""
    with explained(f"listing {prefix.uri}", "s3:ListBucket"):
        keys = list(islice((key for key in _keys(prefix) if key not in ignoring), _COUNTED))
    if keys:
        more = " or more" if len(keys) == _COUNTED else ""
        count = "1 object" if len(keys) == 1 else f"{len(keys)}{more} objects"
        ours = prefix.key(MANIFEST) in keys
        overwrite = "set on_existing to overwrite, " if ours else ""
        raise LocationError(
            f"{prefix.uri} is not empty: it holds {count}, such as {prefix.uri_of(keys[0])}. "
            f"Remove what is there, {overwrite}or export to a new location for each run, such as "
            f"'{prefix.uri}' || mz_now()"
        )


def _keys(prefix: Prefix) -> Iterator[str]:
    """All keys but those of folders, as S3's console makes them, and of probes."""
    for found in prefix.objects():
        is_folder = found.size == 0 and found.key.endswith("/")
        if not (is_folder or prefix.is_probe(found.key)):
            yield found.key


def require_ours(prefix: Prefix, existing: Existing) -> None:
    """Raises LocationError for objects that the manifest does not name, but readers would read.

    They pass over names that begin with `_` or `.`.
    """
    ours = {*existing.entries, MANIFEST, COMMITTING}
    names = (key.removeprefix(prefix.location.prefix) for key in _keys(prefix))
    foreign = [n for n in names if n not in ours and not n.split("/")[-1].startswith(("_", "."))]
    if foreign:
        more = f", and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        raise LocationError(
            f"{prefix.uri} holds objects that its manifest does not name: "
            f"{prefix.uri_of(prefix.key(foreign[0]))}{more}. An overwrite replaces only what a "
            "manifest of dbt-mzs3 names; move them away, or export to another location"
        )


def require_same_reading(
    existing: Existing, options: Mapping[str, Any], schema: Mapping[str, Any]
) -> None:
    """Raises LocationError unless old files, and new ones as given, can be read as one table."""
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
    existing: Existing | None, files: Sequence[PendingFile], *, keeps_partitions: bool
) -> tuple[list[Mapping[str, Any]], list[str], bool]:
    """The old manifest's entries to keep, the names of its files to delete, and `in_place`.

    Partitions without new rows are kept with `keeps_partitions`. `in_place`: the one new file
    replaces an old one under the same name. Raises CopyError if a new file has the name of one
    that readers of the old manifest need.
    """
    if existing is None:
        return [], [], False
    prefix = existing.prefix
    new = {file.key.removeprefix(prefix) for file in files}
    folders = {file.folder for file in files}

    def stays(name: str) -> bool:
        folder = name[: name.rfind("/") + 1]
        return keeps_partitions and folder != "" and folder not in folders

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


class TakenOver(NamedTuple):
    """How many of all upload parts were not sent again, and their bytes."""

    parts: int = 0
    of_parts: int = 0
    bytes: int = 0


def taken_over(
    found: Mapping[str, Sequence[OpenUpload]], files: Sequence[PendingFile]
) -> TakenOver:
    """The parts of the files that are of the uploads `found` at the beginning, by key."""
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
    """Raises LocationError unless the existing export has exactly these files."""
    start = prefix.location.prefix
    wanted = {f.key.removeprefix(start): (f.bytes, f.rows, f.sha256) for f in files}
    there = {
        name: tuple(entry["meta"][key] for key in ("content_length", "record_count", "sha256"))
        for name, entry in existing.entries.items()
    }
    if wanted != there:
        differ = sorted(name for name in {*wanted, *there} if wanted.get(name) != there.get(name))
        raise LocationError(
            f"{prefix.uri} holds a finished export, and this run gives another one: "
            f"{len(differ)} of {len({*wanted, *there})} files differ, such as {differ[0]}, as its "
            "rows, options or parts do. To replace it, set on_existing to overwrite; resume only "
            "finishes what was cut off"
        )
