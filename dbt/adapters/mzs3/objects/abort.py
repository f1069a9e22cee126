"""Removing uploads and objects, many at a time."""

from __future__ import annotations

from collections.abc import Iterable

from dbt.adapters.mzs3.aws.failures import AwsFailure, describe, is_missing
from dbt.adapters.mzs3.objects.concurrently import each
from dbt.adapters.mzs3.objects.prefix import Place


def abort_all(place: Place, uploads: Iterable[tuple[str, str]]) -> list[str]:
    """Aborts uploads, given as key and id; which could not be, and why. One may be gone by now."""

    def abort(upload: tuple[str, str]) -> str | None:
        try:
            place.abort(*upload)
        except AwsFailure as exc:
            if not is_missing(exc):
                doing = f"aborting the upload of {place.uri_of(upload[0])}"
                return describe(exc, doing, "s3:AbortMultipartUpload")
        return None

    return [problem for problem in each(uploads, abort) if problem is not None]


def delete_all(place: Place, keys: Iterable[str]) -> list[str]:
    """Deletes objects; which could not be, and why. One may be gone by now."""

    def delete(key: str) -> str | None:
        try:
            place.delete(key)
        except AwsFailure as exc:
            return describe(exc, f"removing {place.uri_of(key)}", "s3:DeleteObject")
        return None

    return [problem for problem in each(keys, delete) if problem is not None]
