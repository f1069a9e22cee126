"""One SQS queue: receives, hides, returns and deletes its messages.

Bodies of messages are never repeated, in errors or elsewhere: anybody may have sent them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from dbt.adapters.mzs3.errors import S3Error
from dbt.adapters.mzs3.source.discovery import queue_name
from dbt.adapters.mzs3.store.boto_errors import as_store_errors
from dbt.adapters.mzs3.store.client import OTHER_MAX_ATTEMPTS, aws_client
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.failures import (
    MissingQueueError,
    NoResponseError,
    StoreError,
    describe,
)

BATCH = 10
"""The most messages in a request to SQS."""
TRIES = 3
"""The attempts for a batch, each with only the messages that failed before."""

_REGION = re.compile(r"sqs\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")


class Queue:
    """A queue by its name or URL; requests go to the URL's host. Raises S3Error."""

    def __init__(
        self, connection: AwsConnection, queue: str, *, max_attempts: int = OTHER_MAX_ATTEMPTS
    ) -> None:
        self.name = queue_name(queue)
        self._url = queue if "://" in queue else None
        endpoint = region = None
        if self._url is not None:
            parts = urlsplit(queue)
            endpoint = f"{parts.scheme}://{parts.netloc}"
            match = _REGION.fullmatch(parts.hostname or "")
            region = match[1] if match else None
        self._client = aws_client(
            connection, "sqs", endpoint=endpoint, region=region, max_attempts=max_attempts
        )

    def look_up(self) -> str:
        """The queue's URL; requests it from SQS if only the name is given."""
        if self._url is None:
            with self._failures("looking up", "sqs:GetQueueUrl"):
                answer = self._client.get_queue_url(QueueName=self.name)
            self._url = str(answer["QueueUrl"])
        return self._url

    def receive(
        self, *, wait_s: int, visibility_s: int, at_most: int = BATCH
    ) -> list[tuple[str, str, str]]:
        """Waits up to `wait_s` for at most `at_most` messages, and hides them for `visibility_s`.

        Returns the id, the receipt handle and the body of each. Unless `wait_s` is 0, SQS asks all
        of its servers, so an empty list means that the queue is empty.
        """
        with self._failures("receiving from", "sqs:ReceiveMessage"):
            answer = self._client.receive_message(
                QueueUrl=self.look_up(),
                MaxNumberOfMessages=at_most,
                WaitTimeSeconds=wait_s,
                VisibilityTimeout=visibility_s,
            )
        messages = answer.get("Messages", [])
        return [(each["MessageId"], each["ReceiptHandle"], each["Body"]) for each in messages]

    def hide(self, handles: Sequence[str], seconds: int) -> list[str]:
        """Sets the visibility timeout of the messages; 0 returns them to the queue at once.

        Returns SQS's error for each message for which that failed.
        """
        return self._in_batches(
            self._client.change_message_visibility_batch,
            "changing the visibility of messages of",
            "sqs:ChangeMessageVisibility",
            handles,
            VisibilityTimeout=seconds,
        )

    def delete(self, handles: Sequence[str]) -> list[str]:
        """Deletes the messages. Returns SQS's error for each that could not be deleted."""
        return self._in_batches(
            self._client.delete_message_batch, "deleting messages of", "sqs:DeleteMessage", handles
        )

    def _in_batches(
        self,
        request: Callable[..., dict[str, Any]],
        doing: str,
        permission: str,
        handles: Sequence[str],
        **of_each: Any,
    ) -> list[str]:
        """Makes the request, in `TRIES` attempts. Returns an error for each failed message."""
        errors: list[str] = []
        for start in range(0, len(handles), BATCH):
            waiting = {str(n): handle for n, handle in enumerate(handles[start : start + BATCH])}
            for _ in range(TRIES):
                entries = [{"Id": n, "ReceiptHandle": waiting[n], **of_each} for n in waiting]
                with self._failures(doing, permission):
                    answer = request(QueueUrl=self.look_up(), Entries=entries)
                failed = answer.get("Failed", [])
                waiting = {one["Id"]: waiting[one["Id"]] for one in failed}
                if not waiting:
                    break
            errors += [f"{one.get('Code')}: {one.get('Message', 'no message')}" for one in failed]
        return errors

    @contextmanager
    def _failures(self, doing: str, permission: str) -> Iterator[None]:
        try:
            with as_store_errors():
                yield
        except StoreError as exc:
            text = describe(exc, f"{doing} the queue {self.name}", permission)
            raise S3Error(text + _advice(exc)) from exc


def _advice(exc: StoreError) -> str:
    if isinstance(exc, MissingQueueError):
        return (
            ". Make the queue; or check its name under external.discover, and region and account "
            "of the AWS connection: the queue of another region or account is given by its URL"
        )
    if "kms" in exc.code.lower():
        return ". The queue is encrypted: this needs kms:Decrypt on its key"
    if isinstance(exc, NoResponseError):
        return (
            ". Check that SQS can be reached from here; a queue that is not at the endpoint of "
            "the AWS connection is given by its URL"
        )
    return ""
