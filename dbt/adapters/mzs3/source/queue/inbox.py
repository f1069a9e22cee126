"""The messages that one run has received, until it deletes them or returns them to the queue.

A message is deleted only once all that it announced is in the ledger. Otherwise it returns to the
queue: at the end of the run, or, if the process is killed, when its visibility timeout ends.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext
from functools import partial
from itertools import islice

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt.adapters.mzs3.errors import S3Error
from dbt.adapters.mzs3.ledger.events import OBJECT_COLUMNS, State, is_any_sql
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.source.listing.reconcile import COMMIT_COLUMNS, with_object_facts
from dbt.adapters.mzs3.source.queue.messages import (
    Kind,
    ObjectEvent,
    Scope,
    newest_of_each_key,
    parse_message,
)
from dbt.adapters.mzs3.source.queue.sqs import BATCH, Queue
from dbt.adapters.mzs3.source.run import SourceRun
from dbt.adapters.mzs3.spark.frames import first_row, persisted
from dbt.adapters.mzs3.store.failures import (
    MissingBucketError,
    MissingError,
    PermissionDeniedError,
    StoreError,
    describe,
)
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.opened import open_store
from dbt.adapters.mzs3.store.store import ListedObject, Store
from dbt.adapters.mzs3.text import count_noun

MAX_MESSAGES = 10_000
"""The most messages of its source that one run receives; the next run receives the rest."""
MAX_OTHERS = 50_000
"""The most other messages that a run receives, so that it ends even if others use the queue too.
If two runs receive as many as they may, they reach SQS's limit of hidden messages."""
WAIT_S = 2

VISIBILITY_S = 300
"""The visibility timeout in seconds, after which the messages of a killed run come back."""

THREADS = 16
# How many HEADs are made between two checks for cancellation.
_AT_A_TIME = 64


