"""Whether a store supports conditional requests: tried before anything depends on it."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from dbt.adapters.mzs3.store.failures import (
    ConflictError,
    MissingError,
    NotSupportedError,
    PermissionDeniedError,
    PreconditionFailedError,
    StoreError,
    explained,
    on_condition,
)
from dbt.adapters.mzs3.store.prefix import Prefix, delete_all, probe_name

_Found = TypeVar("_Found")

_NOT_OF_ANY = '"0"'


@dataclass(frozen=True)
class Conditions:
    """Whether a PUT with `If-None-Match: *` replaces nothing (`creates`), and one with `If-Match`
    that ETag only (`replaces`)."""

    creates: bool
    replaces: bool


_known: dict[tuple[str, str], Any] = {}
_trying: defaultdict[tuple[str, str], threading.Lock] = defaultdict(threading.Lock)


def store_conditions(prefix: Prefix) -> Conditions:
    """The conditional writes that work in the prefix's bucket, tried once per process.

    Nothing is left there. Where deleting is denied, no object is made: a PUT that must be refused
    tests `If-Match`, and `creates` is assumed to be the same. Raises S3Error for other refusals.
    """
    needs = f"{prefix.permissions} and s3:GetObject"
    with explained(f"trying conditional writes at {prefix.uri}", needs):
        return _tried_once("PUT", prefix, partial(_heeded_conditions, prefix))


def compares_before_deleting(prefix: Prefix) -> bool:
    """Whether a DELETE with `If-Match` is atomic; False where that is denied, or not answered.

    Tried once per process, without an object: a store where it is refuses one of a missing key.
    """
    key = prefix.key(probe_name())
    try:
        return _tried_once("DELETE", prefix, partial(_keeps_other, prefix, key))
    except StoreError:
        return False


def seen_comparing(prefix: Prefix) -> bool | None:
    """What `note_comparing` was told of the prefix's bucket in this process; None if nothing."""
    found: bool | None = _known.get(_store("intent", prefix))
    return found


def note_comparing(prefix: Prefix, compares: bool) -> None:
    """Remember whether a PUT to the prefix's bucket was seen to heed its conditions."""
    _known[_store("intent", prefix)] = compares


def heeds_conditional_delete(prefix: Prefix) -> bool:
    """Whether a DELETE with the `If-Match` of another ETag keeps the object, as Amazon S3 does;
    tried once per process, if need be with an object of one byte that no source takes.

    It need not be atomic, as `compares_before_deleting` asks. Raises S3Error, which names the
    permissions.
    """
    if prefix.store.traits.heeds_conditions:
        return True
    # The last part is that of a record which neither a source's listing nor its queue takes for an
    # object, whatever the pattern; the first one is what exports and Spark pass over.
    name = f"{probe_name()}/_committing.json"
    doing = f"trying a conditional DELETE at {prefix.uri_of(prefix.key(name))}"
    with explained(doing, "s3:PutObject and s3:DeleteObject"):
        return _tried_once("object", prefix, partial(_spares_other, prefix, name))


def _tried_once(what: str, prefix: Prefix, trial: Callable[[], _Found]) -> _Found:
    """The result of the trial in the prefix's bucket, now or earlier in this process."""
    store = _store(what, prefix)
    with _trying[store]:
        if store not in _known:
            _known[store] = trial()
        found: _Found = _known[store]
        return found


def _store(what: str, prefix: Prefix) -> tuple[str, str]:
    return what, prefix.store.place


def _tried(request: Callable[..., object], *arguments: Any, **condition: Any) -> str | None:
    """Make the request; why the store has not done it, None where it has.

    `refused`, `missing`, or `unknown` for a condition that the store does not know.
    """
    try:
        request(*arguments, **condition)
    except (PreconditionFailedError, ConflictError):
        return "refused"
    except MissingError:
        return "missing"
    except NotSupportedError:
        return "unknown"
    return None


def _heeded_conditions(prefix: Prefix) -> Conditions:
    name = probe_name()
    key, write = prefix.key(name), partial(_tried, prefix.write, name)
    try:
        prefix.delete(key)
    except PermissionDeniedError:
        heeds = write(b"1", if_version=_NOT_OF_ANY) is not None
        return Conditions(creates=heeds, replaces=heeds)
    try:
        write(b"1", if_absent=True)
        if prefix.find(key) is None:  # not even the first one is taken
            return Conditions(creates=False, replaces=False)
        creates = write(b"2", if_absent=True) is not None
        spares = write(b"3", if_version=_NOT_OF_ANY) is not None
        before = prefix.etag(key) or ""
        write(b"4", if_version=before)
        return Conditions(creates, replaces=spares and (prefix.etag(key) or "") != before)
    finally:
        delete_all(prefix, [key])


def _keeps_other(prefix: Prefix, key: str) -> bool:
    """Whether a DELETE with another ETag than the object's, which need not exist, is not done."""
    return _tried(prefix.delete, key, if_version=_NOT_OF_ANY) in ("refused", "missing")


def _spares_other(prefix: Prefix, name: str) -> bool:
    """Whether a DELETE with another ETag spares the object, which is written only if need be."""
    key = prefix.key(name)
    if _keeps_other(prefix, key):
        try:
            prefix.delete(key)
        except MissingError:
            pass
        else:
            return True  # what is missing makes a DELETE fail with the condition, and only then
    with suppress(PreconditionFailedError):  # a first request, without an answer, wrote it
        on_condition(partial(prefix.write, name, b"1"), if_absent=True)
    try:
        return _tried(prefix.delete, key, if_version=_NOT_OF_ANY) == "refused"
    finally:
        delete_all(prefix, [key])
