"""Parses the messages of a queue: S3's events, in all forms in which S3 sends them.

S3 sends its records straight to a queue, through an SNS topic, wrapped or raw, or through
EventBridge (Amazon S3, Event message structure). Only the object that an event names is trusted.
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

# More levels than anybody nests SNS messages in.
_MAX_ENVELOPES = 4
_MAX_SHOWN = 64
# The longest key: S3 answers a HEAD of a longer one with an error (Amazon S3, Object keys).
_MAX_KEY_BYTES = 1024
_HEX = re.compile(r"[0-9A-Fa-f]{1,128}")


class Kind(Enum):
    """What happened to an object; TEST is sent when notifications are set up."""

    CREATED = "created"
    REMOVED = "removed"
    TEST = "test"
    OTHER = "other"


@dataclass(frozen=True)
class ObjectEvent:
    """One event: `key` is decoded, `sequencer` None if the event has none.

    `name` and `time` are as in the event, the name without its prefix `s3:`.
    """

    kind: Kind
    bucket: str
    key: str
    name: str = ""
    time: str = ""
    sequencer: int | None = None


UNREADABLE = ObjectEvent(Kind.OTHER, "", "")
"""Stands for a record that is not S3's, or can't be read."""


def parse_message(body: str) -> tuple[ObjectEvent, ...]:
    """The events of a message; empty if it has none. Never raises."""
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
            "detail": {"bucket": {"name": str(bucket)}, "object": {"key": str(key)} as details},
        }:
            return (_event(name, bucket, key, details, message.get("time")),)
        case {"source": "aws.s3"}:
            return (UNREADABLE,)
    return ()


def newest_of_each_key(events: Iterable[ObjectEvent]) -> dict[str, ObjectEvent]:
    """The event that counts for each key, in whatever order and however often events came.

    It is the event with the greatest sequencer. If an event of the key has no sequencer, a
    creation wins over a removal, as S3 is asked whether the object exists anyway.
    """
    events_of: dict[str, list[ObjectEvent]] = {}
    for event in events:
        events_of.setdefault(event.key, []).append(event)
    newest: dict[str, ObjectEvent] = {}
    for key, key_events in events_of.items():
        key_events.sort(key=lambda event: event.kind is not Kind.CREATED)
        newest[key] = key_events[0]
        if all(event.sequencer is not None for event in key_events):
            newest[key] = max(key_events, key=lambda event: event.sequencer or 0)
    return newest


def _record(record: Any) -> ObjectEvent:
    """One of the `Records` that S3 sends; the keys in them are encoded as in a URL's query."""
    match record:
        case {
            "eventSource": str(source),
            "eventName": str(name),
            "s3": {"bucket": {"name": str(bucket)}, "object": {"key": str(encoded)} as details},
        } if source.rpartition(":")[2] == "s3":
            # Other bytes than UTF-8 become a text that can't be encoded, so `_event` refuses it.
            key = unquote_plus(encoded, errors="surrogateescape")
            return _event(name.removeprefix("s3:"), bucket, key, details, record.get("eventTime"))
    return UNREADABLE


def _event(name: str, bucket: str, key: str, details: Mapping[str, Any], time: Any) -> ObjectEvent:
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
    sequencer = details.get("sequencer")
    number = None
    if isinstance(sequencer, str) and _HEX.fullmatch(sequencer):
        # Of two sequencers, the shorter is padded with zeros in front, as numbers are.
        number = int(sequencer, 16)
    at = time[:_MAX_SHOWN] if isinstance(time, str) else ""
    return ObjectEvent(kind, bucket, key, name[:_MAX_SHOWN], at, number)


class Scope:
    """The objects of a source: those below its location that match its pattern."""

    def __init__(self, location: S3Location, pattern: str) -> None:
        self._location = location
        self._matcher = Pattern(pattern)

    def is_object(self, event: ObjectEvent) -> bool:
        """Whether the event is the creation or the removal of one of the source's objects."""
        is_test = event.kind is Kind.TEST
        return not (is_test or _is_record(event) or self._foreign(event))

    def has(self, key: str) -> bool:
        """Whether the key is below the location and matches the pattern."""
        below = key.removeprefix(self._location.prefix)
        return key.startswith(self._location.prefix) and self._matcher.matches(below)

    def foreign(self, events: Sequence[ObjectEvent]) -> str | None:
        """What a message holds beside events of the source's objects; None if nothing."""
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
    """Whether the object is a record that exports write beside their files."""
    return event.key.rpartition("/")[2] in EXPORT_RECORDS
