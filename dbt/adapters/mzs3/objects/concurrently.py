"""Requests for many objects at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from dbt.adapters.mzs3.aws.failures import AwsFailure, describe, is_missing
from dbt.adapters.mzs3.objects.prefix import Prefix

Item = TypeVar("Item")
Answer = TypeVar("Answer")
_THREADS = 16


def map_concurrently(items: Iterable[Item], work: Callable[[Item], Answer]) -> list[Answer]:
    """The results of the work, done in threads; waits for all, then raises the first failure."""
    with ThreadPoolExecutor(_THREADS) as pool:
        outcomes = [pool.submit(work, item) for item in items]
    return [outcome.result() for outcome in outcomes]


def abort_all(prefix: Prefix, uploads: Iterable[tuple[str, str]]) -> list[str]:
    """Aborts uploads, given by key and id; returns a line for each that could not be."""

    def abort(upload: tuple[str, str]) -> str | None:
        try:
            prefix.abort(*upload)
        except AwsFailure as exc:
            if not is_missing(exc):
                doing = f"aborting the upload of {prefix.uri_of(upload[0])}"
                return describe(exc, doing, "s3:AbortMultipartUpload")
        return None

    return [problem for problem in map_concurrently(uploads, abort) if problem is not None]


def delete_all(prefix: Prefix, keys: Iterable[str]) -> list[str]:
    """Deletes objects; returns a line for each that could not be."""

    def delete(key: str) -> str | None:
        try:
            prefix.delete(key)
        except AwsFailure as exc:
            return describe(exc, f"removing {prefix.uri_of(key)}", "s3:DeleteObject")
        return None

    return [problem for problem in map_concurrently(keys, delete) if problem is not None]