class Inbox:
    """The messages of a source's queue, which the first call of `receive` receives.

    `present_objects` are those that S3 has under the announced keys, whatever the events say;
    `events_without_object` are those of keys without an object. `empty`: the queue had no message;
    `only_tests`: each message was S3's test event of the bucket. A thread extends the visibility
    timeout from the first message on, until the messages are acknowledged or the inbox is closed.
    Raises S3Error if the queue can't be read; other failures of the queue are logged, and lose
    nothing.
    """

    def __init__(self, run: SourceRun, queue: Queue) -> None:
        self._run = run
        self._source = run.definition.name
        self._scope = Scope(run.definition.location, run.definition.pattern)
        self._queue = queue
        # Receipt handles by message id: of the source's messages, and of others in its queue.
        self._handles: dict[str, str] = {}
        self._others: dict[str, str] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._keep_hidden, daemon=True)
        self._received = False
        self._tests = 0
        self.queue_name = queue.name
        self.empty = True
        self.only_tests = False
        self.present_objects: list[ListedObject] = []
        self.events_without_object: list[ObjectEvent] = []

    def close(self) -> None:
        """Returns the messages that were not deleted to the queue."""
        self._stop_hiding()
        self._return_to_queue(self._others)
        self._return_to_queue(self._handles)

    def receive(self, ledger: Ledger | None = None) -> None:
        """Receives up to `MAX_MESSAGES` messages, once only, and looks up their objects in S3.

        Before that, messages that are not the source's return to the queue. If the source has only
        a queue, also looks up the objects that the ledger has as failed, or as to be ingested
        again: no message will announce them again. Objects that only wait for their turn are not
        looked up: they may be many.
        """
        if not self._received:
            self._received = True
            self._receive_and_look_up()
        if ledger is not None and not self._run.definition.discovery.bucket_scan:
            start = len(self._run.definition.location.uri_of(""))
            self.add(uri[start:] for uri in _open_objects(ledger))

    def _receive_and_look_up(self) -> None:
        events, reasons, repeated, ended_after = self._receive_all()
        received = len(self._handles) + len(self._others)
        self.empty = not received
        self.only_tests = 0 < self._tests == received
        self._return_to_queue(self._others)
        if reasons or ended_after:
            self._warn_of_others(reasons, repeated, ended_after)
        newest = newest_of_each_key(events)
        # The event of a removal may arrive long after the object was created again.
        for key, listed in look_up(self._run, newest):
            if listed is None:
                self.events_without_object.append(newest[key])
            # A folder's marker does not count as an object, as in a listing.
            elif not (key.endswith("/") and listed.size == 0):
                self.present_objects.append(listed)

    def add(self, keys: Iterable[str]) -> None:
        """Looks up these keys in S3 too, although no message announced them.

        A key that no longer belongs to the source counts as gone.
        """
        looked_up = {
            *(each.key for each in self.present_objects),
            *(event.key for event in self.events_without_object),
        }
        others = [key for key in keys if key not in looked_up]
        gone = sorted(key for key in others if not self._scope.has(key))
        for key, listed in look_up(self._run, filter(self._scope.has, others)):
            if listed is None:
                gone.append(key)
            else:
                self.present_objects.append(listed)
        bucket = self._run.definition.location.bucket
        self.events_without_object += [ObjectEvent(Kind.CREATED, bucket, key) for key in gone]

    def note_gone(self, ledger: Ledger) -> None:
        """Writes a note to the ledger for each object that is gone, with the reason.

        An object with visible rows keeps its state. Others become `removed` if they wait, have
        failed, or were announced as created. Logs how many removed objects the ledger does not
        have. Can be repeated: nothing is noted twice.
        """
        events = self.events_without_object
        if not events:
            return
        columns = {
            "object": [self._run.definition.location.uri_of(event.key) for event in events],
            "announced": [event.kind is Kind.CREATED for event in events],
            "text": list(map(_reason, events)),
        }
        announced = self._run.spark.createDataFrame(pa.table(columns))
        with persisted(_notes(announced, ledger)) as notes:
            never_ingested = "count_if(unknown AND NOT announced) AS unknown"
            counts = first_row(notes.selectExpr("count_if(is_new) AS notes", never_ingested))
            if counts["notes"]:
                ledger.write_note(notes.where("is_new").drop("is_new", "unknown", "announced"))
        if unknown := counts["unknown"]:
            noun = "object that was" if unknown == 1 else "objects that were"
            text = f"{self._source}: the queue told of {unknown} removed {noun} never ingested"
            self._run.tell(("say", text))

    def acknowledge(self) -> None:
        """Deletes the source's messages; call it once the ledger has all that they announced."""
        self._stop_hiding()
        errors = _errors_of(self._queue.delete, [*self._handles.values()])
        self._handles.clear()
        if errors:
            self._run.warn(
                f"{self._of_queue(errors)} could not be deleted ({errors[-1]}). They come again, "
                "and nothing is ingested twice"
            )

    def _receive_all(self) -> tuple[list[ObjectEvent], Counter[str], int, int]:
        """Returns the source's events; how many messages are not the source's, by reason; how many
        messages came again; and, if messages beside the source's own ended the receiving, how many
        they were, else 0."""
        events: list[ObjectEvent] = []
        reasons: Counter[str] = Counter()
        # A message with several events counts as that many messages.
        own_count = others = repeated = 0
        while own_count < MAX_MESSAGES and others < MAX_OTHERS:
            self._run.cancellation.check()
            messages = self._queue.receive(wait_s=WAIT_S, visibility_s=VISIBILITY_S)
            if not messages:
                return events, reasons, repeated, 0
            for message, handle, body in messages:
                received = next((m for m in (self._handles, self._others) if message in m), None)
                if received is not None:
                    received[message] = handle  # the newest handle is the valid one
                    others += 1
                    repeated += 1
                    continue
                announced = parse_message(body)
                own_events = [*filter(self._scope.is_object, announced)]
                events += own_events
                if (reason := self._scope.foreign(announced)) is not None:
                    self._others[message] = handle
                    reasons[reason] += 1
                    others += max(1, len(own_events))
                    continue
                self._handles[message] = handle
                own_count += max(1, len(own_events))
                self._tests += all(event.kind is Kind.TEST for event in announced)
            if self._thread.ident is None:
                self._thread.start()
        if own_count < MAX_MESSAGES:
            return events, reasons, repeated, others
        self._run.warn(
            f"{self._source}: this run takes {own_count} of its own messages from the queue "
            f"{self.queue_name}, beside {others} that are others' or came again, and there may be "
            "more; run again for the rest"
        )
        return events, reasons, repeated, 0

    def _warn_of_others(self, reasons: Counter[str], repeated: int, ended_after: int) -> None:
        """Warns once. Running again does not help if many messages of others come first."""
        text, advice = "came again", "Run again for the rest"
        if reasons:
            what = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
            text = (
                f"were left in it, as they are not this source's: {what} "
                f"({sum(reasons.values())} in all, beside {len(self._handles)} of its own)"
            )
        ended_by_its_own = ended_after and 2 * repeated > ended_after
        if reasons and not ended_by_its_own:
            advice = "They come again with every run: give the source a queue of its own"
        if ended_after:
            text += (
                f". This run received no more after {ended_after} messages that are others' or "
                "came again; its own may be behind those"
            )
        self._run.warn(f"{self._source}: messages of the queue {self.queue_name} {text}. {advice}")

    def _return_to_queue(self, messages: dict[str, str]) -> None:
        """Returns these messages to the queue at once, and forgets them."""
        handles = [*messages.values()]
        messages.clear()
        errors = _errors_of(partial(self._queue.hide, seconds=0), handles) if handles else []
        if errors:
            self._run.warn(
                f"{self._source}: {count_noun(len(errors), 'message')} could not be given back to "
                f"the queue {self.queue_name} at once ({errors[-1]}). They come back by "
                f"themselves within {VISIBILITY_S} s"
            )

    def _stop_hiding(self) -> None:
        self._done.set()
        if self._thread.is_alive():
            self._thread.join()

    def _keep_hidden(self) -> None:
        has_warned = False
        while not self._done.wait(VISIBILITY_S / 3):
            errors = self._hide_all()
            if errors and not has_warned and not self._done.is_set():
                has_warned = True
                self._run.warn(
                    f"{self._of_queue(errors)} could not be kept from others while this run works "
                    f"({errors[-1]}). Another run may get them too; nothing is ingested twice"
                )

    def _hide_all(self) -> list[str]:
        """Extends the visibility timeouts. Returns a reason for each message that failed."""
        errors: list[str] = []
        handles = [*self._handles.copy().values()]
        for start in range(0, len(handles), BATCH):
            if self._done.is_set():
                break
            try:
                errors += self._queue.hide(handles[start : start + BATCH], VISIBILITY_S)
            except S3Error as exc:
                return [str(exc)] * (len(handles) - start)
        return errors

    def _of_queue(self, errors: Sequence[str]) -> str:
        return (
            f"{self._source}: {count_noun(len(errors), 'message')} of the queue {self.queue_name}"
        )


