"""Messages in a run's hands: kept from others until they are deleted or given back."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence

from dbt.adapters.mzs3.csv_source.queue.sqs import BATCH, Message, Queue, Undone
from dbt.adapters.mzs3.csv_source.voice import Voice
from dbt.adapters.mzs3.errors import S3Error
from dbt.adapters.mzs3.text import counted

VISIBILITY_S = 300
"""How long SQS hides a message after the run last asked it to: what a killed run costs."""


class Held:
    """The ids of the messages that were taken from a queue and are neither deleted nor back.

    From the first message on a thread keeps them hidden, until `stop`. Raises nothing: what goes
    wrong loses nothing, and is told to `voice`.
    """

    def __init__(self, source: str, queue: Queue, voice: Voice) -> None:
        self._source = source
        self._queue = queue
        self._voice = voice
        self._handles: dict[str, str] = {}
        self._done = threading.Event()
        self._hiding = threading.Lock()
        self._thread: threading.Thread | None = None

    def __len__(self) -> int:
        return len(self._handles)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._handles))

    def __contains__(self, message_id: object) -> bool:
        return message_id in self._handles

    def take(self, message: Message) -> None:
        """Hold the message; of one that came before, its new handle counts."""
        self._handles[message.message_id] = message.handle
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep_hidden, daemon=True)
            self._thread.start()

    def delete(self, messages: Sequence[str]) -> None:
        """These are gone for good; the thread must have been stopped."""
        try:
            undone = self._queue.delete([self._handles[message] for message in messages])
        except S3Error as exc:
            undone = Undone(len(messages), str(exc))
        for message in messages:
            del self._handles[message]
        if undone.count:
            self._voice.warn(
                f"{self._of_queue(undone.count)} could not be deleted ({undone.reason}). They "
                "come again, and nothing is ingested twice"
            )

    def give_back(self, messages: Iterable[str]) -> None:
        """Others get these at once."""
        with self._hiding:
            handles = [self._handles.pop(message) for message in messages]
        try:
            undone = self._queue.hide(handles, 0)
        except S3Error as exc:
            undone = Undone(len(handles), str(exc))
        if undone.count:
            self._voice.warn(
                f"{self._source}: {counted(undone.count, 'message')} could not be given back to "
                f"the queue {self._queue.name} at once ({undone.reason}). They come back by "
                f"themselves within {VISIBILITY_S} s"
            )

    def stop(self) -> None:
        """The thread has ended; safe to repeat."""
        self._done.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _keep_hidden(self) -> None:
        told = False
        while not self._done.wait(VISIBILITY_S / 3):
            undone = self._hide_all()
            if undone.count and not told and not self._done.is_set():
                told = True
                self._voice.warn(
                    f"{self._of_queue(undone.count)} could not be kept from others while this run "
                    f"works ({undone.reason}). Another run may get them too; nothing is ingested "
                    "twice"
                )

    def _hide_all(self) -> Undone:
        """How many messages could not be hidden for longer, and why the last of them."""
        failed = Undone()
        messages = list(self._handles.copy())
        for start in range(0, len(messages), BATCH):
            # What is given back meanwhile must not be hidden again.
            with self._hiding:
                batch = messages[start : start + BATCH]
                some = [self._handles[m] for m in batch if m in self._handles]
                if self._done.is_set():
                    break
                try:
                    undone = self._queue.hide(some, VISIBILITY_S)
                except S3Error as exc:
                    return Undone(len(messages) - start, str(exc))
            if undone.count:
                failed = Undone(failed.count + undone.count, undone.reason)
        return failed

    def _of_queue(self, count: int) -> str:
        return f"{self._source}: {counted(count, 'message')} of the queue {self._queue.name}"
