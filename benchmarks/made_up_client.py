"""A bucket of any number of objects that are nowhere, without a server: a store that reckons.

It travels to Spark's tasks with the code that asks S3, so that a listing costs neither HTTP nor
XML: what is left is the source's own work. `made_up_bucket.py` has the server, and its costs.
"""

from __future__ import annotations

import bisect
import contextlib
import hashlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from unittest import mock

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import cloudpickle

from dbt.adapters.mzs3.ledger import rows_table
from dbt.adapters.mzs3.source import fetch, idle, pinning
from dbt.adapters.mzs3.source.executor import listing
from dbt.adapters.mzs3.source.executor.fetch import FetchSpec
from dbt.adapters.mzs3.source.listing import scan
from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.store import KEYS_PER_PAGE, ListedObject, Page
from dbt.adapters.mzs3.types.table import arrow_type

PREFIX = "orders/"
SIZE = 1000
CONNECTION = AwsConnection(region="us-east-1", access_key_id="bench", secret_access_key="bench")
_FIRST = datetime(2020, 1, 1, tzinfo=timezone.utc)
_PER_DAY = 25_000  # a folder each
_BETWEEN = timedelta(days=1) / _PER_DAY


@dataclass
class MadeUpClient:
    """A store of so many objects; more of them are new ones, behind the others."""

    objects: int

    def pages(
        self, _: str, *, after: str = "", limit: int | None = None, folders: bool = False
    ) -> Iterator[Page]:
        """The objects below `PREFIX` after that key, or their folders: all it does is to list."""
        at = bisect.bisect_right(range(self.objects), after, key=_key)
        if folders:
            days = range(at // _PER_DAY, -(-self.objects // _PER_DAY))
            yield Page((), [_folder(day) for day in days])
            return
        size = limit or KEYS_PER_PAGE
        for start in range(at, self.objects, size) or (at,):
            end = min(start + size, self.objects)
            yield Page([_entry(n) for n in range(start, end)], is_last=end == self.objects)


@contextlib.contextmanager
def made_up_client(objects: int) -> Iterator[MadeUpClient]:
    """Sources list this store inside the context; each object has one row, its key.

    No object is fetched: the rows are made where tasks would fetch them.
    """
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    client = MadeUpClient(objects)
    with contextlib.ExitStack() as stack:
        for module in (pinning, idle, scan, listing):
            stack.enter_context(mock.patch.object(module, "open_store", _Client(client)))
        stack.enter_context(mock.patch.object(fetch, "fetch_objects", _made_up_rows))
        # With the bucket as it is now, and not as it was when the code was pickled.
        for module in (scan, rows_table):
            patch = mock.patch.object(module, "shipped", lambda make, *given: make(*given))
            stack.enter_context(patch)
        yield client


@dataclass
class _Client:
    client: MadeUpClient

    def __call__(self, _: AwsConnection, __: S3Location) -> MadeUpClient:
        return self.client


def _made_up_rows(
    spec: FetchSpec, _form: object
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """In the place of what ships `fetch_objects`."""
    modified = arrow_type("timestamp")
    names = [*(column.name for column in spec.columns), "_mz_object", "_mz_record"]

    def rows(listed: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in listed:
            key = batch.column("key")
            uri = pc.binary_join_element_wise(spec.location.uri_of("").rstrip("/"), key, "/")
            first = pa.repeat(pa.scalar(1, pa.int64()), len(key))
            when = batch.column("last_modified").cast(modified)
            columns = [key, uri, first, when]
            yield pa.RecordBatch.from_arrays(columns, [*names, "_mz_last_modified"])

    return rows


def _folder(day: int) -> str:
    return f"{PREFIX}day={day:05}/"


def _key(number: int) -> str:
    return f"{_folder(number // _PER_DAY)}{number:010}.csv"


def _entry(number: int) -> ListedObject:
    key = _key(number)
    etag = f'"{hashlib.md5(key.encode()).hexdigest()}"'
    return ListedObject(key, etag, SIZE, _FIRST + number * _BETWEEN)