def open_inbox(run: SourceRun) -> AbstractContextManager[Inbox | None]:
    """The inbox of the source's queue, None for a source without one. Raises S3Error at once."""
    queue = run.definition.discovery.queue
    return nullcontext() if queue is None else closing(Inbox(run, Queue(run.connection, queue)))


def _errors_of(request: Callable[[Sequence[str]], list[str]], handles: Sequence[str]) -> list[str]:
    try:
        return request(handles)
    except S3Error as exc:
        return [str(exc)] * len(handles)


def look_up(run: SourceRun, keys: Iterable[str]) -> Iterator[tuple[str, ListedObject | None]]:
    """Every key, in order, with the object that S3 has now, or None.

    Makes one HEAD for each, `THREADS` at a time. Raises S3Error if a request fails or the whole
    bucket is missing, and SourceError once the user has cancelled.
    """
    location = run.definition.location
    store = open_store(run.connection, location)
    remaining = iter(keys)
    bucket_seen = False
    with ThreadPoolExecutor(THREADS) as pool:
        while batch := list(islice(remaining, _AT_A_TIME)):
            run.cancellation.check()
            found_of_each = pool.map(partial(_head, store, location), batch)
            for key, listed in zip(batch, found_of_each, strict=True):
                if listed is None and not bucket_seen:
                    _require_bucket(store, location, key)
                    bucket_seen = True
                yield key, listed


