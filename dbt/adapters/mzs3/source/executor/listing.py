"""Lists the objects of a source, page by page: all of them, or those in a range of keys.

The ETags of listed objects are without quotes here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from operator import lt

import pyarrow as pa

from dbt.adapters.mzs3.errors import ExecutorError, S3Error
from dbt.adapters.mzs3.formats.read.columns import arrow_schema
from dbt.adapters.mzs3.source.executor.pattern import Pattern
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.failures import explained
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.opened import open_store
from dbt.adapters.mzs3.store.store import ListedObject, Page, Store

LISTING_DDL = "`key` string, `etag` string, `size` bigint, `last_modified` timestamp"
LISTING_SCHEMA = arrow_schema(LISTING_DDL)
# What exports write beside their files; it is skipped, so that a source can read an export.
EXPORT_RECORDS = frozenset({"_manifest.json", "_committing.json"})


@dataclass(frozen=True)
class KeyRange:
    """The keys after `after`, up to `last` and including it; None is no bound.

    Keys sort by their UTF-8 bytes, which is the order of Python's texts, and S3's.
    """

    after: str | None = None
    last: str | None = None

    def has(self, key: str) -> bool:
        """Whether the key is in this range."""
        return (self.after is None or key > self.after) and not self.is_before(key)

    def is_before(self, key: str) -> bool:
        """Whether the range ends before the key."""
        return self.last is not None and key > self.last


EVERYTHING = KeyRange()


def cut(marks: Iterable[str], count: int, after: str | None = None) -> list[KeyRange]:
    """At most `count` ranges, in order, that hold every possible key after `after` exactly once.

    `marks` are keys or folders at which to cut; each range has about as many of them.
    """
    inside = sorted({mark for mark in marks if after is None or mark > after})
    count = max(1, min(count, len(inside) + 1))
    # Each range has the same number of marks, but for rounding.
    ends = [inside[(number * (len(inside) + 1)) // count - 1] for number in range(1, count)]
    return [KeyRange(low, high) for low, high in pairwise([after, *ends, None])]


@dataclass(frozen=True)
class FirstPage:
    """The matching objects of a listing's first page, and facts about all keys of that page.

    `end` is the highest key, None if there is no other page. `in_order`: the keys are sorted by
    their bytes. `folders` is the number of folders directly below the prefix that the keys are in.
    """

    objects: list[ListedObject]
    end: str | None
    in_order: bool
    folders: int


def listed_prefix(location: S3Location, pattern: str) -> str:
    """The longest known prefix of all keys that the pattern matches."""
    return location.key(Pattern(pattern).literal_prefix)


def iter_pages(
    store: Store, location: S3Location, pattern: str, piece: KeyRange = EVERYTHING
) -> Iterator[list[ListedObject]]:
    """The matching objects of each page of the range `piece`; skips pages without any.

    Lists only keys with the pattern's literal prefix. Skips folder markers, which are empty and
    end in a slash; the records that `copy_to_s3` writes; and keys outside the range, which a store
    may return. Raises S3Error.
    """
    matcher = Pattern(pattern)
    for page in _pages(store, location, matcher, piece.after):
        if found := _matching(page.objects, location, matcher, piece):
            yield found
        if page.objects and piece.is_before(page.objects[-1].key):
            return


def first_page(
    store: Store, location: S3Location, pattern: str, after: str | None = None
) -> FirstPage:
    """The first page of keys that sort after `after`, from one request. Raises S3Error."""
    matcher = Pattern(pattern)
    page = next(_pages(store, location, matcher, after))
    keys = [one.key for one in page.objects]
    depth = len(location.key(matcher.literal_prefix))
    below = (key[depth:].partition("/") for key in keys)
    return FirstPage(
        _matching(page.objects, location, matcher, KeyRange(after)),
        # A page may be empty and not the last one.
        None if page.is_last else max(keys, default=after or ""),
        all(map(lt, keys, keys[1:])),
        len({name for name, slash, _ in below if slash}),
    )


def list_objects(
    connection: AwsConnection, location: S3Location, pattern: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For `mapInArrow` over rows `after, last`: the objects in these ranges, as `LISTING_DDL`.

    Returns a batch per page, and holds one page. Raises ExecutorError.
    """

    def list_them(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        store = None
        for batch in rows:
            for bounds in batch.select(["after", "last"]).to_pylist():
                try:
                    store = store or open_store(connection, location)
                    for page in iter_pages(store, location, pattern, KeyRange(**bounds)):
                        yield as_batch(page)
                except S3Error as exc:
                    raise ExecutorError(str(exc)) from exc

    return list_them


def _pages(
    store: Store, location: S3Location, matcher: Pattern, after: str | None
) -> Iterator[Page]:
    prefix = location.key(matcher.literal_prefix)
    with explained(f"listing {location.uri_of(prefix)}", "s3:ListBucket"):
        yield from store.pages(prefix, after=after or "")


def _matching(
    listed: Iterable[ListedObject], location: S3Location, matcher: Pattern, piece: KeyRange
) -> list[ListedObject]:
    below = len(location.prefix)
    return [
        one._replace(etag=one.etag.strip('"'))
        for one in listed
        if not (one.key.endswith("/") and one.size == 0)
        and one.key.rpartition("/")[2] not in EXPORT_RECORDS
        and piece.has(one.key)
        and matcher.matches(one.key[below:])
    ]


def as_batch(page: list[ListedObject]) -> pa.RecordBatch:
    """The objects as rows of `LISTING_SCHEMA`."""
    rows = [dict(zip(LISTING_SCHEMA.names, one, strict=True)) for one in page]
    return pa.RecordBatch.from_pylist(rows, LISTING_SCHEMA)
