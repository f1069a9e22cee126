"""What is no data does not make a location one that is in use."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.export.committing import prepared, refuse
from support.s3.memory import MemoryS3
from support.s3.opened import prefix_of

from dbt.adapters.mzs3.errors import LocationError, S3Error
from dbt.adapters.mzs3.export.commit.existing import read_existing, require_empty, require_ours
from dbt.adapters.mzs3.export.options import OnExisting
from dbt.adapters.mzs3.store.location import parse_location
from dbt.adapters.mzs3.store.prefix import Prefix

MANIFEST: Any = {"entries": [], "author": {"name": "dbt-mzs3"}}


@pytest.fixture
def s3() -> MemoryS3:
    return MemoryS3()


def prefix(s3: MemoryS3, uri: str = "s3://b/x/") -> Prefix:
    client: Any = s3
    return prefix_of(client, parse_location(uri))


@pytest.mark.parametrize("mode", ["fail", "overwrite", "resume"])
@pytest.mark.parametrize("marker", ["x/", "x/country=NZ/", "x/_mzs3_of_another_run"])
def test_markers_of_folders_and_probes_are_nothing(
    s3: MemoryS3, mode: OnExisting, marker: str
) -> None:
    s3.objects[marker] = b""
    assert prepared(s3, mode).existing is None


def test_an_overwrite_leaves_markers_where_they_are(s3: MemoryS3) -> None:
    s3.objects = {"x/": b"", "x/a/": b"", "x/_manifest.json": json.dumps(MANIFEST).encode()}
    existing = read_existing(prefix(s3))
    assert existing is not None
    require_ours(prefix(s3), existing)


def test_a_listing_that_is_denied_names_its_permission(s3: MemoryS3) -> None:
    s3.objects = {"x/_manifest.json": json.dumps(MANIFEST).encode()}
    existing = read_existing(prefix(s3))
    assert existing is not None
    s3.before = lambda *_: refuse("AccessDenied")()
    with pytest.raises(S3Error, match=r"listing s3://b/x/ failed.* \(needs s3:ListBucket\)"):
        require_ours(prefix(s3), existing)


@pytest.mark.parametrize("markers", [0, 1500])
def test_an_object_whose_name_ends_in_a_slash_is_one(s3: MemoryS3, markers: int) -> None:
    s3.objects = {f"x/{n:04d}/": b"" for n in range(markers)}
    s3.objects["x/z/"] = b"data"
    with pytest.raises(LocationError, match=r"it holds 1 object, such as s3://b/x/z/\."):
        require_empty(prefix(s3))


@pytest.mark.parametrize("path", ["s3://b/prefix", "s3://b/prefix/"])
def test_the_path_is_the_prefix_and_not_keys_that_begin_alike(s3: MemoryS3, path: str) -> None:
    place = prefix(s3, path)
    alike = ("prefix", "prefix.csv", "prefix-2/1.csv", "prefix2/1.csv", "prefi/1.csv", "Prefix/1")
    s3.objects = dict.fromkeys(alike, b"data")
    require_empty(place)
    assert place.key("part-0000-0001.csv") == "prefix/part-0000-0001.csv"
    s3.objects["prefix/path/1.csv"] = b"data"
    with pytest.raises(LocationError, match=r"^s3://b/prefix/ is not empty: it holds 1 object, "):
        require_empty(place)
