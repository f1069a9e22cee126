"""A connection is tried on a prefix, a queue or both; every problem is told at once."""

from __future__ import annotations

from typing import Any

import pytest

from dbt.adapters.mzs3.aws.connection import AwsConnection
from dbt.adapters.mzs3.aws.location import S3Location
from dbt.adapters.mzs3.aws.permissions import LIST, LIST_PARTS, Check
from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.operations import locations
from dbt.adapters.mzs3.operations.locations import CheckResult, identify, validate_connection

LAKE = AwsConnection("lake")
CONNECTIONS = {"default": AwsConnection(), "lake": LAKE}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    found: list[Any] = []

    def check(*of: Any) -> list[Check]:
        found.append(of)
        return [Check(LIST, "it is denied", denied=True), Check(LIST_PARTS, "it is denied")]

    monkeypatch.setattr(locations, "check_permissions", check)
    monkeypatch.setattr(locations, "check_queue", check)
    return found


def test_a_prefix_a_queue_or_both_are_tried(asked: list[Any]) -> None:
    url = "https://sqs.us-east-1.amazonaws.com/123456789012/q"
    validate_connection(CONNECTIONS, "lake", "s3://b/x", None)
    validate_connection(CONNECTIONS, "lake", None, url)
    both = validate_connection(CONNECTIONS, "lake", "s3://b/x", url)
    prefix, queue = (LAKE, S3Location("b", "x/")), (LAKE, url)
    assert asked == [prefix, queue, prefix, queue]
    denied = "DENIED: list (s3:ListBucket); it is denied"
    assert [tried.error for tried in both] == [
        f"exports to s3://b/x can't work:\n{denied}",
        f"sources can't ingest from the queue q:\n{denied}",
    ]


def test_a_connection_alone_is_asked_who_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locations, "check_connection", lambda one: f"who {one.name} is")
    assert identify(CONNECTIONS, "lake") == "who lake is"
    with pytest.raises(
        ConfigError, match="name 'lak' is not in the profile; it has default, lake"
    ):
        identify(CONNECTIONS, "lak")


def test_what_is_not_essential_is_no_error() -> None:
    assert CheckResult("", [Check(LIST), Check(LIST_PARTS, "it is denied")]).error is None


@pytest.mark.parametrize(
    ("location", "queue", "problems"),
    [
        ("b/x", None, ["location must start with s3://, not 'b/x'"]),
        ("", None, ["location must start with s3://, not ''"]),
        (
            "b/x",
            "arn:aws:sqs:us-east-1:1:q",
            [
                "location must start with s3://, not 'b/x'",
                "queue is an ARN; give the queue's name, or its URL if it is another account's",
            ],
        ),
        (None, 5, ["queue must be the name or the URL of a queue, as a text"]),
        (
            None,
            "https://AKIA:s3cr3t@sqs/1/q",
            [
                "queue must be a URL without a user, a password or parameters: keys belong under "
                "aws_connections in the profile"
            ],
        ),
    ],
)
def test_all_that_is_wrong_is_one_error(
    asked: list[Any], location: str | None, queue: Any, problems: list[str]
) -> None:
    with pytest.raises(ConfigError) as failure:
        validate_connection(CONNECTIONS, "lak", location, queue)
    assert list(failure.value.problems) == [
        "name 'lak' is not in the profile; it has default, lake",
        *problems,
    ]
    assert asked == []
