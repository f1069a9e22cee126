"""Tries every permission that a run needs on a source's queue."""

from __future__ import annotations

from collections.abc import Callable

from dbt.adapters.mzs3.errors import S3Error
from dbt.adapters.mzs3.source.queue.sqs import Queue
from dbt.adapters.mzs3.store.check import MAX_ATTEMPTS, Check, Permission
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.failures import PermissionDeniedError, StoreError, nothing_works

LOOK_UP = Permission(
    "look up the queue", "sqs:GetQueueUrl", True, "a queue that is given by its name"
)
RECEIVE = Permission(
    "receive messages", "sqs:ReceiveMessage", True, "every run, to learn of objects"
)
HIDE = Permission(
    "change the visibility of messages",
    "sqs:ChangeMessageVisibility",
    False,
    "keeping messages from others while a run works, and for giving them back at once; without "
    "it they come back within 300 s, even while the run still works",
)
DELETE = Permission(
    "delete messages",
    "sqs:DeleteMessage",
    False,
    "acknowledging what is committed; without it every message comes again with every run, until "
    "it expires",
)

# An invalid handle: if the permission is there, SQS reports an error for this message only.
_NO_HANDLE = ["dbt-mzs3-check"]


def check_queue(connection: AwsConnection, queue: str) -> list[Check]:
    """Tries all that a run does with the queue, which is given by its name or URL.

    Changes, hides and deletes no message. Receives at most one, which stays visible, but a redrive
    policy counts that. Raises S3Error, one clear line, if nothing can work: no such queue, an
    endpoint that does not respond, keys that are refused, a role that can't be assumed.
    """
    probe = Queue(connection, queue, max_attempts=MAX_ATTEMPTS)
    checks = [] if "://" in queue else [_try(connection, LOOK_UP, probe.look_up)]
    if any(check.problem for check in checks):
        why = "as the queue could not be looked up; its URL would do without that"
        return checks + [Check(need, why, tried=False) for need in (RECEIVE, HIDE, DELETE)]
    return [
        *checks,
        _try(connection, RECEIVE, lambda: probe.receive(wait_s=0, visibility_s=0, at_most=1)),
        _try(connection, HIDE, lambda: probe.hide(_NO_HANDLE, 0)),
        _try(connection, DELETE, lambda: probe.delete(_NO_HANDLE)),
    ]


def _try(connection: AwsConnection, need: Permission, action: Callable[[], object]) -> Check:
    try:
        action()
    except S3Error as exc:
        cause = exc.__cause__
        if not isinstance(cause, StoreError) or nothing_works(cause):
            raise S3Error(f"aws_connections.{connection.name}: {exc}") from exc
        text = str(exc).rstrip(".")
        return Check(
            need, f"{text}. Needed for {need.used_for}", isinstance(cause, PermissionDeniedError)
        )
    return Check(need)
