"""Whether a store heeds the conditions of requests: tried before anything depends on it."""

from __future__ import annotations

import contextlib
import re
import threading
import uuid
from collections import defaultdict
from dataclasses import dataclass
from urllib.parse import urlsplit

from dbt.adapters.mzs3.aws.failures import AwsFailure, describe, error_code, is_denied, is_missing
from dbt.adapters.mzs3.errors import S3Error
from dbt.adapters.mzs3.objects.prefix import PROBE, Prefix

_NOT_OF_ANY = '"0"'
_REFUSED_CODES = frozenset({"PreconditionFailed", "412", "ConditionalRequestConflict", "409"})
_UNKNOWN_CODES = frozenset({"NotImplemented", "501"})
# Of S3 itself: a server of somebody's, on a machine there, may have a name that ends the same way.
_AMAZON_S3 = re.compile(
    r"(.+\.)?s3(-fips|-accesspoint|-accesspoint-fips|express-[a-z0-9-]+)?"
    r"(\.dualstack)?(\.[a-z]{2}[a-z-]*-[0-9]+)?(\.vpce)?\.amazonaws\.(com|com\.cn|eu)"
)
# Its last part is that of a record which neither a source's listing nor its queue takes for an
# object, whatever the pattern; its first one is what exports and Spark pass over.
_PROBE_BESIDE_OBJECTS = f"{PROBE}{{}}/_committing.json"


@dataclass(frozen=True)
class Conditions:
    """What a store was seen to heed, one request after the other.

    `creates`: a PUT with `If-None-Match: *` replaces nothing. `replaces`: one with `If-Match`
    replaces that ETag, and no other.
    """

    creates: bool
    replaces: bool


_known: dict[tuple[str, str], Conditions] = {}
_trying: defaultdict[tuple[str, str], threading.Lock] = defaultdict(threading.Lock)


def store_conditions(prefix: Prefix) -> Conditions:
    """What the store heeds in the place's bucket: tried once in a process, then known.

    Nothing is left there. Where deleting is denied no object is made: a PUT that must be refused
    tells of `If-Match`, and `creates` is taken to be the same. Raises S3Error for other refusals.
    """
    store = (str(prefix.client.meta.endpoint_url), prefix.location.bucket)
    with _trying[store]:
        if store not in _known:
            try:
                _known[store] = _Trial(prefix).run()
            except AwsFailure as exc:
                doing = f"trying conditional writes at {prefix.uri}"
                needs = f"{prefix.permissions} and s3:GetObject"
                raise S3Error(describe(exc, doing, needs)) from exc
        return _known[store]


_deletes: dict[tuple[str, str], bool] = {}


def compares_before_deleting(prefix: Prefix) -> bool:
    """Whether the store heeds `If-Match` of a DELETE: asked once in a process, without an object.

    Of a key that is not there, such a store says that it is not; the others say that all is well,
    or decide it apart from a PUT at the same time.
    """
    store = (str(prefix.client.meta.endpoint_url), prefix.location.bucket)
    if store not in _deletes:
        try:
            prefix.delete(prefix.key(f"{PROBE}{uuid.uuid4().hex}"), IfMatch=_NOT_OF_ANY)
            _deletes[store] = False
        except AwsFailure as exc:
            if not is_missing(exc) and error_code(exc) not in _REFUSED_CODES:
                return False  # not allowed, or not answered
            _deletes[store] = True
    return _deletes[store]


_spares: dict[tuple[str, str], bool] = {}


def heeds_conditional_delete(prefix: Prefix) -> bool:
    """Whether a DELETE with the `If-Match` of another ETag leaves an object there: tried once in
    a process, then known. Amazon S3 does.

    That is less than `compares_before_deleting` asks for: a PUT at the same time may come after
    it. Where a key that is not there does not tell, an object of one byte is written that no
    source takes, and is removed. Raises S3Error, which names the permissions.
    """
    endpoint = str(prefix.client.meta.endpoint_url)
    if _AMAZON_S3.fullmatch(urlsplit(endpoint).hostname or ""):
        return True
    store = (endpoint, prefix.location.bucket)
    with _trying[store]:
        if store not in _spares:
            name = _PROBE_BESIDE_OBJECTS.format(uuid.uuid4().hex)
            try:
                _spares[store] = _tells_missing(prefix, name) or _spares_object(prefix, name)
            except AwsFailure as exc:
                doing = f"trying a conditional DELETE at {prefix.uri_of(prefix.key(name))}"
                raise S3Error(describe(exc, doing, "s3:PutObject and s3:DeleteObject")) from exc
        return _spares[store]


def _tells_missing(prefix: Prefix, name: str) -> bool:
    """Whether the store looks for an object because of the condition, and for nothing else."""
    try:
        prefix.delete(prefix.key(name), IfMatch=_NOT_OF_ANY)
    except AwsFailure as exc:
        code = error_code(exc)
        if code in _UNKNOWN_CODES:
            return False
        if code not in _REFUSED_CODES and not is_missing(exc):
            raise
    else:
        return False
    try:
        prefix.delete(prefix.key(name))
    except AwsFailure as exc:
        if not is_missing(exc):
            raise
        return False
    return True


def _spares_object(prefix: Prefix, name: str) -> bool:
    prefix.write(name, b"1")
    try:
        prefix.delete(prefix.key(name), IfMatch=_NOT_OF_ANY)
    except AwsFailure as exc:
        if error_code(exc) in _REFUSED_CODES:
            return True
        if error_code(exc) not in _UNKNOWN_CODES and not is_missing(exc):
            raise
        return False
    else:
        return False
    finally:
        with contextlib.suppress(*AwsFailure):
            prefix.delete(prefix.key(name))


class _Trial:
    """Requests for one object that nobody else knows of."""

    def __init__(self, prefix: Prefix) -> None:
        self._prefix = prefix
        self._name = f"{PROBE}{uuid.uuid4().hex}"
        self._key = prefix.key(self._name)

    def run(self) -> Conditions:
        try:
            self._prefix.delete(self._key)
        except AwsFailure as exc:
            if not is_denied(exc):
                raise
            return self._without_deleting()
        try:
            return self._with_an_object()
        finally:
            with contextlib.suppress(*AwsFailure):
                self._prefix.delete(self._key)

    def _without_deleting(self) -> Conditions:
        heeds = not self._is_written(b"1", IfMatch=_NOT_OF_ANY)
        return Conditions(creates=heeds, replaces=heeds)

    def _with_an_object(self) -> Conditions:
        self._is_written(b"1", IfNoneMatch="*")
        first = self._etag()
        if first is None:  # not even the first one is taken
            return Conditions(creates=False, replaces=False)
        creates = not self._is_written(b"2", IfNoneMatch="*")
        spares = not self._is_written(b"3", IfMatch=_NOT_OF_ANY)
        before = self._etag()
        self._is_written(b"4", IfMatch=before or "")
        replaces = spares and self._etag() != before
        return Conditions(creates, replaces)

    def _is_written(self, body: bytes, **condition: str) -> bool:
        try:
            self._prefix.write(self._name, body, **condition)
        except AwsFailure as exc:
            if error_code(exc) in _REFUSED_CODES | _UNKNOWN_CODES or is_missing(exc):
                return False
            raise
        return True

    def _etag(self) -> str | None:
        found = self._prefix.find(self._key)
        return found.etag if found is not None else None
