"""One object, compared with what the manifest says of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.mzs3.aws.failures import AwsFailure, describe, error_code, is_missing
from dbt.adapters.mzs3.export.verify.content import content_of
from dbt.adapters.mzs3.export.verify.layout import Layout
from dbt.adapters.mzs3.export.verify.object_file import ObjectFile, ReplacedError
from dbt.adapters.mzs3.objects.prefix import Listed, Place

_REPLACED = "it was replaced while it was read; verify again"


@dataclass(frozen=True)
class Entry:
    """What the manifest says of a file; `name` is relative to the location."""

    name: str
    bytes: int
    rows: int
    sha256: str

    @classmethod
    def of(cls, name: str, meta: Mapping[str, Any]) -> Entry:
        """From a manifest's `meta`; raises KeyError, TypeError or ValueError for another's."""
        size, rows = int(meta["content_length"]), int(meta["record_count"])
        return cls(name, size, rows, str(meta["sha256"]))


def check_object(place: Place, layout: Layout, entry: Entry, listed: Listed | None) -> list[str]:
    """The problems of the object, a line each; `listed` is None where there is none.

    A request that fails is one of them.
    """
    uri = place.uri_of(place.key(entry.name))
    if listed is None:
        return [f"{uri}: expected {entry.bytes} bytes, {entry.rows} rows; found no object"]
    return [f"{uri}: {problem}" for problem in _differences(place, layout, entry, listed)]


def _differences(place: Place, layout: Layout, entry: Entry, listed: Listed) -> Iterator[str]:
    if listed.size != entry.bytes:
        yield f"size: expected {entry.bytes} bytes, found {listed.size}"
    file = ObjectFile(place, listed)
    try:
        content = content_of(file, entry.name, layout)
    except ReplacedError:
        yield _REPLACED
        return
    except (*AwsFailure, OSError) as exc:
        yield _unreadable(exc)
        return
    finally:
        file.close()
    if content.sha256 != entry.sha256:
        yield f"SHA-256: expected {entry.sha256}, found {content.sha256}"
    if content.rows is None:
        yield f"rows: expected {entry.rows}, found none that can be counted: {content.reason}"
    elif content.rows != entry.rows:
        yield f"rows: expected {entry.rows}, found {content.rows}"


def _unreadable(exc: Exception) -> str:
    if error_code(exc) in ("PreconditionFailed", "412"):
        return _REPLACED
    if is_missing(exc):
        return "it was removed while it was read; verify again"
    return describe(exc, "reading it", "s3:GetObject")
