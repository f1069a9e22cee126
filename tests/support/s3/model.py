"""A bucket as a value: what each request makes of it; and a Store of it."""

from __future__ import annotations

import copy
import datetime
import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dbt.adapters.mzs3.store.boto_errors import refusal
from dbt.adapters.mzs3.store.failures import BrokenError, ReplacedError, StoreError
from dbt.adapters.mzs3.store.store import (
    ByteRange,
    Content,
    ListedObject,
    ListedUpload,
    NewUpload,
    ObjectHead,
    Page,
)
from support.interleavings import Ask, Failed, Request

_BEGINNING = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
_CODES = {
    "NoSuchKey": 404,
    "NoSuchUpload": 404,
    "PreconditionFailed": 412,
    "AccessDenied": 403,
    "ConditionalRequestConflict": 409,
    "NotImplemented": 501,
    "SlowDown": 503,
}
_CONDITIONAL = {"put", "delete", "complete"}
_OPERATIONS = {
    "get": "GetObject",
    "put": "PutObject",
    "delete": "DeleteObject",
    "list": "ListObjectsV2",
    "open": "CreateMultipartUpload",
    "part": "UploadPart",
    "parts": "ListParts",
    "complete": "CompleteMultipartUpload",
    "abort": "AbortMultipartUpload",
    "uploads": "ListMultipartUploads",
}


def _failed(code: str, message: str = "No.", retries: int = 0) -> Failed:
    status = {"HTTPStatusCode": _CODES.get(code, 500), "RetryAttempts": retries}
    answer = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": status}
    return Failed(refusal(answer, "Request"))


NO_SUCH_KEY = _failed("NoSuchKey")
NO_SUCH_UPLOAD = _failed("NoSuchUpload")
CONDITION_FAILED = _failed("PreconditionFailed")
DENIED = _failed("AccessDenied")
SLOW_DOWN = _failed("SlowDown", retries=4)
CONFLICT = _failed("ConditionalRequestConflict")
LASTING_CONFLICT = _failed("ConditionalRequestConflict", message="Nor ever.")
INVALID_PART = _failed("InvalidPart")
UNKNOWN = _failed("NotImplemented")


def etag_of(body: bytes) -> str:
    """The ETag that S3 gives an object that is put in one piece."""
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'


@dataclass(frozen=True)
class Object:
    """An object's content and ETag."""

    body: bytes
    etag: str


@dataclass(frozen=True)
class Upload:
    """An open multipart upload: its key, its parts by number, and what it was opened with."""

    key: str
    parts: tuple[tuple[int, bytes], ...] = ()
    properties: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Bucket:
    """All that is in a bucket; equal and hashable by content.

    `opened` counts uploads by actor, `seen` has the ids of all commits that were ever visible,
    `completed` the ETags of completed uploads, where the store remembers them.
    """

    objects: tuple[tuple[str, Object], ...] = ()
    uploads: tuple[tuple[str, Upload], ...] = ()
    opened: tuple[tuple[int, int], ...] = ()
    seen: frozenset[str] = frozenset()
    completed: tuple[tuple[str, str], ...] = ()
    _hash: int = field(default=0, compare=False)

    def __hash__(self) -> int:
        if not self._hash:
            found = hash((self.objects, self.uploads, self.opened, self.seen, self.completed))
            object.__setattr__(self, "_hash", found or 1)
        return self._hash

    def read(self, key: str) -> bytes | None:
        """An object's content."""
        return next((found.body for at, found in self.objects if at == key), None)

    @property
    def keys(self) -> list[str]:
        """The keys of all objects, in order."""
        return [key for key, _ in self.objects]


