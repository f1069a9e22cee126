"""A lake's bucket that tells a queue of its objects, and runs that die on the way."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

COUNTS = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]


class Died(BaseException):
    """What no code catches."""


@dataclass
class Post:
    """The queue that a lake's bucket tells of its objects."""

    lake: Any
    sqs: Any
    url: str
    warned: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]

    @property
    def left(self) -> tuple[int, ...]:
        """How many messages are visible, and how many are in somebody's hands."""
        found = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=COUNTS)
        return tuple(int(found["Attributes"][name]) for name in COUNTS)

    def announce(self, name: str, event: str = "ObjectCreated:Put") -> None:
        found = {"bucket": {"name": self.lake.bucket}, "object": {"key": f"orders/{name}"}}
        record = {"eventSource": "aws:s3", "eventName": event, "eventTime": "now", "s3": found}
        self.sqs.send_message(QueueUrl=self.url, MessageBody=json.dumps({"Records": [record]}))

    def lose(self) -> None:
        """The one message there is never arrives."""
        (lost,) = self.sqs.receive_message(QueueUrl=self.url)["Messages"]
        self.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=lost["ReceiptHandle"])

    def ingest(self, **how: Any) -> Any:
        lines = {"warn": self.warned, "say": self.said, "debug": []}
        return self.lake.ingest(tell=lambda line: lines[line[0]].append(line[1]), **how)


def dying_at(step):
    def on_step(name):
        if name == step:
            raise Died

    return on_step
