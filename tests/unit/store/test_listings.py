"""What a store lists in several pages is listed whole; and a key is found, not one like it."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from support.export.committing import prefix as in_memory
from support.s3.answering import Answer, Answering, Asked
from support.s3.memory import MemoryS3

from dbt.adapters.mzs3.store.connection import AwsConnection
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.prefix import Prefix
from dbt.adapters.mzs3.store.s3 import open_bucket
from dbt.adapters.mzs3.upload.reaper import UploadReaper

TIME = "2026-01-01T00:00:00.000Z"
PAGE = "<{0}>{1}<IsTruncated>{2}</IsTruncated>{3}</{0}>"
OBJECT = (
    "<Contents><Key>{}</Key><ETag>e</ETag><Size>1</Size><LastModified>{}</LastModified></Contents>"
)
UPLOAD = "<Upload><Key>{}</Key><UploadId>{}</UploadId><Initiated>{}</Initiated></Upload>"
PART = "<Part><PartNumber>{}</PartNumber><ETag>e</ETag><Size>5</Size>{}</Part>"
SHA256 = "<ChecksumSHA256>s=</ChecksumSHA256>"


def answer(asked: Asked) -> Answer:
    """The first of two pages, or the second to who asks for what comes after the first."""
    query = {
        name: values[0]
        for name, values in parse_qs(urlsplit(asked.path).query, keep_blank_values=True).items()
    }
    if "uploads" in query:
        is_last = query.get("upload-id-marker") == "one"
        entry = UPLOAD.format("x/part-0000-0001.csv", "two" if is_last else "one", TIME)
        more = "<NextKeyMarker>x/a</NextKeyMarker><NextUploadIdMarker>one</NextUploadIdMarker>"
        return 200, page("ListMultipartUploadsResult", entry, more, is_last)
    if "uploadId" in query:
        is_last = query.get("part-number-marker") == "1"
        more = "<NextPartNumberMarker>1</NextPartNumberMarker>"
        return 200, page(
            "ListPartsResult", PART.format(*(2, SHA256) if is_last else (1, "")), more, is_last
        )
    is_last = query.get("continuation-token") == "t"
    entry = OBJECT.format("x/b" if is_last else "x/a", TIME)
    more = "<NextContinuationToken>t</NextContinuationToken>"
    return 200, page("ListBucketResult", entry, more, is_last)


def page(name: str, entry: str, more: str, is_last: bool) -> str:
    return PAGE.format(name, entry, "false" if is_last else "true", "" if is_last else more)


@pytest.fixture
def prefix() -> Iterator[Prefix]:
    with Answering(answer) as server:
        keys = {"access_key_id": "a", "secret_access_key": "b", "region": "us-east-1"}
        connection = AwsConnection(endpoint=server.endpoint, **keys)
        yield Prefix(open_bucket(connection, "acme"), S3Location("acme", "x/"))


def test_objects(prefix: Prefix) -> None:
    assert [found.key for found in prefix.objects()] == ["x/a", "x/b"]


def test_open_uploads(prefix: Prefix) -> None:
    assert [upload_id for _, upload_id in prefix.uploads()] == ["one", "two"]


def test_parts_of_an_upload(prefix: Prefix) -> None:
    assert prefix.store.parts("x/a", "one") == {1: ("e", 5), 2: ("e sha256=s=", 5)}


def test_an_upload_of_the_second_page_is_found_by_who_cleans_up(prefix: Prefix) -> None:
    reaper = UploadReaper(prefix, "two", take_over=True)
    assert reaper.unlisted is None
    assert [upload_id for _, upload_id in reaper.found] == ["one", "two"]


def test_a_key_that_begins_like_another_is_not_that_one() -> None:
    s3 = MemoryS3()
    s3.objects = {"x/a.csv.gz": b"1", "x/a.csv/b": b"2"}
    assert in_memory(s3).find("x/a.csv") is None
    assert in_memory(s3).etag("x/a.csv") is None
    s3.objects["x/a.csv"] = b"three"
    found = in_memory(s3).find("x/a.csv")
    assert found is not None
    assert (found.key, found.size) == ("x/a.csv", 5)
