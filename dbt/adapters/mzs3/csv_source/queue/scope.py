"""Which events of a queue are a source's."""

from __future__ import annotations

from collections.abc import Iterable

from dbt.adapters.mzs3.aws.location import S3Location
from dbt.adapters.mzs3.csv_source.executor.listing import EXPORT_RECORDS, ObjectInfo
from dbt.adapters.mzs3.csv_source.executor.pattern import Pattern
from dbt.adapters.mzs3.csv_source.queue.events import Kind, ObjectEvent


class Scope:
    """The objects of a source: those below its location that match its pattern."""

    def __init__(self, location: S3Location, pattern: str) -> None:
        self._location = location
        self._matcher = Pattern(pattern)

    @property
    def bucket(self) -> str:
        """The bucket of all of them."""
        return self._location.bucket

    def is_object(self, event: ObjectEvent) -> bool:
        """Whether the event is that one of the source's objects came, or went."""
        return (
            event.kind in (Kind.CREATED, Kind.REMOVED)
            and self._foreign(event) is None
            and event.key.rpartition("/")[2] not in EXPORT_RECORDS
        )

    def has(self, key: str) -> bool:
        """Whether an object of this key is one of them."""
        below = key.removeprefix(self._location.prefix)
        return key.startswith(self._location.prefix) and self._matcher.matches(below)

    def is_data(self, found: ObjectInfo) -> bool:
        """False for the marker of a folder, as in a listing."""
        return not (found.key.endswith("/") and found.size == 0)

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
        if event.key.rpartition("/")[2] in EXPORT_RECORDS:
            return None
        if not self._matcher.matches(event.key[len(self._location.prefix) :]):
            return "of objects that the pattern leaves out"
        return None
