"""A location is known without Spark where it can be; the proof that it can be written to."""

from __future__ import annotations

from typing import Any

import pytest
from support.s3.memory import MemoryS3, failure
from support.s3.opened import prefix_of

from dbt.adapters.mzs3.errors import S3Error
from dbt.adapters.mzs3.store.location import S3Location
from dbt.adapters.mzs3.store.prefix import Prefix
from dbt.adapters.mzs3.upload.destination import likely_bucket, resolve_location
from dbt.adapters.mzs3.upload.reaper import PROBE_PART, prove_writing

MD5_OF_ZERO = "93b885adfe0da089cdf634904fd59f71"  # of one byte


class Repeating(MemoryS3):
    """Answers to the last of so many requests, as boto3 does where it has lost the others'."""

    def __init__(self, repeated: int) -> None:
        super().__init__()
        self.repeated = repeated

    def create_multipart_upload(self, *, Key: str, **given: Any) -> dict[str, Any]:
        for _ in range(self.repeated):
            super().create_multipart_upload(Key=Key, **given)
        answer = super().create_multipart_upload(Key=Key, **given)
        return {**answer, "ResponseMetadata": {"RetryAttempts": self.repeated}}


class Asked(Exception):
    """Spark was asked to evaluate an expression."""


class Spark:
    def sql(self, text: str) -> Any:
        raise Asked(text)


SPARK: Any = Spark()


@pytest.mark.parametrize(
    ("text", "uri"),
    [
        ("s3://b/x y/|| mz_now()", "s3://b/x y/|| mz_now()/"),
        ("'s3://b/exports/' || mz_now()", "s3://b/exports/17/"),
        ("\n 's3://b/' ||MZ_NOW()|| '/Ünï'||\t'/b--c'\n", "s3://b/17/Ünï/b--c/"),
    ],
)
def test_a_location_of_texts_needs_no_query(text: str, uri: str) -> None:
    assert resolve_location(SPARK, "model.shop.orders", text, 17).uri == uri


@pytest.mark.parametrize(
    "text",
    [
        "mz_now()",  # which is no text
        "mz_now() || 's3://b/'",
        "'s3://b/' || mz_now",
        "'s3://b/' 'x' || mz_now()",
        "'s3://b/it''s'",
        r"'s3://b/\x'",
        "'s3://b/${x}'",
        "r's3://b/x'",
        "'s3://b/' || mz_now() -- of this run",
        "'s3://b/' || date'2026-01-01'",
        "'s3://b/' || x'41'",
        "concat('s3://b/', mz_now())",
        "'s3://b/' + mz_now()",
        "'s3://b/' || '' || mz_now()",
    ],
)
def test_any_other_location_is_left_to_spark(text: str) -> None:
    with pytest.raises(Asked):
        resolve_location(SPARK, "model.shop.orders", text, 17)


@pytest.mark.parametrize(
    ("text", "bucket"),
    [
        ("s3://acme/x/y", "acme"),
        ("concat('s3://acme/', current_date())", "acme"),
        ("'s3://acme'", "acme"),
        ("'s3://' || bucket || '/x'", None),
        ("'s3://a b'", "a"),
        ("'s3://not;one/'", None),
        ("location", None),
    ],
)
def test_the_bucket_is_mostly_known_before_spark_has_evaluated_the_location(
    text: str, bucket: str | None
) -> None:
    assert likely_bucket(text) == (bucket and S3Location(bucket, ""))


def prefix(s3: MemoryS3) -> Prefix:
    client: Any = s3
    return prefix_of(client, S3Location("b", "x/"))


@pytest.mark.parametrize("repeated", [0, 1, 2])
def test_an_upload_that_was_opened_once_is_not_looked_for(repeated: int) -> None:
    s3 = Repeating(repeated)
    asked: list[str] = []
    s3.before = lambda action, key: asked.append(action)
    with prove_writing(prefix(s3)) as upload:
        assert upload.upload_id in s3.uploads
    assert s3.uploads == {}
    assert ("ListMultipartUploads" in asked) is (repeated > 0)


@pytest.mark.parametrize(("etag", "is_md5"), [(f'"{MD5_OF_ZERO}"', True), ('"kms"', False)])
def test_the_part_of_an_upload_tells_whether_etags_are_md5s(etag: str, is_md5: bool) -> None:
    s3 = MemoryS3()
    s3.upload_part = lambda **_: {"ETag": etag}  # type: ignore[method-assign]
    with prove_writing(prefix(s3)) as upload:
        assert (upload.etag_if_equal(1, PROBE_PART) is not None) is is_md5


def test_an_upload_of_which_that_is_not_told_is_looked_for() -> None:
    s3 = MemoryS3()
    asked: list[str] = []
    s3.before = lambda action, key: asked.append(action)
    with prove_writing(prefix(s3)):
        pass
    assert asked[-1] == "ListMultipartUploads"


def test_what_can_not_be_aborted_is_named() -> None:
    s3 = Repeating(0)

    def before(action: str, key: str) -> None:
        if action == "AbortMultipartUpload":
            raise failure("AccessDenied")

    s3.before = before
    named = r"the upload upload 0 of x/_mzs3_\w+ of s3://b/x/_mzs3_\w+ stays open$"
    with pytest.raises(S3Error, match=named), prove_writing(prefix(s3)):
        pass
