"""How a source is listed: in pieces side by side, or only the end that grows; every key once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest
from moto.s3.models import s3_backends
from support.s3.faulty import FaultyS3

from dbt.adapters.mzs3.ledger.compaction import compact
from dbt.adapters.mzs3.ledger.ledger import Ledger
from dbt.adapters.mzs3.source.freshness import read_pending
from dbt.adapters.mzs3.source.listing import scan
from dbt.adapters.mzs3.source.operations.object_actions import ObjectAction, act
from dbt.adapters.mzs3.store import s3 as s3_store

pytestmark = pytest.mark.spark


@pytest.fixture
def watched(lake, s3_endpoint):
    """The source behind a proxy that has `seen` all requests of executors and driver."""
    with FaultyS3(s3_endpoint) as server:
        lake.connection = replace(lake.connection, endpoint=server.endpoint)
        yield server


def requests(server):
    """How many listings there were, and of each object how many GETs; then forgets them."""
    seen, server.seen = server.seen, []
    gets = Counter(one.key.rpartition("orders/")[2] for one in seen if one.action == "GETObject")
    return [one.query for one in seen if one.action == "ListObjectsV2"], gets


def test_a_location_of_many_pages_is_listed_in_pieces_and_each_object_read_once(
    lake, watched, monkeypatch
):
    monkeypatch.setattr(s3_store, "KEYS_PER_PAGE", 4)
    monkeypatch.setattr(scan, "KEYS_PER_PAGE", 4)
    monkeypatch.setattr(scan, "PAGES_PER_PIECE", 1)
    monkeypatch.setattr(scan, "SAMPLE_ONE_IN", 1)
    names = [f"{folder}/{number}.csv" for folder in "abcdef" for number in range(8)]
    for name in names:
        lake.put(name, f"id\n{name}\n")
    lake.external = {"header": ["id"]}
    assert lake.ingest().objects == len(names)
    listings, gets = requests(watched)
    # Cut by folders, of which one is listed from where the first page ended.
    starts = [query["start-after"][0] for query in listings if "start-after" in query]
    assert [one.rpartition("orders/")[2] for one in sorted(set(starts))] == [
        "a/3.csv", "b/", "c/", "d/", "e/", "f/",
    ]  # fmt: skip
    assert gets == Counter(names)
    new = [f"{folder}/{number}.csv" for folder in "0cz" for number in (0, 55)]
    new.remove("c/0.csv")
    for name in new:
        lake.put(name, f"id\n{name}\n")
    assert lake.ingest().objects == len(new)
    listings, gets = requests(watched)
    # Cut by the keys that are known, without asking for folders.
    assert not any("delimiter" in query for query in listings)
    assert len({query["start-after"][0] for query in listings if "start-after" in query}) == 8
    assert gets == Counter(new)
    assert [row[2] for row in lake.rows("id")] == sorted(names + new)


def age(lake, hours):
    """These objects were last modified so many hours ago."""
    keys = s3_backends["123456789012"]["aws"].buckets[lake.bucket].keys
    for name, ago in hours.items():
        keys[f"orders/{name}"].last_modified -= timedelta(hours=ago)


@pytest.fixture
def growing(lake, watched):
    """A source whose keys grow, of which two days are ingested."""
    lake.external = {"key_order": "ascending"}
    for day in (1, 2, 3):
        lake.put(f"2026-01-0{day}/1.csv", f"id\n{day}\n")
    age(lake, {f"2026-01-0{day}/1.csv": 24 * (4 - day) for day in (1, 2, 3)})
    lake.ingest()
    watched.seen = []
    return lake


def later(monkeypatch, hours):
    now = scan.time.time() + hours * 3600
    monkeypatch.setattr(scan, "time", SimpleNamespace(time=lambda: now))


def ids(lake):
    return sorted(row[2] for row in lake.rows("id"))


@pytest.mark.light
def test_where_keys_grow_a_run_lists_their_end_and_a_late_key_comes_with_the_next_full_listing(
    growing, watched, monkeypatch
):
    lake = growing
    lake.put("2026-01-03/0.csv", "id\n3.0\n")  # behind what is not of the newest two hours
    lake.put("2026-01-02/0.csv", "id\n2.0\n")  # late
    lake.put("2026-01-04/1.csv", "id\n4\n")
    pending = read_pending(lake.spark, lake.definition(), lake.connection)
    assert pending == (2, 12)
    assert lake.ingest().objects == 2
    listings, _ = requests(watched)
    assert {query["start-after"][0] for query in listings} == {"orders/2026-01-02/1.cs"}
    for _ in range(2):  # a snapshot takes the place of what was before
        ledger = Ledger(lake.spark, lake.relations)
        ledger.write_note(ledger.events().limit(0))
        compact(ledger)
    later(monkeypatch, 23.9)
    assert lake.ingest().objects == 0
    later(monkeypatch, 0.2)
    assert lake.ingest().objects == 1
    assert ids(lake) == ["1", "2", "2.0", "3", "3.0", "4"]
    recorded = lake.spark.table(lake.relations.ledger).where("phase = 'listing'")
    assert {row["object"] for row in recorded.collect()} == {f"s3://{lake.bucket}/orders/**"}


@pytest.mark.light
def test_what_is_to_be_done_again_is_listed_however_old_it_is(growing):
    lake = growing
    act(lake.spark, lake.definition(), ObjectAction.RETRY, ["2026-01-01/1.csv"])
    lake.put("2026-01-01/1.csv", "id\n1b\n")
    assert lake.ingest().objects == 1
    assert ids(lake) == ["1b", "2", "3"]


class Died(BaseException):
    """What no code catches."""


@pytest.mark.light
def test_a_full_listing_counts_only_once_all_of_it_is_on_record(growing, monkeypatch):
    lake = growing
    lake.put("2025-12-31/1.csv", "id\n0\n")
    later(monkeypatch, 25)

    def dying(step):
        if step == "begin commit":
            raise Died

    with pytest.raises(Died):
        lake.ingest(on_step=dying)
    assert lake.ingest().objects == 1
    # Another pattern is another listing: what it takes may be older than all that was taken.
    lake.put("2024-12-31/1.csv", "id\n-1\n")
    lake.external = {**lake.external, "pattern": "**/*.csv"}
    assert lake.ingest().objects == 1
    assert ids(lake) == ["-1", "0", "1", "2", "3"]
    ledger = Ledger(lake.spark, lake.relations)
    assert ledger.last_listing(f"s3://{lake.bucket}/orders/**") is None
    assert ledger.last_listing(f"s3://{lake.bucket}/orders/**/*.csv") is not None
