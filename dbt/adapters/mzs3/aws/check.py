"""Checks that an AWS connection works: its endpoint answers and its credentials are accepted."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit
from urllib.request import getproxies

from dbt.adapters.mzs3.aws.client import aws_client, s3_client
from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.aws.failures import (
    REFUSED_CODES,
    AwsFailure,
    describe,
    error_code,
    is_denied,
)
from dbt.adapters.mzs3.errors import S3Error

CONNECT_TIMEOUT_S = 5
# Somebody waits for the answer.
MAX_ATTEMPTS = 2


def check_connection(connection: AwsConnection) -> str:
    """The ARN that the connection signs as, and its endpoint, once S3 has answered.

    A store without STS has no ARN to tell. S3 is asked for the list of buckets; AccessDenied is an
    answer too. Raises S3Error that says what failed and what to look at.
    """
    where = f"aws_connections.{connection.name}"
    endpoint = connection.endpoint or "AWS"
    require_endpoint(connection)
    try:
        sts = aws_client(connection, "sts", max_attempts=MAX_ATTEMPTS)
        who = sts.get_caller_identity()["Arn"]
    except AwsFailure as exc:
        refused = error_code(exc) in REFUSED_CODES or connection.assume_role_arn is not None
        if refused or connection.endpoint is None:
            raise S3Error(describe(exc, f"{where}: asking STS who this is")) from exc
        who = "credentials accepted"
    try:
        s3_client(connection, max_attempts=MAX_ATTEMPTS).list_buckets()
    except AwsFailure as exc:
        if not is_denied(exc):
            raise S3Error(describe(exc, f"{where}: asking S3 at {endpoint}")) from exc
    return f"{who} at {endpoint}"


def require_endpoint(connection: AwsConnection) -> None:
    """Raises S3Error at once where nothing listens, as boto3 would retry for a while."""
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
