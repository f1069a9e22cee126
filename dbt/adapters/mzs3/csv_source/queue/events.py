"""What a message of a queue tells: S3's events, whichever way they were sent there.

S3 sends its records straight to a queue, through an SNS topic, wrapped or raw, or through
EventBridge (Amazon S3, Event message structure). Nothing of a message is believed beyond which
object to look at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any
from urllib.parse import unquote_plus

from dbt.adapters.mzs3.aws.location import S3Location
from dbt.adapters.mzs3.csv_source.executor.listing import EXPORT_RECORDS
from dbt.adapters.mzs3.csv_source.executor.pattern import Pattern

# An SNS message in an SNS message is as far as anybody forwards.
_MAX_ENVELOPES = 4
_MAX_SHOWN = 64
# S3 answers a HEAD of a longer one with an error, so that it is no key (Amazon S3, Object keys).
_MAX_KEY_BYTES = 1024
_HEX = re.compile(r"[0-9A-Fa-f]{1,128}")
_TEST_EVENT = "s3:TestEvent"
_REMOVED = ("ObjectRemoved:", "LifecycleExpiration:", "Object Deleted")
_CREATED = ("ObjectCreated:", "Object Created")


class Kind(Enum):
    """What happened to an object; TEST is S3's message that notifications were set up."""

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
        return tuple(_events(_unwrapped(body)))
    except (ValueError, RecursionError):
        return ()


def newest_of_each_key(events: Iterable[ObjectEvent]) -> dict[str, ObjectEvent]:
    """Of every key the event that counts, in whatever order and however often they came.

    It is the one with the greatest sequencer. Where one of a key's events has none, a creation
    counts before a removal: whether the object is there is then for S3 to say.
    """
    found: dict[str, list[ObjectEvent]] = {}
    for event in events:
        found.setdefault(event.key, []).append(event)
    return {key: _newest(of_key) for key, of_key in found.items()}


def _newest(events: list[ObjectEvent]) -> ObjectEvent:
    in_order = all(event.sequencer is not None for event in events)

    def rank(event: ObjectEvent) -> tuple[int, bool]:
        return (event.sequencer or 0) if in_order else 0, event.kind is Kind.CREATED

    return max(events, key=rank)


def _unwrapped(body: str) -> Any:
    """The message without the envelopes that SNS puts around it."""
    message: Any = json.loads(body)
    for _ in range(_MAX_ENVELOPES):
        if not isinstance(message, Mapping) or not _is_envelope(message):
            break
        message = json.loads(message["Message"])
    return message


def _is_envelope(message: Mapping[str, Any]) -> bool:
    return message.get("Type") == "Notification" and isinstance(message.get("Message"), str)


def _events(message: Any) -> Iterator[ObjectEvent]:
    if not isinstance(message, Mapping):
        return
    if isinstance(message.get("Records"), list):
        yield from map(_record, message["Records"])
    elif message.get("Event") == _TEST_EVENT:
        yield ObjectEvent(Kind.TEST, _text(message.get("Bucket")), "", _TEST_EVENT)
    elif message.get("source") == "aws.s3":
        yield _bridged(message)


def _record(record: Any) -> ObjectEvent:
    """One of the `Records` that S3 sends; the keys in them are encoded as in a URL's query."""
    try:
        if record["eventSource"].rpartition(":")[2] != "s3":
            return UNREADABLE
        name = _text(record["eventName"]).removeprefix("s3:")
        found = record["s3"]["object"]
        key = unquote_plus(_text(found["key"]), errors="strict")
        bucket = _text(record["s3"]["bucket"]["name"])
        return _event(name, bucket, key, found, record.get("eventTime"))
    except (KeyError, TypeError, AttributeError, ValueError):
        return UNREADABLE


def _bridged(message: Mapping[str, Any]) -> ObjectEvent:
    """EventBridge's form of an event, in which the key is written as it is."""
    try:
        detail = message["detail"]
        found = detail["object"]
        key, bucket = _text(found["key"]), _text(detail["bucket"]["name"])
        return _event(_text(message["detail-type"]), bucket, key, found, message.get("time"))
    except (KeyError, TypeError, AttributeError, ValueError):
        return UNREADABLE


def _event(name: str, bucket: str, key: str, found: Mapping[str, Any], time: Any) -> ObjectEvent:
    length = len(key.encode())  # raises ValueError for what is no Unicode, and so no key
    if not 0 < length <= _MAX_KEY_BYTES or not bucket:
        return UNREADABLE
    kind = Kind.OTHER
    if name.startswith(_CREATED):
        kind = Kind.CREATED
    elif name.startswith(_REMOVED):
        kind = Kind.REMOVED
    sequencer = found.get("sequencer")
    # Shorter ones count as if zeros were before them, which is how numbers compare.
    known = isinstance(sequencer, str) and _HEX.fullmatch(sequencer)
    return ObjectEvent(
        kind,
        bucket,
        key,
        name[:_MAX_SHOWN],
        time[:_MAX_SHOWN] if isinstance(time, str) else "",
        int(str(sequencer), 16) if known else None,
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("not a text")
    return value


class Scope:
    """The objects of a source: those below its location that match its pattern."""

    def __init__(self, location: S3Location, pattern: str) -> None:
        self._location = location
        self._matcher = Pattern(pattern)

    def is_object(self, event: ObjectEvent) -> bool:
        """Whether the event is that one of the source's objects came, or went."""
        return (
            event.kind in (Kind.CREATED, Kind.REMOVED)
            and self._foreign(event) is None
            and not _is_record(event)
        )

    def has(self, key: str) -> bool:
        """Whether an object of this key is one of them."""
        below = key.removeprefix(self._location.prefix)
        return key.startswith(self._location.prefix) and self._matcher.matches(below)

    def foreign(self, events: Iterable[ObjectEvent]) -> str | None:
        """None if a message of these events is the source's alone, else what it is instead."""
        reasons = [self._foreign(event) for event in events]
        if not reasons:
            return "that are no S3 events"
        return next((reason for reason in reasons if reason is not None), None)

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
