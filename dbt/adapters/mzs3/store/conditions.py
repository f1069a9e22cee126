"""Tests whether a store supports conditional writes and deletes, before these are relied on."""

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

_ETAG_OF_NONE = '"0"'  # an ETag that no object has


@dataclass(frozen=True)
class Conditions:
    """Which conditional writes a store supports: `If-None-Match: *`, which replaces no object
    (`creates`), and `If-Match`, which replaces only an object with that ETag (`replaces`)."""

    creates: bool
    replaces: bool


_known: dict[tuple[str, str], Any] = {}  # results, by the test and the store's identity
_trying: defaultdict[tuple[str, str], threading.Lock] = defaultdict(threading.Lock)


def store_conditions(prefix: Prefix) -> Conditions:
    """The conditional writes that the prefix's bucket supports; tested once per process.

    Leaves no object. If deletes are denied, writes no object: tests only a PUT with `If-Match`
    that must be refused, and assumes the same of `creates`. Raises S3Error for other failures.
    """
    needs = f"{prefix.permissions} and s3:GetObject"
    with explained(f"trying conditional writes at {prefix.uri}", needs):
        return _try_once("PUT", prefix, partial(_supported_conditions, prefix))


def supports_atomic_conditional_delete(prefix: Prefix) -> bool:
    """Whether a DELETE with `If-Match` is atomic; False if the test is denied or fails.

    Tested once per process, with a missing object: stores with atomic deletes refuse to delete it.
    """
    key = prefix.key(probe_name())
    try:
        return _try_once("DELETE", prefix, partial(_refuses_wrong_etag, prefix, key))
    except StoreError:
        return False


def known_conditional_writes(prefix: Prefix) -> bool | None:
    """What `record_conditional_writes` last recorded for the prefix's bucket, or None."""
    known: bool | None = _known.get(("intent", prefix.store.identity))
    return known


def record_conditional_writes(prefix: Prefix, has_conditional_writes: bool) -> None:
    """Records for this process whether the prefix's bucket supports conditional PUTs."""
    _known["intent", prefix.store.identity] = has_conditional_writes


def supports_conditional_delete(prefix: Prefix) -> bool:
    """Whether a DELETE with the `If-Match` of another ETag keeps the object, as on Amazon S3.

    Tested once per process, if necessary with an object of one byte that sources ignore. Here,
    unlike in `supports_atomic_conditional_delete`, the DELETE need not be atomic. Raises S3Error,
    which names the permissions.
    """
    if prefix.store.is_amazon_s3:
        return True
    # Sources ignore the object because of its name's end, exports and Spark because of its start.
    name = f"{probe_name()}/_committing.json"
    doing = f"trying a conditional DELETE at {prefix.uri_of(prefix.key(name))}"
    with explained(doing, "s3:PutObject and s3:DeleteObject"):
        return _try_once("object", prefix, partial(_keeps_object, prefix, name))


def _try_once(what: str, prefix: Prefix, trial: Callable[[], _Result]) -> _Result:
    """Runs the trial once per bucket and process; returns its result."""
    key = what, prefix.store.identity
    with _trying[key]:
        if key not in _known:
            _known[key] = trial()
        result: _Result = _known[key]
        return result


def _try(request: Callable[..., object], *arguments: Any, **condition: Any) -> str | None:
    """Sends the request; returns None after success, or why it failed: `refused`, `missing`, or
    `unknown` if the store does not support the condition."""
    try:
        request(*arguments, **condition)
    except (PreconditionFailedError, ConflictError):
        return "refused"
    except MissingError:
        return "missing"
    except NotSupportedError:
        return "unknown"
    return None


def _supported_conditions(prefix: Prefix) -> Conditions:
    name = probe_name()
    key, write = prefix.key(name), partial(_try, prefix.write, name)
    try:
        prefix.delete(key)
    except PermissionDeniedError:
        is_refused = write(b"1", if_version=_ETAG_OF_NONE) is not None
        return Conditions(creates=is_refused, replaces=is_refused)
    try:
        write(b"1", if_absent=True)
        if prefix.find(key) is None:  # the store refuses all writes with a condition
            return Conditions(creates=False, replaces=False)
        creates = write(b"2", if_absent=True) is not None
        refuses = write(b"3", if_version=_ETAG_OF_NONE) is not None
        before = prefix.etag(key) or ""
        write(b"4", if_version=before)
        return Conditions(creates, replaces=refuses and (prefix.etag(key) or "") != before)
    finally:
        delete_all(prefix, [key])


def _refuses_wrong_etag(prefix: Prefix, key: str) -> bool:
    """Whether the store refuses a DELETE with a wrong ETag, also of a missing object."""
    return _try(prefix.delete, key, if_version=_ETAG_OF_NONE) in ("refused", "missing")


def _keeps_object(prefix: Prefix, name: str) -> bool:
    """Whether a DELETE with a wrong ETag keeps an object; writes one only if necessary."""
    key = prefix.key(name)
    if _refuses_wrong_etag(prefix, key):
        try:
            prefix.delete(key)
        except MissingError:
            pass
        else:
            return True  # only the DELETE with a condition was refused
    with suppress(PreconditionFailedError):  # written by an attempt whose response was lost
        on_condition(partial(prefix.write, name, b"1"), if_absent=True)
    try:
        return _try(prefix.delete, key, if_version=_ETAG_OF_NONE) == "refused"
    finally:
        delete_all(prefix, [key])
