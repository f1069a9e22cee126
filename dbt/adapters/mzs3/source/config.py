"""What a run takes of which objects, how strictly, and what becomes of them after the commit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any
from urllib.parse import urlsplit

from dbt.adapters.mzs3.formats.read.format import (
    CSV,
    FORMAT_NAMES,
    JSONL,
    SKIP_OBJECT,
)
from dbt.adapters.mzs3.options.groups import tag_problems
from dbt.adapters.mzs3.options.option import Option
from dbt.adapters.mzs3.options.values import (
    ConfigReader,
    parse_size,
)
from dbt.adapters.mzs3.store.location import S3Location, parse_location

SCAN = "bucket_scan"
QUEUE = "sqs_notifications"
EPOCH_MARK = "{epoch}"

FULL_LISTING_HOURS = 24
AUTO = "auto"
_TITLES = {CSV: "CSV", JSONL: "JSON lines"}
MINUTES_PER_RUN = 10

_WAYS = f"{SCAN}, or {QUEUE} with a queue's name or URL"
_QUEUE_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\.fifo")
_ACTIONS = "keep, tag, {tag: {name: value}}, {move: s3://bucket/prefix/}, delete"
# An epoch is a time in ms.
_SOME_EPOCH = "1700000000000"


class AfterAction(Enum):
    """What is done with an object of which every row is committed."""

    KEEP = "keep"
    TAG = "tag"
    MOVE = "move"
    DELETE = "delete"


@dataclass(frozen=True)
class Discovery:
    """At least one of the two: listing the location, and a queue's name or URL.

    And what comes after the commit; with TAG the tags, whose values may hold `{epoch}`, with MOVE
    where to.
    """

    bucket_scan: bool = True
    queue: str | None = None
    after_commit: AfterAction = AfterAction.KEEP
    tags: tuple[tuple[str, str], ...] = ()
    target: S3Location | None = None

    @property
    def empties_location(self) -> bool:
        """Whether objects are no longer in the location once they are ingested."""
        return self.after_commit in (AfterAction.MOVE, AfterAction.DELETE)


def read_discovery(read: ConfigReader, location: S3Location) -> Discovery:
    """What `discover` and `after_commit` declare."""
    ways = _ways(read)
    match read.given.get("after_commit", "keep"):
        case "keep" | "delete" as action:
            return Discovery(*ways, AfterAction(action))
        case "tag":
            return Discovery(*ways, AfterAction.TAG, (("mzs3-ingested", EPOCH_MARK),))
        case {"tag": tags, **others} if not others:
            return Discovery(*ways, AfterAction.TAG, _tags(read, tags))
        case {"move": target, **others} if not others:
            return Discovery(*ways, AfterAction.MOVE, target=_target(read, target, location))
        case "move":
            read.note("after_commit: move needs a place: {move: s3://bucket/prefix/}")
        case value:
            read.note(f"after_commit must be one of {_ACTIONS}, not {value!r}")
    return Discovery(*ways)


def queue_name(queue: str) -> str:
    """The name of a queue that is given by its name or its URL."""
    return urlsplit(queue).path.rstrip("/").rpartition("/")[2]


def _ways(read: ConfigReader) -> tuple[bool, str | None]:
    discover = read.given.get("discover", [SCAN])
    ways = [discover] if isinstance(discover, (str, Mapping)) else discover
    if not isinstance(ways, (list, tuple)) or not ways:
        read.note(f"discover must be a list of {_WAYS}; without it, [{SCAN}] holds")
        return True, None
    queues: list[Any] = []
    for way in ways:
        if isinstance(way, Mapping) and set(way) == {QUEUE}:
            queues.append(way[QUEUE])
        elif way == QUEUE:
            read.note(f"discover: {QUEUE} needs a queue: {{{QUEUE}: its name or URL}}")
        elif way != SCAN:
            read.note(f"discover must be {_WAYS}, not {_shown(way)}")
    for queue in queues:
        if (problem := queue_problem(queue)) is not None:
            read.note(f"discover: {QUEUE} {problem}")
    if len(queues) > 1:
        read.note(
            f"discover names {len(queues)} queues; a source has one: have the buckets' "
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


def _tags(read: ConfigReader, tags: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(tags, Mapping) or not tags:
        read.note(f"after_commit: tag must be a mapping of names to values, not {tags!r}")
        return ()
    found = tuple((str(name), str(text)) for name, text in tags.items())
    put = {name: text.replace(EPOCH_MARK, _SOME_EPOCH) for name, text in found}
    for problem in tag_problems("after_commit: tag", put):
        read.note(problem.replace(_SOME_EPOCH, EPOCH_MARK))
    return found


def _target(read: ConfigReader, text: Any, location: S3Location) -> S3Location | None:
    try:
        target = parse_location(str(text))
    except ValueError as exc:
        read.note(f"after_commit: move {exc}")
        return None
    if target.bucket == location.bucket and (
        target.prefix.startswith(location.prefix) or location.prefix.startswith(target.prefix)
    ):
        read.note(
            f"after_commit: move to {target.uri} overlaps the location {location.uri}: objects "
            "that were moved could be ingested again; name a place beside it, or another bucket"
        )
    return target


class OnOverwrite(Enum):
    """What becomes of an object with a new ETag under a key whose rows are in the source."""

    FAIL = "fail"
    IGNORE = "ignore"
    APPEND = "append"
    REPLACE = "replace"


@dataclass(frozen=True)
class Intake:
    """What a run takes of the objects that are new to it; None is no limit.

    With `minutes`, it takes what earlier runs say that it can fetch in them. At least one object
    is always taken, also where it alone is larger than `max_bytes`.
    """

    on_overwrite: OnOverwrite = OnOverwrite.FAIL
    max_objects: int | None = None
    max_bytes: int | None = None
    minutes: int | None = None

    @property
    def is_limited(self) -> bool:
        """Whether a run may leave objects for later ones."""
        limits = (self.max_objects, self.max_bytes, self.minutes)
        return any(limit is not None for limit in limits)


def is_word(size: object) -> bool:
    """Whether a size is perhaps `auto`, and no number."""
    return isinstance(size, str) and not re.match(r"\s*\d", size)


def bytes_per_run(value: object) -> int | str:
    """A number of bytes, or `auto`."""
    if value == AUTO:
        return AUTO
    if is_word(value):
        raise ValueError(
            f"must be {AUTO}, a number of bytes or a text such as '256MB', not {value!r}"
        )
    return parse_size(value)


def of_other_formats(
    given: Mapping[str, Any], options: Mapping[str, Option]
) -> Iterator[tuple[str, str]]:
    """The keys that are not of the format of the objects, each with the problem."""
    name = given.get("format", CSV)
    if name not in FORMAT_NAMES or name == CSV:
        return
    for key, one in options.items():
        if key in given and one.formats and name not in one.formats:
            titles = " and ".join(_TITLES[each] for each in one.formats)
            yield key, f"{key} is for {titles}, but external.format is {name}"
    if given.get("header") is False:
        yield (
            "header",
            f"header is false, but objects of the format {name} name their fields; leave it out, "
            "or list the names",
        )
    if name == JSONL and given.get("on_header_mismatch") == SKIP_OBJECT:
        yield (
            "on_header_mismatch",
            f"on_header_mismatch: {SKIP_OBJECT} is for objects with one header, but with the "
            f"format {name} each record has its own keys; leave it out, and see on_bad_row",
        )
