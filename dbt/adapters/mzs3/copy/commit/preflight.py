"""Everything that is asked of a location before any data moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from dbt.adapters.mzs3.aws.failures import AwsFailure, describe, is_missing
from dbt.adapters.mzs3.copy.commit.destination import proof_of_writing, prove_deleting
from dbt.adapters.mzs3.copy.commit.each import each
from dbt.adapters.mzs3.copy.commit.existing import (
    Existing,
    read_existing,
    require_empty,
    require_ours,
)
from dbt.adapters.mzs3.copy.commit.intent import compares_before_deleting
from dbt.adapters.mzs3.copy.commit.place import COMMITTING, Place
from dbt.adapters.mzs3.copy.commit.recover import recover
from dbt.adapters.mzs3.copy.commit.sweep import Sweeper
from dbt.adapters.mzs3.copy.executor.resume import OpenUpload
from dbt.adapters.mzs3.errors import LocationError, S3Error

OnExisting = Literal["fail", "overwrite", "resume"]


@dataclass(frozen=True)
class Ground:
    """What an export finds at its location, once the location is fit for it.

    `existing` is the export that is replaced, or, with `resume`, that is there already and whole.
    `finished` says so if it was completed only now, in place of the run that began it. New files
    are numbered from `first_number`. `deletes`: the store compares before it deletes. `reusable`
    has uploads by key.
    """

    sweeper: Sweeper
    existing: Existing | None = None
    finished: str | None = None
    first_number: int = 1
    deletes: bool = False
    reusable: Mapping[str, OpenUpload] = field(default_factory=dict)


def prepare(
    place: Place,
    on_existing: OnExisting,
    *,
    single_file: str | None = None,
    partition_by: Sequence[str] = (),
) -> Ground:
    """The location, proved fit and writable; nothing but an interrupted commit has changed there.

    Raises LocationError if it holds what it must not, and S3Error for what S3 denies.
    """
    deletes = compares_before_deleting(place)
    before = recover(place, deletes=deletes)
    if before.finished is not None and on_existing == "fail":
        raise LocationError(
            f"{before.finished}. This run has exported nothing; export to another location, or "
            "remove that export first"
        )
    existing = None if on_existing == "fail" else read_existing(place)
    if existing is None:
        require_empty(place, but_for={place.key(COMMITTING)})
    elif on_existing == "overwrite":
        require_ours(place, existing)
        prove_deleting(place)
    with proof_of_writing(place) as probe:
        sweeper = Sweeper(
            place,
            probe,
            single_file=single_file,
            partition_by=partition_by,
            take_over=on_existing != "fail",
        )
    used = existing.used(before.used) if existing else before.used
    if single_file is not None and not used.allows([single_file]):
        raise LocationError(
            f"{place.uri}{single_file} may still be removed by a run that was taken for dead; "
            "choose another single_file, or another location"
        )
    return Ground(
        sweeper,
        existing,
        finished=before.finished,
        first_number=used.next_number,
        deletes=deletes,
        reusable=_reusable(place, sweeper, probe) if on_existing == "resume" else {},
    )


def _reusable(place: Place, sweeper: Sweeper, probe: str) -> dict[str, OpenUpload]:
    """The open uploads of an interrupted run, the fullest one of each key."""
    if sweeper.is_blind:
        raise S3Error(
            f"on_existing: resume needs s3:ListBucketMultipartUploads on {place.uri}, and a store "
            "that lists open uploads by prefix: it could not see what an interrupted run left "
            "open. Set on_existing to fail or overwrite to export without"
        )
    ours = [(k, i) for k, i in sweeper.found if i != probe and sweeper.is_ours(k)]
    listed = each(ours, lambda upload: _parts_of(place, *upload))
    fullest: dict[str, OpenUpload] = {}
    for (key, _), upload in zip(ours, listed, strict=True):
        if upload is not None and (
            key not in fullest or len(upload.parts) > len(fullest[key].parts)
        ):
            fullest[key] = upload
    return fullest


def _parts_of(place: Place, key: str, upload_id: str) -> OpenUpload | None:
    """What S3 has of an upload; None if it is gone by now."""
    pages = place.client.get_paginator("list_parts").paginate(
        Bucket=place.location.bucket, Key=key, UploadId=upload_id
    )
    parts: dict[int, tuple[str, int]] = {}
    try:
        for page in pages:
            for part in page.get("Parts", []):
                parts[part["PartNumber"]] = (part["ETag"], part["Size"])
    except AwsFailure as exc:
        if is_missing(exc):
            return None
        doing = f"listing what is uploaded of {place.uri_of(key)}"
        raise S3Error(describe(exc, doing, "s3:ListMultipartUploadParts")) from exc
    return OpenUpload(upload_id, parts)
