"""Whether a store obeys conditional requests: tried before anything depends on that."""

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

_Result = TypeVar("_Result")

_ETAG_OF_NONE = '"0"'


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

    No object is left there. Where deleting is denied, none is made: a PUT that must be refused
    tests `If-Match`, and `creates` is assumed to be the same. Raises S3Error for other refusals.
    """
    needs = f"{prefix.permissions} and s3:GetObject"
    with explained(f"trying conditional writes at {prefix.uri}", needs):
        return _try_once("PUT", prefix, partial(_heeded_conditions, prefix))


def compares_before_deleting(prefix: Prefix) -> bool:
    """Whether a DELETE with `If-Match` is atomic; False where that is denied, or not answered.

    Tried once per process, without an object: such a store refuses to delete a missing one.
    """
    key = prefix.key(probe_name())
    try:
        return _try_once("DELETE", prefix, partial(_keeps_other, prefix, key))
    except StoreError:
        return False


def seen_comparing(prefix: Prefix) -> bool | None:
    """The last `note_comparing` for the prefix's bucket in this process, if any."""
    compares: bool | None = _known.get(("intent", prefix.store.place))
    return compares


def note_comparing(prefix: Prefix, compares: bool) -> None:
    """Remember whether a PUT to the prefix's bucket obeyed its condition."""
    _known["intent", prefix.store.place] = compares


def heeds_conditional_delete(prefix: Prefix) -> bool:
    """Whether a DELETE with the `If-Match` of another ETag keeps the object, as Amazon S3 does;
    tried once per process, if need be with an object of one byte that no source takes.

    It need not be atomic, unlike that of `compares_before_deleting`. Raises S3Error, which names
    the permissions.
    """
    if prefix.store.traits.heeds_conditions:
        return True
    # Sources ignore objects whose last part is this, exports and Spark those with this first part.
    name = f"{probe_name()}/_committing.json"
    doing = f"trying a conditional DELETE at {prefix.uri_of(prefix.key(name))}"
    with explained(doing, "s3:PutObject and s3:DeleteObject"):
        return _try_once("object", prefix, partial(_spares_other, prefix, name))


def _try_once(what: str, prefix: Prefix, trial: Callable[[], _Result]) -> _Result:
    """The result of the trial in the prefix's bucket, now or earlier in this process."""
    key = what, prefix.store.place
    with _trying[key]:
        if key not in _known:
            _known[key] = trial()
        result: _Result = _known[key]
        return result


def _try(request: Callable[..., object], *arguments: Any, **condition: Any) -> str | None:
    """Makes the request; returns why the store has not done it: `refused`, `missing`, `unknown`
    for a condition that it does not know, or None if it has."""
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
    key, write = prefix.key(name), partial(_try, prefix.write, name)
    try:
        prefix.delete(key)
    except PermissionDeniedError:
        heeds = write(b"1", if_version=_ETAG_OF_NONE) is not None
        return Conditions(creates=heeds, replaces=heeds)
    try:
        write(b"1", if_absent=True)
        if prefix.find(key) is None:  # the store refuses even the first write
            return Conditions(creates=False, replaces=False)
        creates = write(b"2", if_absent=True) is not None
        spares = write(b"3", if_version=_ETAG_OF_NONE) is not None
        before = prefix.etag(key) or ""
        write(b"4", if_version=before)
        return Conditions(creates, replaces=spares and (prefix.etag(key) or "") != before)
    finally:
        delete_all(prefix, [key])


def _keeps_other(prefix: Prefix, key: str) -> bool:
    """Whether a DELETE with another ETag than the object's, which need not exist, is not done."""
    return _try(prefix.delete, key, if_version=_ETAG_OF_NONE) in ("refused", "missing")


def _spares_other(prefix: Prefix, name: str) -> bool:
    """Whether a DELETE with another ETag spares the object, which is written only if need be."""
    key = prefix.key(name)
    if _keeps_other(prefix, key):
        try:
            prefix.delete(key)
        except MissingError:
            pass
        else:
            return True  # of a missing object, the store refuses only a DELETE with the condition
    with suppress(PreconditionFailedError):  # written by a first request, whose answer was lost
        on_condition(partial(prefix.write, name, b"1"), if_absent=True)
    try:
        return _try(prefix.delete, key, if_version=_ETAG_OF_NONE) == "refused"
    finally:
        delete_all(prefix, [key])
