"""A queue, and what a source sees of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import boto3
from moto import mock_aws

from dbt.adapters.mzs3.source.queue.inbox import open_inbox
from dbt.adapters.mzs3.source.run import SourceRun
from dbt.adapters.mzs3.store.connection import AwsConnection
from support.source.fields import parse

CONNECTION = AwsConnection(
    "lake", region="us-east-1", access_key_id="AKIAEXAMPLE", secret_access_key="the-secret-key"
)
COUNTS = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]


@dataclass
class Post:
    """A bucket, a queue, and the inbox of a source over both."""

    s3: Any
    sqs: Any
    url: str
    warned: list[str] = field(default_factory=list)
    cancelled: threading.Event = field(default_factory=threading.Event)
    spark: Any = None

    def put(self, name: str, body: bytes = b"id\n1\n") -> None:
        self.s3.put_object(Bucket="acme-raw", Key=f"orders/{name}", Body=body)

    def send(self, *bodies: str) -> None:
        for body in bodies:
            self.sqs.send_message(QueueUrl=self.url, MessageBody=body)

    def run(self, **external: Any) -> SourceRun:
        definition = parse(external, discover=[{"sqs_notifications": "events"}])
        return SourceRun(
            self.spark, definition, CONNECTION, cancelled=self.cancelled, tell=self.tell
        )

    def tell(self, line: tuple[str, str]) -> None:
        level, text = line
        if level == "warn":
            self.warned.append(text)

    def open(self, **external: Any) -> Any:
        return open_inbox(self.run(**external))

    @property
    def left(self) -> tuple[int, int]:
        """How many messages are visible, and how many are in somebody's hands."""
        found = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=COUNTS)
        return tuple(int(found["Attributes"][name]) for name in COUNTS)  # type: ignore[return-value]


def names(objects: Any) -> list[str]:
    """The names of objects, or of events, below the location."""
    return sorted(one.key.removeprefix("orders/") for one in objects)


@contextmanager
def post_office() -> Iterator[Post]:
    """The bucket and the queue, on moto, while the block runs."""
    with mock_aws():
        session = boto3.Session("x", "x", region_name="us-east-1")
        s3, sqs = session.client("s3"), session.client("sqs")
        s3.create_bucket(Bucket="acme-raw")
        yield Post(s3, sqs, sqs.create_queue(QueueName="events")["QueueUrl"])
