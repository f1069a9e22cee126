"""Locations: a bucket and a prefix that never runs into its sibling."""

import pytest

from dbt.adapters.mzs3.aws.location import S3Location, parse_location


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("s3://b/orders", S3Location("b", "orders/")),
        ("s3://b/orders/", S3Location("b", "orders/")),
        ("s3://b/a/b c/é", S3Location("b", "a/b c/é/")),
        ("s3://b", S3Location("b", "")),
        ("s3://b/", S3Location("b", "")),
    ],
)
def test_a_prefix_ends_in_one_slash(text: str, location: S3Location) -> None:
    assert parse_location(text) == location


def test_keys_and_uris_are_below_it() -> None:
    location = S3Location("b", "orders/")
    assert location.uri == "s3://b/orders/"
    assert location.key("part-0000-0001.csv") == "orders/part-0000-0001.csv"


@pytest.mark.parametrize("text", ["", "b/orders", "s3a://b/x", "s3://", "s3:///x", "s3://b//x"])
def test_what_is_no_location(text: str) -> None:
    with pytest.raises(ValueError, match=r"must start with s3://|no bucket|empty folder name"):
        parse_location(text)
