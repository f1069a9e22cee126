"""Where a source learns of its objects, and what becomes of them once they are committed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any
from urllib.parse import urlsplit

from dbt.adapters.mzs3.aws.location import S3Location, parse_location

SCAN = "bucket_scan"
QUEUE = "sqs_notifications"
EPOCH_MARK = "{epoch}"
DEFAULT_TAGS = (("mzs3-ingested", EPOCH_MARK),)

_WAYS = f"{SCAN}, or {QUEUE} with a queue's name or URL"
_FIFO = ".fifo"
_QUEUE_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\.fifo")
_ACTIONS = "keep, tag, {tag: {name: value}}, {move: s3://bucket/prefix/}, delete"
# What S3 takes (S3, Categorizing your objects using tags).
_MAX_TAGS = 10
_TAG_TEXT = re.compile(r"[\w\s+\-=.:/@]*")
_MAX_TAG_NAME, _MAX_TAG_VALUE = 128, 256


class AfterAction(Enum):
    """What is done with an object of which every row is committed."""

    KEEP = "keep"
    TAG = "tag"
    MOVE = "move"
    DELETE = "delete"


@dataclass(frozen=True)
class AfterCommit:
    """The action; with TAG the tags, whose values may hold `{epoch}`, with MOVE where to."""

    action: AfterAction = AfterAction.KEEP
    tags: tuple[tuple[str, str], ...] = ()
    target: S3Location | None = None


@dataclass(frozen=True)
class Discovery:
    """At least one of the two: listing the location, and a queue's name or URL."""

    bucket_scan: bool = True
    queue: str | None = None
    after_commit: AfterCommit = AfterCommit()

    @property
    def empties_location(self) -> bool:
        """Whether objects are no longer in the location once they are ingested."""
        return self.after_commit.action in (AfterAction.MOVE, AfterAction.DELETE)


def read_discovery(
    given: Mapping[str, Any], location: S3Location, problems: list[str]
) -> Discovery:
    """What `discover` and `after_commit` declare; their problems are added to `problems`."""
    scan, queue = _ways(given.get("discover", [SCAN]), problems)
    after = _after_commit(given.get("after_commit", AfterAction.KEEP.value), location, problems)
    return Discovery(scan, queue, after)


def queue_name(queue: str) -> str:
    """The name of a queue that is given by its name or its URL."""
    return urlsplit(queue).path.rstrip("/").rpartition("/")[2]


def _ways(discover: Any, problems: list[str]) -> tuple[bool, str | None]:
    ways = [discover] if isinstance(discover, (str, Mapping)) else discover
    if not isinstance(ways, (list, tuple)) or not ways:
        problems.append(f"external.discover must be a list of {_WAYS}; without it, [{SCAN}] holds")
        return True, None
    queues: list[Any] = []
    for way in ways:
        if isinstance(way, Mapping) and set(way) == {QUEUE}:
            queues.append(way[QUEUE])
        elif way == QUEUE:
            problems.append(
                f"external.discover: {QUEUE} needs a queue: {{{QUEUE}: its name or URL}}"
            )
        elif way != SCAN:
            problems.append(f"external.discover must be {_WAYS}, not {_shown(way)}")
    for queue in queues:
        if (problem := queue_problem(queue)) is not None:
            problems.append(f"external.discover: {QUEUE} {problem}")
    if len(queues) > 1:
        problems.append(
            f"external.discover names {len(queues)} queues; a source has one: have the buckets' "
            "notifications sent to the same queue"
        )
    return SCAN in ways, str(queues[0]) if queues else None


def _shown(way: Any) -> str:
    """What was given; only words of it are repeated, as a URL may hold a password."""
    if isinstance(way, Mapping):
        return f"a mapping of {', '.join(map(_shown_word, way))}"
    return _shown_word(way) if isinstance(way, str) else f"a {type(way).__name__}"


def _shown_word(text: Any) -> str:
    sound = isinstance(text, str) and _QUEUE_NAME.fullmatch(text)
    return repr(text) if sound else "a text that is not shown, as it may hold a password"


