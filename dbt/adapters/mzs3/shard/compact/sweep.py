"""Files that no batch of a shard names, removed when nobody can need them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dbt.adapters.mzs3.aws.clock import s3_now
from dbt.adapters.mzs3.aws.failures import AwsFailure, describe
from dbt.adapters.mzs3.errors import S3Error
from dbt.adapters.mzs3.objects.concurrently import each
from dbt.adapters.mzs3.objects.prefix import Place
from dbt.adapters.mzs3.shard.state.state import ShardState
from dbt.adapters.mzs3.shard.state.store import StateStore
from dbt.adapters.mzs3.shard.write.spec import BATCHES

_NEWEST = 1 << 62


@dataclass(frozen=True)
class Swept:
    """How many files were removed, their bytes, and the shard after it."""

    files: int
    bytes: int
    state: ShardState


@dataclass(frozen=True)
class _Found:
    name: str
    size: int
    modified: int  # ms since the epoch


def sweep(place: Place, store: StateStore, keep_ms: int) -> Swept:
    """Remove files below the shard that no batch names, of crashed runs and of compacted batches.

    A file stays for `keep_ms` after it was written or, of a compacted batch, after that: a reader
    may be at it. None of a run that still writes is ever taken, however long it takes: the state
    is changed before anything is removed, and so the run begins again. Raises S3Error, ShardError.
    """
    before = store.existing()
    try:
        # S3's clock is read in seconds: whoever keeps nothing means what is new as well.
        oldest = s3_now(place.client, place.location) - keep_ms if keep_ms else _NEWEST
        doomed = _doomed(before.state, list(_files(place)), oldest)
        past = {file.name for file in before.state.retired if file.at <= oldest}
        if not doomed and not past:
            return Swept(0, 0, before.state)
        names = past | {file.name for file in doomed}
        after = store.change(lambda state: state.swept(names)).state
        # What was committed between the two reads of the state is the shard's now.
        removed = [file for file in doomed if file.name not in after.file_names]
        each(removed, lambda file: place.delete(place.key(file.name)))
    except AwsFailure as exc:
        needed = "s3:ListBucket and s3:DeleteObject"
        raise S3Error(describe(exc, f"removing files of {place.uri}", needed)) from exc
    return Swept(len(removed), sum(file.size for file in removed), after)


def _doomed(state: ShardState, found: list[_Found], oldest: int) -> list[_Found]:
    named = state.file_names
    retired = {file.name: file.at for file in state.retired}
    return [
        file
        for file in found
        if file.name not in named
        and file.modified <= oldest
        and retired.get(file.name, oldest) <= oldest
    ]


def _files(place: Place) -> Iterator[_Found]:
    pages = place.client.get_paginator("list_objects_v2").paginate(
        Bucket=place.location.bucket, Prefix=place.key(BATCHES)
    )
    for page in pages:
        for entry in page.get("Contents", []):
            name = entry["Key"].removeprefix(place.location.prefix)
            modified = int(entry["LastModified"].timestamp() * 1000)
            yield _Found(name, entry["Size"], modified)
