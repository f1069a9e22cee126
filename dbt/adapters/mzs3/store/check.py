"""Checks whether an AWS connection works, and which permissions it has at a prefix."""

from __future__ import annotations

import contextlib
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit
from urllib.request import getproxies

from dbt.adapters.mzs3.errors import S3Error
from dbt.adapters.mzs3.store.boto_errors import as_store_errors
from dbt.adapters.mzs3.store.client import aws_client, s3_client
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.failures import (
    CredentialsError,
    MissingError,
    MissingUploadError,
    PermissionDeniedError,
    PreconditionFailedError,
    StoreError,
    describe,
    explained,
    nothing_works,
    on_condition,
)
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.s3 import S3Store
from dbt.adapters.mzs3.store.store import Store

PREFIX = "_mzs3_check-"
"""The beginning of the name of the object that the checks write and delete."""
CONNECT_TIMEOUT_S = 5
MAX_ATTEMPTS = 2  # few, as a user is waiting


def check_connection(connection: AwsConnection) -> str:
    """Checks that the connection works; returns its ARN, if the store has STS, and its endpoint.

    Sends ListBuckets to S3; AccessDenied also shows that the connection works. Raises S3Error,
    which says what failed and what to check.
    """
    where = f"aws_connections.{connection.name}"
    endpoint = connection.endpoint or "AWS"
    _require_endpoint(connection)
    try:
        sts = aws_client(connection, "sts", max_attempts=MAX_ATTEMPTS)
        with as_store_errors():
            who = sts.get_caller_identity()["Arn"]
    except StoreError as exc:
        refused = isinstance(exc, CredentialsError) or connection.assume_role_arn is not None
        if refused or connection.endpoint is None:
            raise S3Error(describe(exc, f"{where}: asking STS who this is")) from exc
        who = "credentials accepted"
    client = s3_client(connection, max_attempts=MAX_ATTEMPTS)
    with (
        explained(f"{where}: asking S3 at {endpoint}"),
        contextlib.suppress(PermissionDeniedError),
        as_store_errors(),
    ):
        client.list_buckets()
    return f"{who} at {endpoint}"


def _require_endpoint(connection: AwsConnection) -> None:
    """Raises S3Error at once if no server listens at the endpoint; boto3 would retry first."""
    parts = urlsplit(connection.endpoint or "")
    if not parts.hostname or parts.scheme in getproxies():
        return
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname, port), CONNECT_TIMEOUT_S).close()
    except OSError as exc:
        raise S3Error(
            f"aws_connections.{connection.name}: nothing answers at {connection.endpoint} "
            f"({exc}); check the endpoint in the profile, and that the store is running"
        ) from exc


def check_permissions(connection: AwsConnection, location: S3Location) -> list[Check]:
    """Tests each permission below `location`, and removes the objects and uploads of the tests.

    If an upload can't be aborted, it stays, and the Check names it. In a bucket with versioning,
    a version of the deleted object stays, of 0 bytes. Raises S3Error, with one line, if all
    requests would fail in the same way, as for a bucket that does not exist.
    """
    _require_endpoint(connection)
    store = S3Store(s3_client(connection, max_attempts=MAX_ATTEMPTS), location.bucket)
    key = location.key(f"{PREFIX}{secrets.token_hex(8)}")
    check = partial(_checked, connection.name, location.uri)
    list_check = check(LIST, lambda: next(store.pages(location.prefix, limit=1)))
    can_list, uri = list_check.problem is None, location.uri_of(key)
    return [
        list_check,
        *_upload_checks(check, store, key, uri),
        *_of_object(check, store, key, uri, can_list),
    ]


def _upload_checks(check: Callable[..., Check], store: Store, key: str, uri: str) -> list[Check]:
    opened: list[str] = []

    def abort_lost() -> None:
        """Aborts the other open uploads of our key, which attempts without a response opened."""
        for upload in store.uploads(key):
            if upload.key == key:
                with contextlib.suppress(StoreError):  # the check of ABORT reports failures
                    store.abort(key, upload.id)

    open_check = check(OPEN, lambda: opened.append(store.open_upload(key, {}).id))
    if opened:
        [upload_id] = opened
        note = f". An empty upload of {uri} stays open: {upload_id}"
        checks = [
            check(LIST_PARTS, partial(store.parts, key, upload_id)),
            # The upload is missing if an attempt whose response was lost has aborted it.
            check(ABORT, partial(store.abort, key, upload_id), note, accepted=MissingUploadError),
        ]
    else:
        reason = "as no upload could be opened"
        checks = [Check(need, reason, tried=False) for need in (LIST_PARTS, ABORT)]
    return [open_check, *checks, check(LIST_UPLOADS, abort_lost)]


