"""The messages that one run has received, until it deletes them or returns them to the queue.

A message is deleted only once all that it announced is in the ledger. In all other cases it
returns to the queue: at the end of the run, or, if the process is killed, once its visibility
timeout ends.
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
from dbt.adapters.mzs3.source.listing.reconcile import TAKEN_COLUMNS, with_facts
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
from dbt.adapters.mzs3.text import counted

MAX_MESSAGES = 10_000
"""The most messages of its source that one run receives; the next run receives the rest."""
MAX_OTHERS = 50_000
"""The most other messages that a run receives, so that it ends though others use the queue too.
With this many messages for each of two runs, a queue is at SQS's limit of hidden messages."""
WAIT_S = 2

VISIBILITY_S = 300
"""The visibility timeout in seconds: after that time the messages of a killed run come back."""

THREADS = 16
# So many HEADs are made between two checks whether the user has cancelled.
_AT_A_TIME = 64


class Inbox:
    """The messages of a source's queue, which the first call of `receive` receives.

    `found` are the objects that S3 has under the announced keys, whatever their events say; `gone`
    are the events of keys without an object. `empty`: there was no message at all; `only_tests`:
    each was S3's test event of the bucket. From the first message on a thread extends the
    visibility timeout, until the messages are acknowledged or the inbox is closed. Raises S3Error
    if the queue can't be read; other failures of the queue are logged, and lose nothing.
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
        self.found: list[ListedObject] = []
        self.gone: list[ObjectEvent] = []

    def close(self) -> None:
        """Returns the messages that were not deleted to the queue."""
        self._stop_hiding()
        self._give_back(self._others)
        self._give_back(self._handles)

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
        events, reasons, again, ended_after = self._receive_all()
        received = len(self._handles) + len(self._others)
        self.empty = not received
        self.only_tests = 0 < self._tests == received
        self._give_back(self._others)
        if reasons or ended_after:
            self._warn_of_others(reasons, again, ended_after)
        newest = newest_of_each_key(events)
        # An event of a removal may come long after the object was created again.
        for key, found in look_up(self._run, newest):
            if found is None:
                self.gone.append(newest[key])
            # A folder's marker is no object, as in a listing.
            elif not (key.endswith("/") and found.size == 0):
                self.found.append(found)

    def add(self, keys: Iterable[str]) -> None:
        """Looks these keys up in S3 too, though no message announced them.

        A key that no longer belongs to the source counts as gone.
        """
        known = {*(one.key for one in self.found), *(event.key for event in self.gone)}
        others = [key for key in keys if key not in known]
        gone = sorted(key for key in others if not self._scope.has(key))
        for key, found in look_up(self._run, filter(self._scope.has, others)):
            if found is None:
                gone.append(key)
            else:
                self.found.append(found)
        bucket = self._run.definition.location.bucket
        self.gone += [ObjectEvent(Kind.CREATED, bucket, key) for key in gone]

    def note_gone(self, ledger: Ledger) -> None:
        """Writes a note to the ledger for each object that is gone: why it is not ingested.

        An object with visible rows keeps its state. Others become `removed` if they wait, have
        failed, or were announced as created. Logs how many objects were removed that the ledger
        does not have. Can be repeated: nothing is noted twice.
        """
        if not self.gone:
            return
        columns = {
            "object": [self._run.definition.location.uri_of(event.key) for event in self.gone],
            "announced": [event.kind is Kind.CREATED for event in self.gone],
            "text": list(map(_reason, self.gone)),
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
        undone = _tried(self._queue.delete, [*self._handles.values()])
        self._handles.clear()
        if undone:
            self._run.warn(
                f"{self._of_queue(undone)} could not be deleted ({undone[-1]}). They come again, "
                "and nothing is ingested twice"
            )

    def _receive_all(self) -> tuple[list[ObjectEvent], Counter[str], int, int]:
        """Returns the source's events; how many messages are not the source's, by reason; how many
        came again; and the number of messages beside the source's own, if they ended the
        receiving, else 0."""
        events: list[ObjectEvent] = []
        reasons: Counter[str] = Counter()
        # A message with several events counts as that many messages.
        own = beside = again = 0
        while own < MAX_MESSAGES and beside < MAX_OTHERS:
            self._run.cancellation.check()
            messages = self._queue.receive(wait_s=WAIT_S, visibility_s=VISIBILITY_S)
            if not messages:
                return events, reasons, again, 0
            for message, handle, body in messages:
                known = next((m for m in (self._handles, self._others) if message in m), None)
                if known is not None:
                    known[message] = handle  # the newest handle is the valid one
                    beside += 1
                    again += 1
                    continue
                announced = parse_message(body)
                mine = [*filter(self._scope.is_object, announced)]
                events += mine
                if (reason := self._scope.foreign(announced)) is not None:
                    self._others[message] = handle
                    reasons[reason] += 1
                    beside += max(1, len(mine))
                    continue
                self._handles[message] = handle
                own += max(1, len(mine))
                self._tests += all(event.kind is Kind.TEST for event in announced)
            if self._thread.ident is None:
                self._thread.start()
        if own < MAX_MESSAGES:
            return events, reasons, again, beside
        self._run.warn(
            f"{self._source}: this run takes {own} of its own messages from the queue "
            f"{self.queue_name}, beside {beside} that are others' or came again, and there may be "
            "more; run again for the rest"
        )
        return events, reasons, again, 0

    def _warn_of_others(self, reasons: Counter[str], again: int, ended_after: int) -> None:
        """Warns once: running again does not help if many messages of others come first."""
        said, advice = "came again", "Run again for the rest"
        if reasons:
            what = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
            said = (
                f"were left in it, as they are not this source's: {what} "
                f"({sum(reasons.values())} in all, beside {len(self._handles)} of its own)"
            )
        ended_by_its_own = ended_after and 2 * again > ended_after
        if reasons and not ended_by_its_own:
            advice = "They come again with every run: give the source a queue of its own"
        if ended_after:
            said += (
                f". This run received no more after {ended_after} messages that are others' or "
                "came again; its own may be behind those"
            )
        self._run.warn(f"{self._source}: messages of the queue {self.queue_name} {said}. {advice}")

    def _give_back(self, messages: dict[str, str]) -> None:
        """Returns these messages to the queue at once, and forgets them."""
        handles = [*messages.values()]
        messages.clear()
        undone = _tried(partial(self._queue.hide, seconds=0), handles) if handles else []
        if undone:
            self._run.warn(
                f"{self._source}: {counted(len(undone), 'message')} could not be given back to "
                f"the queue {self.queue_name} at once ({undone[-1]}). They come back by "
                f"themselves within {VISIBILITY_S} s"
            )

    def _stop_hiding(self) -> None:
        self._done.set()
        if self._thread.is_alive():
            self._thread.join()

    def _keep_hidden(self) -> None:
        has_warned = False
        while not self._done.wait(VISIBILITY_S / 3):
            undone = self._hide_all()
            if undone and not has_warned and not self._done.is_set():
                has_warned = True
                self._run.warn(
                    f"{self._of_queue(undone)} could not be kept from others while this run works "
                    f"({undone[-1]}). Another run may get them too; nothing is ingested twice"
                )

    def _hide_all(self) -> list[str]:
        """Extends the visibility timeouts. Returns a reason for each message that failed."""
        undone: list[str] = []
        handles = [*self._handles.copy().values()]
        for start in range(0, len(handles), BATCH):
            if self._done.is_set():
                break
            try:
                undone += self._queue.hide(handles[start : start + BATCH], VISIBILITY_S)
            except S3Error as exc:
                return [str(exc)] * (len(handles) - start)
        return undone

    def _of_queue(self, undone: Sequence[str]) -> str:
        return f"{self._source}: {counted(len(undone), 'message')} of the queue {self.queue_name}"


def open_inbox(run: SourceRun) -> AbstractContextManager[Inbox | None]:
    """The inbox of the source's queue, None for a source without one. Raises S3Error at once."""
    queue = run.definition.discovery.queue
    return nullcontext() if queue is None else closing(Inbox(run, Queue(run.connection, queue)))