@dataclass(frozen=True)
class S3Model:
    """How S3 answers: strongly consistent, conditions included.

    Without `conditions`, headers such as If-Match are ignored, as some stores do; `unknown` has
    the actions of which a condition is answered 501. If `gone_first`, a completion that comes
    again is told that the upload is gone, else that its condition does not hold. `denied` has, by
    actor, the actions that its permissions lack: a request with If-Match needs `get`, as on AWS;
    `manifest` is to put one, `unconditional` what a bucket's policy refuses that demands
    conditions. The ETags of an `opaque` store tell nothing of the bytes, as under KMS. One that
    `remembers` answers a completion that comes again as it did the first, whatever is there by
    then. Listings have so many entries in a `page`, each page a request, or all. `late` has the
    actions that can arrive late; those on `_committing.json` are `claim`, `put intent` and
    `delete intent`.
    """

    conditions: bool = True
    conditional_deletes: bool = True
    unknown: frozenset[str] = frozenset()
    gone_first: bool = False
    opaque: bool = False
    remembers: bool = False
    page: int = 0
    late: frozenset[str] = frozenset()
    denied: Mapping[int, frozenset[str]] = field(default_factory=dict)
    refused: Failed = field(default_factory=lambda: _failed("InternalError"))
    lost: Failed = field(
        default_factory=lambda: Failed(BrokenError('Read timeout on endpoint URL: "http://s3"'))
    )

    def is_private(self, request: Request) -> bool:
        """Opening an upload, and filling it: others see it when they list, before or after."""
        return request[0] in {"open", "part"} or "_mzs3_" in str(request[1])

    def changes(self, request: Request) -> bool:
        """Whether it writes or removes anything."""
        return request[0] in {"put", "delete", "complete", "abort", "open", "part"}

    def can_be_late(self, request: Request) -> bool:
        """Whether the request, or an attempt of it, may arrive once its client has given it up."""
        action, key, *_, condition = request
        if key.endswith("_committing.json"):
            action = "claim" if condition == "*" else f"{action} intent"
        return action in self.late

    def declined(self, state: Bucket, request: Request) -> Mapping[str, tuple[Bucket, Failed]]:
        """What else S3 may say to a change that it does not make, now and then.

        After a conflict, the upload that was to be completed may be gone.
        """
        found = {"denied": (state, DENIED)}
        if request[0] in _CONDITIONAL and request[-1]:
            found["in conflict"] = state, CONFLICT
            found["in conflict each time"] = state, LASTING_CONFLICT
        if request[0] == "complete":
            found["in conflict, and gone"] = self._abort(state, 0, *request[1:3])[0], CONFLICT
        return found

    def apply(self, state: Bucket, actor: int, request: Request) -> tuple[Bucket, Any]:
        """The bucket after the request, and the answer."""
        action, *arguments = request
        denied = self.denied.get(actor, frozenset())
        condition = arguments[-1] if action in _CONDITIONAL else ""
        if condition and action in self.unknown:
            return state, UNKNOWN
        if action in denied or (condition not in {"", "*"} and "get" in denied):
            return state, DENIED
        if "unconditional" in denied and action in {"put", "complete"} and not condition:
            return state, DENIED
        if "manifest" in denied and action == "put" and arguments[0].endswith("_manifest.json"):
            return state, DENIED
        answer: tuple[Bucket, Any] = getattr(self, f"_{action}")(state, actor, *arguments)
        return answer

    def _get(self, state: Bucket, actor: int, key: str) -> tuple[Bucket, Any]:
        found = dict(state.objects).get(key)
        return state, NO_SUCH_KEY if found is None else (found.body, found.etag)

    def _put(
        self, state: Bucket, actor: int, key: str, body: bytes, condition: str
    ) -> tuple[Bucket, Any]:
        objects = dict(state.objects)
        if (unmet := self._unmet(objects, key, condition)) is not None:
            return state, unmet
        objects[key] = Object(body, etag_of(b"by another key: " * self.opaque + body))
        seen = state.seen
        if key.endswith("_manifest.json"):
            seen |= {str(json.loads(body)["run_id"])}
        return replace(state, objects=_sorted(objects), seen=seen, _hash=0), objects[key].etag

    def _unmet(self, objects: Mapping[str, Object], key: str, condition: str) -> Failed | None:
        """The answer to a write whose condition does not hold."""
        if not self.conditions or not condition:
            return None
        found = objects.get(key)
        if condition == "*":
            return CONDITION_FAILED if found else None
        if found is None:
            return NO_SUCH_KEY
        return None if found.etag == condition else CONDITION_FAILED

    def _delete(self, state: Bucket, actor: int, key: str, condition: str) -> tuple[Bucket, Any]:
        objects = dict(state.objects)
        if condition and self.conditional_deletes:
            if key not in objects:
                return state, NO_SUCH_KEY
            if objects[key].etag != condition:
                return state, CONDITION_FAILED
        if objects.pop(key, None) is None:
            return state, True
        return replace(state, objects=_sorted(objects), _hash=0), True

    def _list(
        self, state: Bucket, actor: int, prefix: str, after: tuple[str, ...] = ()
    ) -> tuple[Bucket, Any]:
        return state, self._page_of(
            after,
            (
                (key, found.etag, len(found.body))
                for key, found in state.objects
                if key.startswith(prefix)
            ),
        )

    def _page_of(
        self, after: tuple[Any, ...], entries: Iterable[tuple[Any, ...]], marks: int = 1
    ) -> Any:
        """The entries behind that one, as many as are in a page, and None if there are more.

        The first `marks` values of an entry are its place.
        """
        left = tuple(entry for entry in entries if entry[:marks] > after[:marks])
        return left if not 0 < self.page < len(left) else (*left[: self.page], None)

    def _open(
        self, state: Bucket, actor: int, key: str, properties: tuple[tuple[str, str], ...]
    ) -> tuple[Bucket, Any]:
        opened, uploads = dict(state.opened), dict(state.uploads)
        opened[actor] = opened.get(actor, 0) + 1
        upload_id = f"{actor}-{opened[actor]}"
        uploads[upload_id] = Upload(key, properties=properties)
        changed = replace(state, uploads=_sorted(uploads), opened=_sorted(opened), _hash=0)
        return changed, upload_id

    def _part(
        self, state: Bucket, actor: int, key: str, upload_id: str, number: int, body: bytes
    ) -> tuple[Bucket, Any]:
        uploads = dict(state.uploads)
        if upload_id not in uploads:
            return state, NO_SUCH_UPLOAD
        found = uploads[upload_id]
        parts = {**dict(found.parts), number: body}
        uploads[upload_id] = replace(found, parts=_sorted(parts))
        return replace(state, uploads=_sorted(uploads), _hash=0), etag_of(body)

    def _parts(
        self, state: Bucket, actor: int, key: str, upload_id: str, after: tuple[Any, ...] = ()
    ) -> tuple[Bucket, Any]:
        found = dict(state.uploads).get(upload_id)
        if found is None:
            return state, NO_SUCH_UPLOAD
        parts = ((number, etag_of(body), len(body)) for number, body in found.parts)
        return state, self._page_of(after, parts)

    def _complete(
        self,
        state: Bucket,
        actor: int,
        key: str,
        upload_id: str,
        etags: tuple[str, ...],
        condition: str,
    ) -> tuple[Bucket, Any]:
        uploads, objects = dict(state.uploads), dict(state.objects)
        unmet = self._unmet(objects, key, condition)
        if upload_id not in uploads:
            if etag := dict(state.completed).get(upload_id):
                return state, etag
            return state, NO_SUCH_UPLOAD if self.gone_first or unmet is None else unmet
        if unmet is not None:
            return state, unmet
        bodies = [body for number, body in uploads[upload_id].parts if number <= len(etags)]
        if [etag_of(body) for body in bodies] != list(etags):
            return state, INVALID_PART
        del uploads[upload_id]
        digests = b"".join(bytes.fromhex(etag.strip('"')) for etag in etags)
        digests += upload_id.encode() * self.opaque
        whole = hashlib.md5(digests, usedforsecurity=False).hexdigest()
        objects[key] = Object(b"".join(bodies), f'"{whole}-{len(etags)}"')
        changed = replace(state, uploads=_sorted(uploads), objects=_sorted(objects), _hash=0)
        if self.remembers:
            completed = {**dict(state.completed), upload_id: objects[key].etag}
            changed = replace(changed, completed=_sorted(completed))
        return changed, objects[key].etag

    def _abort(self, state: Bucket, actor: int, key: str, upload_id: str) -> tuple[Bucket, Any]:
        uploads = dict(state.uploads)
        if uploads.pop(upload_id, None) is None:
            return state, NO_SUCH_UPLOAD
        return replace(state, uploads=_sorted(uploads), _hash=0), True

    def _uploads(
        self, state: Bucket, actor: int, prefix: str, after: tuple[str, ...] = ()
    ) -> tuple[Bucket, Any]:
        listed = sorted((found.key, upload_id) for upload_id, found in state.uploads)
        found = (one for one in listed if one[0].startswith(prefix))
        return state, self._page_of(after, found, marks=2)