def queue_problem(queue: Any) -> str | None:
    """What is wrong with a queue; none is repeated, as what is no name may hold a password."""
    if not isinstance(queue, str) or not queue:
        return "must be the name or the URL of a queue, as a text"
    if queue.startswith("arn:"):
        return "is an ARN; give the queue's name, or its URL if it is another account's"
    if "://" not in queue:
        if not _QUEUE_NAME.fullmatch(queue):
            return "is no name of a queue: those are up to 80 letters, digits, - and _"
        return _fifo_problem(queue)
    try:
        parts = urlsplit(queue)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
        parts = urlsplit("")
    if not sound or not _QUEUE_NAME.fullmatch(queue_name(queue)):
        return "is no URL of a queue, such as https://sqs.us-east-1.amazonaws.com/123456789012/q"
    if parts.username or parts.password or parts.query or parts.fragment:
        return (
            "must be a URL without a user, a password or parameters: keys belong under "
            "aws_connections in the profile"
        )
    return _fifo_problem(queue_name(queue))


def _fifo_problem(name: str) -> str | None:
    if not name.endswith(_FIFO):
        return None
    return (
        "is a FIFO queue, where a message that a run holds, or leaves to others, keeps back all "
        "behind it; have the events sent to a standard queue: to a source their order is no matter"
    )


def _after_commit(value: Any, location: S3Location, problems: list[str]) -> AfterCommit:
    if value == AfterAction.TAG.value:
        return AfterCommit(AfterAction.TAG, DEFAULT_TAGS)
    if value in (AfterAction.KEEP.value, AfterAction.DELETE.value):
        return AfterCommit(AfterAction(value))
    if isinstance(value, Mapping) and set(value) == {AfterAction.TAG.value}:
        return AfterCommit(AfterAction.TAG, _tags(value[AfterAction.TAG.value], problems))
    if isinstance(value, Mapping) and set(value) == {AfterAction.MOVE.value}:
        return AfterCommit(
            AfterAction.MOVE, target=_target(value[AfterAction.MOVE.value], location, problems)
        )
    if value == AfterAction.MOVE.value:
        problems.append("external.after_commit: move needs a place: {move: s3://bucket/prefix/}")
    else:
        problems.append(f"external.after_commit must be one of {_ACTIONS}, not {value!r}")
    return AfterCommit()


def _tags(tags: Any, problems: list[str]) -> tuple[tuple[str, str], ...]:
    where = "external.after_commit: tag"
    if not isinstance(tags, Mapping) or not tags:
        problems.append(f"{where} must be a mapping of names to values, not {tags!r}")
        return ()
    if len(tags) > _MAX_TAGS:
        problems.append(f"{where} has {len(tags)} tags; S3 takes {_MAX_TAGS} for an object")
    found = tuple((str(name), str(text)) for name, text in tags.items())
    problems += [
        f"{where} {name}: {text} is no tag for S3: up to {_MAX_TAG_NAME} characters for the name, "
        f"{_MAX_TAG_VALUE} for the value, of letters, digits, spaces and + - = . _ : / @"
        for name, text in found
        if not name
        or len(name) > _MAX_TAG_NAME
        or len(text) > _MAX_TAG_VALUE
        or not _TAG_TEXT.fullmatch(name)
        or not _TAG_TEXT.fullmatch(text.replace(EPOCH_MARK, ""))
    ]
    return found


def _target(text: Any, location: S3Location, problems: list[str]) -> S3Location | None:
    where = "external.after_commit: move"
    try:
        target = parse_location(str(text))
    except ValueError as exc:
        problems.append(f"{where} {exc}")
        return None
    if target.bucket == location.bucket and (
        target.prefix.startswith(location.prefix) or location.prefix.startswith(target.prefix)
    ):
        problems.append(
            f"{where} to {target.uri} overlaps the location {location.uri}: objects that were "
            "moved could be ingested again; name a place beside it, or another bucket"
        )
    return target
