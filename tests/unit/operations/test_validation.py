"""A connection is tried on a prefix, a queue or both; every problem is told at once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.operations import locations
from dbt.adapters.mzs3.store.check import LIST, LIST_PARTS, Check
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import S3Location

LAKE = AwsConnection("lake")
CREDENTIALS = SimpleNamespace(connections={"default": AwsConnection(), "lake": LAKE})
ADAPTER = SimpleNamespace(config=SimpleNamespace(credentials=CREDENTIALS))
DENIED = "DENIED: list (s3:ListBucket); it is denied"
NOT_ESSENTIAL = "FAILED: list the parts of an upload (s3:ListMultipartUploadParts); it is denied"


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(locations.logger, "info", lines.append)
    return lines


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    found: list[Any] = []

    def check(*of: Any) -> list[Check]:
        found.append(of)
        return [Check(LIST, "it is denied", denied=True), Check(LIST_PARTS, "it is denied")]

    monkeypatch.setattr(locations, "check_permissions", check)
    monkeypatch.setattr(locations, "check_queue", check)
    return found


def test_a_prefix_a_queue_or_both_are_tried(asked: list[Any], said: list[str]) -> None:
    url = "https://sqs.us-east-1.amazonaws.com/123456789012/q"
    of_prefix = ["exports to s3://b/x can't work:", DENIED]
    of_queue = ["sources can't ingest from the queue q:", DENIED]
    for location, queue, errors in (
        ("s3://b/x", None, of_prefix),
        (None, url, of_queue),
        ("s3://b/x", url, of_prefix + of_queue),
    ):
        with pytest.raises(DbtRuntimeError) as failure:
            locations.validate(ADAPTER, "lake", location, queue)
        assert str(failure.value.msg).splitlines() == errors
    of_location = (LAKE, S3Location("b", "x/"))
    assert asked == [of_location, (LAKE, url), of_location, (LAKE, url)]
    assert said == [f"  {DENIED}", f"  {NOT_ESSENTIAL}"] * 4


def test_a_connection_alone_is_asked_who_it_is(
    monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    monkeypatch.setattr(locations, "check_connection", lambda one: f"who {one.name} is")
    locations.validate(ADAPTER, "lake", None, None)
    assert said == ["  aws lake: who lake is"]
    with pytest.raises(
        ConfigError, match="name 'lak' is not in the profile; it has default, lake"
    ):
        locations.validate(ADAPTER, "lak", None, None)


def test_what_is_not_essential_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = [Check(LIST), Check(LIST_PARTS, "it is denied")]
    monkeypatch.setattr(locations, "check_permissions", lambda *_: checks)
    locations.validate(ADAPTER, "lake", "s3://b/x", None)


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
        locations.validate(ADAPTER, "lak", location, queue)
    assert list(failure.value.problems) == [
        "name 'lak' is not in the profile; it has default, lake",
        *problems,
    ]
    assert asked == []
