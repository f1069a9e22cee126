"""Listing a key space in pieces: what each task asks S3 for, and what it makes of the answer."""

import bisect
import itertools
from datetime import datetime, timezone

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.s3.opened import bucket_of

from dbt.adapters.mzs3.source.executor import listing
from dbt.adapters.mzs3.source.executor.listing import (
    LISTING_SCHEMA,
    KeyRange,
    as_batch,
    cut,
    first_page,
    iter_pages,
    list_objects,
    listed_prefix,
)
from dbt.adapters.mzs3.source.listing import scan
from dbt.adapters.mzs3.source.listing.scan import folders_after
from dbt.adapters.mzs3.store.location import S3Location

LOCATION = S3Location("acme-raw", "orders/")
WHEN = datetime(2026, 1, 2, tzinfo=timezone.utc)


class Store:
    """Lists keys as S3 does, a few at a time; `asked` holds the requests, without the bucket."""

    def __init__(self, keys, page=3, *, heeds_start=True):
        self.keys = sorted(keys)
        self.page = page
        self.heeds_start = heeds_start
        self.asked = []

    def get_paginator(self, name):
        assert name == "list_objects_v2"
        return self

    def paginate(self, **request):
        while True:
            page = self.list_objects_v2(**request)
            yield page
            if not page["IsTruncated"]:
                return
            request["ContinuationToken"] = page["NextContinuationToken"]

    def list_objects_v2(self, *, Bucket, **request):
        assert Bucket == "acme-raw"
        self.asked.append(dict(request))
        prefix = request.get("Prefix", "")
        start = request.get("StartAfter", "") if self.heeds_start else ""
        start = request.get("ContinuationToken", start)
        entries = {}
        for key in self.keys[bisect.bisect_right(self.keys, start) :]:
            if key.startswith(prefix):
                folder, slash, _ = key[len(prefix) :].partition(request.get("Delimiter", "\0"))
                name = prefix + folder + slash if slash else key
                entries.setdefault(name, (key, bool(slash)))[0]
                entries[name] = (key, bool(slash))
        names = list(entries)
        shown, more = names[: self.page], len(names) > self.page
        page = {"IsTruncated": more}
        if more:
            page["NextContinuationToken"] = entries[shown[-1]][0]
        if files := [one for one in shown if not entries[one][1]]:
            page["Contents"] = [
                {"Key": k, "ETag": '"e"', "Size": 1, "LastModified": WHEN} for k in files
            ]
        if folders := [one for one in shown if entries[one][1]]:
            page["CommonPrefixes"] = [{"Prefix": name} for name in folders]
        return page


def keys_of(pages):
    return [one.key for page in pages for one in page]


@given(
    names=st.sets(st.text(alphabet="ab/é", min_size=1, max_size=4)),
    marks=st.lists(st.text(alphabet="ab/é", max_size=4)),
    page=st.integers(1, 4),
    heeds_start=st.booleans(),
)
def test_pieces_list_what_a_whole_listing_does(names, marks, page, heeds_start):
    store = Store([f"orders/{name}" for name in names], page, heeds_start=heeds_start)
    pieces = cut([f"orders/{mark}" for mark in marks], 3)
    listed = [
        keys_of(iter_pages(bucket_of(store, "acme-raw"), LOCATION, "**", piece))
        for piece in pieces
    ]
    assert list(itertools.chain(*listed)) == keys_of(
        iter_pages(bucket_of(store, "acme-raw"), LOCATION, "**")
    )
    first = first_page(bucket_of(store, "acme-raw"), LOCATION, "**")
    rest = (
        []
        if first.end is None
        else iter_pages(bucket_of(store, "acme-raw"), LOCATION, "**", KeyRange(first.end))
    )
    assert [one.key for one in first.objects] + keys_of(rest) == list(itertools.chain(*listed))


def test_a_piece_is_listed_from_its_first_key_to_the_page_with_its_last():
    store = Store([f"orders/{n:02}" for n in range(20)])
    found = keys_of(
        iter_pages(
            bucket_of(store, "acme-raw"), LOCATION, "**", KeyRange("orders/04", "orders/09")
        )
    )
    assert found == [f"orders/{n:02}" for n in range(5, 10)]
    assert len(store.asked) == 2
    assert store.asked[0] == {"Prefix": "orders/", "StartAfter": "orders/04", "MaxKeys": 1000}


