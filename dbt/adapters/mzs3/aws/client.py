"""boto3 clients for a connection, credentials of its role, and the time where S3 is."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import boto3
import botocore.loaders
from botocore.config import Config
from botocore.credentials import (
    AssumeRoleCredentialFetcher,
    Credentials,
    DeferredRefreshableCredentials,
)
from botocore.exceptions import NoCredentialsError
from botocore.session import Session as BotocoreSession
from botocore.utils import parse_timestamp

from dbt.adapters.mzs3.aws.failures import AwsFailure, RoleError, describe, reason_of
from dbt.adapters.mzs3.aws.location import S3Location
from dbt.adapters.mzs3.aws.retries import MAX_ATTEMPTS, settings, wait_beyond_quota
from dbt.adapters.mzs3.errors import S3Error

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sts import STSClient

    from dbt.adapters.mzs3.aws.connection import AwsConnection

DEFAULT_REGION = "us-east-1"
CONNECT_TIMEOUT_S = 10
READ_TIMEOUT_S = 60
STS_MAX_ATTEMPTS = 5
SQS_MAX_ATTEMPTS = 5

ROLE_SESSION = "dbt-mzs3"


def s3_client(connection: AwsConnection, *, max_attempts: int = MAX_ATTEMPTS) -> S3Client:
    """A new S3 client: keep it for the length of a task, clients are safe to share by threads.

    Throttling, 5xx, timeouts and broken connections are retried with back-off, each request
    `max_attempts` times in all: by default that outlasts about 10 s without S3, and a minute of
    throttling. Raises S3Error, which names the connection, for a profile, region or endpoint that
    is none.
    """
    with _named(connection):
        client = _session(connection).client(
            "s3",
            endpoint_url=connection.endpoint,
            config=Config(
                s3={"addressing_style": _addressing_style(connection)},
                retries=_retries(max_attempts),
                connect_timeout=CONNECT_TIMEOUT_S,
                read_timeout=READ_TIMEOUT_S,
                max_pool_connections=16,
                # Stores other than AWS do not all know the newer default checksums.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            ),
        )
    wait_beyond_quota(client, max_attempts)
    if connection.requester_pays:
        client.meta.events.register("before-sign.s3", _promise_to_pay)
    return client


def _promise_to_pay(request: Any, **_: Any) -> None:
    request.headers["x-amz-request-payer"] = "requester"


def sts_client(connection: AwsConnection, *, max_attempts: int = STS_MAX_ATTEMPTS) -> STSClient:
    """A new STS client that signs as the connection does, assumed role included.

    Raises S3Error as `s3_client` does.
    """
    with _named(connection):
        return _session(connection).client(
            "sts", endpoint_url=connection.endpoint, config=_api_config(max_attempts)
        )


def sqs_client(
    connection: AwsConnection,
    *,
    endpoint: str | None = None,
    region: str | None = None,
    max_attempts: int = SQS_MAX_ATTEMPTS,
) -> Any:
    """A new SQS client that signs as the connection does; safe to share by threads.

    It asks `endpoint` in `region` where they are given, else the connection's. Raises S3Error as
    `s3_client` does.
    """
    with _named(connection):
        create: Any = _session(connection).client
        return create(
            "sqs",
            endpoint_url=endpoint or connection.endpoint,
            region_name=region,
            config=_api_config(max_attempts),
        )


@contextmanager
def _named(connection: AwsConnection) -> Iterator[None]:
    try:
        yield
    except (*AwsFailure, ValueError) as exc:
        doing = f"aws_connections.{connection.name}: making a client"
        raise S3Error(describe(exc, doing)) from exc


def _addressing_style(connection: AwsConnection) -> Any:
    return connection.addressing_style


def _retries(max_attempts: int) -> Any:
    return settings(max_attempts)


def _api_config(max_attempts: int) -> Config:
    return Config(
        retries=_retries(max_attempts),
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=READ_TIMEOUT_S,
    )


def _session(connection: AwsConnection) -> boto3.Session:
    # A session of its own for each client: sharing one between threads that create clients is
    # what boto3 warns of, and a lock could not travel to executors.
    base = _base_session(connection, connection.region)
    if base.region_name is None:
        base = _base_session(connection, DEFAULT_REGION)
    if connection.assume_role_arn is None:
        return base
    return _assumed(base, connection, connection.assume_role_arn)


def _base_session(connection: AwsConnection, region: str | None) -> boto3.Session:
    return boto3.Session(
        aws_access_key_id=connection.access_key_id,
        aws_secret_access_key=connection.secret_access_key,
        aws_session_token=connection.session_token,
        region_name=region,
        botocore_session=_botocore_session(),
    )


def _botocore_session() -> Any:
    """A session of its own, but for the descriptions of services: slow to read, and always alike.

    Code that travels by value has no globals in a worker's next task, but botocore's module has.
    """
    session: Any = BotocoreSession()
    first = session.get_component("data_loader")
    shared = vars(botocore.loaders).setdefault("_of_dbt_mzs3", first)
    loader = copy.copy(shared)  # with the same cache of what was read
    loader._search_paths = list(shared.search_paths)  # each boto3.Session adds to these
    session.register_component("data_loader", loader)
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_instant)
    return session


def _instant(value: Any) -> datetime:
    """A timestamp in an answer; the usual ones fast, as a page of a listing has a thousand."""
    with suppress(ValueError):
        if isinstance(value, str) and value.endswith("Z") and "T" in value:
            return datetime.fromisoformat(f"{value[:-1]}+00:00")
        if isinstance(value, str) and value.endswith(" GMT"):
            return parsedate_to_datetime(value)
    parsed: datetime = parse_timestamp(value)
    return parsed


def _assumed(base: boto3.Session, connection: AwsConnection, role_arn: str) -> boto3.Session:
    """A session whose credentials are the assumed role's."""
    create: Any = base.client
    source: Any = base.get_credentials()
    if source is None:
        raise NoCredentialsError

    def create_client(service: str, **kwargs: Any) -> Any:
        # The fetcher hands over the source credentials; the endpoint is the connection's.
        config = _api_config(STS_MAX_ATTEMPTS)
        return create(service, endpoint_url=connection.endpoint, config=config, **kwargs)

    inner = _botocore_session()
    inner._credentials = role_credentials(source, role_arn, connection.external_id, create_client)
    return boto3.Session(botocore_session=inner, region_name=base.region_name)


