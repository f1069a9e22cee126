"""A queue's messages are received, held, given back, deleted; a queue that fails says why."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from dbt.adapters.mzs3.errors import S3Error
from dbt.adapters.mzs3.source.queue.sqs import Queue
from dbt.adapters.mzs3.store.connection import AwsConnection

KEYS: Any = {"access_key_id": "AKIAEXAMPLE", "secret_access_key": "the-secret-key"}
CONNECTION = AwsConnection("lake", region="us-east-1", **KEYS)


@pytest.fixture
def aws() -> Iterator[Any]:
    with mock_aws():
        yield boto3.client("sqs", "us-east-1", aws_access_key_id="x", aws_secret_access_key="x")


def make(aws: Any, count: int) -> str:
    url: str = aws.create_queue(QueueName="events")["QueueUrl"]
    for number in range(count):
        aws.send_message(QueueUrl=url, MessageBody=str(number))
    return url


def left(aws: Any, url: str) -> tuple[int, int]:
    """How many messages are visible, and how many are in somebody's hands."""
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    found = aws.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
    return int(found[names[0]]), int(found[names[1]])


def receive_all(queue: Queue) -> list[str]:
    handles: list[str] = []
    while messages := queue.receive(wait_s=0, visibility_s=300):
        handles += [handle for _, handle, _ in messages]
    return handles


@pytest.mark.parametrize("by", ["name", "url"])
def test_messages_are_held_given_back_and_deleted(aws: Any, by: str) -> None:
    url = make(aws, 23)
    queue = Queue(CONNECTION, "events" if by == "name" else url)
    assert queue.name == "events"
    handles = receive_all(queue)
    assert left(aws, url) == (0, 23)
    assert queue.hide(handles[:12], 0) == []
    assert left(aws, url) == (12, 11)
    assert queue.delete(handles[12:]) == []
    assert left(aws, url) == (12, 0)


def test_what_fails_of_a_batch_is_asked_for_again_and_then_counted(aws: Any) -> None:
    url = make(aws, 3)
    queue = Queue(CONNECTION, "events")
    handles = receive_all(queue)
    asked: list[list[str]] = []

    def fail(params: dict[str, Any], **_: Any) -> None:
        asked.append([entry["Id"] for entry in params["Entries"]])

    def failed(parsed: dict[str, Any], **_: Any) -> None:
        times = len(asked)
        wrong = {"Id": asked[-1][0], "SenderFault": False, "Code": "InternalError"}
        if times < 3:
            parsed["Failed"] = [wrong]

    client: Any = queue._client
    client.meta.events.register("provide-client-params.sqs.DeleteMessageBatch", fail)
    client.meta.events.register("after-call.sqs.DeleteMessageBatch", failed)
    assert queue.delete(handles) == []
    assert asked == [["0", "1", "2"], ["0"], ["0"]]

    asked[:] = []
    client.meta.events.register(
        "after-call.sqs.ChangeMessageVisibilityBatch",
        lambda parsed, **_: parsed.update(
            Failed=[{"Id": "1", "Code": "ReceiptHandleIsInvalid", "Message": "It expired."}]
        ),
    )
    undone = queue.hide(handles, 0)
    assert undone == ["ReceiptHandleIsInvalid: It expired."]
    assert left(aws, url) == (0, 0)


def test_a_queue_that_is_not_there(aws: Any) -> None:
    with pytest.raises(S3Error) as raised:
        Queue(CONNECTION, "evnts").receive(wait_s=0, visibility_s=1)
    text = str(raised.value)
    assert text.startswith(
        "looking up the queue evnts failed: AWS.SimpleQueueService.NonExistentQueue: "
    )
    assert text.endswith(
        ". Make the queue; or check its name under external.discover, and region and account of "
        "the AWS connection: the queue of another region or account is given by its URL"
    )


def refused(code: str, queue: str = "https://sqs.us-east-1.amazonaws.com/1/events") -> Queue:
    """A queue whose every request is answered with this error."""

    def answer(model: Any, **_: Any) -> None:
        raise ClientError({"Error": {"Code": code, "Message": "No."}}, model.name)

    made = Queue(CONNECTION, queue)
    made._client.meta.events.register("before-call.sqs.*", answer)
    return made


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("AccessDeniedException",
         "receiving from the queue events failed: AccessDeniedException: No. (needs "
         "sqs:ReceiveMessage)"),
        ("InvalidClientTokenId", "check the keys under aws_connections in the profile"),
        ("ExpiredToken", "a session_token can't be renewed"),
        ("KmsAccessDenied", "The queue is encrypted: this needs kms:Decrypt on its key"),
        ("QueueDoesNotExist", "Make the queue; or check its name"),
    ],
)  # fmt: skip
def test_a_queue_that_refuses_says_what_to_do_and_no_secret(code: str, says: str) -> None:
    with pytest.raises(S3Error) as raised:
        refused(code).receive(wait_s=0, visibility_s=1)
    text = str(raised.value)
    assert text.startswith("receiving from the queue events failed: ")
    assert says in text
    assert "the-secret-key" not in text


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda queue: queue.delete(["h"]),
         "deleting messages of the queue events failed: AccessDeniedException: No. "
         "(needs sqs:DeleteMessage)"),
        (lambda queue: queue.hide(["h"], 0),
         "changing the visibility of messages of the queue events failed: "
         "AccessDeniedException: No. (needs sqs:ChangeMessageVisibility)"),
    ],
)  # fmt: skip
def test_every_request_names_its_permission(ask: Any, says: str) -> None:
    with pytest.raises(S3Error) as raised:
        ask(refused("AccessDeniedException"))
    assert str(raised.value) == says


def test_looking_up_names_its_permission() -> None:
    with pytest.raises(
        S3Error, match=r"^looking up the queue q failed: .+ \(needs sqs:GetQueueUrl\)$"
    ):
        refused("AccessDenied", "q").receive(wait_s=0, visibility_s=1)


def test_a_queue_that_can_not_be_reached() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/1/events"
        with pytest.raises(S3Error) as raised:
            Queue(CONNECTION, url, max_attempts=1).receive(wait_s=0, visibility_s=1)
    text = str(raised.value)
    assert text.startswith("receiving from the queue events failed: Could not connect")
    assert text.endswith(
        "Check that SQS can be reached from here; a queue that is not at the endpoint of the AWS "
        "connection is given by its URL"
    )


def test_a_url_is_asked_where_it_points_to_and_in_its_region() -> None:
    connection = AwsConnection("lake", region="us-east-1", endpoint="http://s3.local", **KEYS)
    client = Queue(connection, "https://sqs.eu-west-1.amazonaws.com/1/q")._client
    assert client.meta.endpoint_url == "https://sqs.eu-west-1.amazonaws.com"
    assert client.meta.region_name == "eu-west-1"
    client = Queue(connection, "http://elastic.local:9324/1/q")._client
    assert client.meta.endpoint_url == "http://elastic.local:9324"
    assert client.meta.region_name == "us-east-1"
    assert Queue(connection, "q")._client.meta.endpoint_url == "http://s3.local"
