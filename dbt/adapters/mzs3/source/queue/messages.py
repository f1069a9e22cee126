"""What a message of a queue tells: S3's events, whichever way they were sent there.

S3 sends its records straight to a queue, through an SNS topic, wrapped or raw, or through
EventBridge (Amazon S3, Event message structure). Nothing of a message is believed beyond which
object to look at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any
from urllib.parse import unquote_plus

from dbt.adapters.mzs3.source.executor.listing import EXPORT_RECORDS
from dbt.adapters.mzs3.source.executor.pattern import Pattern
from dbt.adapters.mzs3.store.location import S3Location

# An SNS message in an SNS message is as far as anybody forwards.
_MAX_ENVELOPES = 4
_MAX_SHOWN = 64
# S3 answers a HEAD of a longer one with an error, so that it is no key (Amazon S3, Object keys).
_MAX_KEY_BYTES = 1024
_HEX = re.compile(r"[0-9A-Fa-f]{1,128}")


class Kind(Enum):
    """What happened to an object; with TEST, notifications were set up."""

    CREATED = "created"
    REMOVED = "removed"
    TEST = "test"
    OTHER = "other"


@dataclass(frozen=True)
class ObjectEvent:
    """One event: `key` is decoded, `sequencer` None where the event has none.

    `name` and `time` are as the event gives them, `ObjectCreated:Put` without its `s3:`.
    """

    kind: Kind
    bucket: str
    key: str
    name: str = ""
    time: str = ""
    sequencer: int | None = None


UNREADABLE = ObjectEvent(Kind.OTHER, "", "")
"""In the place of a record that is none of S3's."""


def parse_message(body: str) -> tuple[ObjectEvent, ...]:
    """The events of a message; empty if it tells of none. Never raises."""
    try:
        message: Any = json.loads(body)
        for _ in range(_MAX_ENVELOPES):
            match message:
                case {"Type": "Notification", "Message": str(enclosed)}:
                    message = json.loads(enclosed)
    except (ValueError, RecursionError):
        return ()
    match message:
        case {"Records": list(records)}:
            return tuple(_record(record) for record in records)
        case {"Event": "s3:TestEvent", "Bucket": str(bucket)}:
            return (ObjectEvent(Kind.TEST, bucket, "", "s3:TestEvent"),)
        case {"Event": "s3:TestEvent"}:
            return ()
        # EventBridge's form of an event, in which the key is written as it is.
        case {
            "source": "aws.s3",
            "detail-type": str(name),
            "detail": {"bucket": {"name": str(bucket)}, "object": {"key": str(key)} as found},
        }:
            return (_event(name, bucket, key, found, message.get("time")),)
        case {"source": "aws.s3"}:
            return (UNREADABLE,)
    return ()


def newest_of_each_key(events: Iterable[ObjectEvent]) -> dict[str, ObjectEvent]:
    """Of every key the event that counts, in whatever order and however often they came.

    It is the one with the greatest sequencer. Where one of a key's events has none, a creation
    counts before a removal: whether the object is there is then for S3 to say.
    """
    events_of: dict[str, list[ObjectEvent]] = {}
    for event in events:
        events_of.setdefault(event.key, []).append(event)
    newest: dict[str, ObjectEvent] = {}
    for key, found in events_of.items():
        found.sort(key=lambda event: event.kind is not Kind.CREATED)
        newest[key] = found[0]
        if all(event.sequencer is not None for event in found):
            newest[key] = max(found, key=lambda event: event.sequencer or 0)
    return newest


def _record(record: Any) -> ObjectEvent:
    """One of the `Records` that S3 sends; the keys in them are encoded as in a URL's query."""
    match record:
        case {
            "eventSource": str(source),
            "eventName": str(name),
            "s3": {"bucket": {"name": str(bucket)}, "object": {"key": str(encoded)} as found},
        } if source.rpartition(":")[2] == "s3":
            # What is no UTF-8 becomes a text that can't be encoded, and so no key.
            key = unquote_plus(encoded, errors="surrogateescape")
            return _event(name.removeprefix("s3:"), bucket, key, found, record.get("eventTime"))
    return UNREADABLE


def _event(name: str, bucket: str, key: str, found: Mapping[str, Any], time: Any) -> ObjectEvent:
    try:
        length = len(key.encode())
    except UnicodeEncodeError:
        return UNREADABLE
    if not 0 < length <= _MAX_KEY_BYTES or not bucket:
        return UNREADABLE
    kind = Kind.OTHER
    if name.startswith(("ObjectCreated:", "Object Created")):
        kind = Kind.CREATED
    elif name.startswith(("ObjectRemoved:", "LifecycleExpiration:", "Object Deleted")):
        kind = Kind.REMOVED
    sequencer = found.get("sequencer")
    number = None
    if isinstance(sequencer, str) and _HEX.fullmatch(sequencer):
        # Shorter ones count as if zeros were before them, which is how numbers compare.
        number = int(sequencer, 16)
    at = time[:_MAX_SHOWN] if isinstance(time, str) else ""
    return ObjectEvent(kind, bucket, key, name[:_MAX_SHOWN], at, number)


class Scope:
    """The objects of a source: those below its location that match its pattern."""

    def __init__(self, location: S3Location, pattern: str) -> None:
        self._location = location
        self._matcher = Pattern(pattern)

    def is_object(self, event: ObjectEvent) -> bool:
        """Whether the event is that one of the source's objects came, or went."""
        is_test = event.kind is Kind.TEST
        return not (is_test or _is_record(event) or self._foreign(event))

    def has(self, key: str) -> bool:
        """Whether an object of this key is one of them."""
        below = key.removeprefix(self._location.prefix)
        return key.startswith(self._location.prefix) and self._matcher.matches(below)

    def foreign(self, events: Sequence[ObjectEvent]) -> str | None:
        """None if a message of these events is the source's alone, else what it is instead."""
        return next(filter(None, map(self._foreign, events or (UNREADABLE,))), None)

    def _foreign(self, event: ObjectEvent) -> str | None:
        if not event.bucket:
            return "that are no S3 events"
        if event.bucket != self._location.bucket:
            return "of other buckets"
        if event.kind is Kind.TEST:
            return None
        if not event.key.startswith(self._location.prefix):
            return "of objects outside the location"
        if event.kind is Kind.OTHER:
            return "of events other than creation and removal"
        if not _is_record(event) and not self.has(event.key):
            return "of objects that the pattern leaves out"
        return None


def _is_record(event: ObjectEvent) -> bool:
    """Whether it is of what exports leave beside their files."""
    return event.key.rpartition("/")[2] in EXPORT_RECORDS
