"""A location that holds an export, and a run that is about to replace it."""

from __future__ import annotations

import json
from typing import Any

from dbt.adapters.mzs3.export.commit.existing import Existing, plan_replacement, read_existing
from dbt.adapters.mzs3.export.commit.intent import PendingExport
from dbt.adapters.mzs3.export.commit.manifest import to_json
from dbt.adapters.mzs3.export.commit.protocol import Commit
from support.export.committing import prefix
from support.s3.memory import MemoryS3


class DeathError(BaseException):
    """The process ends here."""


def manifest_of(sizes: dict[str, int]) -> dict[str, Any]:
    entries = [
        {
            "url": f"s3://b/x/{name}",
            "meta": {"content_length": size, "record_count": 1, "run_id": str(sizes)},
        }
        for name, size in sizes.items()
    ]
    return {
        "entries": entries,
        "author": {"name": "dbt-mzs3"},
        "run_id": str(sizes),
        "meta": {"record_count": len(sizes)},
    }


def holding(s3: MemoryS3, sizes: dict[str, int]) -> Existing:
    """A location with an export."""
    for name, size in sizes.items():
        s3.objects[f"x/{name}"] = b"x" * size
    s3.objects["x/_manifest.json"] = to_json(manifest_of(sizes))
    existing = read_existing(prefix(s3))
    assert existing is not None
    return existing


def overwrite(s3: MemoryS3, existing: Existing, sizes: dict[str, int]) -> Commit:
    """A run that has uploaded its files and goes on to commit them."""
    files = [s3.opened(f"x/{name}", size) for name, size in sizes.items()]
    _, stale, in_place = plan_replacement(existing, files, keeps_partitions=False)
    pending = PendingExport(
        tuple(files),
        manifest_of(sizes),
        replaces=existing.etag,
        stale=tuple(f"x/{name}" for name in stale),
        in_place=prefix(s3).find(files[0].key).etag if in_place else None,  # type: ignore[union-attr]
    )
    return Commit(prefix(s3), pending, has_conditional_deletes=True)


def seen(s3: MemoryS3) -> list[str]:
    """What a reader that follows the manifest finds; every file must be there, and be it."""
    entries = json.loads(s3.objects["x/_manifest.json"])["entries"]
    for entry in entries:
        key = entry["url"].removeprefix("s3://b/")
        assert len(s3.objects[key]) == entry["meta"]["content_length"]
    return [entry["url"].rsplit("/")[-1] for entry in entries]