def _require_bucket(store: Store, location: S3Location, key: str) -> None:
    """Raises S3Error if the bucket is missing, which a GET reports and a HEAD does not."""
    try:
        store.get(key).body.close()
    except MissingBucketError as exc:
        raise S3Error(
            f"{describe(exc, f'looking for {location.uri_of(key)}')}. The messages that announced "
            "its objects stay in the queue; check the bucket, and the endpoint of the AWS "
            "connection"
        ) from exc
    except StoreError:
        pass


def _head(store: Store, location: S3Location, key: str) -> ListedObject | None:
    try:
        head = store.head(key)
    except MissingError:
        return None
    except StoreError as exc:
        text = describe(exc, f"looking for {location.uri_of(key)}", "s3:GetObject")
        if isinstance(exc, PermissionDeniedError):
            text += (
                ". If the object is gone, this needs s3:ListBucket too: without it S3 does not "
                "tell what is missing from what is denied"
            )
        raise S3Error(text) from exc
    return ListedObject(key, head.etag.strip('"'), head.size, head.modified)


def _open_objects(ledger: Ledger) -> list[str]:
    """At most `MAX_MESSAGES` objects that are to be ingested again, or were planned but not
    committed. Objects that were only planned with a failed one come last."""
    retried = is_any_sql("latest.state", (State.RETRIED,))
    since_planned = "latest.epoch > coalesce(decision.epoch, 0)"
    is_due = f"{retried} OR ({is_any_sql('latest.state', State.OPEN)} AND {since_planned})"
    objects = ledger.objects().where(f"object IS NOT NULL AND ({is_due})")
    order = (F.expr(is_any_sql("latest.state", (State.LISTED,))), "object")
    first = objects.orderBy(*order).limit(MAX_MESSAGES)
    return [row["object"] for row in first.select("object").collect()]


def _notes(announced: DataFrame, ledger: Ledger) -> DataFrame:
    """Notes about the announced objects; whether each note is new, and its object unknown."""
    in_ledger = ledger.objects().where("object IS NOT NULL").alias("k")
    joined = announced.alias("t").join(in_ledger, F.expr("t.object = k.object"), "left")
    gone = joined.selectExpr(
        "t.*",
        "k.object IS NULL AS unknown",
        "false AS found",
        "CAST(NULL AS struct<etag: string, size: bigint, last_modified: timestamp>) AS now",
        "k.* EXCEPT (object)",
    )
    return with_object_facts(gone, complete=True).selectExpr(
        *(f"`{name}`" for name in (*OBJECT_COLUMNS, "state", *COMMIT_COLUMNS)),
        "text AS error",
        "visible AND NOT coalesce(decision.error = text, false) OR is_open "
        "OR (unknown AND announced) AS is_new",
        "unknown",
        "announced",
    )


def _reason(event: ObjectEvent) -> str:
    what = "it was gone when its turn came again, or the pattern leaves it out"
    if event.name:
        what = "it was announced, and was gone when it was looked for"
        if event.kind is Kind.REMOVED:
            what = "it was removed from S3"
        what += f" ({event.name}, {event.time})"
    return f"{what}; rows that were ingested of it stay"
