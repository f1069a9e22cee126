"""A role's credentials are renewed while a client lives; a refusal says which role, and why."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.parse import parse_qs

import pytest
from support.s3.answering import Answer, Answering, Asked

from dbt.adapters.mzs3.errors import S3Error
from dbt.adapters.mzs3.store.check import check_connection
from dbt.adapters.mzs3.store.client import s3_client
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.failures import RoleError, StoreError, describe

ROLE = "arn:aws:iam::123456789012:role/copy"
SECRET = "the-base-secret"
SOON = timedelta(seconds=5)
LATER = timedelta(hours=1)
ASSUMED = """<AssumeRoleResponse><AssumeRoleResult>
<AssumedRoleUser><Arn>arn:aws:sts::123456789012:assumed-role/copy/x</Arn></AssumedRoleUser>
<Credentials><AccessKeyId>ASIA{n}</AccessKeyId><SecretAccessKey>role-secret-{n}</SecretAccessKey>
<SessionToken>role-token-{n}</SessionToken><Expiration>{ends}</Expiration></Credentials>
</AssumeRoleResult></AssumeRoleResponse>"""
DENIED = """<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code>
<Message>not authorized to perform: sts:AssumeRole</Message></Error></ErrorResponse>"""


class Aws:
    """STS and S3 in one: `lifetimes` are of the credentials that STS gives, one after the other;
    when they are used up it refuses."""

    def __init__(self) -> None:
        self.lifetimes: Iterator[timedelta] = iter(())
        self.asked_of_sts: list[dict[str, list[str]]] = []
        self.signed_by: list[tuple[str, str]] = []
        self._numbers = itertools.count(1)

    def answer(self, asked: Asked) -> Answer:
        if asked.method != "POST":
            self.signed_by.append((asked.key_id, asked.headers["x-amz-security-token"]))
            return 200, "<ListBucketResult/>"
        self.asked_of_sts.append(parse_qs(asked.body.decode()))
        lifetime = next(self.lifetimes, None)
        if lifetime is None:
            return 403, DENIED
        ends = datetime.now(timezone.utc) + lifetime
        return 200, ASSUMED.format(n=next(self._numbers), ends=ends.strftime("%Y-%m-%dT%H:%M:%SZ"))


@pytest.fixture
def aws() -> Aws:
    return Aws()


@pytest.fixture
def connection(aws: Aws) -> Iterator[AwsConnection]:
    with Answering(aws.answer) as server:
        yield AwsConnection(
            "lake",
            region="eu-west-1",
            endpoint=server.endpoint,
            addressing_style="path",
            access_key_id="AKIABASE",
            secret_access_key=SECRET,
            assume_role_arn=ROLE,
            external_id="mz_1234",
        )


def ask(client: Any) -> None:
    client.list_objects_v2(Bucket="b", Prefix="x/")


def test_the_role_is_assumed_once_for_many_requests(aws: Aws, connection: AwsConnection) -> None:
    aws.lifetimes = iter([LATER])
    client = s3_client(connection)
    for _ in range(3):
        ask(client)
    assert aws.signed_by == [("ASIA1", "role-token-1")] * 3
    [request] = aws.asked_of_sts
    assert request["RoleArn"] == [ROLE]
    assert request["ExternalId"] == ["mz_1234"]
    assert request["RoleSessionName"] == ["dbt-mzs3"]


def test_a_client_that_outlives_its_credentials_signs_with_new_ones(
    aws: Aws, connection: AwsConnection
) -> None:
    aws.lifetimes = iter([SOON, SOON, LATER])
    client = s3_client(connection)
    for _ in range(4):
        ask(client)
    assert aws.signed_by == [
        ("ASIA1", "role-token-1"),
        ("ASIA2", "role-token-2"),
        ("ASIA3", "role-token-3"),
        ("ASIA3", "role-token-3"),
    ]


def test_a_refused_renewal_names_the_role_and_no_secret(
    aws: Aws, connection: AwsConnection, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    aws.lifetimes = iter([SOON])
    client = s3_client(connection)
    ask(client)
    with pytest.raises(StoreError) as failure:
        ask(client)
    text = describe(failure.value, "uploading part 4 of s3://b/x.csv", "s3:PutObject")
    assert text == (
        f"uploading part 4 of s3://b/x.csv failed: the credentials of the role {ROLE} have aged "
        "and were not renewed: AccessDenied: not authorized to perform: sts:AssumeRole"
    )
    for secret in (SECRET, "role-secret-1", "role-token-1", "AKIABASE", "mz_1234"):
        assert secret not in text + caplog.text
    assert len(aws.signed_by) == 1


def test_a_refusal_is_no_matter_while_the_credentials_last(
    aws: Aws, connection: AwsConnection
) -> None:
    aws.lifetimes = iter([timedelta(minutes=12)])
    client = s3_client(connection)
    ask(client)
    ask(client)
    assert len(aws.asked_of_sts) == 2
    assert aws.signed_by == [("ASIA1", "role-token-1")] * 2


def test_a_role_that_can_not_be_assumed_is_no_denial_of_s3(
    aws: Aws, connection: AwsConnection
) -> None:
    with pytest.raises(RoleError, match=f"the role {ROLE} could not be assumed: AccessDenied"):
        ask(s3_client(connection))
    with pytest.raises(S3Error, match=f"aws_connections.lake: .*{ROLE} could not be assumed"):
        check_connection(connection)
    assert aws.signed_by == []


def test_credentials_that_have_ended_when_they_come_point_at_the_clock(
    aws: Aws, connection: AwsConnection
) -> None:
    aws.lifetimes = iter([-LATER])
    with pytest.raises(RoleError, match="check the clock"):
        ask(s3_client(connection))
