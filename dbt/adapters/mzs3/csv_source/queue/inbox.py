"""The messages that one run has in its hands, from receiving them to deleting them.

A message is deleted only when the run says that all it announced is on record. Whatever else
happens, it goes back: at the end of the run, or, if the process is killed, once SQS takes it for
lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dbt.adapters.mzs3.aws.client import s3_client
from dbt.adapters.mzs3.csv_source.cancel import Cancellation
from dbt.adapters.mzs3.csv_source.executor.listing import ObjectInfo
from dbt.adapters.mzs3.csv_source.queue.events import (
    Kind,
    ObjectEvent,
    newest_of_each_key,
    parse_message,
)
from dbt.adapters.mzs3.csv_source.queue.held import VISIBILITY_S, Held
from dbt.adapters.mzs3.csv_source.queue.look import look_up
from dbt.adapters.mzs3.csv_source.queue.scope import Scope
from dbt.adapters.mzs3.csv_source.queue.sqs import Message, Queue
from dbt.adapters.mzs3.csv_source.voice import Voice

if TYPE_CHECKING:
    from dbt.adapters.mzs3.aws.connection import AwsConnection
    from dbt.adapters.mzs3.csv_source.definition import SourceDefinition

MAX_MESSAGES = 10_000
"""What one run receives at most; the rest waits for the next one."""
WAIT_S = 2


class Inbox:
    """The messages of a source's queue, received when they are first asked for, then held.

    `found` says what S3 has under the keys that the queue told of, whatever it said of them; of
    those under which there is nothing, `removed` are said to be so and `gone` were announced.
    `empty` says that there was no message at all. While it is entered, a thread keeps the messages
    hidden from others. Its end gives back what was not deleted. Raises S3Error where the queue
    can't be read; what else goes wrong with it is told to `voice` only, as it loses nothing.
    """

    def __init__(
        self,
        definition: SourceDefinition,
        connection: AwsConnection,
        queue: Queue,
        cancellation: Cancellation,
        voice: Voice,
    ) -> None:
        self._source = definition.name
        self._scope = Scope(definition.location, definition.pattern)
        self._connection = connection
        self._queue = queue
        self._cancellation = cancellation
        self._voice = voice
        self._held = Held(definition.name, queue, voice)
        self._ours: set[str] = set()
        self._events: list[ObjectEvent] = []
        self._received = False
        self.queue_name = queue.name
        self.empty = True
        self.found: list[ObjectInfo] = []
        self.gone: list[ObjectEvent] = []
        self.removed: list[ObjectEvent] = []

    def __enter__(self) -> Inbox:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.stop()
        self._held.give_back(self._held)

    def receive(self) -> None:
        """All that the queue has, up to `MAX_MESSAGES`, is in hand and looked up; once only."""
        if self._received:
            return
        self._received = True
        foreign = self._receive_all()
        self.empty = not self._held
        newest = newest_of_each_key(self._events)
        self._events = []
        client = s3_client(self._connection)
        check = self._cancellation.check
        # A removal may come late too, long after the object was put there again.
        for key, found in look_up(client, self._scope.bucket, newest, check):
            if found is not None:
                if self._scope.is_data(found):
                    self.found.append(found)
            elif newest[key].kind is Kind.REMOVED:
                self.removed.append(newest[key])
            else:
                self.gone.append(newest[key])
        self._leave_alone(foreign)

    def look_again(self, keys: Iterable[str]) -> None:
        """What S3 has under these keys is known too, though no message told of them.

        A key that is not the source's any more is as good as gone.
        """
        told = {found.key for found in self.found}
        told |= {event.key for event in (*self.gone, *self.removed)}
        untold = [key for key in keys if key not in told]
        client, bucket = s3_client(self._connection), self._scope.bucket
        ours = [key for key in untold if self._scope.has(key)]
        gone = sorted({*untold}.difference(ours))
        for key, found in look_up(client, bucket, ours, self._cancellation.check):
            if found is not None:
                self.found.append(found)
            else:
                gone.append(key)
        self.gone += [ObjectEvent(Kind.CREATED, bucket, key) for key in gone]

    def acknowledge(self) -> None:
        """The source's messages are deleted; call it once all they announced is on record."""
        self._held.stop()
        self._held.delete([message for message in self._held if message in self._ours])

    def _receive_all(self) -> Counter[str]:
        """What was left alone, and how often."""
        left_alone: Counter[str] = Counter()
        # A message may hold several events; they are bounded as the messages are.
        while max(len(self._held), len(self._events)) < MAX_MESSAGES:
            self._cancellation.check()
            messages = self._queue.receive(wait_s=WAIT_S, visibility_s=VISIBILITY_S)
            if not messages:
                return left_alone
            for message in messages:
                if (reason := self._take(message)) is not None:
                    left_alone[reason] += 1
        self._voice.warn(
            f"{self._source}: this run takes the first {len(self._held)} messages of the queue "
            f"{self._queue.name}; run again for the rest"
        )
        return left_alone

    def _take(self, message: Message) -> str | None:
        """None if the whole message is the source's, else what it is instead."""
        known = message.message_id in self._held
        self._held.take(message)
        if known:
            return None
        events = parse_message(message.body)
        self._events += [event for event in events if self._scope.is_object(event)]
        reason = self._scope.foreign(events)
        if reason is None:
            self._ours.add(message.message_id)
        return reason

    def _leave_alone(self, foreign: Counter[str]) -> None:
        if not foreign:
            return
        self._held.give_back([message for message in self._held if message not in self._ours])
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(foreign.items()))
        self._voice.warn(
            f"{self._source}: messages of the queue {self._queue.name} were left in it, as they "
            f"are not this source's: {reasons}. They come again with every run: give the source "
            "a queue of its own"
        )


@contextmanager
def open_inbox(
    definition: SourceDefinition,
    connection: AwsConnection,
    cancellation: Cancellation,
    voice: Voice,
) -> Iterator[Inbox | None]:
    """The inbox of the source's queue, None for a source without one. Raises S3Error."""
    if definition.discovery.queue is None:
        yield None
        return
    queue = Queue(connection, definition.discovery.queue)
    with Inbox(definition, connection, queue, cancellation, voice) as inbox:
        yield inbox