def _tried(request: Callable[[Sequence[str]], list[str]], handles: Sequence[str]) -> list[str]:
    try:
        return request(handles)
    except S3Error as exc:
        return [str(exc)] * len(handles)


def look_up(run: SourceRun, keys: Iterable[str]) -> Iterator[tuple[str, ListedObject | None]]:
    """Every key, in order, with the object that S3 has now, None if there is none.

    One HEAD for each, `THREADS` at a time. Raises S3Error if a request fails or the whole bucket
    is missing, and SourceError once the user has cancelled.
    """
    location = run.definition.location
    store = open_store(run.connection, location)
    waiting = iter(keys)
    bucket_seen = False
    with ThreadPoolExecutor(THREADS) as pool:
        while some := list(islice(waiting, _AT_A_TIME)):
            run.cancellation.check()
            found_of_each = pool.map(partial(_head, store, location), some)
            for key, found in zip(some, found_of_each, strict=True):
                if found is None and not bucket_seen:
                    _require_bucket(store, location, key)
                    bucket_seen = True
                yield key, found


def _require_bucket(store: Store, location: S3Location, key: str) -> None:
    """Raises S3Error if the bucket is missing, which only a GET, not a HEAD, can tell."""
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
        found = store.head(key)
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
    return ListedObject(key, found.etag.strip('"'), found.size, found.modified)


def _open_objects(ledger: Ledger) -> list[str]:
    """At most `MAX_MESSAGES` objects that are to be ingested again, or were planned and not
    committed. Objects that were planned and did not fail themselves come last."""
    retried = is_any_sql("latest.state", (State.RETRIED,))
    since_planned = "latest.epoch > coalesce(decision.epoch, 0)"
    again = f"{retried} OR ({is_any_sql('latest.state', State.OPEN)} AND {since_planned})"
    objects = ledger.objects().where(f"object IS NOT NULL AND ({again})")
    order = (F.expr(is_any_sql("latest.state", (State.LISTED,))), "object")
    first = objects.orderBy(*order).limit(MAX_MESSAGES)
    return [row["object"] for row in first.select("object").collect()]


def _notes(announced: DataFrame, ledger: Ledger) -> DataFrame:
    """The notes of the events; whether each is new, and whether its object is unknown."""
    known = ledger.objects().where("object IS NOT NULL").alias("k")
    both = announced.alias("t").join(known, F.expr("t.object = k.object"), "left")
    gone = both.selectExpr(
        "t.*",
        "k.object IS NULL AS unknown",
        "false AS found",
        "CAST(NULL AS struct<etag: string, size: bigint, last_modified: timestamp>) AS now",
        "k.* EXCEPT (object)",
    )
    return with_facts(gone, complete=True).selectExpr(
        *(f"`{name}`" for name in (*OBJECT_COLUMNS, "state", *TAKEN_COLUMNS)),
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
