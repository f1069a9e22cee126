"""Every permission on a queue is tried on its own, and no message notices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from dbt.adapters.mzs3.errors import S3Error
from dbt.adapters.mzs3.source.queue import sqs
from dbt.adapters.mzs3.source.queue.permissions import check_queue
from dbt.adapters.mzs3.store.client import aws_client
from dbt.adapters.mzs3.store.connection import AwsConnection

CONNECTION = AwsConnection(
    "lake", region="us-east-1", access_key_id="AKIAEXAMPLE", secret_access_key="the-secret-key"
)
Refuse = Callable[..., None]
ALL_FINE = [
    "ok: look up the queue (sqs:GetQueueUrl)",
    "ok: receive messages (sqs:ReceiveMessage)",
    "ok: change the visibility of messages (sqs:ChangeMessageVisibility)",
    "ok: delete messages (sqs:DeleteMessage)",
]
COUNTS = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]


@pytest.fixture
def aws() -> Iterator[Any]:
    with mock_aws():
        client = boto3.client("sqs", "us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
        client.create_queue(QueueName="events")
        yield client


@pytest.fixture
def url(aws: Any) -> str:
    found: str = aws.get_queue_url(QueueName="events")["QueueUrl"]
    return found


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch) -> Refuse:
    """`refuse("ReceiveMessage")`: from now on the check's client gets AccessDenied for it."""

    def make(*actions: str, code: str = "AccessDenied") -> None:
        def refusing(connection: AwsConnection, service: str, **options: Any) -> Any:
            client: Any = aws_client(connection, service, **options)
            for action in actions:
                client.meta.events.register(f"before-call.sqs.{action}", answer)
            return client

        def answer(model: Any, **_: Any) -> None:
            raise ClientError({"Error": {"Code": code, "Message": "No."}}, model.name)

        monkeypatch.setattr(sqs, "aws_client", refusing)

    return make


@pytest.mark.parametrize("messages", [0, 3])
def test_all_is_tried_and_every_message_is_left(aws: Any, url: str, messages: int) -> None:
    for number in range(messages):
        aws.send_message(QueueUrl=url, MessageBody=str(number))
    assert [check.line for check in check_queue(CONNECTION, "events")] == ALL_FINE
    assert [check.line for check in check_queue(CONNECTION, url)] == ALL_FINE[1:]
    found = aws.get_queue_attributes(QueueUrl=url, AttributeNames=COUNTS)["Attributes"]
    assert [found[name] for name in COUNTS] == [str(messages), "0"]


@pytest.mark.parametrize(
    ("action", "permission", "says", "stops"),
    [
        ("ReceiveMessage", "sqs:ReceiveMessage", "Needed for every run", True),
        (
            "ChangeMessageVisibilityBatch",
            "sqs:ChangeMessageVisibility",
            "Needed for keeping messages from others while a run works",
            False,
        ),
        (
            "DeleteMessageBatch",
            "sqs:DeleteMessage",
            "Needed for acknowledging what is committed; without it every message comes again",
            False,
        ),
    ],
)
def test_one_denial_is_one_line_that_says_what_it_costs(
    url: str, refuse: Refuse, action: str, permission: str, says: str, stops: bool
) -> None:
    refuse(action)
    checks = check_queue(CONNECTION, url)
    [denied] = [check for check in checks if check.problem is not None]
    assert denied.line.startswith("DENIED: ")
    assert f"({permission}); " in denied.line
    assert f"the queue events failed: AccessDenied: No. (needs {permission}). {says}" in (
        denied.line
    )
    assert denied.stops_all is stops
    assert len(checks) == 3


def test_a_queue_that_can_not_be_looked_up_is_not_asked(aws: Any, refuse: Refuse) -> None:
    refuse("GetQueueUrl")
    checks = check_queue(CONNECTION, "events")
    assert [check.line.split(":")[0] for check in checks] == ["DENIED", *["not tried"] * 3]
    assert checks[0].stops_all
    assert checks[1].line == (
        "not tried: receive messages (sqs:ReceiveMessage), as the queue could not be looked up; "
        "its URL would do without that"
    )


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("InvalidClientTokenId", "check the keys under aws_connections"),
        ("ExpiredToken", "a session_token can't be renewed"),
        ("QueueDoesNotExist", "Make the queue; or check its name"),
    ],
)
def test_what_lets_nothing_work_is_one_line(
    url: str, refuse: Refuse, code: str, says: str
) -> None:
    refuse("*", code=code)
    with pytest.raises(S3Error) as failure:
        check_queue(CONNECTION, url)
    text = str(failure.value)
    assert text.startswith(
        f"aws_connections.lake: receiving from the queue events failed: {code}: No"
    )
    assert says in text
    assert "\n" not in text
    assert "the-secret-key" not in text


def test_a_queue_that_does_not_exist_is_one_line(aws: Any) -> None:
    with pytest.raises(S3Error, match=r"looking up the queue evnts failed.*Make the queue"):
        check_queue(CONNECTION, "evnts")
