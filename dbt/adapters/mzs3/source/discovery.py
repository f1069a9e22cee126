"""How a source finds its objects (`discover`), and what it then does to them (`after_commit`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any
from urllib.parse import urlsplit

from dbt.adapters.mzs3.options.groups import tag_problems
from dbt.adapters.mzs3.secrets import quoted_word
from dbt.adapters.mzs3.store.location import S3Location, parse_location

SCAN = "bucket_scan"
QUEUE = "sqs_notifications"
EPOCH_PLACEHOLDER = "{epoch}"

_WAYS = f"{SCAN}, or {QUEUE} with a queue's name or URL"
_QUEUE_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\.fifo")
_ACTIONS = "keep, tag, {tag: {name: value}}, {move: s3://bucket/prefix/}, delete"
# Stands for an epoch, a time in ms, when tags are checked.
_SOME_EPOCH = "1700000000000"


@dataclass(frozen=True)
class Discovery:
    """How objects are found: by listing the location, in a queue (its name or URL), or both."""

    bucket_scan: bool = True
    queue: str | None = None


def read_discovery(value: Any) -> Discovery:
    """The converter of `discover`; raises ValueError with all problems.

    Each is shown after the option's name: at once if it begins with a colon, else after a space.
    """
    ways = [value] if isinstance(value, (str, Mapping)) else value
    if not isinstance(ways, (list, tuple)) or not ways:
        raise ValueError(f"must be a list of {_WAYS}; without it, [{SCAN}] holds")
    queues: list[Any] = []
    problems: list[str] = []
    for way in ways:
        if isinstance(way, Mapping) and set(way) == {QUEUE}:
            queues.append(way[QUEUE])
        elif way == QUEUE:
            problems.append(f": {QUEUE} needs a queue: {{{QUEUE}: its name or URL}}")
        elif way != SCAN:
            problems.append(f"must be {_WAYS}, not {_shown(way)}")
    problems += (
        f": {QUEUE} {problem}" for queue in queues if (problem := queue_problem(queue)) is not None
    )
    if len(queues) > 1:
        problems.append(
            f"names {len(queues)} queues; a source has one: have the buckets' notifications sent "
            "to the same queue"
        )
    if problems:
        raise ValueError(*problems)
    return Discovery(SCAN in ways, queues[0] if queues else None)


def _shown(way: Any) -> str:
    """The value for a message; a mapping by its keys only, as its values may hold passwords."""
    if isinstance(way, Mapping):
        return f"a mapping of {', '.join(map(quoted_word, way))}"
    return quoted_word(way) if isinstance(way, str) else f"a {type(way).__name__}"


def queue_name(queue: str) -> str:
    """The name of a queue that is given by its name or its URL."""
    return urlsplit(queue).path.rstrip("/").rpartition("/")[2]


def queue_problem(queue: Any) -> str | None:
    """What is wrong with a queue's name or URL, without repeating it: it may hold a password."""
    if not isinstance(queue, str) or not queue:
        return "must be the name or the URL of a queue, as a text"
    if queue.startswith("arn:"):
        return "is an ARN; give the queue's name, or its URL if it is another account's"
    if "://" in queue:
        try:
            parts = urlsplit(queue)
            sound = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            sound = False
        if not sound or not _QUEUE_NAME.fullmatch(queue_name(queue)):
            return (
                "is no URL of a queue, such as https://sqs.us-east-1.amazonaws.com/123456789012/q"
            )
        if parts.username or parts.password or parts.query or parts.fragment:
            return (
                "must be a URL without a user, a password or parameters: keys belong under "
                "aws_connections in the profile"
            )
    elif not _QUEUE_NAME.fullmatch(queue):
        return "is no name of a queue: those are up to 80 letters, digits, - and _"
    if queue_name(queue).endswith(".fifo"):
        return (
            "is a FIFO queue, where a message that a run holds, or leaves to others, keeps back "
            "all behind it; have the events sent to a standard queue: to a source their order is "
            "no matter"
        )
    return None


class AfterAction(Enum):
    """What is done to an object once all of its rows are committed."""

    KEEP = "keep"
    TAG = "tag"
    MOVE = "move"
    DELETE = "delete"


@dataclass(frozen=True)
class AfterCommit:
    """An action; TAG has `tags`, whose values may contain `{epoch}`, and MOVE has a `target`."""

    action: AfterAction = AfterAction.KEEP
    tags: tuple[tuple[str, str], ...] = ()
    target: S3Location | None = None

    @property
    def empties_location(self) -> bool:
        """Whether objects are no longer in the location once they are ingested."""
        return self.action in (AfterAction.MOVE, AfterAction.DELETE)

    def problems(self, location: S3Location) -> Iterator[str]:
        """What is wrong with the action for a source at this location."""
        target = self.target
        if target is None or target.bucket != location.bucket:
            return
        if target.prefix.startswith(location.prefix) or location.prefix.startswith(target.prefix):
            yield (
                f"after_commit: move to {target.uri} overlaps the location {location.uri}: "
                "objects that were moved could be ingested again; name a place beside it, or "
                "another bucket"
            )


def read_after_commit(value: Any) -> AfterCommit:
    """The converter of `after_commit`; raises ValueError with all problems."""
    match value:
        case "keep" | "delete":
            return AfterCommit(AfterAction(value))
        case "tag":
            return AfterCommit(AfterAction.TAG, (("mzs3-ingested", EPOCH_PLACEHOLDER),))
        case {"tag": tags, **others} if not others:
            return AfterCommit(AfterAction.TAG, _tags(tags))
        case {"move": target, **others} if not others:
            try:
                return AfterCommit(AfterAction.MOVE, target=parse_location(str(target)))
            except ValueError as exc:
                raise ValueError(f": move {exc}") from exc
        case "move":
            raise ValueError(": move needs a place: {move: s3://bucket/prefix/}")
    raise ValueError(f"must be one of {_ACTIONS}, not {value!r}")


def _tags(given: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(given, Mapping) or not given:
        raise ValueError(f": tag must be a mapping of names to values, not {given!r}")
    tags = {str(name): str(text) for name, text in given.items()}
    written = {name: text.replace(EPOCH_PLACEHOLDER, _SOME_EPOCH) for name, text in tags.items()}
    problems = [
        text.replace(_SOME_EPOCH, EPOCH_PLACEHOLDER) for text in tag_problems(": tag", written)
    ]
    if problems:
        raise ValueError(*problems)
    return tuple(tags.items())
