"""Credentials of an assumed role, renewed as they age; on the driver and on executors alike."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from botocore.credentials import (
    AssumeRoleCredentialFetcher,
    Credentials,
    DeferredRefreshableCredentials,
)

from dbt.adapters.mzs3.aws.failures import AwsFailure, RoleError, reason_of

ROLE_SESSION = "dbt-mzs3"


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