def test_the_first_page_says_how_to_go_on():
    store = Store(["orders/2024/1.csv", "orders/2024/2.csv", "orders/2025/1.csv", "orders/x.csv"])
    page = first_page(bucket_of(store, "acme-raw"), LOCATION, "*/1.csv")
    assert [one.key for one in page.objects] == ["orders/2024/1.csv", "orders/2025/1.csv"]
    assert (page.end, page.in_order, page.folders) == ("orders/2025/1.csv", True, 2)
    last = first_page(bucket_of(store, "acme-raw"), LOCATION, "**", after="orders/2024/1.csv")
    assert (len(last.objects), last.end) == (3, None)
    assert len(store.asked) == 2


def test_an_empty_first_page_need_not_be_the_last():
    store = Store(["orders/1", "orders/2"])
    store.paginate = lambda **_: iter([{"IsTruncated": True, "NextContinuationToken": "t"}])
    page = first_page(bucket_of(store, "acme-raw"), LOCATION, "**")
    assert (page.objects, page.end, page.in_order) == ([], "", True)
    del store.paginate
    assert keys_of(
        iter_pages(bucket_of(store, "acme-raw"), LOCATION, "**", KeyRange(page.end))
    ) == [
        "orders/1",
        "orders/2",
    ]
    assert "StartAfter" not in store.asked[0]


def test_a_store_that_lists_in_no_order_is_seen_to():
    store = Store(["orders/2", "orders/1", "orders/3"])
    store.keys = ["orders/2", "orders/1", "orders/3"]
    assert not first_page(bucket_of(store, "acme-raw"), LOCATION, "**").in_order


def test_tasks_list_all_pieces_of_theirs_with_one_client(monkeypatch):
    store, made = Store([f"orders/{n:02}" for n in range(9)]), []
    monkeypatch.setattr(
        listing, "open_store", lambda *_: made.append(1) or bucket_of(store, "acme-raw")
    )
    pieces = {"after": [None, "orders/03"], "last": ["orders/01", "orders/06"]}
    found = list(list_objects(None, LOCATION, "**")(iter([pa.record_batch(pieces)])))
    assert [key for batch in found for key in batch.column("key").to_pylist()] == [
        "orders/00", "orders/01", "orders/04", "orders/05", "orders/06",
    ]  # fmt: skip
    assert made == [1]


def test_no_objects_are_no_rows():
    assert as_batch([]).schema == LISTING_SCHEMA


def test_the_literal_part_of_the_pattern_narrows_the_listing():
    assert listed_prefix(LOCATION, "2024/{01,02}/*.csv") == "orders/2024/0"


YEARS = [f"orders/{y}/{m:02}/{n}" for y in (2024, 2025) for m in (1, 2, 3) for n in range(5)]


def folders(store, wanted, after="orders/2024/01/2", **how):
    return folders_after(bucket_of(store, "acme-raw"), LOCATION, after, wanted, **how)


def test_folders_of_one_level_are_asked_for_page_by_page():
    store = Store([f"orders/{n:02}/x" for n in range(10)], page=4)
    assert folders(store, 99, after="orders/01/x", deep=False) == [
        f"orders/{n:02}/" for n in range(2, 10)
    ]
    assert len(store.asked) == 2


def test_folders_in_folders_where_there_are_few():
    store = Store(YEARS, page=100)
    assert folders(store, 2, deep=True) == ["orders/2024/02/", "orders/2024/03/", "orders/2025/"]
    assert folders(store, 2, deep=False) == ["orders/2025/"]


@pytest.mark.parametrize("most", [1, 2, 3])
def test_folders_cost_only_so_many_requests(most, monkeypatch):
    monkeypatch.setattr(scan, "MAX_REQUESTS", most)
    store = Store(YEARS, page=1)
    folders(store, 99, deep=True)
    assert len(store.asked) == most
