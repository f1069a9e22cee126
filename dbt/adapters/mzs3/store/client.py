"""boto3 clients with the credentials of a connection, or of the role that it assumes."""

from __future__ import annotations

import base64
import copy
import hashlib
import random
import re
from contextlib import suppress
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials
from botocore.exceptions import BotoCoreError, HTTPClientError, NoCredentialsError
from botocore.exceptions import ConnectionError as NoConnection
from botocore.session import Session as BotocoreSession
from botocore.utils import parse_timestamp

from dbt.adapters.mzs3.errors import S3Error
from dbt.adapters.mzs3.store.boto_errors import ATTEMPTS, as_store_errors, store_error
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.failures import RoleError, StoreError, describe
from dbt.adapters.mzs3.worker import worker_state

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

DEFAULT_REGION = "us-east-1"
CONNECT_TIMEOUT_S = 10
READ_TIMEOUT_S = 60
MAX_ATTEMPTS = 10
_LONGEST_WAIT_S = 20.0
OTHER_MAX_ATTEMPTS = 5  # of requests to STS and SQS


def s3_client(connection: AwsConnection, *, max_attempts: int = MAX_ATTEMPTS) -> S3Client:
    """A new S3 client, for one task and all its threads.

    Each request has at most `max_attempts` attempts: by default, requests survive about 10 s
    without S3, and a minute of throttling. Raises S3Error as `open_store` does.
    """
    client: S3Client = aws_client(
        connection,
        "s3",
        max_attempts=max_attempts,
        s3={"addressing_style": connection.addressing_style},
        max_pool_connections=16,
        # Some other stores do not support the newer default checksums.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    _wait_beyond_quota(client, max_attempts)
    for operation in ("DeleteObjects", "PutObjectTagging"):
        client.meta.events.register(f"before-call.s3.{operation}", _send_md5)
    client.meta.events.register("before-call.s3.UploadPart", _sign_checksum_alone)
    if connection.requester_pays:
        client.meta.events.register("before-sign.s3", _promise_to_pay)
    return client


def _wait_beyond_quota(client: S3Client, max_attempts: int) -> None:
    """Makes requests retry even after botocore's retry quota is used up, until `max_attempts`.

    All requests of a client share that quota: 16 concurrent requests use it up in a second without
    S3, which would end work that has run for hours.
    """

    def wait(attempts: int, response: Any, caught_exception: Any, **_: Any) -> float | None:
        if caught_exception is not None:
            if not isinstance(caught_exception, (NoConnection, HTTPClientError)):
                return None
            details: Any = caught_exception.kwargs
            details[ATTEMPTS] = attempts
        elif not response[1].get("ResponseMetadata", {}).get("RetryQuotaReached"):
            return None
        if attempts >= max_attempts:
            return None
        return random.random() * min(2.0 ** (attempts - 1), _LONGEST_WAIT_S)  # noqa: S311

    # botocore uses the first result of a handler that is not None; its own handler comes first.
    register: Any = client.meta.events.register_last
    register("needs-retry.s3", wait)


def _send_md5(params: Any, **_: Any) -> None:
    """Adds an MD5 to a request that needs a checksum: some stores lack the newer checksums."""
    params["headers"]["Content-MD5"] = content_md5(params["body"])


def _sign_checksum_alone(params: Any, **_: Any) -> None:
    """Makes botocore sign a part's SHA-256, and over TLS not hash the part once more."""
    name = "x-amz-checksum-sha256"
    if name in params["headers"]:
        checksum = {"algorithm": "sha256", "in": "header", "name": name}
        params["context"].setdefault("checksum", {})["request_algorithm"] = checksum


def content_md5(body: bytes) -> str:
    """The value of the header Content-MD5 for a body."""
    return base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()


def _promise_to_pay(request: Any, **_: Any) -> None:
    request.headers["x-amz-request-payer"] = "requester"


def aws_client(
    connection: AwsConnection,
    service: str,
    *,
    endpoint: str | None = None,
    region: str | None = None,
    max_attempts: int = OTHER_MAX_ATTEMPTS,
    **config: Any,
) -> Any:
    """A new client with the credentials of the connection or its role; threads may share it.

    `endpoint` and `region` replace the connection's. Raises S3Error as `open_store` does.
    """
    try:
        return _client(
            _session(connection),
            service,
            endpoint_url=endpoint or connection.endpoint,
            region_name=region,
            config=_config(max_attempts, **config),
        )
    except (BotoCoreError, ValueError) as exc:
        failure = StoreError(str(exc)) if isinstance(exc, ValueError) else store_error(exc)
        doing = f"aws_connections.{connection.name}: making a client"
        raise S3Error(describe(failure, doing)) from exc


def _client(session: boto3.Session, service: str, **arguments: Any) -> Any:
    """Creates a client. Raises S3Error if the endpoint is more than an address: it may have a
    password, and boto3's errors quote the endpoint."""
    create: Any = session.client
    error = S3Error(
        f"the endpoint of {service} that AWS_ENDPOINT_URL and its like in the environment, or "
        "endpoint_url in the configuration of AWS, give is not an address such as "
        "https://host:9000 alone, and is not shown, as it may have a password in it; keys belong "
        "under aws_connections in the profile"
    )
    try:
        client = create(service, **arguments)
    except ValueError as exc:
        if arguments.get("endpoint_url") or not str(exc).startswith("Invalid endpoint"):
            raise
        raise error from None
    if re.search("[@?#]", client.meta.endpoint_url):
        raise error
    return client


def _config(max_attempts: int, **for_service: Any) -> Config:
    return Config(
        # Retries throttling, 5xx and broken connections, with exponential backoff and jitter.
        retries={"mode": "standard", "total_max_attempts": max_attempts},
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=READ_TIMEOUT_S,
        **for_service,
    )


def _session(connection: AwsConnection) -> boto3.Session:
    # Each client has its own session: creating clients from one session is not thread-safe, and a
    # lock for that can't be pickled with the code of executors.
    inner = _botocore_session()
    base = boto3.Session(
        aws_access_key_id=connection.access_key_id,
        aws_secret_access_key=connection.secret_access_key,
        aws_session_token=connection.session_token,
        region_name=connection.region or inner.get_config_variable("region") or DEFAULT_REGION,
        botocore_session=inner,
    )
    if connection.assume_role_arn is None:
        return base
    return _assumed(base, connection, connection.assume_role_arn)


def _botocore_session() -> Any:
    """A new session. All sessions share the descriptions of services, which are slow to load."""
    session: Any = BotocoreSession()
    first = session.get_component("data_loader")
    shared = worker_state().setdefault("loader", first)
    loader = copy.copy(shared)  # shares the cache
    loader._search_paths = list(shared.search_paths)  # each boto3.Session adds to these
    session.register_component("data_loader", loader)
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_instant)
    return session


