"""What is no data does not make a location one that is in use."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.committing import prepared
from support.memory_s3 import MemoryS3

from dbt.adapters.mzs3.aws.location import S3Location
from dbt.adapters.mzs3.errors import LocationError
from dbt.adapters.mzs3.export.commit.manifest import read_existing, require_empty, require_ours
from dbt.adapters.mzs3.export.options import OnExisting
from dbt.adapters.mzs3.objects.prefix import Prefix

MANIFEST: Any = {"entries": [], "author": {"name": "dbt-mzs3"}}


@pytest.fixture
def s3() -> MemoryS3:
    return MemoryS3()


def prefix(s3: MemoryS3) -> Prefix:
    client: Any = s3
    return Prefix(client, S3Location("b", "x/"))


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


@pytest.mark.parametrize("markers", [0, 1500])
def test_an_object_whose_name_ends_in_a_slash_is_one(s3: MemoryS3, markers: int) -> None:
    s3.objects = {f"x/{n:04d}/": b"" for n in range(markers)}
    s3.objects["x/z/"] = b"data"
    with pytest.raises(LocationError, match=r"it holds 1 object, such as s3://b/x/z/\."):
        require_empty(prefix(s3))
