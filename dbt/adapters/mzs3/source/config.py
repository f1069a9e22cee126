"""What a run takes of which objects, how strictly, and what becomes of them after the commit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any
from urllib.parse import urlsplit

from dbt.adapters.mzs3.formats.read.encoding import canonical_encoding
from dbt.adapters.mzs3.formats.read.format import (
    CSV,
    FAIL,
    FORMAT_NAMES,
    HEADER_MATCHES,
    JSONL,
    ON_BAD_ROW,
    ON_HEADER_MISMATCH,
    REJECT,
    SKIP_OBJECT,
    Reading,
)
from dbt.adapters.mzs3.options.groups import tag_problems
from dbt.adapters.mzs3.options.values import (
    ConfigReader,
    choice,
    member,
    parse_size,
    whole_number,
)
from dbt.adapters.mzs3.store.location import S3Location, parse_location

SCAN = "bucket_scan"
QUEUE = "sqs_notifications"
EPOCH_MARK = "{epoch}"

DIALECT_KEYS = ("delimiter", "quote", "escape", "null")
CSV_KEYS = ("column_count", *DIALECT_KEYS, "encoding")
TEXT_KEYS = ("compression", "on_bad_row", "max_rejects")
FULL_LISTING_HOURS = 24
AUTO = "auto"
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


def read_intake(read: ConfigReader) -> Intake:
    """What `on_overwrite` and the keys that end in `_per_run` declare."""
    size = read.given.get("max_bytes_per_run")
    is_auto = size == AUTO
    minutes = read("minutes_per_run", whole_number(1)) or MINUTES_PER_RUN
    if "minutes_per_run" in read.given and not _is_word(size):
        read.note(f"minutes_per_run needs max_bytes_per_run: {AUTO} beside it")
    return Intake(
        on_overwrite=read("on_overwrite", member(OnOverwrite)) or OnOverwrite.FAIL,
        max_objects=read("max_objects_per_run", whole_number(1)),
        max_bytes=None if is_auto else read("max_bytes_per_run", _bytes_per_run),
        minutes=minutes if is_auto else None,
    )


def _is_word(size: object) -> bool:
    """Whether a size is perhaps `auto`, and no number."""
    return isinstance(size, str) and not re.match(r"\s*\d", size)


def _bytes_per_run(value: object) -> int:
    if _is_word(value):
        raise ValueError(
            f"must be {AUTO}, a number of bytes or a text such as '256MB', not {value!r}"
        )
    return parse_size(value)


def read_format(read: ConfigReader) -> tuple[str, ConfigReader]:
    """The declared format, and a reader of what else is declared of its objects.

    Keys that are not of its format are a problem each.
    """
    name = read("format", choice(FORMAT_NAMES)) or CSV
    if name == CSV:
        return CSV, read
    alone = dict.fromkeys(CSV_KEYS, "CSV")
    if name != JSONL:
        alone |= dict.fromkeys(TEXT_KEYS, "CSV and JSON lines")
    wrong = [key for key in alone if key in read.given]
    for key in wrong:
        read.note(f"{key} is for {alone[key]}, but external.format is {name}")
    if read.given.get("header") is False:
        wrong.append("header")
        read.note(
            f"header is false, but objects of the format {name} name their fields; leave it out, "
            "or list the names"
        )
    if name == JSONL and read.given.get("on_header_mismatch") == SKIP_OBJECT:
        wrong.append("on_header_mismatch")
        read.note(
            f"on_header_mismatch: {SKIP_OBJECT} is for objects with one header, but with the "
            f"format {name} each record has its own keys; leave it out, and see on_bad_row"
        )
    rest = {key: value for key, value in read.given.items() if key not in wrong}
    return name, ConfigReader(rest, read.problems, "external.")


def read_full_listing_hours(read: ConfigReader, discovery: Discovery) -> int | None:
    """What `key_order` and `full_listing_hours` declare.

    With ascending keys, after how many hours all are listed again: until then, a run lists the end
    of them. None for keys in any order: every listing is full.
    """
    order = read("key_order", choice(("any", "ascending")))
    if order == "ascending" and not discovery.bucket_scan:
        read.note(f"key_order: ascending needs {SCAN} in external.discover")
    hours = read("full_listing_hours", whole_number(1)) or FULL_LISTING_HOURS
    if "full_listing_hours" in read.given and read.given.get("key_order", "any") == "any":
        read.note(
            "full_listing_hours needs key_order: ascending beside it; without, every listing is "
            "full"
        )
    return hours if order == "ascending" else None


def parse_reading(read: ConfigReader, *, has_header: bool) -> Reading:
    """What `header_match`, `on_bad_row` and the like declare: how strictly objects are read."""
    of_header = {
        "header_match": choice(HEADER_MATCHES),
        "on_header_mismatch": choice(ON_HEADER_MISMATCH),
    }
    others = {
        "on_bad_row": choice(ON_BAD_ROW),
        "max_rejects": whole_number(0),
        "encoding": lambda name: canonical_encoding(str(name)),
    }
    reading = Reading(**read.all({**of_header, **others}))
    if reading.max_rejects is not None and read.given.get("on_bad_row", FAIL) == FAIL:
        read.note(f"max_rejects needs `on_bad_row: {REJECT}` beside it")
    for key in () if has_header else of_header:
        if (value := getattr(reading, key)) != getattr(Reading, key):
            read.note(f"{key}: {value} needs objects with a header, but external.header is false")
    return reading
