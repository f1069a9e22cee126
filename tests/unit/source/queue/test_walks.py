"""The walks of the page on queues: from S3 by way of SNS, and of EventBridge, to a source."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws
from support.source.fields import parse

from dbt.adapters.mzs3.source.queue import inbox as queue_inbox
from dbt.adapters.mzs3.source.queue.inbox import Inbox, open_inbox
from dbt.adapters.mzs3.source.run import SourceRun
from dbt.adapters.mzs3.store.connection import AwsConnection

PAGE = Path(__file__).parents[4] / "docs" / "s3-csv-source" / "queues.md"
CONNECTION = AwsConnection(
    "lake", region="us-east-1", access_key_id="AKIAEXAMPLE", secret_access_key="the-secret-key"
)
Client = Callable[[str], Any]


def pasted(name: str) -> str:
    """The file of that name, as the page has it."""
    [text] = re.findall(rf"`{name}`:\n\n```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return str(text)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """AWS with the bucket, in the region and the account of the page."""
    monkeypatch.setattr(queue_inbox, "WAIT_S", 0)
    with mock_aws():
        session = boto3.Session("x", "x", region_name="us-east-1")
        session.client("s3").create_bucket(Bucket="acme-raw")
        yield session.client


def make_queue(client: Client, name: str, **attributes: str) -> str:
    """The queue's ARN."""
    sqs = client("sqs")
    url = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    return str(found["Attributes"]["QueueArn"])


def left(client: Client, name: str) -> int:
    """How many messages of a queue are visible."""
    names: Any = ["ApproximateNumberOfMessages"]
    url = client("sqs").get_queue_url(QueueName=name)["QueueUrl"]
    found = client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=names)
    return int(found["Attributes"][names[0]])


@contextmanager
def received(warned: list[str]) -> Iterator[Inbox]:
    """What a run of the page's source receives."""
    definition = parse(pattern="**/*.csv", discover=[{"sqs_notifications": "orders-events"}])
    spark: Any = None
    run = SourceRun(spark, definition, CONNECTION, tell=lambda line: warned.append(line[1]))
    with open_inbox(run) as inbox:
        assert inbox is not None
        inbox.receive()
        yield inbox


def require_allowed(policy: str, action: str, sender: str, from_arn: str, to_arn: str) -> None:
    """The policy lets this service do that alone, for one sender, and to what the policy is of."""
    [statement] = json.loads(policy)["Statement"]
    condition = statement.pop("Condition")
    assert condition.pop("ArnEquals") == {"aws:SourceArn": from_arn}
    assert condition in ({}, {"StringEquals": {"aws:SourceAccount": "123456789012"}})
    assert statement == {
        "Effect": "Allow",
        "Principal": {"Service": sender},
        "Action": action,
        "Resource": to_arn,
    }


def notify(client: Client, notifications: str) -> None:
    client("s3").put_bucket_notification_configuration(
        Bucket="acme-raw", NotificationConfiguration=json.loads(notifications)
    )


def put_and_remove(client: Client) -> None:
    """Two objects of the source's, of which one goes again, and one of somebody else's."""
    for key in ("orders/a b+c.csv", "orders/gone.csv", "other/a.csv"):
        client("s3").put_object(Bucket="acme-raw", Key=key, Body=b"id\n1\n")
    client("s3").delete_object(Bucket="acme-raw", Key="orders/gone.csv")


def require_taken(client: Client) -> None:
    """The source takes what was announced, and no message stays."""
    warned: list[str] = []
    with received(warned) as inbox:
        assert [one.key for one in inbox.present_objects] == ["orders/a b+c.csv"]
        assert [event.key for event in inbox.events_without_object] == ["orders/gone.csv"]
        inbox.acknowledge()
    assert (left(client, "orders-events"), warned) == (0, [])


@pytest.mark.parametrize("raw", ["true", "false"])
def test_messages_by_way_of_sns(client: Client, raw: str) -> None:
    policy = pasted("topic-policy.json")
    topic = client("sns").create_topic(Name="orders-objects")["TopicArn"]
    require_allowed(policy, "sns:Publish", "s3.amazonaws.com", "arn:aws:s3:::acme-raw", topic)
    client("sns").set_topic_attributes(
        TopicArn=topic, AttributeName="Policy", AttributeValue=policy
    )
    queue = make_queue(client, "orders-events", Policy=pasted("queue-policy.json"))
    require_allowed(
        pasted("queue-policy.json"), "sqs:SendMessage", "sns.amazonaws.com", topic, queue
    )
    client("sns").subscribe(
        TopicArn=topic,
        Protocol="sqs",
        Endpoint=queue,
        Attributes={"RawMessageDelivery": raw},
    )
    notify(client, pasted("notifications.json"))
    assert left(client, "orders-events") == 1  # S3's test event
    put_and_remove(client)
    assert left(client, "orders-events") == 4
    require_taken(client)


def test_messages_by_way_of_eventbridge(client: Client) -> None:
    policy = pasted("bridged-queue-policy.json")
    queue = make_queue(client, "orders-events", Policy=policy)
    events = client("events")
    rule = events.put_rule(Name="orders-objects", EventPattern=pasted("rule.json"))["RuleArn"]
    require_allowed(policy, "sqs:SendMessage", "events.amazonaws.com", rule, queue)
    events.put_targets(Rule="orders-objects", Targets=[{"Id": "orders-events", "Arn": queue}])
    notify(client, pasted("bridged-notifications.json"))
    put_and_remove(client)
    assert left(client, "orders-events") == 3
    require_taken(client)


def test_what_can_never_be_read_goes_to_the_dead_letter_queue(client: Client) -> None:
    policy = json.loads(pasted("redrive-policy.json"))
    assert policy["deadLetterTargetArn"] == make_queue(client, "orders-events-dead")
    assert policy["maxReceiveCount"] >= 100
    fewer = json.dumps({**policy, "maxReceiveCount": 3})
    make_queue(client, "orders-events", RedrivePolicy=fewer)
    sqs = client("sqs")
    url = sqs.get_queue_url(QueueName="orders-events")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="no event")
    warned: list[str] = []
    for _ in range(3):
        with received(warned) as inbox:
            assert left(client, "orders-events") == 1  # given back at once, to whoever wants it
            inbox.acknowledge()
        assert (left(client, "orders-events"), left(client, "orders-events-dead")) == (1, 0)
    assert len(warned) == 3
    assert "1 that are no S3 events" in warned[0]
    with received(warned) as inbox:
        assert inbox.empty
    assert (left(client, "orders-events"), left(client, "orders-events-dead")) == (0, 1)
    assert len(warned) == 3