def _sorted(values: Mapping[Any, Any]) -> tuple[Any, ...]:
    return tuple(sorted(values.items(), key=lambda item: item[0]))


class MemoryBody(io.BytesIO):
    """The bytes of an object."""

    def read(self, size: int | None = None) -> bytes:
        return super().read(-1 if size is None else size)


class Client:
    """A Store of the model: what the code under test asks is a request of a simulated actor."""

    bucket = "b"
    identity = "memory b"
    is_amazon_s3 = True

    def __init__(self, ask: Ask) -> None:
        self._send = ask
        self._in_conflict: set[Request] = set()

    def _ask(self, *request: Any) -> Any:
        if request in self._in_conflict:
            raise copy.copy(LASTING_CONFLICT.error)
        try:
            return self._send(*request)
        except StoreError as exc:
            if exc is LASTING_CONFLICT.error:
                self._in_conflict.add(request)
            own = copy.copy(exc)
            own.operation = _OPERATIONS[request[0]] if own.status else ""
            raise own from None

    def get(
        self, key: str, *, version: str | None = None, byte_range: ByteRange | None = None
    ) -> Content:
        body, etag = self._ask("get", key)
        if version not in (None, etag):
            raise ReplacedError("It has another ETag.")
        start, end = byte_range or (0, None)
        part = body[start:end]
        return Content(MemoryBody(part), etag, len(part))

    def head(self, key: str) -> ObjectHead:
        raise NotImplementedError

    def put(
        self,
        key: str,
        body: bytes,
        properties: Mapping[str, str],
        *,
        if_absent: bool = False,
        if_version: str | None = None,
    ) -> str:
        return str(self._ask("put", key, bytes(body), "*" if if_absent else if_version or ""))

    def delete(self, key: str, *, if_version: str | None = None) -> None:
        self._ask("delete", key, if_version or "")

    def delete_many(self, keys: Sequence[str]) -> Mapping[str, StoreError]:
        failed = {}
        for key in keys:
            try:
                self.delete(key)
            except StoreError as exc:
                failed[key] = exc
        return failed

    def pages(
        self, prefix: str, *, after: str = "", limit: int | None = None, folders: bool = False
    ) -> Iterator[Page]:
        for found in self._pages("list", prefix):
            yield Page([ListedObject(key, etag, size, _BEGINNING) for key, etag, size in found])

    def _pages(self, *request: Any) -> Iterator[Any]:
        """The pages of a listing: a request for each, from the last entry of the one before."""
        found = self._ask(*request)
        while found and found[-1] is None:
            yield found[:-1]
            found = self._ask(*request, found[-2])
        yield found

    def copy(self, head: ObjectHead, bucket: str, key: str, metadata: Mapping[str, str]) -> None:
        raise NotImplementedError

    def tags(self, key: str) -> dict[str, str]:
        raise NotImplementedError

    def tag(self, key: str, tags: Mapping[str, str]) -> None:
        raise NotImplementedError

    def open_upload(
        self, key: str, properties: Mapping[str, str], *, with_sha256: bool = False
    ) -> NewUpload:
        kept = tuple(sorted((name, str(value)) for name, value in properties.items()))
        return NewUpload(self._ask("open", key, kept), is_sole_upload=False)

    def put_part(
        self, key: str, upload_id: str, number: int, body: bytes, *, with_sha256: bool = False
    ) -> str:
        return str(self._ask("part", key, upload_id, number, bytes(body)))

    def complete(
        self,
        key: str,
        upload_id: str,
        etags: Sequence[str],
        *,
        if_absent: bool = False,
        if_version: str | None = None,
    ) -> str:
        condition = "*" if if_absent else if_version or ""
        return str(self._ask("complete", key, upload_id, tuple(etags), condition))

    def abort(self, key: str, upload_id: str) -> None:
        self._ask("abort", key, upload_id)

    def parts(self, key: str, upload_id: str) -> dict[int, tuple[str, int]]:
        pages = self._pages("parts", key, upload_id)
        return {number: (etag, size) for found in pages for number, etag, size in found}

    def uploads(self, prefix: str) -> Iterator[ListedUpload]:
        for found in self._pages("uploads", prefix):
            for key, upload_id in found:
                yield ListedUpload(key, upload_id, _BEGINNING)