def _instant(value: Any) -> datetime:
    """Parses a timestamp; fast in the usual formats, as each listed object has a timestamp."""
    with suppress(ValueError):
        if isinstance(value, str) and value.endswith("Z") and "T" in value:
            return datetime.fromisoformat(f"{value[:-1]}+00:00")
        if isinstance(value, str) and value.endswith(" GMT"):
            return parsedate_to_datetime(value)
    parsed: datetime = parse_timestamp(value)
    return parsed


def _assumed(base: boto3.Session, connection: AwsConnection, role_arn: str) -> boto3.Session:
    """A session with credentials of the role, which the first request assumes. They are renewed
    before they expire; requests raise RoleError if that fails in their last 10 minutes."""
    source: Any = base.get_credentials()
    if source is None:
        raise NoCredentialsError
    extra = {"RoleSessionName": "dbt-mzs3"}
    if connection.external_id:
        extra["ExternalId"] = connection.external_id
    fetcher = AssumeRoleCredentialFetcher(
        client_creator=partial(
            _client, base, endpoint_url=connection.endpoint, config=_config(OTHER_MAX_ATTEMPTS)
        ),
        source_credentials=source,
        role_arn=role_arn,
        extra_args=extra,
    )
    failed = f"the role {role_arn} could not be assumed"

    def assume() -> dict[str, Any]:
        nonlocal failed
        try:
            with as_store_errors():
                credentials: dict[str, Any] = fetcher.fetch_credentials()
        except StoreError as exc:
            raise RoleError(f"{failed}: {exc}") from exc
        ends = datetime.fromisoformat(credentials["expiry_time"].replace("Z", "+00:00"))
        if ends <= datetime.now(timezone.utc):
            raise RoleError(
                f"{failed}: STS gave credentials that ended at {ends:%Y-%m-%d %H:%M:%S} "
                "UTC already; check the clock of the machine that asked"
            )
        failed = f"the credentials of the role {role_arn} have aged and were not renewed"
        return credentials

    inner = _botocore_session()
    inner._credentials = DeferredRefreshableCredentials(method="assume-role", refresh_using=assume)
    return boto3.Session(botocore_session=inner, region_name=base.region_name)