def role_credentials(
    source: Credentials, role_arn: str, external_id: str | None, create_client: Callable[..., Any]
) -> DeferredRefreshableCredentials:
    """Credentials that a long-lived client can sign with for as long as `source` lasts.

    The role is assumed at the first request, and again by the first request within 15 minutes of
    the credentials' end; a refusal is no matter until 10 minutes before it. After that any request
    raises RoleError, which names the role and no secret. `create_client` makes the STS client.
    """
    extra = {"RoleSessionName": ROLE_SESSION}
    if external_id:
        extra["ExternalId"] = external_id
    fetcher = AssumeRoleCredentialFetcher(
        client_creator=create_client,
        source_credentials=source,
        role_arn=role_arn,
        extra_args=extra,
    )
    return DeferredRefreshableCredentials(
        method="assume-role", refresh_using=_Assume(role_arn, fetcher.fetch_credentials)
    )


class _Assume:
    """Fetches the role's credentials; says what it means when that is refused."""

    def __init__(self, role_arn: str, fetch: Callable[[], dict[str, Any]]) -> None:
        self._role_arn = role_arn
        self._fetch = fetch
        self._had_some = False

    def __call__(self) -> dict[str, Any]:
        try:
            credentials = self._fetch()
        except AwsFailure as exc:
            raise self._refused(reason_of(exc)) from exc
        ends = datetime.fromisoformat(credentials["expiry_time"].replace("Z", "+00:00"))
        if ends <= datetime.now(timezone.utc):
            raise self._refused(
                f"STS gave credentials that ended at {ends:%Y-%m-%d %H:%M:%S} UTC already; check "
                "the clock of the machine that asked"
            )
        self._had_some = True
        return credentials

    def _refused(self, reason: str) -> RoleError:
        if self._had_some:
            what = f"the credentials of the role {self._role_arn} have aged and were not renewed"
        else:
            what = f"the role {self._role_arn} could not be assumed"
        return RoleError(reason=f"{what}: {reason}")


def s3_now(client: S3Client, location: S3Location) -> int:
    """The time in ms since the epoch by S3's clock, to the second, or by ours where it has none.

    Needs s3:ListBucket; raises what boto3 raises.
    """
    page = client.list_objects_v2(Bucket=location.bucket, Prefix=location.prefix, MaxKeys=1)
    told = time_of(page)
    return int(time.time() * 1000) if told is None else told


def time_of(answer: Mapping[str, Any]) -> int | None:
    """When S3 gave an answer, in ms since the epoch, to the second; None if it does not say."""
    headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    try:
        return int(parsedate_to_datetime(headers["date"]).timestamp() * 1000)
    except (KeyError, ValueError, TypeError):
        return None