def _of_object(
    check: Callable[..., Check], store: Store, key: str, uri: str, lists: bool
) -> list[Check]:
    def fetch() -> None:
        store.get(key).body.read()

    # DELETE comes before PUT, so that no object is written that can't be deleted again.
    delete_object = partial(store.delete, key)
    delete = check(DELETE, delete_object)
    if delete.problem is None:
        write = partial(on_condition, partial(store.put, key, b"", {}), if_absent=True)
        # With a condition, as a bucket policy may require one. PreconditionFailed is accepted: an
        # attempt whose response was lost has written the object.
        put = check(PUT, write, accepted=PreconditionFailedError)
    else:
        put = Check(PUT, "as what it writes could not be deleted", tried=False)
    if put.problem is None:
        try:
            get = check(GET, fetch)
        finally:
            delete = check(DELETE, delete_object, f". {uri} is left there")
    elif lists:
        get = check(GET, fetch, accepted=MissingError)
    else:  # without s3:ListBucket, S3 denies the GET of a missing object
        why = "as there is no object to get, nor s3:ListBucket to be told so"
        get = Check(GET, why, tried=False)
    return [put, get, delete]


def _checked(
    name: str,
    uri: str,
    need: Permission,
    action: Callable[[], object],
    note: str = "",
    accepted: type[StoreError] | tuple[()] = (),
) -> Check:
    """Calls `action`; returns the result as a Check. An `accepted` failure is a success."""
    try:
        action()
    except accepted:
        return Check(need)
    except StoreError as exc:
        text = describe(exc, f"{need.action} at {uri}").rstrip(".")
        if nothing_works(exc):
            raise S3Error(f"aws_connections.{name}: {text}{note}") from exc
        return Check(
            need,
            f"{text}. Needed for {need.used_for}{note}",
            isinstance(exc, PermissionDeniedError),
        )
    return Check(need)


@dataclass(frozen=True)
class Permission:
    """An S3 permission and its use. Without an `essential` one, no export or ingestion works."""

    action: str
    permission: str
    essential: bool
    used_for: str


LIST = Permission(
    "list", "s3:ListBucket", True, "every export, to see whether the location is empty"
)
OPEN = Permission("open an upload", "s3:PutObject", True, "every export, to write its files")
ABORT = Permission(
    "abort an upload",
    "s3:AbortMultipartUpload",
    True,
    "every export, as one that fails could not be cleaned up without it",
)
LIST_UPLOADS = Permission(
    "list open uploads",
    "s3:ListBucketMultipartUploads",
    False,
    "on_existing: resume, and for aborting what lost tasks leave open; without it those uploads "
    "stay, which cost storage but are not visible",
)
LIST_PARTS = Permission(
    "list the parts of an upload",
    "s3:ListMultipartUploadParts",
    False,
    "on_existing: resume, to send only what is missing, and for telling a file from somebody "
    "else's object of its name under encryption: aws:kms",
)
PUT = Permission("put an object", "s3:PutObject", True, "every export, to write its manifest")
GET = Permission(
    "get an object",
    "s3:GetObject",
    False,
    "on_existing: overwrite and resume, and for finishing a commit that was interrupted; without "
    "it an interrupted export has to be removed by hand",
)
DELETE = Permission(
    "delete an object",
    "s3:DeleteObject",
    False,
    "on_existing: overwrite, and for taking back a commit that failed; without it such an export "
    "has to be removed by hand, and each export leaves _committing.json beside its manifest",
)


@dataclass(frozen=True)
class Check:
    """A test of a permission: `problem` says what failed, or why the test was not `tried`."""

    need: Permission
    problem: str | None = None
    denied: bool = False
    tried: bool = True

    @property
    def line(self) -> str:
        """One line for a user: `ok: …`, `DENIED: …`, `FAILED: …` or `not tried: …`."""
        what = f"{self.need.action} ({self.need.permission})"
        if self.problem is None:
            return f"ok: {what}"
        if not self.tried:
            return f"not tried: {what}, {self.problem}"
        return f"{'DENIED' if self.denied else 'FAILED'}: {what}; {self.problem}"

    @property
    def stops_all(self) -> bool:
        """Whether every export or ingestion would fail."""
        return self.need.essential and self.tried and self.problem is not None
